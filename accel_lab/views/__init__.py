"""The live views: each takes a system and shows it in a notebook while it works.

Runs in the notebook's process.
"""

from accel_lab.views.agents.view import AgentsView as AgentsView
from accel_lab.views.agents.view import agents as agents
from accel_lab.views.canvas.view import CanvasView as CanvasView
from accel_lab.views.canvas.view import canvas as canvas
from accel_lab.views.cells.view import CellsView as CellsView
from accel_lab.views.cells.view import cells as cells
from accel_lab.views.collectives.view import CollectivesView as CollectivesView
from accel_lab.views.collectives.view import collectives as collectives
from accel_lab.views.dashboard.dashboard import Dashboard as Dashboard
from accel_lab.views.dashboard.dashboard import dashboard as dashboard
from accel_lab.views.feed import feed as feed
from accel_lab.views.health import HealthView as HealthView
from accel_lab.views.health import health as health
from accel_lab.views.journal_view import JournalView as JournalView
from accel_lab.views.journal_view import journal as journal
from accel_lab.views.kernels import KernelsView as KernelsView
from accel_lab.views.kernels import kernels as kernels
from accel_lab.views.lab import CompactView as CompactView
from accel_lab.views.lab import LabView as LabView
from accel_lab.views.lab import lab as lab
from accel_lab.views.past.recording import Recording as Recording
from accel_lab.views.past.recording import record as record
from accel_lab.views.patterns.view import PatternsView as PatternsView
from accel_lab.views.patterns.view import patterns as patterns
from accel_lab.views.sidebar import SidebarView as SidebarView
from accel_lab.views.sidebar import sidebar as sidebar
from accel_lab.views.supervision import SupervisionView as SupervisionView
from accel_lab.views.supervision import supervision as supervision
from accel_lab.views.timeline import TimelineView as TimelineView
from accel_lab.views.timeline import timeline as timeline
from accel_lab.views.topology.view import TopologyView as TopologyView
from accel_lab.views.topology.view import topology as topology
from accel_lab.views.training.view import TrainingView as TrainingView
from accel_lab.views.training.view import training as training
from accel_lab.views.tree import TreeView as TreeView
from accel_lab.views.tree import tree as tree
from accel_lab.views.values.view import ValuesView as ValuesView
from accel_lab.views.values.view import values as values
from accel_lab.views.vram import VramView as VramView
from accel_lab.views.vram import vram as vram
