"""The worlds of a scene: what was seen of each.

Runs in the notebook's process.
"""

from accel_lab.views.scene.worlds.past import HEALING_TYPES as HEALING_TYPES
from accel_lab.views.scene.worlds.past import WorldPast as WorldPast
from accel_lab.views.scene.worlds.worlds import KEPT as KEPT
from accel_lab.views.scene.worlds.worlds import WORLD_TYPES as WORLD_TYPES
from accel_lab.views.scene.worlds.worlds import WorldFact as WorldFact
from accel_lab.views.scene.worlds.worlds import Worlds as Worlds
