"""The worlds of a system: their ranks around a ring, what is under way, and how they heal.

Runs in the notebook's process.
"""

from accel_lab.views.collectives.state import state_of as state_of
from accel_lab.views.collectives.view import CollectivesView as CollectivesView
from accel_lab.views.collectives.view import collectives as collectives
from accel_lab.views.collectives.words import html as html
from accel_lab.views.collectives.words import text as text
