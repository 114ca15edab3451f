"""The patterns of a system: who waits and runs, what became of the rest, and what was decided.

Runs in the notebook's process.
"""

from accel_lab.views.patterns.state import state_of as state_of
from accel_lab.views.patterns.view import PatternsView as PatternsView
from accel_lab.views.patterns.view import patterns as patterns
