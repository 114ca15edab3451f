"""Messages sent one after another without waiting, against the library's own loop."""

from collections.abc import Callable
from time import perf_counter
from typing import Any

from accel_lab.actor.reply import Reply
from accel_lab.bench.effort import Effort
from accel_lab.bench.operands import SMALL, squares
from accel_lab.bench.peer import Peer
from accel_lab.bench.rounds import compare
from accel_lab.bench.row import Budget, Row
from accel_lab.compute.device import Device
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.libraries.blas import library as blas

BATCH = 200
LARGE = {"host": 512, "cuda": 1024}

Ask = Callable[[], AccelRef]


def gemm(peer: Peer, effort: Effort) -> list[Row]:
    """Multiply small matrices: all cost is launching."""
    return [_row(peer, effort, "gemm", gemm_of(peer.device, SMALL), "blas.gemm", SMALL, 1.0)]


def axpy(peer: Peer, effort: Effort) -> list[Row]:
    """Add small matrices, element by element, into `out`; PyTorch's sum is a second peer."""
    ask = axpy_of(peer.device, SMALL)
    rows = [_row(peer, effort, "axpy", ask, "blas.axpy", SMALL, 0.6)]
    if peer.label("torch.axpy", SMALL):
        rows.append(_row(peer, effort, "axpy", ask, "torch.axpy", SMALL, None))
    return rows


def matmul(peer: Peer, effort: Effort) -> list[Row]:
    """Multiply large matrices: all cost is the device's."""
    size = LARGE.get(peer.backend, SMALL)
    return [_row(peer, effort, "matmul", gemm_of(peer.device, size), "blas.gemm", size, 0.99)]


def axpy_of(device: Device, size: int) -> Ask:
    """Return what sends one sum of two square matrices into a third."""
    x, y, out = squares(device, size)
    return lambda: device.ask(blas.Axpy(x, y, out=out))


def gemm_of(device: Device, size: int) -> Ask:
    """Return what sends one product of two square matrices into a third."""
    a, b, out = squares(device, size)
    return lambda: device.ask(blas.Gemm(a, b, out=out))


def seconds_of(ask: Callable[[], Reply[Any]], count: int) -> float:
    """Send `count` messages, wait for the last, and return the seconds."""
    begin = perf_counter()
    for _ in range(count):
        last = ask()
    last.result()
    return perf_counter() - begin


def rate_of(ask: Ask, for_s: float) -> float:
    """Send for a time, wait for the last, and return the messages a second."""
    count, begin = 0, perf_counter()
    while perf_counter() - begin < for_s:
        for _ in range(BATCH):
            last = ask()
        count += BATCH
    last.result()
    return count / (perf_counter() - begin)


def _row(
    peer: Peer, effort: Effort, group: str, ask: Ask, what: str, size: int, limit: float | None
) -> Row:
    """Send messages in a row, against as many calls of `what`; `limit` is the budget of `cuda`."""
    counts = effort.products if group == "matmul" else effort.messages
    count = counts[peer.backend]
    found = compare(
        lambda: count / peer.many(what, (size,), count),
        lambda: count / seconds_of(ask, count),
        effort.rounds,
    )
    library, _, operation = what.partition(".")
    return Row(
        name=f"{group}-{size}{'-torch' if library == 'torch' else ''}",
        group=group,
        title=f"pipelined {operation.title()} {size}x{size} with out",
        unit="messages/s",
        peer=f"{peer.label(what, size)} loop",
        budget=None if limit is None or peer.backend != "cuda" else Budget(limit, "at least"),
        **found._asdict(),
    )
