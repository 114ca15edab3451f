"""The process on the far machine: it owns the contexts, and outlives connections for a while.

Runs on the far machine. Whoever comes by ssh hands it the pipes of that connection, over a socket
that has no place in the file system and hears this user alone.
"""

import os
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import msgspec

from accel_lab.compute.cluster.node import Contexts
from accel_lab.compute.cluster.ssh.batches import decode, encode
from accel_lab.compute.cluster.ssh.greeting import FIRST_LIMIT_S, Hello, Welcome, write_line
from accel_lab.compute.cluster.ssh.stream import Stream, StreamEnded
from accel_lab.errors import AccelError

LOOK_S = 0.1
HAND_OVER_S = 5.0
UP_LIMIT_S = 10.0
HELLO_BYTES = 64 << 10

Open = Callable[[str, int | list[int] | None], tuple[str, list[int]]]


class Handed:
    """A connection whose pipes were handed over; the process that did it ends with it."""

    def __init__(self, carrier: socket.socket, read_fd: int, write_fd: int) -> None:
        self.read_fd, self.write_fd = read_fd, write_fd
        self._carrier = carrier
        for fd in (read_fd, write_fd):
            os.set_blocking(fd, False)

    def close(self) -> None:
        """Let that process end."""
        with suppress(OSError):
            self._carrier.shutdown(socket.SHUT_RDWR)

    def release(self) -> None:
        """Close the pipes."""
        for fd in (self.read_fd, self.write_fd):
            os.close(fd)
        self._carrier.close()


class Keeper:
    """Serves one session until it is closed, or has had no connection for too long.

    Parameters:
        listener: where connections are handed over.
        choose: returns the backend and the devices that are meant; raises AccelError.
    """

    def __init__(self, listener: socket.socket, choose: Open) -> None:
        self._listener = listener
        self._choose = choose
        self._stream = Stream("accel_lab near side")
        self._contexts: Contexts | None = None
        self._backend, self._indices = "", list[int]()
        self._grace_s = FIRST_LIMIT_S

    def run(self) -> None:
        """Serve; returns when all contexts have ended."""
        stream = self._stream
        self._listener.settimeout(LOOK_S)
        while not (stream.ended or stream.said_bye or self._is_late()):
            with suppress(TimeoutError):
                carrier, _ = self._listener.accept()
                carrier.settimeout(HAND_OVER_S)
                self._take(carrier)
        if self._contexts is not None:
            self._contexts.close()
        stream.end("its session is over")

    def _is_late(self) -> bool:
        cut_at = self._stream.cut_at
        return cut_at is not None and time.monotonic() - cut_at > self._grace_s

    def _take(self, carrier: socket.socket) -> None:
        """Go on over what a process hands over, if that is this user's."""
        try:
            require_own(carrier)
            data, fds, _, _ = socket.recv_fds(carrier, HELLO_BYTES, 2)
            hello = msgspec.json.decode(data, type=Hello)
            handed = Handed(carrier, *fds)
        except (OSError, ValueError, TypeError):
            carrier.close()
            return
        try:
            welcome = self._welcome(hello)
            write_line(handed.write_fd, welcome)
        except OSError:  # that connection is gone by now
            welcome = Welcome("it was cut")
        if welcome.refused:
            handed.close()
            handed.release()
        else:
            self._stream.attach(handed, hello.received)

    def _welcome(self, hello: Hello) -> Welcome:
        """Return what to say of what is wanted; the first time that begins."""
        received = self._stream.detach()
        if self._contexts is None:
            try:
                self._backend, self._indices = self._choose(hello.backend, hello.devices)
            except AccelError as error:
                self._grace_s = 0.0
                return Welcome(str(error), type(error).__name__)
            self._contexts = Contexts(self._backend, os.environ.get("OMP_NUM_THREADS", ""))
            self._grace_s = hello.grace_s
            for target in (self._run_down, self._run_up):
                threading.Thread(target=target, args=(self._contexts,), daemon=True).start()
        return Welcome("", "", received, self._backend, self._indices)

    def _run_down(self, contexts: Contexts) -> None:
        with self._ending():
            while True:
                data = self._stream.receive()
                if data is not None:
                    contexts.down(list(decode(data)))

    def _run_up(self, contexts: Contexts) -> None:
        with self._ending():
            while (entries := contexts.up(UP_LIMIT_S)) is not None:
                if entries:
                    self._stream.send(encode(entries))

    @contextmanager
    def _ending(self) -> Iterator[None]:
        """End the session with what runs in it: nobody is to wait for what does not come."""
        try:
            yield
        except StreamEnded as error:
            self._stream.end(str(error))
        except Exception as error:  # noqa: BLE001 - as above
            self._stream.end(f"{type(error).__name__}: {error}")


def require_own(end: socket.socket) -> None:
    """Raise PermissionError unless the process at the other end is this user's."""
    found = end.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    if struct.unpack("3i", found)[1] != os.geteuid():
        raise PermissionError("another user's process asks for a session")
