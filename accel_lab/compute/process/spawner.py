"""Context processes as the notebook sees them: asked for, bound, recognised as dead, ended.

All of it happens on the system thread. The kernel's parent-death signal follows the thread that
started a process, so a thread that lives as long as the system starts the zygote, which forks
every context.
"""

import contextlib
import itertools
import os
import select
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from accel_lab.actor.event_loop import EventLoop
from accel_lab.compute.machine.ring import ORDERED, make_rings
from accel_lab.compute.process import blas_threads, zygote_cache
from accel_lab.compute.process.bound_process import MakePipe
from accel_lab.compute.process.interpreter import interpreter
from accel_lab.compute.process.zygote import (
    Exited,
    Forked,
    Loaded,
    LoadFailed,
    Rests,
    receive_notice,
    request_fork,
    request_rest,
)
from accel_lab.compute.wire.side_channel import Bind, Downward, Upward, receive_upward, send_packet
from accel_lab.compute.wire.transport import open_transport

GONE_WITHIN_S = 5.0


class ContextProcess:
    """One context process with its wire, its control channel and its output pipes.

    It is usable as soon as it has been asked for: what is sent waits in its sockets.
    """

    is_mute = False

    def __init__(
        self,
        number: int,
        channel: socket.socket,
        event_loop: EventLoop,
        pipe: MakePipe,
    ) -> None:
        self.number = number
        self.index = 0
        self.place = ""
        self.pid = 0
        self.generation = 0
        self.reaped = False
        self.may_end = False
        """Whether it ends by itself, or is killed by others, when its system is closed."""
        self.before_kill: Callable[[], None] | None = None
        """What is to happen before it is killed, if something is; it may block."""
        self.status = ""
        self.failed = ""
        """Why it could not start, if it has said so."""
        self.started = time.monotonic()
        self.on_packet: Callable[[Upward], None] | None = None
        self.on_exit: list[Callable[[str], None]] = []
        wire, wire_end = socket.socketpair()
        self.control, control_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._event_loop = event_loop
        self._pidfd = -1
        self._doomed = False
        out, out_end = os.pipe2(os.O_CLOEXEC)
        err, err_end = os.pipe2(os.O_CLOEXEC)
        rings = _rings()
        with wire_end, control_end:
            try:
                ends = [wire_end.fileno(), control_end.fileno(), out_end, err_end, *rings]
                request_fork(channel, number, ends)
            except OSError:
                os.close(out)
                os.close(err)
                raise
            finally:
                os.close(out_end)
                os.close(err_end)
                self.wire = open_transport(wire, *rings, upper=True)
        event_loop.add_reader(self.control.fileno(), self._controlled)
        self.pipes = [pipe(fd, stream) for fd, stream in ((out, "stdout"), (err, "stderr"))]

    @property
    def token(self) -> tuple[str, int]:
        """What names this process in the arena's quarantine."""
        return ("process", self.number)

    def bind(self, bind: Bind, packet: Callable[[Upward], None]) -> None:
        """Make it the context of a device; `packet` gets what it says on the control channel."""
        self.on_packet = packet
        self.generation = bind.generation
        self.tell(bind)

    def tell(self, packet: Downward, *fds: int) -> bool:
        """Send a control packet; any thread. False when the process is gone."""
        return send_packet(self.control, packet, *fds)

    def kill(self) -> None:
        """End the process now; it is reaped when it is gone. Harmless when it already is."""
        self._doomed = True
        before, self.before_kill = self.before_kill, None
        if before is None:
            self._kill()
        else:
            name = f"accel_lab end of process {self.pid}"
            threading.Thread(target=self._kill_behind, args=(before,), name=name).start()

    def _kill_behind(self, before: Callable[[], None]) -> None:
        try:
            with contextlib.suppress(Exception):  # however that goes, it ends
                before()
        finally:
            self._kill()

    def _kill(self) -> None:
        if self._pidfd >= 0 and not self.reaped:
            with contextlib.suppress(ProcessLookupError):  # it has exited and is being reaped
                signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)

    def wait(self, timeout_s: float) -> None:
        """Block until it has ended, as far as is known that it exists."""
        if self._pidfd >= 0:
            poll = select.poll()
            poll.register(self._pidfd, select.POLLIN)
            poll.poll(timeout_s * 1000)

    def forked(self, pid: int, pidfd: int) -> None:
        """It exists; `pidfd` names it beyond any reuse of its number."""
        self.pid, self._pidfd = pid, pidfd
        if self._doomed:
            self.kill()

    def exited(self, name: str) -> None:
        """It has ended and is reaped; `name` is a signal's, or its exit status."""
        if self.reaped:
            return
        self.reaped = True
        self.status = name
        if self._pidfd >= 0:
            os.close(self._pidfd)
            self._pidfd = -1
        self._controlled()  # the last that it has said
        self._event_loop.remove_reader(self.control.fileno())
        self.control.close()
        for pipe in self.pipes:
            pipe.close()
        for callback in self.on_exit:
            callback(name)

    def _controlled(self) -> None:
        try:
            while (packet := receive_upward(self.control)) is not None:
                if self.on_packet is not None:
                    self.on_packet(packet)
        except EOFError:
            self._event_loop.remove_reader(self.control.fileno())


