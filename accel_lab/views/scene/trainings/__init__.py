"""The trainers of a scene: what was seen of each.

Runs in the notebook's process.
"""

from accel_lab.views.scene.trainings.run import POINTS as POINTS
from accel_lab.views.scene.trainings.run import TrainingRun as TrainingRun
from accel_lab.views.scene.trainings.trainings import RUNS as RUNS
from accel_lab.views.scene.trainings.trainings import Trainings as Trainings
