"""Training: gradients of what messages compute, losses, optimizers, and trainers that heal.

Runs in the notebook's process.
"""

from accel_lab.blueprints.train.autograd.functions import *  # noqa: F403 - train.linear and the like
from accel_lab.blueprints.train.autograd.gradients import gradients as gradients
from accel_lab.blueprints.train.autograd.variable import Variable as Variable
from accel_lab.blueprints.train.batches import Batches as Batches
from accel_lab.blueprints.train.exchange.schedule import Bubble as Bubble
from accel_lab.blueprints.train.losses import binary_cross_entropy as binary_cross_entropy
from accel_lab.blueprints.train.losses import (
    binary_cross_entropy_with_logits as binary_cross_entropy_with_logits,
)
from accel_lab.blueprints.train.losses import cross_entropy as cross_entropy
from accel_lab.blueprints.train.losses import huber as huber
from accel_lab.blueprints.train.losses import mse as mse
from accel_lab.blueprints.train.models.gpt import GPT as GPT
from accel_lab.blueprints.train.models.text import Text as Text
from accel_lab.blueprints.train.models.text import sonnets as sonnets
from accel_lab.blueprints.train.optimizers.adafactor import Adafactor as Adafactor
from accel_lab.blueprints.train.optimizers.adam import Adam as Adam
from accel_lab.blueprints.train.optimizers.adam import AdamW as AdamW
from accel_lab.blueprints.train.optimizers.clipping import LossScale as LossScale
from accel_lab.blueprints.train.optimizers.clipping import clip_by_norm as clip_by_norm
from accel_lab.blueprints.train.optimizers.clipping import norm as norm
from accel_lab.blueprints.train.optimizers.lion import Lion as Lion
from accel_lab.blueprints.train.optimizers.optimizer import Optimizer as Optimizer
from accel_lab.blueprints.train.optimizers.schedules import Cosine as Cosine
from accel_lab.blueprints.train.optimizers.schedules import Exponential as Exponential
from accel_lab.blueprints.train.optimizers.schedules import InTurn as InTurn
from accel_lab.blueprints.train.optimizers.schedules import Linear as Linear
from accel_lab.blueprints.train.optimizers.schedules import StepDecay as StepDecay
from accel_lab.blueprints.train.optimizers.sgd import SGD as SGD
from accel_lab.blueprints.train.parameter_server.compression import Float16 as Float16
from accel_lab.blueprints.train.parameter_server.compression import Int8 as Int8
from accel_lab.blueprints.train.parameter_server.compression import TopK as TopK
from accel_lab.blueprints.train.parameter_server.server import (
    AsyncParameterServer as AsyncParameterServer,
)
from accel_lab.blueprints.train.snapshots.checkpoints import Checkpoints as Checkpoints
from accel_lab.blueprints.train.snapshots.in_memory import InMemory as InMemory
from accel_lab.blueprints.train.snapshots.snapshot import Snapshot as Snapshot
from accel_lab.blueprints.train.trainers.data_parallel import (
    DataParallelTrainer as DataParallelTrainer,
)
from accel_lab.blueprints.train.trainers.flow import Stage as Stage
from accel_lab.blueprints.train.trainers.grid import GridTrainer as GridTrainer
from accel_lab.blueprints.train.trainers.pipeline import (
    PipelineParallelTrainer as PipelineParallelTrainer,
)
from accel_lab.blueprints.train.trainers.sharded import ShardedTrainer as ShardedTrainer
from accel_lab.blueprints.train.trainers.tensor_parallel import (
    TensorParallelTrainer as TensorParallelTrainer,
)
from accel_lab.blueprints.train.trainers.trainer import Trainer as Trainer
