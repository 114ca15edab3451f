"""A context process on another machine, as its supervisor here knows it.

Its wire is a socket to the relay, which takes the frames on; so is nothing here different for who
sends to it. What would need memory or descriptors in common does not get there.
"""

import os
import select
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

import msgspec

from accel_lab.actor.event_loop import EventLoop
from accel_lab.compute.cluster.entries import Down, Kill, Region, Tell
from accel_lab.compute.process.bound_process import MakePipe, OutputPipe
from accel_lab.compute.wire.side_channel import Bind, Downward, StartFailed, Upward
from accel_lab.compute.wire.transport import SocketTransport, Transport


class Reached(Protocol):
    """The machine of a process, which may be out of reach for a while."""

    @property
    def is_mute(self) -> bool:
        """Whether it is now."""


class RemoteProcess:
    """One context on another node; what it is told waits until there is a relay.

    Attributes:
        far: the relay's end of the wire.
        awaits: by the number of a request, what another device is still to write in the arena.
        lock: held while `awaits` is looked at.
        ring: tells the relay that there is something to say.
        machine: what it runs on, once it has been sent there.
    """

    def __init__(self, number: int, index: int, event_loop: EventLoop, pipe: MakePipe) -> None:
        self.number = number
        self.index = index
        self.place = "another machine"
        self.pid = 0
        self.generation = 0
        self.reaped = False
        self.may_end = False
        self.before_kill: Callable[[], None] | None = None
        self.status = ""
        self.failed = ""
        self.started = time.monotonic()
        self.on_exit: list[Callable[[str], None]] = []
        self.awaits: dict[int, Region] = {}
        self.lock = threading.Lock()
        self.ring: Callable[[], object] = _nothing
        self.machine: Reached | None = None
        self._packet: Callable[[Upward], None] = _ignore
        self._said: deque[Down] = deque()
        self._is_over = False
        self._event_loop = event_loop
        near, far = socket.socketpair()
        self.wire: Transport = SocketTransport(near)
        self.far = SocketTransport(far)
        self._outputs: dict[str, int] = {}
        self.pipes: list[OutputPipe] = []
        for stream in ("stdout", "stderr"):
            end, self._outputs[stream] = os.pipe2(os.O_CLOEXEC)
            self.pipes.append(pipe(end, stream))

    @property
    def token(self) -> tuple[str, int]:
        """What names this process in the arena's quarantine."""
        return ("process", self.number)

    @property
    def is_mute(self) -> bool:
        """Whether nothing can be heard of it now, although it may go on; any thread."""
        return self.machine is not None and self.machine.is_mute

    @property
    def is_over(self) -> bool:
        """Whether it has ended, or counts as ended; any thread."""
        return self._is_over

    # What its supervisor does.

    def bind(self, bind: Bind, packet: Callable[[Upward], None]) -> None:
        """Make it the context of a device; `packet` gets what it says on the control channel."""
        self._packet = packet
        self.generation = bind.generation
        self.tell(bind)

    def tell(self, packet: Downward, *_fds: int) -> bool:
        """Have a control packet sent; any thread. Descriptors stay here."""
        return self._say(Tell(self.number, packet))

    def kill(self) -> None:
        """End the process; any thread."""
        self._say(Kill(self.number))

    def _say(self, entry: Down) -> bool:
        if self._is_over:
            return False
        self._said.append(entry)
        self.ring()
        return True

    # What the relay does, in its threads.

    def said(self) -> list[Down]:
        """Take what it is to be told."""
        said = self._said
        return [self._placed(said.popleft()) for _ in range(len(said))]

    def _placed(self, entry: Down) -> Down:
        """Have it bound to the device that it got by now."""
        if isinstance(entry, Tell) and isinstance(entry.packet, Bind):
            return entry._replace(packet=msgspec.structs.replace(entry.packet, index=self.index))
        return entry

    def forked(self, pid: int) -> None:
        """It exists there under this number."""
        self.pid = pid

    def deliver(self, frame: bytes) -> None:
        """Pass a frame on to who reads the wire; blocks while there is no room."""
        with suppress(OSError):  # nobody wants it any more
            while not self.far.send(frame):
                poll = select.poll()
                poll.register(self.far.fd, select.POLLOUT)
                poll.poll()

    def print(self, stream: str, data: bytes) -> None:
        """Pass on what was printed; blocks while there is no room."""
        with suppress(OSError):
            os.write(self._outputs[stream], data)

    def hear(self, packet: Upward) -> None:
        """Pass on what it has said on its control channel."""
        self._event_loop.call_soon(self._heard, packet)

    def end(self, status: str, executing: tuple[int, int] = (0, 0)) -> None:
        """It has ended, or nothing more is heard of it."""
        if self._is_over:
            return
        self._is_over = True
        self.wire.executing[0], self.wire.executing[1] = executing
        self.far.shutdown()
        self._event_loop.call_soon(self._exited, status)

    def refuse(self, why: str) -> None:
        """It cannot start, and will not if it is tried again."""
        self.hear(StartFailed("BackendUnavailable", why))
        # Behind that: who reads the wire would take its end for a loss.
        self._event_loop.call_soon(self.end, why)

    def leave(self) -> None:
        """Let go of its wire, when it has been ended and no relay follows it."""
        self._event_loop.call_soon(self.far.close)

    # What follows from that; system thread.

    def _heard(self, packet: Upward) -> None:
        self._packet(packet)

    def _exited(self, status: str) -> None:
        self.reaped = True
        self.status = status
        for fd in self._outputs.values():
            os.close(fd)
        for pipe in self.pipes:
            pipe.close()
        for callback in self.on_exit:
            callback(status)


def _nothing() -> None:
    """Do nothing: nobody takes it yet, and whoever does looks first."""


def _ignore(_: Upward) -> None:
    """Do nothing: it is not bound."""
