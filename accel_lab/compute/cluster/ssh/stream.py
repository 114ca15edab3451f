"""Messages both ways over connections that may be cut: what is not acknowledged is sent again.

Each side numbers its parcels, keeps them until the other has taken them, and tells how many have
come when a new connection begins. So a message comes once and in order, over however many
connections. Both sides beat while they have nothing to say; one that is silent counts as cut.
"""

import os
import select
import struct
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple, Protocol

from accel_lab.compute.cluster.ssh.batches import Part
from accel_lab.compute.cluster.ssh.squeezer import Squeezer, unsqueezed

PARCEL_BYTES = 256 << 10
WINDOW_BYTES = 64 << 20
"""So much waits to be taken at most; who sends more waits."""
BEAT_S = 2.0
SILENT_S = 15.0
LOOK_S = 0.5
READ_BYTES = 1 << 18
WRITE_BYTES = 1 << 20

_HEADER = struct.Struct("<BIQ")  # what it is, how many bytes follow, its number
_PART, _LAST, _SQUEEZED, _TAKEN, _BEAT, _BYE = 0, 1, 2, 4, 5, 6


class StreamEnded(Exception):
    """Nothing is carried any more; the text says why."""


class Connection(Protocol):
    """Two descriptors, which do not block."""

    read_fd: int
    write_fd: int

    def close(self) -> None:
        """Give it up, so that the other end notices; a second call is fine."""

    def release(self) -> None:
        """Close the descriptors, which nobody uses any more."""


class _Parcel(NamedTuple):
    """What is sent at once.

    Attributes:
        sent_at: when that was last, and how many bytes had been taken by then.
    """

    number: int
    data: bytes
    sent_at: float = 0.0
    taken_bytes: int = 0


