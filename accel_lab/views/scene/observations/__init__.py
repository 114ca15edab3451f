"""What chosen arrays held, look by look.

Runs in the notebook's process.
"""

from accel_lab.views.scene.observations.series import POINTS as POINTS
from accel_lab.views.scene.observations.series import SERIES as SERIES
from accel_lab.views.scene.observations.series import Observations as Observations
from accel_lab.views.scene.observations.series import Series as Series
