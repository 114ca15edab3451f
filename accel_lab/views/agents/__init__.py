"""The graphs of a system's agents, drawn: where runs are, where they went, and what failed.

Runs in the notebook's process.
"""

from accel_lab.views.agents.state import state_of as state_of
from accel_lab.views.agents.view import AgentsView as AgentsView
from accel_lab.views.agents.view import agents as agents
