"""Graphs on the host: the recorded messages, one after the other."""

from collections.abc import Callable, Sequence
from typing import Any

from accel_lab.compute.execution.launch import Launch
from accel_lab.libraries.graph.program import Fork, Message, Program, Runner
from accel_lab.libraries.graph.step_launch import StepLaunch


class HostGraph:
    """Runs programs at once: on the host, what is enqueued is done."""

    def executable(self, program: Program) -> "HostExecutable":
        """Return what runs a program."""
        return HostExecutable(program)

    def clear(self, out: Any) -> None:
        """Write zeros."""
        out[...] = 0

    def eager(self, launch: Launch) -> Runner:
        """Return what runs a program's steps."""
        return HostRunner(launch)


class HostExecutable:
    """A program; there is nothing to be prepared.

    Attributes:
        nbytes: nothing, beside the program's own results.
    """

    nbytes = 0

    def __init__(self, program: Program) -> None:
        self._program = program

    def launch(self, launch: Launch) -> None:
        """Run it."""
        self._program.run(HostRunner(launch))

    def close(self) -> None:
        """Do nothing."""


class HostRunner:
    """Runs each step at once, and of a branch what its condition says."""

    runs_user_code = True

    def __init__(self, outer: Launch) -> None:
        self.held: list[Any] = []
        self._outer = outer

    def launch(self, program: Program, one: Message) -> StepLaunch:
        """Return the launch of a message."""
        return StepLaunch(self._outer, program, one, self)

    def fork(self, fork: Fork, run: Callable[[Sequence[Any]], None]) -> None:
        """Run the body that the condition says."""
        bodies, value = fork.bodies, _value(fork)
        if fork.kind == "while":
            while value:
                run(bodies[0])
                value = _value(fork)
            return
        index = value if fork.kind == "switch" else int(not value)
        if 0 <= index < len(bodies):
            run(bodies[index])


def _value(fork: Fork) -> int:
    return int(fork.condition.array.reshape(-1)[0])