class Stream:
    """One end; any thread may call.

    Attributes:
        squeezer: compresses what is sent.
        said_bye: whether the other end wants no more.
    """

    def __init__(self, name: str) -> None:
        self.squeezer = Squeezer()
        self.said_bye = False
        self._name = name
        self._changed = threading.Condition()
        self._sending = threading.Lock()
        self._connection: Connection | None = None
        self._epoch = 0
        self._cut_at: float | None = time.monotonic()
        self._ended = ""
        self._unsent: deque[_Parcel] = deque()
        self._untaken: deque[_Parcel] = deque()
        self._waiting_bytes = self._taken_bytes = 0
        self._least_s = float("inf")
        self._last = 0
        self._inbox: deque[tuple[int, bytes]] = deque()
        self._parts: list[bytes] = []
        self._received = self._taken = self._told = 0
        self._bye = False
        self._serving: set[int] = set()

    # The connections.

    @property
    def cut_at(self) -> float | None:
        """Since when there is no connection, by the monotonic clock; None while there is one."""
        return self._cut_at

    @property
    def ended(self) -> str:
        """Why nothing is carried any more; empty while something may be."""
        return self._ended

    @property
    def is_receiving(self) -> bool:
        """Whether a part of a message has come, and not yet its end."""
        return bool(self._parts)

    @property
    def is_entered(self) -> bool:
        """Whether this thread reads or writes a connection."""
        return threading.get_ident() in self._serving

    def detach(self) -> int:
        """Give the connection up, if there is one; return how many parcels have come."""
        with self._changed:
            self._cut(self._epoch)
            return self._received

    def attach(self, connection: Connection, received: int) -> None:
        """Go on over a new connection, of whose other end so many parcels have been received."""
        with self._changed:
            if self._ended:
                connection.close()
                connection.release()
                return
            self._epoch += 1
            self._connection, self._cut_at = connection, None
            self._unsent = deque((*self._untaken, *self._unsent))
            self._untaken.clear()
            while self._unsent and self._unsent[0].number <= received:
                self._forget(self._unsent.popleft())
            self._told = 0
            epoch = self._epoch
            self._changed.notify_all()
        name, args = f"{self._name} reads", (connection, epoch)
        threading.Thread(target=self._serve, args=args, name=name, daemon=True).start()

    def end(self, why: str) -> None:
        """Carry nothing any more."""
        with self._changed:
            self._ended = self._ended or why
            self._cut(self._epoch)
            self._changed.notify_all()

    def say_bye(self) -> None:
        """Have the other end know that no more is wanted of it."""
        with self._changed:
            self._bye = True
            self._changed.notify_all()

    def wait(self, holds: Callable[[], bool], timeout_s: float | None = None) -> bool:
        """Wait until something holds of this; return whether it does."""
        with self._changed:
            return self._changed.wait_for(holds, timeout_s)

    def _cut(self, epoch: int) -> None:
        """Give a connection up, if it is still the one; the lock is held, or taken."""
        with self._changed:
            if epoch != self._epoch or self._connection is None:
                return
            connection, self._connection = self._connection, None
            self._epoch += 1
            self._cut_at = time.monotonic()
            self._changed.notify_all()
        connection.close()

    def _serve(self, connection: Connection, epoch: int) -> None:
        """Read and write until the connection is given up."""
        name, args = f"{self._name} writes", (connection, epoch)
        writer = threading.Thread(target=self._written, args=args, name=name, daemon=True)
        writer.start()
        with self._entered():
            self._read(connection, epoch)
        writer.join()
        connection.release()

    @contextmanager
    def _entered(self) -> Iterator[None]:
        """Say that this thread serves a connection."""
        self._serving.add(threading.get_ident())
        try:
            yield
        finally:
            self._serving.discard(threading.get_ident())

    # What is sent.

    def send(self, parts: Iterable[Part]) -> None:
        """Send a message; blocks while too much waits. The parts may change when it returns.

        Raises:
            StreamEnded: it is not carried.
        """
        with self._sending:
            for piece, is_last in _pieces(parts):
                squeezed = self.squeezer.squeeze(piece)
                kind = (_LAST if is_last else _PART) | (0 if squeezed is None else _SQUEEZED)
                payload = bytes(piece) if squeezed is None else squeezed
                with self._changed:
                    self._changed.wait_for(
                        lambda: self._ended or self._waiting_bytes < WINDOW_BYTES
                    )
                    if self._ended:
                        raise StreamEnded(self._ended)
                    self._last += 1
                    header = _HEADER.pack(kind, len(payload), self._last)
                    self._unsent.append(_Parcel(self._last, header + payload))
                    self._waiting_bytes += len(payload)
                    self._changed.notify_all()

    def _forget(self, parcel: _Parcel) -> None:
        nbytes = len(parcel.data) - _HEADER.size
        self._waiting_bytes -= nbytes
        self._taken_bytes += nbytes

    def _written(self, connection: Connection, epoch: int) -> None:
        with self._entered():
            self._write(connection, epoch)

    def _write(self, connection: Connection, epoch: int) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(
                    lambda: (
                        epoch != self._epoch
                        or self._unsent
                        or self._told < self._taken
                        or self._bye
                    ),
                    BEAT_S,
                )
                if epoch != self._epoch:
                    return
                data = self._next()
            try:
                self._put(connection, epoch, data)
            except OSError:
                self._cut(epoch)
                return

    def _next(self) -> bytes:
        """Return what is to be written now: a beat where there is nothing else."""
        found: list[bytes] = []
        if self._bye:
            self._bye = False
            found.append(_HEADER.pack(_BYE, 0, 0))
        if self._told < self._taken:
            self._told = self._taken
            found.append(_HEADER.pack(_TAKEN, 0, self._told))
        now, left = time.monotonic(), WRITE_BYTES
        while self._unsent and left > 0:
            parcel = self._unsent.popleft()
            self._untaken.append(parcel._replace(sent_at=now, taken_bytes=self._taken_bytes))
            found.append(parcel.data)
            left -= len(parcel.data)
        return b"".join(found) or _HEADER.pack(_BEAT, 0, 0)

    def _put(self, connection: Connection, epoch: int, data: bytes) -> None:
        view = memoryview(data)
        poll = select.poll()
        while view and epoch == self._epoch:
            try:
                view = view[os.write(connection.write_fd, view) :]
            except BlockingIOError:
                poll.register(connection.write_fd, select.POLLOUT)
                poll.poll(LOOK_S * 1000)

    # What is received.

    def receive(self, timeout_s: float | None = None) -> bytes | None:
        """Return the next message, None if there is none within the time.

        Raises:
            StreamEnded: none comes any more.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._inbox or self._ended or self.said_bye, timeout_s)
            if self._ended or self.said_bye:
                raise StreamEnded(self._ended or "the other end has closed it")
            if not self._inbox:
                return None
            self._taken, message = self._inbox.popleft()
            self._take_parts()
            self._changed.notify_all()
            return message

    def _read(self, connection: Connection, epoch: int) -> None:
        with suppress(OSError, EOFError, ValueError):
            for kind, number, payload in self._frames(connection, epoch):
                if kind & _SQUEEZED and kind < _TAKEN:
                    payload = unsqueezed(payload)  # noqa: PLW2901 - the same, as it was
                with self._changed:
                    if epoch != self._epoch:
                        return
                    self._received_one(kind, number, payload)
        self._cut(epoch)

    def _received_one(self, kind: int, number: int, payload: bytes) -> None:
        if kind < _TAKEN:
            if number != self._received + 1:
                raise ValueError(f"parcel {number} came behind {self._received}")
            self._received = number
            self._parts.append(payload)
            if kind & _LAST:
                parts, self._parts = self._parts, []
                whole = parts[0] if len(parts) == 1 else b"".join(parts)
                self._inbox.append((number, whole))
            self._take_parts()
            self._changed.notify_all()
        elif kind == _TAKEN:
            self._take(number)
        elif kind == _BYE:
            self.said_bye = True
            self._changed.notify_all()

    def _take_parts(self) -> None:
        """Take what there is of a message that nothing is ahead of: it may exceed the window."""
        if self._parts and not self._inbox:
            self._taken = self._received

    def _take(self, number: int) -> None:
        """The other end has taken all up to this one."""
        last: _Parcel | None = None
        while self._untaken and self._untaken[0].number <= number:
            last = self._untaken.popleft()
            self._forget(last)
        if last is not None:
            seconds = time.monotonic() - last.sent_at
            self._least_s = min(self._least_s, seconds)
            nbytes = self._taken_bytes - last.taken_bytes
            self.squeezer.carried(nbytes, seconds - self._least_s)
        self._changed.notify_all()

    def _frames(self, connection: Connection, epoch: int) -> Iterator[tuple[int, int, bytes]]:
        """Yield what comes; ends with the connection, also one that is silent for too long."""
        held = bytearray()
        poll = select.poll()
        poll.register(connection.read_fd, select.POLLIN)
        heard = time.monotonic()
        while epoch == self._epoch:
            if not poll.poll(LOOK_S * 1000):
                if time.monotonic() - heard > SILENT_S:
                    return
                continue
            try:
                data = os.read(connection.read_fd, READ_BYTES)
            except BlockingIOError:
                continue
            if not data:
                return
            heard = time.monotonic()
            held += data
            at = 0
            while len(held) - at >= _HEADER.size:
                kind, nbytes, number = _HEADER.unpack_from(held, at)
                if nbytes > 2 * PARCEL_BYTES:
                    raise ValueError(f"a parcel of {nbytes} bytes cannot be")
                end = at + _HEADER.size + nbytes
                if len(held) < end:
                    break
                yield kind, number, bytes(held[at + _HEADER.size : end])
                at = end
            del held[:at]


def _pieces(parts: Iterable[Part]) -> Iterator[tuple[Part, bool]]:
    """Cut a message into pieces; the last one is said to be."""
    before: Part | None = None
    for part in parts:
        for at in range(0, len(part), PARCEL_BYTES):
            if before is not None:
                yield before, False
            before = part[at : at + PARCEL_BYTES]
    yield before or b"", True
