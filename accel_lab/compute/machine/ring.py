"""Rings of frames in memory that a notebook and a context process share.

A ring has one writer and one reader. The writer copies a frame behind the last one and then moves
the tail; the reader takes frames from the head. Neither makes a system call while the other is
awake. A reader that goes to sleep says so in the ring, and the writer then rings its bell.

The order of plain loads and stores is enough on x86-64 (Intel SDM 3A, 8.2), except where a store
must be seen before a later load: there both sides take a lock of their own, which is a fence. The
writer moves the tail and then asks whether the reader sleeps; the reader says that it sleeps and
then looks at the tail. Without the fence both could look first, and the frame would lie unread.

Why not otherwise: a socket costs two system calls and a wake-up for each message (23 µs there and
back, 4.4 µs through a ring). A futex or an eventfd as the bell would be quicker to ring, but the
socket is there anyway, as the one thing that also tells the end of the other process. A lock
shared by both sides would be held by a process that is killed. Processors with a weaker order
would need barriers that Python does not have: they use the socket alone.

A damaged ring is told from a full one: the other side may have written where it must not, and
waiting for room would never end.
"""

import errno
import mmap
import os
import platform
import threading
from collections.abc import Callable

CAPACITY = 4 << 20
"""Four frames of the largest kind (1 MiB, as the codec limits them): room for one while another is
read. It is memory that every context takes twice, so not more."""
LARGEST_FRAME = CAPACITY // 2 - 64
"""Of a frame this large there is room in an empty ring, wherever its tail stands."""
_HEADER = 256  # the words below, with a cache line for each
_TAIL, _HEAD, _ASLEEP, _EXECUTING = 0, 8, 16, 24  # in words of 8 bytes: a cache line apart
_TOLD = 2  # of the last, how many words
_WRAP = 0xFFFF_FFFF_FFFF_FFFF
_WORD = 8
_RESTART_AFTER = 1 << 16
"""An empty ring starts over behind this many bytes: 64 KiB stay in a core's own cache. Judged."""
RING_BYTES = _HEADER + CAPACITY

ORDERED = platform.machine() == "x86_64"
"""Whether this processor keeps stores in order, as the rings need."""


def _fence() -> tuple[Callable[[], object], Callable[[], object]]:
    """Return two calls that together make earlier stores visible before later loads."""
    lock = threading.Lock()  # its locked instructions do
    return lock.acquire, lock.release


class RingWriter:
    """The writing end; one thread at a time.

    Attributes:
        executing: two words for the other end to read, also when this process is gone.
    """

    def __init__(self, memory: memoryview) -> None:
        self._words = memory[:_HEADER].cast("Q")
        self._frames = memory[_HEADER:].cast("Q")
        self._bytes = memory[_HEADER:]
        self._tail: int = self._words[_TAIL]
        self.executing = self._words[_EXECUTING : _EXECUTING + _TOLD]
        self._acquire, self._release = _fence()

    def write(self, payload: bytes) -> bool | None:
        """Append one frame; return whether the reader sleeps and must be rung, None without room.

        Raises:
            ValueError: it is larger than half the capacity, so it may never fit.
            OSError: the ring is damaged, so there would never be room.
        """
        size = len(payload)
        if size > LARGEST_FRAME:
            text = f"a frame of {size} bytes is larger than {LARGEST_FRAME}"
            raise ValueError(text)
        taken = _WORD + (size + _WORD - 1) // _WORD * _WORD
        tail, head = self._tail, self._words[_HEAD]
        at = tail % CAPACITY
        # Frames are in one piece. An empty ring starts over, which keeps what is used in cache.
        if at + taken + _WORD > CAPACITY or (tail == head and at > max(_RESTART_AFTER, taken)):
            rest = CAPACITY - at
            if tail + rest + taken - head > CAPACITY:
                _require_place(tail, head)
                return None
            self._frames[at // _WORD] = _WRAP
            tail += rest
            at = 0
        elif tail + taken - head > CAPACITY:
            _require_place(tail, head)
            return None
        self._bytes[at + _WORD : at + _WORD + size] = payload
        self._frames[at // _WORD] = size
        words = self._words
        self._tail = words[_TAIL] = tail + taken
        self._acquire()
        self._release()
        if not words[_ASLEEP]:
            return False
        words[_ASLEEP] = 0
        return True


def _require_place(tail: int, head: int) -> None:
    """Raise OSError when the reader's place cannot be: something wrote where it must not."""
    if tail - head > CAPACITY:
        raise OSError(errno.EIO, "the ring is damaged")


class RingReader:
    """The reading end; one thread at a time.

    Attributes:
        executing: the words of the writer.
    """

    def __init__(self, memory: memoryview) -> None:
        self._words = memory[:_HEADER].cast("Q")
        self._frames = memory[_HEADER:].cast("Q")
        self._bytes = memory[_HEADER:]
        self._head: int = self._words[_HEAD]
        self.executing = self._words[_EXECUTING : _EXECUTING + _TOLD]
        self._next = self._head
        self._acquire, self._release = _fence()

    def read(self) -> memoryview | None:
        """Return the next frame, valid until the next call, or None when there is none.

        Raises:
            ValueError: the ring is damaged.
        """
        words = self._words
        head = self._next
        if head != self._head:
            self._head = words[_HEAD] = head  # the frame before is done with
        tail = words[_TAIL]
        if head == tail:
            return None
        at = head % CAPACITY
        size = self._frames[at // _WORD]
        if size == _WRAP:
            head += CAPACITY - at
            at = 0
            size = self._frames[0]
        begin = at + _WORD
        if size > CAPACITY or not head < tail <= head + CAPACITY:
            text = f"a frame of {size} bytes cannot be: the wire is corrupt"
            raise ValueError(text)
        self._next = head + _WORD + (size + _WORD - 1) // _WORD * _WORD
        return self._bytes[begin : begin + size]

    @property
    def unread(self) -> bool:
        """Whether there is a frame that `read` has not returned; any thread."""
        found: bool = self._words[_TAIL] != self._next
        return found

    def sleep(self) -> bool:
        """Have the writer ring from now on; False when a frame has come meanwhile."""
        self._words[_ASLEEP] = 1
        self._acquire()
        self._release()
        if self._words[_TAIL] != self._next:
            self._words[_ASLEEP] = 0
            return False
        return True

    def wake(self) -> None:
        """Have the writer not ring, because this end looks by itself."""
        self._words[_ASLEEP] = 0


def make_rings() -> int:
    """Return the descriptor of fresh memory for two rings."""
    fd = os.memfd_create("accel_lab-wire", os.MFD_CLOEXEC)
    try:
        os.ftruncate(fd, 2 * RING_BYTES)
    except OSError:
        os.close(fd)
        raise
    return fd


def open_rings(fd: int) -> tuple[memoryview, memoryview]:
    """Map both rings, down and up; the mapping lives as long as what is returned."""
    memory = memoryview(mmap.mmap(fd, 2 * RING_BYTES))
    return memory[:RING_BYTES], memory[RING_BYTES:]
