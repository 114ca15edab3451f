"""What chosen arrays of a system held, over time: their range and their histogram.

Runs in the notebook's process.
"""

from accel_lab.views.values.state import state_of as state_of
from accel_lab.views.values.view import ValuesView as ValuesView
from accel_lab.views.values.view import values as values
