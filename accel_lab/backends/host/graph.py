"""Graphs on the host: the recorded messages, one after the other."""

from collections.abc import Callable, Sequence
from typing import Any

from accel_lab.compute.execution.launch import Launch
from accel_lab.libraries.graph.program import Fork, Program, Runner
from accel_lab.libraries.graph.step_launch import StepLaunch


class HostGraph:
    """Runs programs at once: on the host, what is enqueued is done."""

    def executable(self, program: Program) -> "HostExecutable":
        """Return what runs a program."""
        return HostExecutable(self, program)

    def clear(self, out: Any) -> None:
        """Write zeros."""
        out[...] = 0

    def eager(self, launch: Launch) -> Runner:
        """Return what runs a program's steps, branches by what their conditions hold."""
        runner = Runner(lambda program, one: StepLaunch(launch, program, one, runner), branch)
        return runner


class HostExecutable:
    """A program; there is nothing to be prepared.

    Attributes:
        nbytes: nothing, beside the program's own results.
    """

    nbytes = 0

    def __init__(self, library: HostGraph, program: Program) -> None:
        self._library = library
        self._program = program

    def launch(self, launch: Launch) -> None:
        """Run it."""
        try:
            self._program.run(self._library.eager(launch))
        finally:
            self._program.held.clear()

    def close(self) -> None:
        """Do nothing."""


def branch(fork: Fork, run: Callable[[Sequence[Any]], None]) -> None:
    """Run the body that the condition says."""

    def value() -> int:
        return int(fork.condition.array.reshape(-1)[0])

    bodies = fork.bodies
    if fork.kind == "while":
        while value():
            run(bodies[0])
        return
    index = value()
    if fork.kind == "if":
        index = 0 if index else 1
    if 0 <= index < len(bodies):
        run(bodies[index])
