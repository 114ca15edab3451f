"""Bytes kept by their content: what was uploaded, checkpointed, or recorded as a result.

They stay in memory up to one budget and then go to an unnamed temporary file up to another.
What fits in neither is refused, and its record says so.
"""

import hashlib
import os
import tempfile
import threading
import time
from collections.abc import Collection

from accel_lab.compute.machine.free_list import FreeList

KEY_BYTES = 16
MEMORY_BYTES = 256 << 20
SPILL_BYTES = 4 << 30
FRESH_S = 10.0
"""How long after it was put it is told at the latest what needs it."""
_PIECE_BYTES = 256 << 10


def key_of(*pieces: bytes | memoryview) -> str:
    """Return the name of these bytes: their 128-bit BLAKE2b digest, in hexadecimal."""
    made = hashlib.blake2b(digest_size=KEY_BYTES)
    for piece in pieces:
        made.update(piece)
    return made.hexdigest()


class Contents:
    """Bytes by key, within budgets; thread-safe, and equal bytes are kept once.

    Parameters:
        memory_bytes: how much stays in memory.
        spill_bytes: how much more may go to a temporary file, which nobody else can open.
    """

    def __init__(self, memory_bytes: int = MEMORY_BYTES, spill_bytes: int = SPILL_BYTES) -> None:
        self.memory_bytes = memory_bytes
        self.spill_bytes = spill_bytes
        self.used_bytes = 0
        self.spilled_bytes = 0
        self._lock = threading.RLock()  # a finalizer of the user's may keep something in the middle
        self._held: dict[str, bytes] = {}
        self._fresh: dict[str, float] = {}  # when what came since the last call of `retain` did
        self._needed_bytes = self._needed_spilled_bytes = 0
        self._spilled: dict[str, tuple[int, int]] = {}
        self._free = FreeList(spill_bytes)
        self._file = -1

    def put(self, data: bytes | memoryview, key: str = "") -> str | None:
        """Keep a copy of these bytes and return their key; None when the budgets are used up.

        Blocks for the digest, the copy, and the disk when they are spilled.

        Parameters:
            key: where it is known; "" has it found.
        """
        key = key or key_of(data)
        with self._lock:
            self._fresh[key] = time.monotonic()
            if key in self._held or key in self._spilled:
                return key
            if self.used_bytes + len(data) <= self.memory_bytes:
                self._held[key] = _copied(data)
                self.used_bytes += len(data)
                return key
            return key if self._spill(key, data) else None

    def get(self, key: str) -> bytes | None:
        """Return the bytes of this key, None when they are not here."""
        with self._lock:
            held = self._held.get(key)
            if held is not None:
                return held
            place = self._spilled.get(key)
            return None if place is None else os.pread(self._file, place[1], place[0])

    def nbytes(self, key: str) -> int | None:
        """Return how many bytes this key has, None when they are not here."""
        with self._lock:
            held = self._held.get(key)
            if held is not None:
                return len(held)
            place = self._spilled.get(key)
            return None if place is None else place[1]

    def retain(self, keys: Collection[str]) -> None:
        """Forget everything but these, and what was put since the last call a moment ago.

        Whoever put that may not have told yet what needs it.
        """
        with self._lock:
            since = time.monotonic() - FRESH_S
            keys = {key for key, at in self._fresh.items() if at > since}.union(keys)
            self._fresh.clear()
            for key in self._held.keys() - keys:
                self.used_bytes -= len(self._held.pop(key))
            for key in self._spilled.keys() - keys:
                offset, nbytes = self._spilled.pop(key)
                self._free.give(offset, nbytes)
                self.spilled_bytes -= nbytes
            self._needed_bytes, self._needed_spilled_bytes = self.used_bytes, self.spilled_bytes

    @property
    def crowded(self) -> bool:
        """Whether most of the memory is used, and more than was needed when that was last seen.

        Or whether much more was spilled since then.
        """
        if self.spilled_bytes - self._needed_spilled_bytes > self.spill_bytes // 16:
            return True
        grown = self.used_bytes - self._needed_bytes > self.memory_bytes // 16
        return grown and self.used_bytes > self.memory_bytes * 3 // 4

    @property
    def has_grown(self) -> bool:
        """Whether there is twice what was needed when that was last seen, or far more if little."""
        grown = self.used_bytes - self._needed_bytes
        return grown > max(self.memory_bytes // 16, self._needed_bytes)

    def close(self) -> None:
        """Forget everything; the temporary file is gone."""
        with self._lock:
            self._held.clear()
            self._spilled.clear()
            self.used_bytes = self.spilled_bytes = 0
            self.memory_bytes = self.spill_bytes = 0
            if self._file >= 0:
                os.close(self._file)
                self._file = -1

    def _spill(self, key: str, data: bytes | memoryview) -> bool:
        if self.spilled_bytes + len(data) > self.spill_bytes or not len(data):
            return False
        offset = self._free.take(len(data))
        if offset is None:  # in pieces
            return False
        try:
            if self._file < 0:
                with tempfile.TemporaryFile(prefix="accel_lab-") as file:
                    self._file = os.dup(file.fileno())
            written = 0
            while written < len(data):
                written += os.pwrite(self._file, data[written:], offset + written)
        except OSError:  # no room on the disk
            self._free.give(offset, len(data))
            return False
        self._spilled[key] = offset, len(data)
        self.spilled_bytes += len(data)
        return True


def _copied(data: bytes | memoryview) -> bytes:
    """Return a copy; in pieces, because the interpreter waits for the copy of one."""
    if len(data) <= _PIECE_BYTES:
        return bytes(data)
    pieces = range(0, len(data), _PIECE_BYTES)
    return b"".join([bytes(data[first : first + _PIECE_BYTES]) for first in pieces])
