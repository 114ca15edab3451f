"""The ways to wait for work that takes long, against the one that is taken by default."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter

from accel_lab.bench.effort import Effort
from accel_lab.bench.operands import squares
from accel_lab.bench.rounds import alternate, compared, percentile
from accel_lab.bench.row import Row
from accel_lab.bench.rows.latency import MICROSECONDS
from accel_lab.compute.device import Device
from accel_lab.compute.streams import HostFn, Polled, Strategy, Sync
from accel_lab.libraries.blas import library as blas
from accel_lab.system import System

WAYS: dict[str, tuple[str, Strategy]] = {
    "sync": ("Sync", Sync(look_s=0)),
    "hostfn": ("HostFn", HostFn(look_s=0)),
    "look": ("Polled, first looked for", Polled()),
}
SIZES = {"host": (64, 256), "cuda": (1024, 2048, 4096)}
"""Of products that take from 50 µs to some milliseconds."""
SHARE = 5
"""A row has this part of the calls that a latency of small messages has."""


def completion(backend: str, effort: Effort) -> list[Row]:
    """Ask for one product at a time: when is it answered, and what does that cost the processor?"""
    rows: list[Row] = []
    calls = max(4, effort.calls // SHARE)
    with _device(backend, Polled(look_s=0)) as polled:
        for way, (title, strategy) in WAYS.items():
            with _device(backend, strategy) as device:
                for size in SIZES[backend]:
                    rows += _rows(way, title, size, [polled, device], calls, effort.rounds)
    return rows


def _rows(
    way: str, title: str, size: int, devices: list[Device], calls: int, rounds: int
) -> Iterator[Row]:
    """Compare the second of two devices with the first."""
    theirs, ours = (_Asked(device, size, calls) for device in devices)
    pairs = alternate(theirs, ours, rounds)
    for of, what, at in (("", "", 0), ("-cpu", ", processor time of the context", 1)):
        found = compared([(one[at], other[at]) for one, other in pairs])
        yield Row(
            name=f"completion-{way}-{size}{of}",
            group="completion",
            title=f"Gemm {size}x{size}, {title}{what}",
            unit="µs",
            peer="Polled, not looked for",
            **found._asdict(),
        )


class _Asked:
    """Asks a device for products, one after the other."""

    def __init__(self, device: Device, size: int, calls: int) -> None:
        self._device = device
        self._operands = squares(device, size)
        self._calls = calls

    def __call__(self) -> tuple[float, float]:
        """Return the µs of an answer, and those of the context's threads for it."""
        x, y, out = self._operands
        samples = []
        before = self._device.run(time.process_time).result()
        for _ in range(self._calls):
            begin = perf_counter()
            blas.gemm(x, y, out=out).result()
            samples.append(perf_counter() - begin)
        used = (self._device.run(time.process_time).result() - before) / self._calls
        return percentile(samples, 50) * MICROSECONDS, used * MICROSECONDS


@contextmanager
def _device(backend: str, strategy: Strategy) -> Iterator[Device]:
    with System(backend, devices=1, completion=strategy, recover="stale", journal=None) as lab:
        yield lab.devices[0]
