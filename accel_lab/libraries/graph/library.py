"""Recorded blocks of messages, launched as one: CUDA graphs on `cuda`, the list itself on `host`.

`gpu.graph()` writes the program; here it is decoded, kept and run. A graph has actors of its own,
with handles, plans and workspaces that nothing else uses, so it stays right whatever is sent
between two launches.
"""

import pickle
from itertools import pairwise
from typing import Any, ClassVar, Protocol

from accel_lab.compute.device import Device, device_first
from accel_lab.compute.execution.launch import Launch, LibraryActor, handles
from accel_lab.compute.graph.graph import Graph
from accel_lab.compute.graph.messages import (
    LaunchGraph,
    OfGraph,
    RecordedGraph,
    RecordGraph,
    Reserve,
    TimeGraph,
)
from accel_lab.compute.graph.plan import decode_plan
from accel_lab.compute.wire.codec import Answer
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.authoring.function import function
from accel_lab.libraries.authoring.operand import array_of
from accel_lab.libraries.graph.program import Fork, Program, Runner
from accel_lab.libraries.graph.step_launch import StepLaunch

__all__ = [
    "Graph",
    "LaunchGraph",
    "RecordGraph",
    "RecordedGraph",
    "Reserve",
    "TimeGraph",
    "launch_graph",
    "record_graph",
    "reserve",
    "time_graph",
]


def record_graph(device: Device, **operands: Any) -> Graph:
    """Return a graph that records a block: the same as `device.graph`.

    Raises:
        InvalidArgument: an operand is neither a buffer of the device nor a number.
    """
    return device_first(device).graph(**operands)


def reserve(device: Device, shape: tuple[int, ...], of: str) -> Any:
    """Make a buffer of zeros for what a graph will write."""
    return device_first(device).ask(Reserve(shape, of))


launch_graph = function(LaunchGraph)
time_graph = function(TimeGraph)


class Executable(Protocol):
    """What a backend makes of a program.

    Attributes:
        nbytes: the memory of the device that it has for itself.
    """

    nbytes: int

    def launch(self, launch: Launch) -> None:
        """Run the program with what it is bound to, on the launch's stream."""

    def close(self) -> None:
        """Give back what it has; the device has passed its last use."""


class GraphLibrary(Protocol):
    """What a backend provides."""

    def executable(self, program: Program) -> Executable:
        """Return what runs a program."""

    def clear(self, out: Any) -> None:
        """Write zeros."""

    def eager(self, launch: Launch) -> Runner:
        """Return what enqueues a program's steps on the launch's stream, one by one."""


class Recorded:
    """A program and what runs it, as the table of buffers keeps it."""

    def __init__(self, program: Program, executable: Executable) -> None:
        self.program = program
        self.executable = executable

    def nbytes(self) -> int:
        """Return what it takes on the device."""
        return self.program.own_bytes + self.executable.nbytes

    def close(self) -> None:
        """Give it back."""
        self.executable.close()
        self.program.close()


class GraphActor(LibraryActor):
    """Keeps the recorded programs of one context, and launches them."""

    library: ClassVar = "graph"
    lib: GraphLibrary
    _clock: Any = None

    @handles(RecordGraph)
    def record_graph(self, m: RecordGraph, launch: Launch) -> None:
        """Decode a program; what it needs on the device it takes with its first launch."""
        program = Program(self.context, decode_plan(m.body), self.stream)
        launch.keep(Recorded(program, self.lib.executable(program)))

    @handles(Reserve)
    def reserve(self, m: Reserve, launch: Launch) -> None:  # noqa: ARG002 - `infer` has read it
        """Enqueue the writing of zeros."""
        self.lib.clear(launch.empty())

    @handles(LaunchGraph)
    def launch_graph(self, m: LaunchGraph, launch: Launch) -> None:
        """Run a program; inside another one as a part of that."""
        recorded = self._bound(m, launch)
        try:
            if isinstance(launch, StepLaunch):
                launch.embed(recorded.program)
            else:
                recorded.executable.launch(launch)
        finally:
            recorded.program.release()
        if not isinstance(launch, StepLaunch):
            self._measure(m)

    @handles(TimeGraph)
    def time_graph(self, m: TimeGraph, launch: Launch) -> None:
        """Run a program message by message, with a mark between each two."""
        program = array_of(m.graph).program
        if any(isinstance(step, Fork) for step in program.steps):
            raise InvalidArgument("a graph with a branch is not timed: its device alone decides")
        self._bound(m, launch)
        clock = self._clock = self._clock or self.context.backend.clock()
        native, runner = launch.stream.native, self.lib.eager(launch)
        marks: list[Any] = [clock.mark(native)]
        try:
            program.run(runner, lambda: marks.append(clock.mark(native)))
        finally:
            program.release()
            launch.hold(runner.held)
        self._measure(m)

        def answer() -> list[Answer]:
            at: list[Any] = [clock.read(mark) for mark in marks]
            seconds = [after - before for before, after in pairwise(at)]
            return [Answer(launch.seq, pickle.dumps(seconds), True, [])]  # noqa: FBT003

        launch.finish = answer

    def _bound(self, m: OfGraph[Any], launch: Launch) -> Recorded:
        """Return what a message names, with the operands in the places of the recorded ones."""
        recorded: Recorded = array_of(m.graph)
        launch.read(m.graph)
        for ref in m.reads:
            launch.read(ref)
        for ref in m.writes:
            launch.write(ref)
        recorded.program.bind(m.reads, m.writes, m.numbers, launch.stream)
        return recorded

    def _measure(self, m: OfGraph[Any]) -> None:
        """Have it counted anew how much the graph takes: it may have more by now."""
        storage: Any = m.graph.storage  # type: ignore[attr-defined]
        self.context.table.changed.add(storage)

    def forget_addresses(self) -> None:
        """Have every program take its buffers anew."""
        for graph in self.context.table.things(self.library):
            graph.array.program.forget_addresses()
