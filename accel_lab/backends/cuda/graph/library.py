"""Recorded programs on cuda: captured once, launched as one CUDA graph."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from accel_lab.backends.cuda.graph.capture import CaptureStreams
from accel_lab.backends.cuda.graph.executable import CudaExecutable
from accel_lab.compute.execution.launch import Launch
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.graph.program import Fork, Message, Program
from accel_lab.libraries.graph.step_launch import StepLaunch

if TYPE_CHECKING:
    from accel_lab.backends.cuda.device.device import CudaDevice


class CudaGraph:
    """Makes graphs of programs, with streams for their capture that all of them share."""

    def __init__(self, device: "CudaDevice") -> None:
        self._device = device
        self._streams = CaptureStreams(device)
        self._counts = Counter({"made": 0, "updated in place": 0, "updated as a whole": 0})

    def executable(self, program: Program) -> CudaExecutable:
        """Return what launches a program; it is captured with its first launch."""
        return CudaExecutable(self._device, program, self._streams, self._counts)

    def statistics(self) -> Mapping[str, int]:
        """Count how often a graph was made, and how it was brought up to date; any thread."""
        return self._counts

    def clear(self, out: Any) -> None:
        """Write zeros (cudaMemsetAsync, or a kernel where there are gaps)."""
        if out.size:
            out.fill(0)

    def eager(self, launch: Launch) -> "Eager":
        """Return what enqueues a program's steps one by one, without branches."""
        return Eager(launch)


class Eager:
    """Enqueues each step on the launch's stream."""

    runs_user_code = True

    def __init__(self, outer: Launch) -> None:
        self.held: list[Any] = []
        self._outer = outer

    def launch(self, program: Program, one: Message) -> StepLaunch:
        """Return the launch of a message."""
        return StepLaunch(self._outer, program, one, self)

    def fork(self, fork: Fork, run: Callable[[Sequence[Any]], None]) -> None:
        """Refuse: what it does only the device knows.

        Raises:
            InvalidArgument: always.
        """
        del run
        raise InvalidArgument(f"what a {fork.kind} of a graph does only the device knows")
