"""The lab: the useful views of a system in one output of a cell, as one widget.

Its parts are views of their own, which share one look at the system and, on the page, one cursor,
one selection and one span of time.
"""

import struct
from contextlib import suppress
from functools import partial
from html import escape
from typing import Any, ClassVar

from accel_lab import system
from accel_lab.display.summary import as_html
from accel_lab.errors import InvalidArgument, JournalError
from accel_lab.views.agents.view import AgentsView
from accel_lab.views.collectives.view import CollectivesView
from accel_lab.views.health import HealthView
from accel_lab.views.journal_view import JournalView
from accel_lab.views.kernels import KernelsView
from accel_lab.views.lab_lines import lines_of
from accel_lab.views.past.recording import Recording
from accel_lab.views.past.replayable import Replayable, replayable_of
from accel_lab.views.patterns.view import PatternsView
from accel_lab.views.scene.observer import Lab, Source, Want
from accel_lab.views.scene.scene import Scene
from accel_lab.views.supervision import SupervisionView
from accel_lab.views.timeline import TimelineView
from accel_lab.views.topology.view import TopologyView
from accel_lab.views.training.view import TrainingView
from accel_lab.views.tree import TreeView
from accel_lab.views.values.view import ValuesView
from accel_lab.views.vram import VramView
from accel_lab.views.widget import commands
from accel_lab.views.widget.long_work import headline_of, long_work, told
from accel_lab.views.widget.publisher import DEFAULT_HZ
from accel_lab.views.widget.view import State, View, show

PARTS: tuple[type[View], ...] = (
    TreeView,
    SupervisionView,
    TimelineView,
    KernelsView,
    VramView,
    HealthView,
    TrainingView,
    ValuesView,
    CollectivesView,
    TopologyView,
    PatternsView,
    AgentsView,
    JournalView,
)
"""In the order in which they are read; the last only of what can be looked back at, and the six
before it only of a system that has something to show in them."""


class LabView(View):
    """The parts of a system's lab side by side."""

    name = "lab"

    def __init__(self, source: Lab | Source) -> None:
        super().__init__(_past_too(source))
        kinds = PARTS if isinstance(self.source, Replayable) else PARTS[:-1]
        self.parts = {kind.name: kind(self.source) for kind in kinds}

    def fold(self, scene: Scene) -> State:
        """Fold a scene into what each part draws, by the part's name; and into `running`, if any.

        That is what a device has been at for long.
        """
        state: State = {name: part.fold(scene) for name, part in self._present(scene)}
        state["closed"] = scene.closed
        if headline := headline_of(long_work(scene, self.source)):
            state["running"] = headline
        return state

    def pack(self, scene: Scene) -> bytes:
        """Return the columns of all parts: how many bytes each has, as Float64, then all those."""
        packs = [part.pack(scene) for part in self.parts.values()]  # always so many
        if not any(packs):
            return b""
        return b"".join((struct.pack(f"<{len(packs)}d", *map(len, packs)), *packs))

    def text(self, state: State) -> str:
        """Draw the parts one below the other, above them what runs."""
        running = [told(state["running"])] if "running" in state else []
        drawn = (part.text(state[name]) for name, part in self.parts.items() if name in state)
        return "\n\n".join((*running, *drawn))

    def html(self, state: State) -> str:
        """Draw the parts as tables, one below the other, above them what runs."""
        running = f"<p>{escape(told(state['running']))}</p>" if "running" in state else ""
        parts = (part.html(state[name]) for name, part in self.parts.items() if name in state)
        return running + "".join(parts)

    def _present(self, scene: Scene) -> list[tuple[str, View]]:
        """Return the parts that have something to show, by their names."""
        shown = {
            TrainingView.name: bool(scene.trainings.runs),
            ValuesView.name: bool(scene.observations.series),
            CollectivesView.name: bool(scene.worlds.shown()),
            TopologyView.name: scene.peers is not None and scene.peers.is_measured,
            PatternsView.name: bool(scene.patterns),
            AgentsView.name: any(one.ways for one in scene.patterns),
        }
        return [(name, part) for name, part in self.parts.items() if shown.get(name, True)]

    def do_part(self, part: str, message: dict[str, Any]) -> None:
        """Carry out the command of a part; blocks as the part's own does.

        Raises:
            InvalidArgument: there is no such part, or it has no such command.
        """
        if part not in self.parts:
            raise InvalidArgument(f"the lab has no part {part!r}; there are {list(self.parts)}")
        commands.obey(self.parts[part], **message)
        self.nudge()

    def nudge(self) -> None:
        """Have what a command changed sent soon; only a widget sends anything."""


class CompactView(View):
    """The tree of a system, and a line for each of the other things to know of it."""

    name = "lab_compact"
    wants: ClassVar[frozenset[Want]] = frozenset({"work"})

    def __init__(self, source: Lab | Source) -> None:
        super().__init__(source)
        self._tree = TreeView(self.source)

    def fold(self, scene: Scene) -> State:
        """Fold a scene into `{"tree": …, "lines": [[title, text, tone], …], "closed": …}`."""
        headline = headline_of(long_work(scene, self.source))
        return {
            "tree": self._tree.fold(scene),
            "lines": [list(line) for line in lines_of(scene, told(headline) if headline else "")],
            "closed": scene.closed,
        }

    def text(self, state: State) -> str:
        """Draw the tree, and the lines below it."""
        lines = (f"{title + ':':<12} {text}" for title, text, _ in state["lines"])
        return "\n".join((self._tree.text(state["tree"]), *lines))

    def html(self, state: State) -> str:
        """Draw the tree as a table, and the lines as another."""
        lines = [(title, text) for title, text, _ in state["lines"]]
        return self._tree.html(state["tree"]) + as_html("Beside the tree", lines)


def lab(
    lab: Lab | Source, *, compact: bool = False, rate_hz: float = DEFAULT_HZ
) -> LabView | CompactView:
    """Return the useful views of a system together; display it as the last value of a cell.

    The tree, supervision, the timeline, memory, health and the journal in one output: what is
    chosen in one of them is shown in all, and so is a moment or a span of time. In a Jupyter kernel
    with the `lab` extra it is a widget; elsewhere it is drawn once, as text or tables. Blocks while
    the system's journal is read for the first time.

    Parameters:
        lab: the system, or a recording of one.
        compact: the tree alone, with one line for each of the others.
        rate_hz: how often it may update while something changes, at most 30.

    Raises:
        ValueError: the rate is not positive.
    """
    if compact:
        return show(CompactView, lab, rate_hz=rate_hz)
    return show(LabView, lab, rate_hz=rate_hz)


def _past_too(source: Lab | Source) -> Lab | Source:
    """Return a source that can be looked back at, where there is one."""
    if isinstance(source, Recording):
        return Replayable(source, player=source.player)
    if hasattr(source, "want"):
        return source
    with suppress(InvalidArgument, JournalError):  # it keeps none, or one that cannot be read
        return replayable_of(source)
    return source


system.show = partial(lab, compact=True)
