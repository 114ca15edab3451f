"""What a session's names stood for after each of its cells, beside what they stand for today.

Runs in the notebook's process.
"""

from accel_lab.views.cells.view import CellsView as CellsView
from accel_lab.views.cells.view import cells as cells
