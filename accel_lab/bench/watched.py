"""What a live view costs those who compute."""

from contextlib import AbstractContextManager, closing
from importlib.util import find_spec
from time import perf_counter
from typing import Any

import msgspec

from accel_lab.bench.effort import Effort
from accel_lab.bench.peer import Peer
from accel_lab.bench.pipelined import SMALL, Ask, axpy_of
from accel_lab.bench.rounds import compare
from accel_lab.bench.row import Budget, Row
from accel_lab.system import System
from accel_lab.views.publisher import PUBLISHER
from accel_lab.views.tree import TreeView

RATE_HZ = 10.0
BATCH = 200


class Reader(TreeView):
    """Samples and encodes the tree as the widget does, where the widget's packages are absent."""

    ended = False

    def publish(self, at: float) -> bool:
        """Take a sample and throw it away; the publisher's thread."""
        del at
        return bool(msgspec.json.encode(self.sample()))

    def close(self) -> None:
        """Take no more samples."""
        self.ended = True


def views(lab: System, peer: Peer, effort: Effort) -> list[Row]:
    """Send small messages with a live tree and without one."""
    ask = axpy_of(peer.device, SMALL)

    def watched() -> float:
        with _live_tree(lab):
            return _rate(ask, effort.watched_s)

    found = compare(lambda: _rate(ask, effort.watched_s), watched, effort.rounds)
    row = Row(
        name="views-tree",
        group="views",
        title=f"pipelined Axpy, tree at {RATE_HZ:g} Hz",
        unit="messages/s",
        peer="without a view",
        budget=Budget(0.98, "at least"),
        **found._asdict(),
    )
    return [row]


def _live_tree(lab: System) -> AbstractContextManager[Any]:
    if find_spec("anywidget") is not None:
        from accel_lab.views.live import widget_class

        return closing(widget_class(TreeView)(lab, rate_hz=RATE_HZ))
    reader = Reader(lab)
    PUBLISHER.add(reader, rate_hz=RATE_HZ)
    return closing(reader)


def _rate(ask: Ask, for_s: float) -> float:
    """Send for a time and return the messages a second."""
    count, begin = 0, perf_counter()
    while perf_counter() - begin < for_s:
        for _ in range(BATCH):
            last = ask()
        count += BATCH
    last.result()
    return count / (perf_counter() - begin)
