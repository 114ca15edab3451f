"""Where the bytes are, too, that a rank's part of a collective operation has left on its device.

An all-reduce leaves the same bits on every rank. When one is lost, another still has them, unless
it has written there since, or has freed the buffer. Only then are they copied to the host, and kept
like those of an upload; while all is well this costs a line in a table.

What is read here of a device is its record alone, with one lock at a time: two devices that
ask of each other must not wait for each other.
"""

import threading
from collections.abc import Callable, Collection, Iterable
from typing import Any, NamedTuple

import numpy as np

from accel_lab.compute.lineage.lineage import Lineage
from accel_lab.compute.lineage.recorder import Recorder
from accel_lab.errors import AccelError

FETCHED_WITHIN_S = 30.0
FEWEST = 1024
"""With fewer entries than this, none is looked through for those of no use any more."""


class Twin(NamedTuple):
    """A buffer of another device that holds the bytes.

    Attributes:
        device: its name.
        id: of the buffer.
        seq: behind which message it holds them.
        shape, dtype: of the buffer.
        offset: where in it they begin.
    """

    device: str
    id: int
    seq: int
    shape: tuple[int, ...]
    dtype: str
    offset: int = 0


class Source(NamedTuple):
    """What is asked of a device.

    Attributes:
        lost: returns the buffers that it could not rebuild.
        state: returns what it is doing.
        is_answered: whether a message, by its number, has its answer.
        read: copies a buffer of this id, shape and dtype to the host, within so many seconds.
    """

    recorder: Recorder
    lineage: Lineage
    lost: Callable[[], Collection[int]]
    state: Callable[[], str]
    is_answered: Callable[[int], bool]
    read: Callable[[int, tuple[int, ...], str, float], Any]


class Entry(NamedTuple):
    """The twins of what one part has left, and how many bytes that is."""

    nbytes: int
    twins: tuple[Twin, ...]


class Twins:
    """Knows them for all devices of a system; any thread.

    Attributes:
        fate: the devices that are lost together with each, by their names.
    """

    def __init__(self) -> None:
        self.fate: dict[str, frozenset[str]] = {}
        self._sources: dict[str, Source] = {}
        self._entries: dict[str, dict[int, Entry]] = {}
        self._lock = threading.Lock()
        self._count = 0
        self._most = FEWEST

    def follow(self, name: str, source: Source) -> None:
        """Let a device be asked, and be helped."""
        self._sources[name] = source

    def add(self, name: str, seq: int, nbytes: int, twins: Iterable[Twin]) -> None:
        """Note who has the bytes that message `seq` leaves on a device."""
        together = self.fate.get(name, frozenset())
        others = tuple(one for one in twins if one.device != name and one.device not in together)
        if not others or name not in self._sources:
            return
        with self._lock:
            self._entries.setdefault(name, {})[seq] = Entry(nbytes, others)
            self._count += 1

    def tidy(self) -> None:
        """Forget what has no twin any more, once there is much; the record's thread."""
        if self._count > self._most:
            self._forget_old()

    def available(self, name: str, *, quickly: bool = False) -> frozenset[int] | None:
        """Return the messages of a device that have a twin now; None where `quickly` was too short.

        The caller holds no lineage's lock.
        """
        with self._lock:
            entries = dict(self._entries.get(name, {}))
        if not entries:
            return frozenset()
        is_answered = self._sources[name].is_answered  # else a loss aborts it
        entries = {seq: entry for seq, entry in entries.items() if is_answered(seq)}
        twins = [one for entry in entries.values() for one in entry.twins]
        intact = self._intact(twins, quickly=quickly)
        if intact is None:
            return None
        found = (seq for seq, entry in entries.items() if not intact.isdisjoint(entry.twins))
        return frozenset(found)

    def fetch(self, name: str, seq: int) -> bytes | None:
        """Copy to the host what message `seq` had left on a device; None where nobody has it.

        Blocks until a device has done what it was sent before, 30 s at most.
        """
        with self._lock:
            entry = self._entries.get(name, {}).get(seq)
        for twin in () if entry is None else entry.twins:
            source = self._sources[twin.device]
            # One that restarts may wait for this one.
            if source.state() not in ("running", "suspended") or not self._intact([twin]):
                continue
            try:
                array = source.read(twin.id, twin.shape, twin.dtype, FETCHED_WITHIN_S)
            except (AccelError, TimeoutError):
                continue
            if self._intact([twin]):  # nothing that writes there came before the copy
                assert entry is not None
                data = np.ascontiguousarray(array).tobytes()
                return data[twin.offset : twin.offset + entry.nbytes]
        return None

    def _intact(self, twins: Iterable[Twin], *, quickly: bool = False) -> set[Twin] | None:
        """Return those that hold the bytes still."""
        by_device: dict[str, list[Twin]] = {}
        for twin in twins:
            by_device.setdefault(twin.device, []).append(twin)
        found: set[Twin] = set()
        for device, some in by_device.items():
            source = self._sources[device]
            if source.state() in ("circuit open", "stopped"):
                continue
            if not quickly:
                source.recorder.drain()
            elif not source.recorder.drain_quickly():
                return None
            lost = source.lost()
            kept = source.lineage.unwritten({(one.id, one.seq) for one in some})
            found.update(one for one in some if (one.id, one.seq) in kept and one.id not in lost)
        return found

    def _forget_old(self) -> None:
        """Forget what has no twin any more."""
        with self._lock:
            seen = {name: set(entries) for name, entries in self._entries.items()}
        for name, seqs in seen.items():
            there = self.available(name)
            with self._lock:
                for seq in seqs - (there or frozenset()):
                    if self._sources[name].is_answered(seq):
                        self._entries[name].pop(seq, None)
        with self._lock:
            self._count = sum(map(len, self._entries.values()))
            self._most = max(FEWEST, 2 * self._count)
