"""All functions of variables, by the names that `train` has them."""

# ruff: noqa: A004, PLC0414 - names of NumPy, and of this module wherever they are written

import sys as _sys

from accel_lab.blueprints.train.autograd.elementwise import absolute as absolute
from accel_lab.blueprints.train.autograd.elementwise import add as add
from accel_lab.blueprints.train.autograd.elementwise import clip as clip
from accel_lab.blueprints.train.autograd.elementwise import cos as cos
from accel_lab.blueprints.train.autograd.elementwise import divide as divide
from accel_lab.blueprints.train.autograd.elementwise import exp as exp
from accel_lab.blueprints.train.autograd.elementwise import expm1 as expm1
from accel_lab.blueprints.train.autograd.elementwise import log as log
from accel_lab.blueprints.train.autograd.elementwise import log1p as log1p
from accel_lab.blueprints.train.autograd.elementwise import maximum as maximum
from accel_lab.blueprints.train.autograd.elementwise import minimum as minimum
from accel_lab.blueprints.train.autograd.elementwise import multiply as multiply
from accel_lab.blueprints.train.autograd.elementwise import negative as negative
from accel_lab.blueprints.train.autograd.elementwise import power as power
from accel_lab.blueprints.train.autograd.elementwise import sin as sin
from accel_lab.blueprints.train.autograd.elementwise import sqrt as sqrt
from accel_lab.blueprints.train.autograd.elementwise import square as square
from accel_lab.blueprints.train.autograd.elementwise import subtract as subtract
from accel_lab.blueprints.train.autograd.elementwise import where as where
from accel_lab.blueprints.train.autograd.layers import activate as activate
from accel_lab.blueprints.train.autograd.layers import average_pool as average_pool
from accel_lab.blueprints.train.autograd.layers import conv as conv
from accel_lab.blueprints.train.autograd.layers import conv_transpose as conv_transpose
from accel_lab.blueprints.train.autograd.layers import dropout as dropout
from accel_lab.blueprints.train.autograd.layers import elu as elu
from accel_lab.blueprints.train.autograd.layers import embedding as embedding
from accel_lab.blueprints.train.autograd.layers import gelu as gelu
from accel_lab.blueprints.train.autograd.layers import gelu_tanh as gelu_tanh
from accel_lab.blueprints.train.autograd.layers import log_softmax as log_softmax
from accel_lab.blueprints.train.autograd.layers import max_pool as max_pool
from accel_lab.blueprints.train.autograd.layers import relu as relu
from accel_lab.blueprints.train.autograd.layers import sigmoid as sigmoid
from accel_lab.blueprints.train.autograd.layers import softmax as softmax
from accel_lab.blueprints.train.autograd.layers import softplus as softplus
from accel_lab.blueprints.train.autograd.layers import swish as swish
from accel_lab.blueprints.train.autograd.layers import tanh as tanh
from accel_lab.blueprints.train.autograd.norms import batch_norm as batch_norm
from accel_lab.blueprints.train.autograd.norms import batch_norm_inference as batch_norm_inference
from accel_lab.blueprints.train.autograd.norms import group_norm as group_norm
from accel_lab.blueprints.train.autograd.norms import layer_norm as layer_norm
from accel_lab.blueprints.train.autograd.norms import rms_norm as rms_norm
from accel_lab.blueprints.train.autograd.parallel import column_linear as column_linear
from accel_lab.blueprints.train.autograd.parallel import copied as copied
from accel_lab.blueprints.train.autograd.parallel import gathered as gathered
from accel_lab.blueprints.train.autograd.parallel import row_linear as row_linear
from accel_lab.blueprints.train.autograd.parallel import scattered as scattered
from accel_lab.blueprints.train.autograd.parallel import self_attention as self_attention
from accel_lab.blueprints.train.autograd.parallel import summed as summed
from accel_lab.blueprints.train.autograd.products import attention as attention
from accel_lab.blueprints.train.autograd.products import linear as linear
from accel_lab.blueprints.train.autograd.products import matmul as matmul
from accel_lab.blueprints.train.autograd.reductions import max as max
from accel_lab.blueprints.train.autograd.reductions import mean as mean
from accel_lab.blueprints.train.autograd.reductions import min as min
from accel_lab.blueprints.train.autograd.reductions import sum as sum
from accel_lab.blueprints.train.autograd.reductions import var as var
from accel_lab.blueprints.train.autograd.shaping import cast as cast
from accel_lab.blueprints.train.autograd.shaping import concatenate as concatenate
from accel_lab.blueprints.train.autograd.shaping import part as part
from accel_lab.blueprints.train.autograd.shaping import reshape as reshape
from accel_lab.blueprints.train.autograd.shaping import stack as stack
from accel_lab.blueprints.train.autograd.shaping import transpose as transpose
from accel_lab.blueprints.train.autograd.variable import Variable as _Variable

_Variable.functions = _sys.modules[__name__]
