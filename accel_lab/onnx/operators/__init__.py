"""The operators of ONNX, made of messages.

Runs in the notebook's process.
"""

from accel_lab.onnx.operators import control as control
from accel_lab.onnx.operators import convolution as convolution
from accel_lab.onnx.operators import elementwise as elementwise
from accel_lab.onnx.operators import indexing as indexing
from accel_lab.onnx.operators import layers as layers
from accel_lab.onnx.operators import making as making
from accel_lab.onnx.operators import ordering as ordering
from accel_lab.onnx.operators import pooling as pooling
from accel_lab.onnx.operators import products as products
from accel_lab.onnx.operators import quantizing as quantizing
from accel_lab.onnx.operators import recurrent as recurrent
from accel_lab.onnx.operators import reduction as reduction
from accel_lab.onnx.operators import resizing as resizing
from accel_lab.onnx.operators import shaping as shaping
