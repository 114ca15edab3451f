"""The memory of every device: a strip of its blocks, a history, and tables of the largest.

Runs in the notebook's process.
"""

from accel_lab.views.vram.state import LISTED as LISTED
from accel_lab.views.vram.state import OBJECTS as OBJECTS
from accel_lab.views.vram.state import PADDING_BYTES as PADDING_BYTES
from accel_lab.views.vram.state import state_of as state_of
from accel_lab.views.vram.view import VramView as VramView
from accel_lab.views.vram.view import vram as vram
from accel_lab.views.vram.words import ROWS as ROWS
from accel_lab.views.vram.words import html as html
from accel_lab.views.vram.words import text as text
