"""A context process as its supervisor knows it, wherever it runs, and where it is had from."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from accel_lab.compute.wire.side_channel import Bind, Downward, Upward
from accel_lab.compute.wire.transport import Transport


class OutputPipe(Protocol):
    """Reads one output stream of a context."""

    def settle(self) -> None:
        """Take what a request has written that has ended; does not block."""

    def close(self) -> None:
        """Take what is left; nothing comes any more."""


MakePipe: TypeAlias = Callable[[int, str], OutputPipe]
"""Makes one of a descriptor, which it owns from then on, and `stdout` or `stderr`."""


class BoundProcess(Protocol):
    """One context process; all but `tell` and `kill` is for the system thread.

    Attributes:
        number: unique in its system.
        index: of the device that it drives, on its machine.
        place: the machine, if that is another one; else "".
        pid: its number there; 0 until it is known.
        before_kill: what is to happen before it is killed, if something is; it may block.
        may_end: whether it ends by itself, or is killed by others, when its system is closed.
        reaped, status: whether it has ended, and how.
        failed: why it could not start, if it has said so.
        on_exit: called with `status` when it has ended.
    """

    number: int
    index: int
    place: str
    pid: int
    generation: int
    reaped: bool
    may_end: bool
    before_kill: Callable[[], None] | None
    status: str
    failed: str
    started: float
    on_exit: list[Callable[[str], None]]
    wire: Transport

    @property
    def is_mute(self) -> bool:
        """Whether nothing can be heard of it now, although it may go on; any thread."""

    @property
    def pipes(self) -> Sequence[OutputPipe]:
        """Its output streams."""

    @property
    def token(self) -> tuple[str, int]:
        """What names this process in the arena's quarantine."""

    def bind(self, bind: Bind, packet: Callable[[Upward], None]) -> None:
        """Make it the context of a device; `packet` gets what it says on the control channel."""

    def tell(self, packet: Downward, *fds: int) -> bool:
        """Send a control packet; any thread. False when the process is gone."""

    def kill(self) -> None:
        """End the process now; any thread. Harmless when it is ending already."""


class ProcessSource(Protocol):
    """Where the context processes of a system are had from; for the system thread."""

    @property
    def variables(self) -> Mapping[Any, Any]:
        """The environment in which processes of this machine begin."""

    @property
    def is_apart(self) -> bool:
        """Whether contexts find other files than this process does."""

    def is_entered(self) -> bool:
        """Whether this thread carries what contexts are told, or say, and may not wait for them.

        Any thread.
        """

    def take(self, index: int) -> BoundProcess:
        """Return a process to bind to the device of this index among the system's."""

    def close(self, closed: Callable[[], None]) -> None:
        """Kill every context, and call `closed` when all are reaped."""
