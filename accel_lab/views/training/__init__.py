"""The trainers of a system: their curves, where the time of a step goes, and their restarts.

Runs in the notebook's process.
"""

from accel_lab.views.training.state import state_of as state_of
from accel_lab.views.training.view import TrainingView as TrainingView
from accel_lab.views.training.view import training as training
