"""Context processes: how they are started, recognised as dead, and ended.

All of it happens on the system thread. The kernel's parent-death signal follows the thread that
started a process, so a thread that lives as long as the system must start every one of them.
"""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from accel_lab.actor.dispatcher import Dispatcher
from accel_lab.compute.control import (
    Bind,
    Downward,
    Preloaded,
    StartFailed,
    Upward,
    receive_upward,
    send_packet,
)

BLAS_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS")


class ContextProcess:
    """One child process with its wire, its control channel and its output pipes."""

    def __init__(
        self,
        backend: str,
        dispatcher: Dispatcher,
        printed: Callable[[str, bytes], None],
    ) -> None:
        self._dispatcher = dispatcher
        self._printed = printed
        self.wire, wire_end = socket.socketpair()
        self.control, control_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.started = time.monotonic()
        self.preloaded = False
        self.reaped = False
        self.status = ""
        self.generation = 0
        self.on_packet: Callable[[Upward], None] | None = None
        self.on_exit: list[Callable[[str], None]] = []
        self._pipes: dict[str, int] = {}
        out, out_end = os.pipe2(os.O_CLOEXEC)
        err, err_end = os.pipe2(os.O_CLOEXEC)
        with wire_end, control_end:
            try:
                self._child = subprocess.Popen(
                    [
                        *(sys.executable, "-P", "-m", "accel_lab.context_process"),
                        *(
                            str(wire_end.fileno()),
                            str(control_end.fileno()),
                            backend,
                            str(os.getpid()),
                        ),
                    ],
                    stdin=subprocess.DEVNULL,
                    stdout=out_end,
                    stderr=err_end,
                    pass_fds=(wire_end.fileno(), control_end.fileno()),
                    start_new_session=True,
                    env=_environment(),
                )
            finally:
                os.close(out_end)
                os.close(err_end)
        self.pid = self._child.pid
        self._pidfd = os.pidfd_open(self.pid)
        dispatcher.add_reader(self._pidfd, self._exited)
        dispatcher.add_reader(self.control.fileno(), self._controlled)
        for stream, fd in (("stdout", out), ("stderr", err)):
            os.set_blocking(fd, False)
            self._pipes[stream] = fd
            dispatcher.add_reader(fd, partial(self._read_pipe, stream))

    def bind(self, bind: Bind, packet: Callable[[Upward], None]) -> None:
        """Make it the context of a device; `packet` gets what it says on the control channel."""
        self.on_packet = packet
        self.generation = bind.generation
        self.started = time.monotonic()
        self.tell(bind)

    def tell(self, packet: Downward, fd: int = -1) -> bool:
        """Send a control packet; any thread. False when the process is gone."""
        return send_packet(self.control, packet, fd)

    def kill(self) -> None:
        """End the process now; it is reaped when it is gone. Harmless when it already is."""
        if not self.reaped:
            try:
                signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)
            except ProcessLookupError:
                return  # it has exited and waits to be reaped

    def end(self) -> None:
        """Ask the process to leave by closing its control channel."""
        self._dispatcher.remove_reader(self.control.fileno())
        self.control.shutdown(socket.SHUT_RDWR)

    def _controlled(self) -> None:
        try:
            while (packet := receive_upward(self.control)) is not None:
                if isinstance(packet, Preloaded):
                    self.preloaded = True
                if self.on_packet is not None:
                    self.on_packet(packet)
                elif isinstance(packet, StartFailed):
                    self.kill()
        except EOFError:
            self._dispatcher.remove_reader(self.control.fileno())

    def _read_pipe(self, stream: str) -> None:
        try:
            data = os.read(self._pipes[stream], 1 << 16)
        except BlockingIOError:
            return
        if data:
            self._printed(stream, data)
        else:
            self._close_pipe(stream)

    def _close_pipe(self, stream: str) -> None:
        fd = self._pipes.pop(stream, -1)
        if fd >= 0:
            self._dispatcher.remove_reader(fd)
            os.close(fd)

    def _exited(self) -> None:
        status = self._child.wait()
        self.reaped = True
        self._dispatcher.remove_reader(self._pidfd)
        os.close(self._pidfd)
        self._dispatcher.remove_reader(self.control.fileno())
        self.control.close()
        if self.generation == 0:  # never bound, so no link owns the wire
            self.wire.close()
        for stream in list(self._pipes):
            self._read_pipe(stream)
            self._close_pipe(stream)
        self.status = exit_name(status)
        for callback in self.on_exit:
            callback(self.status)

    @property
    def token(self) -> tuple[str, int]:
        """What names this process in the arena's quarantine."""
        return ("process", self.pid)


class Spawner:
    """Starts context processes and keeps one warm spare: imported, but on no device yet."""

    def __init__(
        self,
        backend: str,
        dispatcher: Dispatcher,
        printed: Callable[[ContextProcess, str, bytes], None],
    ) -> None:
        self._backend = backend
        self._dispatcher = dispatcher
        self._printed = printed
        self._spare: ContextProcess | None = None
        self._closed = False
        self.processes: set[ContextProcess] = set()

    def take(self) -> ContextProcess:
        """Return a process to bind, the spare if it lives."""
        spare, self._spare = self._spare, None
        return spare if spare is not None and not spare.reaped else self._start()

    def warm(self) -> None:
        """Have a spare."""
        if self._spare is None and not self._closed:
            self._spare = self._start()

    @property
    def spare(self) -> ContextProcess | None:
        """The spare, if there is one."""
        return self._spare

    def close(self) -> None:
        """End the spare and start no more."""
        self._closed = True
        if self._spare is not None:
            self._spare.kill()
            self._spare = None

    def _start(self) -> ContextProcess:
        def printed(stream: str, data: bytes) -> None:
            self._printed(process, stream, data)

        process = ContextProcess(self._backend, self._dispatcher, printed)
        self.processes.add(process)

        def gone(_: str) -> None:
            self.processes.discard(process)
            if process is self._spare:
                self._spare = None

        process.on_exit.append(gone)
        return process


def exit_name(status: int) -> str:
    """Return `SIGKILL` for -9, `exit status 3` for 3."""
    if status < 0:
        try:
            return signal.Signals(-status).name
        except ValueError:
            return f"signal {-status}"
    return f"exit status {status}"


def _environment() -> dict[str, str]:
    package = str(Path(__file__).resolve().parents[2])
    path = os.environ.get("PYTHONPATH")
    environment = dict(os.environ, PYTHONPATH=f"{path}{os.pathsep}{package}" if path else package)
    for name in BLAS_THREADS:
        environment.setdefault(name, "1")
    environment["PYTHONUNBUFFERED"] = "1"
    return environment
