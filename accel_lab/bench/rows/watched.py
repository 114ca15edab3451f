"""What live views cost the work that they show."""

import gc
import time
from contextlib import AbstractContextManager, ExitStack, closing
from importlib.util import find_spec
from statistics import median
from time import perf_counter
from typing import Any

import msgspec

from accel_lab.bench.effort import Effort
from accel_lab.bench.operands import SMALL
from accel_lab.bench.page import Page, there_can_be_pages
from accel_lab.bench.peer import Peer
from accel_lab.bench.rounds import compare
from accel_lab.bench.row import Budget, Row
from accel_lab.bench.rows.pipelined import Ask, axpy_of, rate_of
from accel_lab.compute.execution.tracer import WATCHED_S
from accel_lab.system import System
from accel_lab.views.lab import LabView
from accel_lab.views.tree import TreeView
from accel_lab.views.widget.publisher import PUBLISHER
from accel_lab.views.widget.view import View

RATE_HZ = 10.0
SETTLING_S = 0.5
"""For so long a lab is shown before it is measured: its first moments are not its life."""


class Reader:
    """Samples and encodes a view as the widget does, where the widget's packages are absent."""

    ended = False

    def __init__(self, view: View) -> None:
        self.view = view

    def publish(self, at: float) -> bool:
        """Take a sample and throw it away; the publisher's thread."""
        del at
        view = self.view
        with view.source.lock:
            scene = view.source.look()
            return bool(msgspec.json.encode(view.fold(scene)) + view.pack(scene))

    def close(self) -> None:
        """Take no more samples."""
        self.ended = True


def views(lab: System, peer: Peer, effort: Effort) -> list[Row]:
    """Send small messages with a live tree, with the whole lab on a page, and without either."""
    ask = axpy_of(peer.device, SMALL)
    return [_tree(lab, ask, effort), *_lab(lab, ask, effort)]


def _tree(lab: System, ask: Ask, effort: Effort) -> Row:
    def watched() -> float:
        with _live(TreeView, lab):
            return rate_of(ask, effort.watched_s)

    found = compare(lambda: rate_of(ask, effort.watched_s), watched, effort.rounds)
    return Row(
        name="views-tree",
        group="views",
        title=f"pipelined Axpy, tree at {RATE_HZ:g} Hz",
        unit="messages/s",
        peer="without a view",
        budget=Budget(0.98, "at least"),
        **found._asdict(),
    )


def _lab(lab: System, ask: Ask, effort: Effort) -> list[Row]:
    """Measure the rate with every view of the lab on a page, and what the publisher takes."""
    shares: list[float] = []
    page: Page | None = None

    def watched() -> float:
        with _live(LabView, lab) as widget:
            if page is not None:
                page.show(widget)
            rate_of(ask, SETTLING_S)
            used_s, begin = PUBLISHER.cpu_s, perf_counter()
            rate = rate_of(ask, effort.lab_s)
            shares.append(100 * (PUBLISHER.cpu_s - used_s) / (perf_counter() - begin))
        del widget
        gc.collect()
        time.sleep(WATCHED_S)  # until nothing is traced any more
        return rate

    with ExitStack() as stack:
        if there_can_be_pages():
            page = stack.enter_context(Page())
        found = compare(lambda: rate_of(ask, effort.lab_s), watched, effort.labs)
    rate = Row(
        name="views-lab",
        group="views",
        title=f"pipelined Axpy, lab at {RATE_HZ:g} Hz",
        unit="messages/s",
        peer="without a view",
        budget=Budget(0.98, "at least"),
        **found._asdict(),
    )
    share = Row(
        name="views-lab-core",
        group="views",
        title="the publisher's share of a core meanwhile",
        unit="%",
        ours=median(shares),
        budget=Budget(2.0, "at most", "ours", "%"),
        rounds=len(shares),
    )
    return [rate, share]


def _live(kind: Any, lab: System) -> AbstractContextManager[Any]:
    if find_spec("anywidget") is not None:
        from accel_lab.views.widget.live import widget_class

        return closing(widget_class(kind)(lab, rate_hz=RATE_HZ))
    reader = Reader(kind(lab))
    PUBLISHER.add(reader, rate_hz=RATE_HZ)
    return closing(reader)
