"""What is tried of a whole system: messages to all devices, transfers, faults and a replay."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial

import numpy as np

from accel_lab.compute.actors.fault import Fault
from accel_lab.compute.arrays.dtypes import numpy_dtype
from accel_lab.compute.device import Device
from accel_lab.errors import ContextLost
from accel_lab.gpu_test.messages import LIMIT_S, Operands, require_near, wide
from accel_lab.gpu_test.outcome import Wrong
from accel_lab.libraries import blas
from accel_lab.system import System

ALL_REDUCE = "collective.AllReduce"
TRANSFERRED = 16 << 20
"""Bytes: more than the host's segments begin with, so that they grow."""


def all_reduce(lab: System, dtype: str, random: np.random.Generator) -> None:
    """Sum an array of each device on all of them.

    Raises:
        Wrong: some device has another sum.
    """
    arrays = [Operands(device, dtype, random).draw(64) for device in lab.devices]
    world = lab.world(lab.devices)
    try:
        refs = [device.put(x) for device, x in zip(lab.devices, arrays, strict=True)]
        made = world.all_reduce(refs).refs
        exact = sum(map(wide, arrays)).astype(numpy_dtype(dtype))
        for device, ref in zip(lab.devices, made, strict=True):
            require_near(device, ref, exact, dtype)
    finally:
        world.close()


def transfer(_: System, device: Device, random: np.random.Generator) -> None:
    """Send bytes to a device and fetch them.

    Raises:
        Wrong: others came back.
    """
    sent = random.integers(0, 256, TRANSFERRED, dtype=np.uint8)
    found = device.get(device.put(sent)).result(LIMIT_S)
    if not np.array_equal(found, sent):
        raise Wrong(f"{np.count_nonzero(found != sent)} of {len(sent)} bytes are others")


def fault(lab: System, device: Device, random: np.random.Generator, *, kind: Fault) -> None:
    """Cause a fault, and see that what was computed before it is there after it.

    Raises:
        Wrong: no context was lost, or a result is another one.
    """
    on = Operands(device, "float32", random)
    a, b = on.draw(64, 64), on.draw(64, 64)
    x, y = on.put(a, b)
    before = blas.gemm(x, y)
    before.result(LIMIT_S)
    generation = device.generation
    reply = lab.inject(kind, device)
    with suppress(ContextLost):
        reply.result(LIMIT_S)
        raise Wrong(f"the context has survived {kind!r}")
    behind = blas.gemm(before, y)
    require_near(device, before, a @ b, "float32")
    require_near(device, behind, a @ b @ b, "float32")
    if device.generation <= generation:
        raise Wrong(f"the device is still at generation {device.generation}")


def replay(backend: str, random: np.random.Generator) -> None:
    """Run a short session's journal again in another system, and compare digests.

    Raises:
        Wrong: something was not run, or made another result.
    """
    with System(backend, 1, journal="memory", results="digests") as lab:
        on = Operands(lab.devices[0], "float32", random)
        x, y = on.put(on.draw(32, 32), on.draw(32, 32))
        z = blas.axpy(blas.gemm(x, y), y, alpha=2.0)
        z.result(LIMIT_S)
        lab.flush()
        with System(backend, 1, journal=None) as again:
            report = lab.journal.replay(again, progress=False)
    if not report.ok or not report.compared or report.not_run:
        raise Wrong(str(report))


DEVICES: Mapping[str, Callable[[System, Device, np.random.Generator], None]] = {
    "transfer": transfer,
    "kill": partial(fault, kind="kill"),
    "illegal address": partial(fault, kind="poison"),
}
"""What is tried of each device beside messages, by name, in order."""
