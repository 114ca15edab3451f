"""What one device was sent, as the wire's bytes in the wire's order, and its outcome.

Sending a message costs one append to a deque. Whoever needs the record drains it: the record thread
every few milliseconds, and the recovery of a lost context at once.
"""

import threading
from collections import deque
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from operator import attrgetter
from typing import Any, NamedTuple

from accel_lab.compute.lineage.content_store import Contents
from accel_lab.compute.lineage.markers import Content, Marker, SentBy, encode_marker
from accel_lab.compute.output.cell_origin import Origin

MOMENT_S = 0.02
Follow = Callable[[list[bytes]], None]


class Kept(NamedTuple):
    """Bytes that a message names by their place in the arena, to be kept with the record.

    Attributes:
        data: the bytes, or None when they are not to be kept.
        why: what the record says then.
        done: called once when `data` is no longer needed; any thread, never blocks.
    """

    data: Any
    why: str = ""
    done: Callable[[], None] = lambda: None
    key: str = ""


class Recorder:
    """The record of one device; `append` is to be called with the device's lock held.

    Attributes:
        device: its name.
        resting: the record thread sleeps, so whoever records has to call `rouse`.
        origin: who sent the last entry.
        followers: get what is drained, in order and one at a time.
        is_drained_here: whether this thread is in the middle of that.

    Parameters:
        contents: where the bytes of uploads are kept.
        rouse: wakes the record thread; any thread, never blocks.
    """

    def __init__(self, device: str, contents: Contents, rouse: Callable[[], None]) -> None:
        self.device = device
        self.contents = contents
        self.resting = True
        self.origin: Origin | None = None
        self.followers: list[Follow] = []
        self._rouse = rouse
        self._parts: deque[bytes] = deque()
        self._later: deque[Callable[[], Marker]] = deque()
        self._draining = threading.RLock()
        # What a Condition asks of its lock: there is no public way.
        self.is_drained_here: Callable[[], bool] = attrgetter("_is_owned")(self._draining)
        self.append = self._parts.append

    def rouse(self) -> None:
        """Wake the record thread, for there is something to drain."""
        self.resting = False
        self._rouse()

    def sent_by(self, origin: Origin, at: float) -> None:
        """The entries from here on were sent by this cell."""
        self.origin = origin
        self.append(encode_marker(SentBy(origin.cell, at)))

    def mark(self, marker: Marker) -> None:
        """Record a fact; any thread, never blocks."""
        self.append(encode_marker(marker))
        if self.resting:
            self.rouse()

    def keep(self, seq: int, kept: Kept) -> None:
        """Keep the bytes of request `seq` with the next draining; never blocks."""
        if kept.data is None:
            self.mark(Content(seq, "", kept.why))
        else:
            self.later(partial(self._keep, seq, kept))

    def later(self, make: Callable[[], Marker]) -> None:
        """Record what `make` returns; it is called with the next draining and may block."""
        self._later.append(make)
        if self.resting:
            self.rouse()

    def _keep(self, seq: int, kept: Kept) -> Marker:
        try:
            key = self.contents.put(kept.data, kept.key)
        except Exception as error:  # noqa: BLE001 - for want of room; the record goes on without
            return Content(seq, "", f"its bytes could not be kept: {type(error).__name__}: {error}")
        finally:
            kept.done()
        return Content(seq, key or "", "" if key else "what may be kept is used up")

    def drain_quickly(self) -> bool:
        """Drain what needs no copy of bytes; return whether that is all. 20 ms at most."""
        if not self._draining.acquire(timeout=MOMENT_S):
            return False
        try:
            self._drain(later=0)
            return not self._later
        finally:
            self._draining.release()

    def drain(self) -> int:
        """Hand what has been recorded to the followers; returns how many parts. Any thread.

        Blocks while bytes are copied or another thread drains.
        """
        with self._draining:
            # Counted first: what is said of a message is not to be told before the message, for a
            # history that is cut in between would have no use for it.
            return self._drain(later=len(self._later))

    def _drain(self, later: int) -> int:
        taken = [self._parts.popleft() for _ in range(len(self._parts))]
        taken += [encode_marker(self._later.popleft()()) for _ in range(later)]
        if taken:
            with ExitStack() as every:  # each gets it, whatever another does
                for follow in reversed(self.followers):
                    every.callback(follow, taken)
        return len(taken)
