"""How frames travel between a notebook and a context process: two ways behind one interface.

Both have a socket, whose descriptor tells a sleeping reader that something has come, and whose
end tells that the other process is gone. `SocketTransport` sends the frames through it, which
works everywhere. `RingTransport` puts them into shared memory and uses the socket as a bell, so
that two processes that are awake exchange frames without a system call.
"""

import contextlib
import os
import select
import socket
import struct
from collections.abc import Callable
from typing import Protocol

from accel_lab.compute.machine.ring import RingReader, RingWriter, open_rings

LARGEST_FRAME = 2 << 20
RECEIVE_BYTES = 1 << 18
_HEADER = struct.Struct("<I")
_BELL = b"\0"
_BELLS = 64


class Transport(Protocol):
    """One end of a wire: one thread at a time sends, one thread at a time receives.

    Attributes:
        executing: two words, the numbers of the request that the context began last and of the one
            that it was done with last; while they differ it executes the first. The notebook reads
            them, also of a process that is gone.
        is_told: whether it can; else it reads 0.
    """

    executing: memoryview
    is_told: bool

    @property
    def fd(self) -> int:
        """Readable when a frame has come since `sleep`, and at the end of the wire."""

    def send(self, payload: bytes) -> bool:
        """Send one frame without blocking; False when the same has to be tried again later.

        Raises:
            OSError: the other end is gone.
        """

    def offer(self, payload: bytes) -> bool:
        """Send one frame without blocking; False when none of it was taken, and it may be dropped.

        Raises:
            OSError: the other end is gone.
        """

    def receive(self) -> memoryview | None:
        """Return the next frame, valid until the next call, or None when there is none.

        Raises:
            EOFError: the wire has ended and every frame has been received.
            ValueError: the wire is damaged.
        """

    def unread(self) -> bool:
        """Whether something has come that was not received; any thread."""

    def hear(self) -> None:
        """Take in what made `fd` readable; never blocks."""

    def sleep(self) -> bool:
        """Announce that the reader will wait for `fd`; False when a frame has come meanwhile."""

    def wake(self) -> None:
        """Take the announcement back: this end polls again."""

    def wait(self, timeout_s: float | None = None, also: int = -1) -> None:
        """Block until `fd`, or the descriptor `also`, is readable; may return early."""

    def shutdown(self) -> None:
        """End the wire in both directions; wakes whoever waits."""

    def close(self) -> None:
        """Close the descriptor."""


