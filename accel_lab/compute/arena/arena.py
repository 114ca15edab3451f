"""The host arena: bulk memory that the notebook and its context processes share.

It lives in the notebook's process. Its segments are memfds, which contexts receive as
descriptors and map themselves (`context_view.py`); they have no name, so nothing is left behind.
All sizes are bytes. Every method may be called from any thread.

A finalizer of the user's runs at any moment, also in a thread that is in the middle of the books
here, and may put an array. It gets a segment of its own then, which the books learn of afterwards.
"""

import itertools
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable
from functools import partial
from operator import attrgetter

import numpy.typing as npt

from accel_lab.compute.arena.block import Block, Location
from accel_lab.compute.arena.ledger import ArenaStatistics, Ledger, Place
from accel_lab.compute.arena.owned_array import Array, Shape, layout, own
from accel_lab.compute.arena.read_only import ReadOnly, ReadOnlyHold
from accel_lab.compute.arena.release_queue import ReleaseQueue
from accel_lab.compute.arena.segment import Segment
from accel_lab.compute.machine.host_memory import host_memory_bytes
from accel_lab.compute.machine.memfd_mapping import PAGE
from accel_lab.compute.message.validation import require_bytes
from accel_lab.display.sizes import compared, size
from accel_lab.errors import ArenaFull, InvalidArgument, SystemClosed
from accel_lab.uncopied import Uncopied


