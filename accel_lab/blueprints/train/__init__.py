"""Training: gradients of what messages compute, losses, optimizers, and trainers that heal.

Runs in the notebook's process.
"""

from accel_lab.blueprints.train.autograd.functions import *  # noqa: F403 - train.linear and the like
from accel_lab.blueprints.train.autograd.gradients import gradients as gradients
from accel_lab.blueprints.train.autograd.variable import Variable as Variable