class SocketTransport:
    """Frames as a byte stream: a length of 4 bytes, little-endian, and the payload."""

    def __init__(self, wire: socket.socket) -> None:
        self._wire = wire
        self._unsent = self._offered = memoryview(b"")
        self._buffer = bytearray(RECEIVE_BYTES)
        self._start = self._end = 0
        self.executing = _words()
        self.is_told = False
        self.fd = wire.fileno()

    def send(self, payload: bytes) -> bool:
        """Send one frame; go on with it, when it was tried before and not all of it was taken."""
        self._offered = self._rest_of(self._offered)
        if self._offered:
            return False
        self._unsent = self._rest_of(self._unsent or _framed(payload))
        return not self._unsent

    def offer(self, payload: bytes) -> bool:
        """Send one frame; what is not taken of one that was begun goes before the next."""
        self._offered = self._rest_of(self._offered)
        if self._offered or self._unsent:
            return False
        frame = _framed(payload)
        rest = self._rest_of(frame)
        if len(rest) == len(frame):
            return False
        self._offered = rest
        return True

    def _rest_of(self, data: memoryview) -> memoryview:
        """Send what the socket takes now; return the rest."""
        while data:
            try:
                sent = self._wire.send(data, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
            except BlockingIOError:
                break
            data = data[sent:]
        return data

    def receive(self) -> memoryview | None:
        """Return the next frame, reading from the socket when it is not here yet."""
        frame = self._next()
        if frame is None:
            space = self._space()
            try:
                count = self._wire.recv_into(space, 0, socket.MSG_DONTWAIT)
            except BlockingIOError:
                return None
            except OSError as error:
                raise EOFError from error
            if count == 0:
                raise EOFError
            self._end += count
            frame = self._next()
        return frame

    def unread(self) -> bool:
        """Whether the socket has something; any thread."""
        return _poll(self.fd, 0.0, -1)

    def hear(self) -> None:
        """Do nothing: `receive` reads the socket."""

    def sleep(self) -> bool:
        """Return True: the socket keeps its descriptor readable while there is something."""
        return True

    def wake(self) -> None:
        """Do nothing: nothing was announced."""

    def wait(self, timeout_s: float | None = None, also: int = -1) -> None:
        """Block until there is something to read."""
        _poll(self.fd, timeout_s, also)

    def shutdown(self) -> None:
        """End the wire."""
        _shutdown(self._wire)

    def close(self) -> None:
        """Close the socket."""
        self._wire.close()

    def _space(self) -> memoryview:
        """Return where to receive into; never empty."""
        if self._start == self._end:
            self._start = self._end = 0
        elif self._end == len(self._buffer):
            kept = self._end - self._start
            if kept > len(self._buffer) // 2:
                larger = bytearray(len(self._buffer) * 2)
                larger[:kept] = memoryview(self._buffer)[self._start : self._end]
                self._buffer = larger
            else:
                self._buffer[:kept] = self._buffer[self._start : self._end]
            self._start, self._end = 0, kept
        return memoryview(self._buffer)[self._end :]

    def _next(self) -> memoryview | None:
        if self._end - self._start < _HEADER.size:
            return None
        (length,) = _HEADER.unpack_from(self._buffer, self._start)
        if length > LARGEST_FRAME:
            text = f"a frame of {length} bytes cannot be: the wire is corrupt"
            raise ValueError(text)
        begin = self._start + _HEADER.size
        if self._end - begin < length:
            return None
        self._start = begin + length
        return memoryview(self._buffer)[begin : self._start]


def _words() -> memoryview:
    """Return two words that nobody else has."""
    return memoryview(bytearray(16)).cast("Q")


def _framed(payload: bytes) -> memoryview:
    return memoryview(_HEADER.pack(len(payload)) + payload)


class RingTransport:
    """Frames in two rings of shared memory, and a socket as the bell of a reader that sleeps.

    Parameters:
        memory: the descriptor of the rings; it may be closed afterwards.
        upper: whether this is the notebook's end, which reads the second ring.
    """

    def __init__(self, wire: socket.socket, memory: int, *, upper: bool) -> None:
        down, up = open_rings(memory)
        self._wire = wire
        self._writer = RingWriter(down if upper else up)
        self._reader = RingReader(up if upper else down)
        self.executing = self._reader.executing if upper else self._writer.executing
        self.is_told = True
        self.receive: Callable[[], memoryview | None] = self._reader.read
        self.fd = wire.fileno()

    def send(self, payload: bytes) -> bool:
        """Put one frame into the ring, and ring the bell when the reader sleeps."""
        sleeps = self._writer.write(payload)
        if sleeps:
            with contextlib.suppress(BlockingIOError):  # it has bells enough to wake up
                self._wire.send(_BELL, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
        return sleeps is not None

    def offer(self, payload: bytes) -> bool:
        """Put one frame into the ring if there is room for all of it."""
        return self.send(payload)

    def unread(self) -> bool:
        """Whether there is a frame that was not received; any thread."""
        return self._reader.unread

    def hear(self) -> None:
        """Take the bells off the socket; notice its end."""
        try:
            if not self._wire.recv(_BELLS, socket.MSG_DONTWAIT):
                self._end()
        except BlockingIOError:
            return
        except OSError:
            self._end()

    def sleep(self) -> bool:
        """Have the writer ring from now on."""
        return self._reader.sleep()

    def wake(self) -> None:
        """Have the writer not ring."""
        self._reader.wake()

    def wait(self, timeout_s: float | None = None, also: int = -1) -> None:
        """Block until the bell rings."""
        if timeout_s is None and also < 0:
            try:
                if not self._wire.recv(_BELLS):
                    self._end()
            except OSError:
                self._end()
        elif _poll(self.fd, timeout_s, also):
            self.hear()

    def shutdown(self) -> None:
        """End the wire."""
        _shutdown(self._wire)

    def close(self) -> None:
        """Close the socket and let go of the memory."""
        if self._wire.fileno() < 0:
            return
        self._wire.close()
        self.executing, self.is_told = _words(), False
        del self.receive, self._reader, self._writer

    def _end(self) -> None:
        self.receive = _Remainder(self._reader).read


class _Remainder:
    """What the other end wrote before it went."""

    def __init__(self, reader: RingReader) -> None:
        self._reader = reader

    def read(self) -> memoryview | None:
        """Return the next frame."""
        frame = self._reader.read()
        if frame is None:
            raise EOFError
        return frame


def _poll(fd: int, timeout_s: float | None, also: int) -> bool:
    """Block until one of two descriptors is readable; return whether it is the first."""
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    if also >= 0:
        poll.register(also, select.POLLIN)
    ready = poll.poll(None if timeout_s is None else timeout_s * 1000)
    return any(which == fd for which, _ in ready)


def _shutdown(wire: socket.socket) -> None:
    with contextlib.suppress(OSError):  # the other end was faster
        wire.shutdown(socket.SHUT_RDWR)


def open_transport(wire: socket.socket, memory: int = -1, *, upper: bool) -> Transport:
    """Return one end of a wire, with rings if there is memory for them; takes `memory` over."""
    if memory < 0:
        return SocketTransport(wire)
    try:
        return RingTransport(wire, memory, upper=upper)
    finally:
        os.close(memory)
