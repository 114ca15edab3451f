"""Messages sent one after another without waiting, against the library's own loop."""

from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np

from accel_lab.actor.reply import Reply
from accel_lab.bench.effort import Effort
from accel_lab.bench.peer import Peer
from accel_lab.bench.rounds import compare
from accel_lab.bench.row import Budget, Row
from accel_lab.compute.buffer import AccelRef
from accel_lab.compute.device import Device
from accel_lab.libraries import blas

SMALL = 64
LARGE = {"host": 512, "cuda": 1024}

Ask = Callable[[], AccelRef]


def gemm(peer: Peer, effort: Effort) -> list[Row]:
    """Multiply small matrices: all cost is launching."""
    ask = gemm_of(peer.device, SMALL)
    budget = Budget(1.0, "at least") if peer.backend == "cuda" else None
    return [
        _row(peer, effort, "gemm", ask, SMALL, count=effort.messages[peer.backend], budget=budget)
    ]


def axpy(peer: Peer, effort: Effort) -> list[Row]:
    """Add small matrices, element by element, into `out`."""
    ask = axpy_of(peer.device, SMALL)
    budget = Budget(0.6, "at least") if peer.backend == "cuda" else None
    return [
        _row(peer, effort, "axpy", ask, SMALL, count=effort.messages[peer.backend], budget=budget)
    ]


def matmul(peer: Peer, effort: Effort) -> list[Row]:
    """Multiply large matrices: all cost is the device's."""
    size = LARGE.get(peer.backend, SMALL)
    budget = Budget(0.99, "at least") if peer.backend == "cuda" else None
    ask = gemm_of(peer.device, size)
    return [
        _row(peer, effort, "matmul", ask, size, count=effort.products[peer.backend], budget=budget)
    ]


def axpy_of(device: Device, size: int) -> Ask:
    """Return what sends one sum of two square matrices into a third."""
    x, y, out = squares(device, size)
    return lambda: device.ask(blas.Axpy(x, y, out=out))


def gemm_of(device: Device, size: int) -> Ask:
    """Return what sends one product of two square matrices into a third."""
    a, b, out = squares(device, size)
    return lambda: device.ask(blas.Gemm(a, b, out=out))


def squares(device: Device, size: int) -> tuple[AccelRef, AccelRef, AccelRef]:
    """Put three square float32 matrices on a device."""
    random = np.random.default_rng(0)
    a: Any = random.standard_normal((size, size)).astype(np.float32)
    return device.put(a), device.put(a.T), device.put(np.zeros_like(a))


def seconds_of(ask: Callable[[], Reply[Any]], count: int) -> float:
    """Send `count` messages, wait for the last, and return the seconds."""
    begin = perf_counter()
    for _ in range(count):
        last = ask()
    last.result()
    return perf_counter() - begin


def _row(
    peer: Peer,
    effort: Effort,
    group: str,
    ask: Ask,
    size: int,
    *,
    count: int,
    budget: Budget | None,
) -> Row:
    operation = "axpy" if group == "axpy" else "gemm"
    what = f"blas.{operation}"
    found = compare(
        lambda: count / peer.many(what, (size,), count),
        lambda: count / seconds_of(ask, count),
        effort.rounds,
    )
    return Row(
        name=f"{group}-{size}",
        group=group,
        title=f"pipelined {operation.title()} {size}x{size} with out",
        unit="messages/s",
        peer=f"{peer.label(what, size)} loop",
        budget=budget,
        **found._asdict(),
    )
