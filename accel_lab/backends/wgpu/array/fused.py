"""Functions of each element computed together on wgpu: one kernel of several steps."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from accel_lab.backends.wgpu.kernels.elementwise import compute, is_lacking
from accel_lab.compute.fusion.program import Enqueue, Program

if TYPE_CHECKING:
    from accel_lab.backends.wgpu.device.device import WgpuDevice


class Fused:
    """Which programs are one kernel; used by the dispatcher thread."""

    least = 2
    """From how many functions on it is worth it."""

    def __init__(self, device: "WgpuDevice") -> None:
        self._device = device
        self._lacking: dict[Program, bool] = {}

    def __call__(
        self,
        program: Program,
        shape: tuple[int, ...],  # noqa: ARG002 - that of the results
        arrays: Sequence[Any],
    ) -> Enqueue | None:
        """Return what enqueues a program; None where each step is to go alone."""
        if len(arrays) + len(program.kept) > self._device.most_buffers:
            return None
        lacking = self._lacking.get(program)
        if lacking is None:
            lacking = self._lacking[program] = is_lacking(program, self._device.lacks)
        return None if lacking else partial(compute, self._device, program, arrays)
