"""How the devices of a system reach each other, and how fast that was.

Runs in the notebook's process.
"""

from accel_lab.views.topology.state import state_of as state_of
from accel_lab.views.topology.view import TopologyView as TopologyView
from accel_lab.views.topology.view import topology as topology
