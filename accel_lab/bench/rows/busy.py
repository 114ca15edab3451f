"""A cell that goes on computing in Python after it has sent: the device must not wait for it."""

from time import monotonic
from typing import Any

from accel_lab.bench.effort import Effort
from accel_lab.bench.operands import SMALL, squares
from accel_lab.bench.peer import Peer, call
from accel_lab.bench.rounds import compare
from accel_lab.bench.row import Budget, Row
from accel_lab.bench.rows.latency import MICROSECONDS
from accel_lab.libraries.blas import library as blas

MESSAGES = 200


def busy(peer: Peer, effort: Effort) -> list[Row]:
    """Tell small messages, then compute in the same thread, or wait: when were they done?

    The context says when, by the clock that all processes share.
    """
    device = peer.device
    x, y, out = squares(device, SMALL)

    def done_after(for_s: float) -> float:
        begin = monotonic()
        for _ in range(MESSAGES):
            device.tell(blas.Axpy(x, y, out=out))
        reply: Any = device.run(call, peer.backend, "device.finished")
        _compute(for_s)
        return (float(reply.result()) - begin) * MICROSECONDS

    found = compare(lambda: done_after(0.0), lambda: done_after(effort.busy_s), effort.cells)
    row = Row(
        name="busy-cell",
        group="busy",
        title=f"{MESSAGES} Axpy, cell busy for {effort.busy_s:g} s",
        unit="µs",
        peer="cell waiting",
        budget=Budget(1.5, "at most"),
        **found._asdict(),
    )
    return [row]


def _compute(for_s: float) -> int:
    """Keep the interpreter to this thread for a time, as a cell's own loop does."""
    count, end = 0, monotonic() + for_s
    while monotonic() < end:
        count += 1
    return count
