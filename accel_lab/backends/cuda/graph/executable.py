"""A program as an executable graph: captured with its first launch, and kept up to date.

A launch with the very same buffers and numbers is one call. Else, in this order: small operands
that change are copied to places of the graph's own; the steps that name what has changed are
captured anew, and their nodes get the parameters in place; the graph is captured anew, and updated
as a whole (cuGraphExecUpdate); it is made anew.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import cupy
from cupy.cuda import runtime

from accel_lab.backends.cuda.graph import driver
from accel_lab.backends.cuda.graph.capture import Capture, Captured, CaptureStreams, Part
from accel_lab.compute.execution.launch import Launch
from accel_lab.libraries.graph.program import Fork, Message, Program
from accel_lab.libraries.graph.step_launch import StepLaunch

if TYPE_CHECKING:
    from accel_lab.backends.cuda.device.device import CudaDevice

STAGED_BYTES = 256 << 10
"""Up to this size an operand that changes is copied: that takes the card less than 2 µs."""
MOST_PATCHED = 0.5
"""Above this share of the steps to capture the whole graph anew is no slower."""


class Instance:
    """What can be launched; it is given back with its last reference."""

    def __init__(self, graph: int) -> None:
        self.executable = driver.instantiate(graph)

    def __del__(self) -> None:
        if hasattr(self, "executable"):
            driver.destroy_executable(self.executable)


class CudaExecutable:
    """Launches one program; for the dispatcher thread.

    Parameters:
        counts: how often steps were updated in place, the whole graph was, and one was made.
    """

    def __init__(
        self, device: "CudaDevice", program: Program, streams: CaptureStreams, counts: Counter[str]
    ) -> None:
        self._device = device
        self._program = program
        self._streams = streams
        self._pool = cupy.cuda.MemoryPool()
        self._instance: Instance | None = None
        self._whole: Captured | None = None  # of which the instance was made
        self._addresses: tuple[Any, ...] = ()
        self._parts: dict[int, Part] = {}  # what it works with by now
        self._is_warm = False
        self._staged: dict[int, Any] = {}  # by place among the operands
        self._counts = counts

    @property
    def nbytes(self) -> int:
        """What it takes on the device, beside the program's own results."""
        staged: int = sum(one.nbytes for one in self._staged.values())
        return int(self._pool.total_bytes()) + staged

    def launch(self, launch: Launch) -> None:
        """Bring the graph up to date, and enqueue it."""
        program, stream = self._program, self._device.active.ptr
        if not self._is_warm:
            self._warm_up(launch)
        back = self._stage(launch)
        addresses = program.addresses()
        if self._instance is None or addresses != self._addresses:
            self._refresh(launch, addresses)
        assert self._instance is not None
        driver.launch(self._instance.executable, stream)
        for operand, place in back:
            self._copy(operand, place, stream)

    def close(self) -> None:
        """Give back everything; the device has passed its last use."""
        self._instance = self._whole = None
        self._parts, self._staged = {}, {}
        self._pool.free_all_blocks()

    # Operands that change.

    def _stage(self, launch: Launch) -> list[tuple[Any, Any]]:
        """Copy operands to their places, and bind the program to these.

        Returns what is to be copied back: where to, and where from.
        """
        program, stream = self._program, self._device.active.ptr
        back: list[tuple[Any, Any]] = []
        for at, operand in enumerate(program.operands()):
            place = self._staged.get(at)
            if place is None and self._is_to_be_staged(at, operand):
                place = self._staged[at] = cupy.ndarray(operand.shape, operand.dtype)
            if place is None:
                continue
            if not program.is_alone(at):  # another operand shares its memory: see it as it is
                old = self._staged.pop(at)
                launch.hold(old)
                continue
            self._copy(place, operand, stream)
            program.replace(at, place)
            if program.is_written(at):
                back.append((operand, place))
        return back

    def _is_to_be_staged(self, at: int, operand: Any) -> bool:
        """Whether an operand has changed, and is small."""
        if not isinstance(operand, cupy.ndarray) or not 0 < operand.nbytes <= STAGED_BYTES:
            return False
        if not self._addresses:
            return False
        if not operand.flags.c_contiguous or not self._program.is_alone(at):
            return False
        return bool(self._addresses[at] != (self._device.address(operand), operand.strides))

    def _copy(self, target: Any, source: Any, stream: int) -> None:
        """Copy an array to another of the same shape and dtype, on a stream that is active."""
        if source.flags.c_contiguous and target.flags.c_contiguous:
            to, of = self._device.address(target), self._device.address(source)
            runtime.memcpyAsync(to, of, source.nbytes, runtime.memcpyDeviceToDevice, stream)
        else:
            target[...] = source

    # The graph.

    def _warm_up(self, launch: Launch) -> None:
        """Run the steps once, so that plans, kernels and workspaces are there, and undo it.

        Kernels of the user's are loaded, and do not run: what they compute with is not as it will
        be, for a branch is run here in any case.
        """
        written = [one for one in self._program.written_arrays() if one.size]
        saved = [one.copy() for one in written]
        runner = WarmUp(launch)
        try:
            self._program.run(runner)
        finally:
            launch.hold(runner.held)
            for array, before in zip(written, saved, strict=True):
                array[...] = before
        self._is_warm = True

    def _refresh(self, launch: Launch, addresses: tuple[Any, ...]) -> None:
        """Have the graph be that of the operands that are bound."""
        instance, whole = self._instance, self._whole
        self._instance = None  # unless all goes well
        launch.hold((instance, whole, self._parts))
        if (
            instance is not None
            and whole is not None
            and self._patch(instance, whole, launch, addresses)
        ):
            self._counts["updated in place"] += 1
        else:
            fresh = self._capture(launch, list(enumerate(self._program.steps)))
            if instance is not None and driver.update(instance.executable, fresh.graph):
                self._counts["updated as a whole"] += 1
                launch.hold(fresh)
            else:
                instance, whole = Instance(fresh.graph), fresh
                self._counts["made"] += 1
            self._parts = fresh.parts
        self._instance, self._whole, self._addresses = instance, whole, addresses

    def _patch(
        self, instance: Instance, whole: Captured, launch: Launch, addresses: tuple[Any, ...]
    ) -> bool:
        """Give the nodes of the steps that changed their parameters; False where that cannot be.

        What was given until then is overwritten by the update as a whole.
        """
        program, pairs = self._program, zip(self._addresses, addresses, strict=True)
        changed = {at for at, (old, new) in enumerate(pairs) if old != new}
        numbers = program.steps_that_name(changed)
        if len(numbers) > MOST_PATCHED * len(program.steps):
            return False
        numbers = sorted({*numbers, *program.views()})
        steps = [(number, program.steps[number]) for number in numbers]
        if any(isinstance(step, Fork) for _, step in steps):
            return False
        part, context = self._capture(launch, steps), driver.current_context()
        for number in numbers:
            before, after = whole.parts[number].nodes, part.parts[number].nodes
            if [kind for _, kind in before] != [kind for _, kind in after]:
                return False
            for (node, kind), (fresh, _) in zip(before, after, strict=True):
                if kind == driver.EMPTY:
                    continue
                given = driver.parameters_of(fresh, kind)
                if not driver.put_parameters(instance.executable, node, kind, given, context):
                    return False
        self._parts = {**self._parts, **part.parts}
        return True

    def _capture(self, launch: Launch, steps: Sequence[tuple[int, Message | Fork]]) -> Captured:
        """Return the graph of some steps."""
        self._program.forget_addresses()
        return Capture(launch, self._program, self._streams, self._pool).run(steps)


class WarmUp:
    """Runs each step, and each body of a branch, but no kernel of the user's."""

    runs_user_code = False

    def __init__(self, outer: Launch) -> None:
        self.held: list[Any] = []
        self._outer = outer

    def launch(self, program: Program, one: Message) -> StepLaunch:
        """Return the launch of a message."""
        return StepLaunch(self._outer, program, one, self)

    def fork(self, fork: Fork, run: Callable[[Sequence[Any]], None]) -> None:
        """Run every body once."""
        for body in fork.bodies:
            run(body)