class Spawner:
    """Starts the zygote, or takes the one that is kept, and context processes through it.

    Parameters:
        folder: where the modules of the backend are.
        pipe: makes what reads an output pipe, of its descriptor and `stdout` or `stderr`.

    Attributes:
        numbers: of the processes of one system.
    """

    is_apart = False

    def __init__(
        self,
        backend: str,
        folder: Path,
        event_loop: EventLoop,
        pipe: MakePipe,
        failed: Callable[[str], None],
    ) -> None:
        self._backend = backend
        self._folder = folder
        self._event_loop = event_loop
        self._pipe = pipe
        self._failed = failed
        self.numbers = itertools.count(1)
        self._child: subprocess.Popen[bytes] | None = None
        self._channel: socket.socket | None = None
        self._birth: zygote_cache.Birth | None = None
        self._loaded = False
        self._closed: Callable[[], None] | None = None
        self.processes: dict[int, ContextProcess] = {}
        self.variables: Mapping[Any, Any] = {}
        """The environment in which processes begin, without what is added for them."""

    def is_entered(self) -> bool:
        """Return False: their wires end in the context processes themselves."""
        return False

    def take(self, index: int = 0) -> ContextProcess:
        """Return a process to bind; it exists within milliseconds once the zygote has loaded.

        Parameters:
            index: of the device that it is to drive.
        """
        channel = self._channel or self._start()
        process = ContextProcess(next(self.numbers), channel, self._event_loop, self._pipe)
        process.index = index
        self.processes[process.number] = process
        return process

    def close(self, closed: Callable[[], None]) -> None:
        """Kill every context, end or keep the zygote, and call `closed` when all are reaped."""
        self._closed = closed
        for process in list(self.processes.values()):
            if not process.may_end:
                process.kill()
        if self._channel is not None and not self._loaded:
            assert self._child is not None
            self._child.kill()  # it has forked nothing yet
        else:
            self._leave_zygote()

    def _leave_zygote(self) -> None:
        """Leave the zygote once no context is left, so that each is reaped by its parent."""
        if self._closed is None or any(not p.reaped for p in self.processes.values()):
            return
        if self._channel is None:
            self._closed()
        elif self.variables.get(b"ACCEL_LAB_FORK") == b"0":
            self._channel.shutdown(socket.SHUT_RDWR)  # a profiler writes what it has found
        else:
            with contextlib.suppress(OSError):  # it has ended, and that is noticed
                request_rest(self._channel)

    def _start(self) -> socket.socket:
        self._birth = birth = zygote_cache.birth_of(self._backend, self._folder)
        self.variables = birth.variables
        kept = zygote_cache.take(birth)
        self._loaded = kept is not None
        self._child, self._channel = kept or self._start_zygote()
        self._event_loop.add_reader(self._channel.fileno(), self._noticed)
        return self._channel

    def _start_zygote(self) -> tuple[subprocess.Popen[bytes], socket.socket]:
        channel, end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with end:
            child = subprocess.Popen(  # noqa: S603 - our own module, no shell
                [
                    *(interpreter(), "-P", "-m", "accel_lab.context_process"),
                    *(str(end.fileno()), self._backend, str(os.getpid())),
                ],
                stdin=subprocess.DEVNULL,
                pass_fds=(end.fileno(),),
                start_new_session=True,
                env=_environment(),
            )
        return child, channel

    def _noticed(self) -> None:
        channel = self._channel
        if channel is None:
            return
        try:
            while (found := receive_notice(channel)) is not None:
                notice, fd = found
                if isinstance(notice, Forked):
                    self.processes[notice.number].forked(notice.pid, fd)
                elif isinstance(notice, Exited):
                    self._gone(notice.number, exit_name(notice.status))
                elif isinstance(notice, Loaded):
                    self._loaded = True
                elif isinstance(notice, LoadFailed):
                    self._failed(f"{notice.kind}: {notice.text}")
                elif isinstance(notice, Rests):
                    self._keep_zygote(channel)
                    return
        except EOFError:
            self._zygote_gone(channel)

    def _gone(self, number: int, name: str) -> None:
        self.processes.pop(number).exited(name)
        self._leave_zygote()

    def _keep_zygote(self, channel: socket.socket) -> None:
        """Have the next system of this process take it, and be done."""
        assert self._child is not None
        assert self._birth is not None
        assert self._closed is not None
        self._event_loop.remove_reader(channel.fileno())
        zygote_cache.keep(self._birth, self._child, channel)
        self._child = self._channel = None
        self._closed()

    def _zygote_gone(self, channel: socket.socket) -> None:
        """It has ended, and the kernel has killed every context with it."""
        assert self._child is not None
        self._event_loop.remove_reader(channel.fileno())
        channel.close()
        self._channel = None
        status = exit_name(self._child.wait())
        until = time.monotonic() + GONE_WITHIN_S
        for process in list(self.processes.values()):
            process.kill()
        for process in list(self.processes.values()):
            process.wait(max(0.0, until - time.monotonic()))  # till then it may write
            self.processes.pop(process.number)
            process.exited(f"SIGKILL, for the process that had forked it ended with {status}")
        if self._closed is not None:
            self._closed()


def _rings() -> list[int]:
    """Return the memory of a wire's rings; none where the socket has to do."""
    try:
        return [make_rings()] if ORDERED else []
    except OSError:
        return []


def exit_name(status: int) -> str:
    """Return `SIGKILL` for -9, `exit status 3` for 3."""
    if status < 0:
        try:
            return signal.Signals(-status).name
        except ValueError:
            return f"signal {-status}"
    return f"exit status {status}"


def _environment() -> dict[str, str]:
    package = str(Path(__file__).resolve().parents[3])
    path = os.environ.get("PYTHONPATH")
    environment = dict(os.environ, PYTHONPATH=f"{path}{os.pathsep}{package}" if path else package)
    blas_threads.have_one(environment)
    environment["PYTHONUNBUFFERED"] = "1"
    return environment