class Arena(Uncopied):
    """Memory that arrays and transfers share with contexts, bounded by `limit_bytes`.

    Blocks of up to half a segment share segments of `segment_bytes`; a larger one gets a
    segment of its own, kept for reuse until `trim` or until its room is needed.

    Attributes:
        on_segment: called with each new segment before a block of it is handed out.
        on_drop: called with each segment before it goes back to the system (`close` does not).
        busy: say whether the calling thread is in the middle of what others wait for, so that it
            must not wait for room.

    The first two are called in the thread that allocates or trims; they must neither call the
    arena nor raise. To miss no segment, append to `on_segment` first and read `segments` second,
    and expect to meet one twice.
    """

    def __init__(self, limit_bytes: int | None = None, *, segment_bytes: int = 64 << 20) -> None:
        """Reserve nothing yet; `limit_bytes` None is a quarter of what this process may use.

        Raises:
            InvalidArgument: a size is less than one page.
        """
        given = require_bytes(limit_bytes, "arena_bytes")
        limit = host_memory_bytes() // 4 if given is None else given
        if min(limit, segment_bytes) < PAGE:
            raise InvalidArgument(
                f"an arena needs a page of {PAGE} bytes at least; "
                f"limit_bytes is {limit}, segment_bytes {segment_bytes}"
            )
        self.on_segment: list[Callable[[Segment], None]] = []
        self.on_drop: list[Callable[[Segment], None]] = []
        self.busy: list[Callable[[], bool]] = []
        self._ledger = Ledger(limit, segment_bytes)
        self._read_only = ReadOnly()
        self._returns = ReleaseQueue()
        # Re-entrant, so that a finalizer does not wait for itself; it changes no books that its
        # thread is in the middle of, but has that done later.
        self._lock = threading.RLock()
        # Held while a segment is made, so that many small callers share one new segment; the
        # lock above stays free meanwhile.
        self._growth = threading.RLock()
        # What a Condition asks of its lock: there is no public way.
        self._is_mine: Callable[[], bool] = attrgetter("_is_owned")(self._lock)
        self._grows_here: Callable[[], bool] = attrgetter("_is_owned")(self._growth)
        self._later: deque[Callable[[], None]] = deque()
        self._segment_ids = itertools.count(1)
        self._waits = 0
        self._is_closed = False

    def allocate(self, nbytes: int, *, timeout_s: float = 60.0) -> Block:
        """Return a block of `nbytes` (zero is fine), waiting for room up to `timeout_s`.

        Blocks the calling thread; growing costs about 0.5 s a GiB. The contents are undefined.
        In the middle of something nobody waits for room: there is some at once, or none.

        Raises:
            ArenaFull: no room in time, or at once if there can never be.
            InvalidArgument: `nbytes` is negative.
            SystemClosed: the arena is closed, or was while this waited.
        """
        if nbytes < 0:
            raise InvalidArgument(f"nbytes must not be negative, not {nbytes}")
        if nbytes > self._ledger.limit:
            raise self._full("can never hold", nbytes)
        block = None if self._is_mine() else self._take(nbytes)
        if block is not None:
            return block
        if self.is_entered or any(is_busy() for is_busy in tuple(self.busy)):
            return self._take_aside(nbytes)
        deadline = time.monotonic() + timeout_s
        with self._returns.waiter() as waiter:
            block = self._grow(nbytes, deadline)
            has_waited = False
            while block is None and (remaining := deadline - time.monotonic()) > 0:
                if not has_waited:
                    has_waited = True
                    with self._lock:
                        self._waits += 1
                waiter.acquire(timeout=min(remaining, threading.TIMEOUT_MAX))
                block = self._take(nbytes) or self._grow(nbytes, deadline)
        if block is None:
            raise self._full(f"had within {timeout_s:g} s no room for", nbytes)
        return block

    def empty(self, shape: Shape, dtype: npt.DTypeLike, *, timeout_s: float = 60.0) -> Array:
        """Return an uninitialised C-order array in the arena, waiting for room like `allocate`.

        Its memory is free again when the last NumPy view of it is collected, and is valid
        until then, whatever becomes of the arena or of any context.

        Raises:
            ArenaFull: as `allocate`.
            InvalidArgument: a shape that NumPy would refuse, or a dtype that is not in the table.
            SystemClosed: as `allocate`.
        """
        lengths, native, nbytes = layout(shape, dtype)
        return own(self.allocate(nbytes, timeout_s=timeout_s), lengths, native)

    def array(self, block: Block, shape: Shape, dtype: npt.DTypeLike) -> Array:
        """Return the filled `block` as an array that owns it; `block.release` then does nothing.

        Raises:
            InvalidArgument: the block is too small or released, or as `empty`.
        """
        lengths, native, nbytes = layout(shape, dtype)
        if nbytes > block.nbytes:
            raise InvalidArgument(f"{nbytes} bytes do not fit in a block of {block.nbytes}")
        return own(block, lengths, native)

    def locate(self, array: Array) -> Location | None:
        """Return where contexts can read the array in place, in O(log segments); takes no lock.

        None when it is elsewhere, not C-contiguous, or not in native byte order.
        """
        found = self._ledger.find(array)
        return None if found is None else Location(found[0].id, found[1])

    @property
    def is_entered(self) -> bool:
        """Whether this thread is in the middle of something here: a finalizer asks."""
        return self._is_mine() or self._grows_here()

    def hold(self, array: Array) -> ReadOnlyHold:
        """Make the array read-only and keep its memory until the hold is released.

        Holds nest. Other views of the memory stay writable. Not while `is_entered`.

        Raises:
            InvalidArgument: `locate` does not find it, or it is no part of a live block.
            SystemClosed: the arena is closed.
        """
        with self._lock:
            self._refresh()
            serial = self._ledger.hold(array)
            if serial is None:
                raise InvalidArgument("only a contiguous array of the arena can be held")
            self._read_only.add(array)
        self._catch_up()
        return ReadOnlyHold(self, array, serial)

    def end_hold(self, array: Array, serial: int) -> None:
        """Do what `ReadOnlyHold.release` says; for it alone."""
        if self._is_mine():
            self._later.append(partial(self._end_hold, array, serial))
            return
        with self._lock:
            self._end_hold(array, serial)
        self._catch_up()
        self._returns.wake()

    def _end_hold(self, array: Array, serial: int) -> None:
        self._ledger.end_hold(serial)
        self._read_only.remove(array)

    def reaped(self, token: Hashable) -> None:
        """Reuse what was released `after` this token: its process is gone for good.

        Later releases after the same token are ordinary ones.
        """
        with self._lock:
            self._drain()
            self._ledger.reaped(token)
        self._returns.wake()

    def trim(self) -> int:
        """Return every segment without a live block to the system; return the bytes given back.

        Waits while another thread makes a segment.
        """
        with self._growth:
            with self._lock:
                self._drain()
                idle = self._ledger.idle
                self._ledger.forget(idle)
            self._drop(idle)
        return sum(segment.size for segment in idle)

    @property
    def segments(self) -> tuple[Segment, ...]:
        """The segments that a new context must be given, oldest first."""
        with self._lock:
            self._do_later()
            return tuple(self._ledger.segments.values())

    def statistics(self) -> ArenaStatistics:
        """Return the numbers of this moment; what finalizers gave back is counted as free."""
        is_entered = self._is_mine()
        with self._lock:
            if not is_entered:
                self._drain()
            return self._ledger.statistics(self._waits)

    def close(self) -> None:
        """Close every descriptor and end every wait with SystemClosed; a second call is fine.

        Arrays and block views that exist keep their memory until they are collected. A segment
        that another thread is making at this moment is closed by that thread.
        """
        with self._lock:
            self._do_later()
            self._is_closed = True
            segments = list(self._ledger.usable.values())
            self._ledger.clear()
        self._returns.wake()
        for segment in segments:
            segment.close()
        self.on_segment.clear()
        self.on_drop.clear()

    def _take(self, nbytes: int) -> Block | None:
        with self._lock:
            self._refresh()
            block = self._carve(nbytes)
        self._catch_up()
        return block

    def _take_aside(self, nbytes: int) -> Block:
        """Carve a block from a segment of its own, which the books learn of later.

        For who is in the middle of something: it waits for nobody.
        """
        with self._lock:
            if self._is_closed:
                raise _closed()
            size = self._ledger.set_aside(nbytes)
        if not size:
            raise self._full("has at this moment no room for", nbytes)
        try:
            segment = self._make_segment(size, nbytes)
        except BaseException:
            self._later.append(partial(self._ledger.end_aside, size))
            raise
        place = self._ledger.take_whole(segment)
        self._later.append(partial(self._adopt, place))
        for callback in tuple(self.on_segment):
            callback(segment)
        block = self._block(place, nbytes)
        self._catch_up()
        return block

    def _adopt(self, place: Place) -> None:
        if self._is_closed:
            place.segment.close()
        else:
            self._ledger.adopt(place)

    def _carve(self, nbytes: int) -> Block | None:
        place = self._ledger.take(nbytes)
        return None if place is None else self._block(place, nbytes)

    def _block(self, place: Place, nbytes: int) -> Block:
        view = place.segment.bytes(place.offset, nbytes)
        location = Location(place.segment.id, place.offset)
        return Block(location, view, serial=place.serial, returns=self._returns)

    def _grow(self, nbytes: int, deadline: float) -> Block | None:
        """Carve a block from a new segment, dropping idle ones if need be; None without room."""
        patience = min(max(0.0, deadline - time.monotonic()), threading.TIMEOUT_MAX)
        if not self._growth.acquire(timeout=patience):
            return None
        try:
            with self._lock:
                self._refresh()
                block = self._carve(nbytes)
                if block is not None:
                    return block
                size, idle = self._ledger.promise(nbytes)
            self._drop(idle)
            return self._add_segment(size, nbytes) if size else None
        finally:
            self._growth.release()

    def _add_segment(self, size: int, nbytes: int) -> Block:
        segment: Segment | None = None
        try:
            segment = self._make_segment(size, nbytes)
            with self._lock:
                self._refresh()
                self._ledger.register(segment)
                callbacks = tuple(self.on_segment)
            for callback in callbacks:
                callback(segment)
            with self._lock:
                self._refresh()
                self._ledger.publish(segment)
                block = self._carve(nbytes)
        except BaseException:
            with self._lock:
                self._ledger.revoke()
                self._ledger.forget([segment] if segment else [])
            self._drop([segment] if segment else [])
            self._returns.wake()
            raise
        self._returns.wake()
        assert block is not None
        return block

    def _make_segment(self, size: int, nbytes: int) -> Segment:
        try:
            return Segment(next(self._segment_ids), size, is_shared=self._ledger.shares(nbytes))
        except OSError as error:
            raise self._full(f"got no memory ({error}) for", nbytes) from error

    def _drop(self, segments: list[Segment]) -> None:
        try:
            for segment in segments:
                for callback in tuple(self.on_drop):
                    callback(segment)
        finally:
            for segment in segments:
                segment.close()
        if segments:
            self._returns.wake()

    def _refresh(self) -> None:
        """Start any change under the lock: refuse when closed, free what finalizers gave up."""
        if self._is_closed:
            raise _closed()
        self._drain()

    def _drain(self) -> None:
        self._do_later()
        for serial, after in self._returns.drain():
            self._do_later()  # a finalizer may have taken and released a block meanwhile
            self._ledger.release(serial, after)

    def _do_later(self) -> None:
        """Do what finalizers had to put off; the lock is held."""
        while self._later:
            self._later.popleft()()

    def _catch_up(self) -> None:
        """Do what finalizers have put off meanwhile, unless this is one of them."""
        if self._later and not self._is_mine():
            with self._lock:
                self._do_later()
            self._returns.wake()

    def _full(self, verdict: str, nbytes: int) -> ArenaFull:
        now = self.statistics()
        write = compared(nbytes, now.limit)
        blocks = f"{now.blocks} {'block' if now.blocks == 1 else 'blocks'}"
        return ArenaFull(
            f"the arena {verdict} {write(nbytes)}: {size(now.in_use)} of {write(now.limit)} are in "
            f"use by {blocks} ({now.held} held by uploads, {now.quarantined} waiting for a lost "
            f"context); delete arrays, or open a System(arena_bytes=…)"
        )


def _closed() -> SystemClosed:
    return SystemClosed("the system of this memory is closed: open another with System()")
