"""The adapters of the backend `wgpu`, where its package is installed."""

from collections.abc import Iterator
from importlib.util import find_spec

from accel_lab.backends.wgpu.adapters import (
    Adapter,
    adapters,
    lacking,
    may_have_hardware,
    most_bound,
)
from accel_lab.doctor.finding import Finding
from accel_lab.doctor.machine import size


def webgpu() -> Iterator[Finding]:
    """Tell what each adapter is and limits; asks for them, a second, only where there is a GPU."""
    if find_spec("wgpu") is None:
        return
    if not may_have_hardware():
        yield Finding(
            topic="gpu",
            name="wgpu",
            state="ok",
            found="installed; no GPU here, so its adapter is the processor's, if there is one",
        )
        return
    for index, one in enumerate(adapters()):
        yield Finding(topic="gpu", name=f"wgpu{index}", state="ok", found=_described(one))


def _described(one: Adapter) -> str:
    most = size(most_bound(one.limits))
    lacks = ", ".join(sorted(lacking(one.features)))
    without = f"; it computes nothing in {lacks}" if lacks else ""
    largest = size(one.limits["max-buffer-size"])
    return (
        f"{one.name} by {one.api}, {one.kind}; a buffer has at most {largest}, a kernel is given "
        f'{most} of it{without}; System("wgpu", fallback="host") has the host compute what it lacks'
    )
