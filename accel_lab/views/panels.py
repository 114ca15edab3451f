"""Views beside the notebook: JupyterLab's extension asks for them, one comm feeds them.

The kernel has the comm from its first system on. It opens none at the page, which may have no
extension: it sends one message, which only the extension understands. Views in panels need neither
a cell nor ipywidgets, and outlive the notebook's page.
"""

import threading
import time
from collections.abc import Callable
from typing import Any

import comm
import msgspec

from accel_lab import open_systems
from accel_lab.errors import InvalidArgument
from accel_lab.system import System
from accel_lab.views.agents.view import AgentsView
from accel_lab.views.collectives.view import CollectivesView
from accel_lab.views.first_minute import FirstMinuteView
from accel_lab.views.health import HealthView
from accel_lab.views.journal_view import JournalView
from accel_lab.views.kernels import KernelsView
from accel_lab.views.lab import LabView
from accel_lab.views.past.replayable import replayable_of
from accel_lab.views.patterns.view import PatternsView
from accel_lab.views.sidebar import SidebarView
from accel_lab.views.supervision import SupervisionView
from accel_lab.views.timeline import TimelineView
from accel_lab.views.topology.view import TopologyView
from accel_lab.views.training.view import TrainingView
from accel_lab.views.tree import TreeView
from accel_lab.views.values.view import ValuesView
from accel_lab.views.vram import VramView
from accel_lab.views.widget import commands
from accel_lab.views.widget.publisher import BEAT_S, DEFAULT_HZ, PUBLISHER, silence_s
from accel_lab.views.widget.view import View

TARGET = "accel_lab"
"""Of the comm; the extension asks the kernel for comms of this target."""
RATES_HZ: dict[type[View], float] = {SidebarView: 4.0}
"""How often a view updates at most, where it is not as often as a widget."""
GONE_S = 60.0
"""A panel that no page has named for so long is gone with its page."""
KINDS: dict[str, Callable[[System], View]] = {
    "agents": AgentsView,
    "collectives": CollectivesView,
    "first_minute": FirstMinuteView,
    "health": HealthView,
    "journal": lambda system: JournalView(replayable_of(system)),
    "kernels": KernelsView,
    "lab": LabView,
    "patterns": PatternsView,
    "sidebar": SidebarView,
    "supervision": SupervisionView,
    "timeline": TimelineView,
    "topology": TopologyView,
    "training": TrainingView,
    "tree": TreeView,
    "values": ValuesView,
    "vram": VramView,
}
"""What makes the views that a panel may show; the journal is read then for the first time."""

Send = Callable[[dict[str, Any], list[bytes]], None]


class Panel:
    """One view in one panel of the page, which the publisher's thread keeps up to date.

    Parameters:
        id_: by which the page knows it.

    Attributes:
        seen: when the page was last heard to have it, monotonic seconds.
    """

    def __init__(self, id_: str, view: View, send: Send) -> None:
        self.id = id_
        self.view = view
        self.name = view.name
        self.ended = False
        self.seen = time.monotonic()
        self._send = send
        self._sent = b"", b""
        self._stamp = 0.0
        rate_hz = RATES_HZ.get(type(view), DEFAULT_HZ)
        with view.source.lock:  # its thread samples at once, and finds both
            self._place = PUBLISHER.add(self, rate_hz=rate_hz)
            self._unfollow = view.source.on_news(self._place.nudge)

    def publish(self, at: float) -> bool:
        """Sample and send what changed, or a sign of life; the publisher's thread only."""
        source = self.view.source
        with source.lock:
            scene = source.look()
            sample = self.view.seen(scene)
            columns = self.view.pack(scene)
        body = msgspec.json.encode(sample)
        changed = (body, columns) != self._sent
        if changed or at - self._stamp >= BEAT_S:
            content = {
                "panel": self.id,
                "stamp": at,
                "silence": silence_s(self._place.period_s),
                "news": changed,
            }
            self._send(content, [body, columns] if changed else [])
            self._sent, self._stamp = (body, columns), at
        if sample["closed"] and source.ended:
            self.close()
        return changed

    def do_command(self, message: dict[str, Any]) -> None:
        """Carry out a command of the view; blocks as the view's own does.

        Raises:
            InvalidArgument: it has no such command.
        """
        commands.obey(self.view, **message)
        self._place.nudge()

    def close(self) -> None:
        """Send nothing more; any thread."""
        self.ended = True
        self._unfollow()


class Panels:
    """The panels of this kernel.

    Parameters:
        comm: what sends to the page; it is registered, and opened by nobody.
    """

    def __init__(self, comm: Any) -> None:
        self._comm = comm
        self._lock = threading.Lock()
        self._panels: dict[str, Panel] = {}
        comm.on_msg(self._take)
        commands.take_anywhere(comm)

    def tell(self) -> None:
        """Tell the page which systems there are; any thread."""
        named = [
            {"name": one.name, "backend": one.backend, "session": getattr(one, "path", "")}
            for one in open_systems.running()
        ]
        self._send({TARGET: "systems", "systems": named}, [])

    def _send(self, content: dict[str, Any], buffers: list[bytes]) -> None:
        self._comm.send(content, buffers=buffers)

    def _take(self, message: Any) -> None:
        """Take what the page asks for; whichever thread the kernel takes comms in."""
        commands.take(self, message["content"]["data"])

    name = TARGET

    def do_systems(self) -> None:
        """Tell which systems there are."""
        self.tell()

    def do_alive(self, panels: list[str]) -> None:
        """Note which panels a page has; those that no page has had for a minute are dropped.

        A page that was closed says nothing. As little is heard while the kernel takes no messages,
        so it is looked only when one has come.
        """
        now = time.monotonic()
        with self._lock:
            for panel in panels:
                if panel in self._panels:
                    self._panels[panel].seen = now
            gone = [id_ for id_, one in self._panels.items() if now - one.seen > GONE_S]
        for id_ in gone:
            self.do_hide(id_)

    def do_show(self, panel: str, view: str, system: str) -> None:
        """Show a view in a panel of the page.

        Raises:
            InvalidArgument: there is no such view, or no such system.
        """
        kind = KINDS.get(view)
        if kind is None:
            raise InvalidArgument(f"there is no view {view!r}; there are {', '.join(KINDS)}")
        found = next((one for one in open_systems.running() if one.name == system), None)
        if found is None:
            raise InvalidArgument(f"no system {system!r} is running")
        shown = Panel(panel, kind(found), self._send)
        with self._lock:
            before, self._panels[panel] = self._panels.get(panel), shown
        if before is not None:
            before.close()

    def do_hide(self, panel: str) -> None:
        """Send a panel nothing more."""
        with self._lock:
            gone = self._panels.pop(panel, None)
        if gone is not None:
            gone.close()

    def do_command(self, panel: str, message: dict[str, Any]) -> None:
        """Have the view of a panel do something; blocks as that does.

        Raises:
            InvalidArgument: there is no such panel, or its view has no such command.
        """
        with self._lock:
            found = self._panels.get(panel)
        if found is None:
            raise InvalidArgument(f"there is no panel {panel!r}")
        found.do_command(message)


_panels: Panels | None = None


def _tell(_: System) -> None:
    """Tell the page of a system that was opened or closed, where this is a Jupyter kernel."""
    global _panels  # noqa: PLW0603 - a kernel has one
    if _panels is None:
        made = comm.create_comm(target_name=TARGET, primary=False)
        comm.get_comm_manager().register_comm(made)
        _panels = Panels(made)
    _panels.tell()


open_systems.opened.append(_tell)
open_systems.ended.append(_tell)
