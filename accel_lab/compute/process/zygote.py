"""The process that imports everything once and forks every context of a system.

A fork of it is ready in milliseconds, so that a restart does not wait for imports. It has one
thread, has never touched a device, and ends with the notebook; a context ends with it. When its
system is closed it may wait for the next.
"""

import os
import random
import select
import signal
import socket
import sys
from collections.abc import Callable

import msgspec

from accel_lab.compute.machine import seqpacket
from accel_lab.compute.process.parent_death import outlive_thread
from accel_lab.compute.wire.transport import Transport, open_transport

Become = Callable[[Transport, socket.socket, int], None]


class Fork(msgspec.Struct, frozen=True, array_like=True, tag=20):
    """Fork a context; its wire, control channel, stdout and stderr come with the packet.

    The memory of the wire's rings comes last, if it has any.
    """

    number: int


class Loaded(msgspec.Struct, frozen=True, array_like=True, tag=21):
    """Everything is imported."""


class LoadFailed(msgspec.Struct, frozen=True, array_like=True, tag=22):
    """Something cannot be imported."""

    kind: str
    text: str


class Forked(msgspec.Struct, frozen=True, array_like=True, tag=23):
    """A context process exists; a descriptor that names it comes with the packet."""

    number: int
    pid: int


class Exited(msgspec.Struct, frozen=True, array_like=True, tag=24):
    """A context process has ended and is reaped; `status` is negative for a signal."""

    number: int
    status: int


class Rest(msgspec.Struct, frozen=True, array_like=True, tag=25):
    """Live on when the thread ends that has started you."""


class Rests(msgspec.Struct, frozen=True, array_like=True, tag=26):
    """That thread may end."""


Notice = Loaded | LoadFailed | Forked | Exited | Rests

_encode = msgspec.msgpack.Encoder().encode
_requests = msgspec.msgpack.Decoder(Fork | Rest)
_notices = msgspec.msgpack.Decoder(Notice)


def request_fork(channel: socket.socket, number: int, fds: list[int]) -> None:
    """Ask for a context process; raises OSError when the zygote is gone."""
    seqpacket.send(channel, _encode(Fork(number)), fds)


def request_rest(channel: socket.socket) -> None:
    """Ask the zygote to wait for the next system; raises OSError when it is gone."""
    seqpacket.send(channel, _encode(Rest()), [])


def receive_notice(channel: socket.socket) -> tuple[Notice, int] | None:
    """Return the zygote's next packet with its descriptor or -1; None when there is none now.

    Raises:
        EOFError: the zygote is gone.
    """
    received = seqpacket.receive(channel, block=False)
    if received is None:
        return None
    data, fds = received
    return _notices.decode(data), fds[0] if fds else -1


class Zygote:
    """Forks contexts until the notebook closes its channel or ends.

    Parameters:
        become: what a fork does for the rest of its life.
        owner: the number of the notebook's process.
        program: what a fork executes instead, for profilers that follow programs and no forks; the
            number of this process and those of the wire, the control channel and the rings are
            added to its arguments.
    """

    def __init__(
        self,
        channel: socket.socket,
        become: Become,
        owner: int,
        program: list[str] | None = None,
    ) -> None:
        self._channel = channel
        self._become = become
        self._program = program
        self._children: dict[int, tuple[int, int]] = {}  # descriptor -> (number, pid)
        self._owner = os.pidfd_open(owner)
        self._poll = select.poll()
        self._poll.register(channel, select.POLLIN)
        self._poll.register(self._owner, select.POLLIN)

    def run(self) -> None:
        """Serve; returns when the notebook is gone."""
        self._tell(Loaded())
        while True:
            for fd, _ in self._poll.poll():
                if fd in self._children:
                    self._reap(fd)
                elif fd == self._owner or not self._obey():
                    return

    def _obey(self) -> bool:
        try:
            received = seqpacket.receive(self._channel, block=True)
        except EOFError:
            return False
        assert received is not None
        data, fds = received
        request = _requests.decode(data)
        if isinstance(request, Rest):
            outlive_thread()
            self._tell(Rests())
        else:
            self._fork(request.number, fds)
        return True

    def _fork(self, number: int, fds: list[int]) -> None:
        parent = os.getpid()
        pid = os.fork()
        if pid == 0:
            self._be_context(fds, parent)
        pidfd = os.pidfd_open(pid)
        for fd in fds:
            os.close(fd)
        self._children[pidfd] = number, pid
        self._poll.register(pidfd, select.POLLIN)
        self._tell(Forked(number, pid), pidfd)

    def _be_context(self, fds: list[int], parent: int) -> None:
        """Become a context in the forked child; never returns."""
        status = 1
        try:
            self._channel.close()
            for pidfd in (self._owner, *self._children):
                os.close(pidfd)
            wire, control, out, err, *rings = fds
            os.dup2(out, 1)
            os.dup2(err, 2)
            os.close(out)
            os.close(err)
            if self._program is not None:
                for fd in (wire, control, *rings):
                    os.set_inheritable(fd, True)  # noqa: FBT003 - it takes no names
                numbers = map(str, (parent, wire, control, *rings))
                os.execv(self._program[0], [*self._program, *numbers])  # noqa: S606 - ourselves
            random.seed()
            numpy_random = sys.modules.get("numpy.random")
            if numpy_random is not None:  # else every fork would draw the same numbers
                numpy_random.seed()
            lower = open_transport(socket.socket(fileno=wire), *rings, upper=False)
            self._become(lower, socket.socket(fileno=control), parent)
            status = 0
        except SystemExit as leaving:
            status = leaving.code if isinstance(leaving.code, int) else 1
        except BaseException:  # noqa: BLE001 - the process ends here: say why
            sys.excepthook(*sys.exc_info())
        finally:
            sys.stderr.flush()
            os._exit(status)

    def _reap(self, pidfd: int) -> None:
        number, pid = self._children.pop(pidfd)
        self._poll.unregister(pidfd)
        os.close(pidfd)
        _, status = os.waitpid(pid, 0)
        self._tell(Exited(number, os.waitstatus_to_exitcode(status)))

    def _tell(self, notice: Notice, fd: int = -1) -> None:
        tell(self._channel, notice, fd)


def tell(channel: socket.socket, notice: Notice, fd: int = -1) -> None:
    """Send a packet to the notebook; nothing happens when it is gone."""
    try:
        seqpacket.send(channel, _encode(notice), [fd] if fd >= 0 else [])
    except OSError:
        signal.raise_signal(signal.SIGKILL)
