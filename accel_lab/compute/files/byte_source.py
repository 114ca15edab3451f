"""A file's bytes, read into memory that the caller has; never mapped.

A mapping of a file that somebody cuts short meanwhile would end the process that looks at it.
"""

import os
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Protocol

import numpy as np

from accel_lab.compute.machine.memfd_mapping import Bytes
from accel_lab.errors import FileDamaged, FileError
from accel_lab.uncopied import Uncopied

MOST_AT_ONCE = 1 << 30


class ByteSource(Protocol):
    """Bytes that can be read from any place on."""

    @property
    def name(self) -> str:
        """What errors call it."""

    @property
    def nbytes(self) -> int:
        """How many there are."""

    @property
    def in_order(self) -> bool:
        """Whether it is best read from its beginning to its end, by one thread at a time."""

    def read_into(self, offset: int, view: Bytes) -> None:
        """Fill the view with the bytes from `offset` on."""


class FileBytes(Uncopied):
    """The bytes of a regular file; any thread.

    Attributes:
        name: its path.
        nbytes: its size when it was opened.

    Raises:
        FileError: it is no regular file.
        OSError: it cannot be opened.
    """

    in_order = False

    def __init__(self, path: Path) -> None:
        # A pipe that nobody writes to would be waited for.
        self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        self._closing = weakref.finalize(self, os.close, self._fd)
        self._readers, self._is_closed = 0, False
        self._counting = threading.RLock()
        self.name = str(path)
        self._state = self._look()
        self.nbytes = self._state[0]
        if not os.path.isfile(f"/proc/self/fd/{self._fd}"):  # noqa: PTH113 - of what is open
            self.close()
            raise FileError(f"{path} is no regular file")

    def read_into(self, offset: int, view: Bytes) -> None:
        """Fill the view with the bytes from `offset` on.

        Raises:
            FileDamaged: the file ends before.
            FileError: it was closed, or its disk cannot read it.
        """
        filled = 0
        with self._open():
            while filled < view.nbytes:
                some = view[filled : filled + MOST_AT_ONCE]
                try:
                    got = os.preadv(self._fd, [some.data], offset + filled)
                except OSError as error:
                    raise FileError(f"{self.name} cannot be read: {error}") from error
                if not got:
                    text = f"{self.name} ends at byte {offset + filled:,}, within an array"
                    raise FileDamaged(text)
                filled += got

    def read(self, offset: int, nbytes: int) -> bytes:
        """Return a few bytes; as `read_into`."""
        data = np.empty(nbytes, np.uint8)
        self.read_into(offset, data)
        return data.tobytes()

    def reopened(self) -> BinaryIO:
        """Return the file as an object of its own, with a place in it of its own."""
        with self._open():
            file = open(f"/proc/self/fd/{self._fd}", "rb")  # noqa: PTH123, SIM115 - as it is open
        weakref.finalize(self, file.close)
        return file

    def require_unchanged(self) -> None:
        """Refuse what was read if somebody has written to the file since it was opened.

        Raises:
            FileDamaged: its size or its time is another.
            FileError: it was closed.
        """
        with self._open():
            is_same = self._look() == self._state
        if not is_same:
            raise FileDamaged(f"{self.name} was changed after it was opened: open it again")

    def close(self) -> None:
        """Close the file, once those that read it now are done; a second call does nothing."""
        with self._counting:
            self._is_closed = True
            if not self._readers:
                self._closing()

    @contextmanager
    def _open(self) -> Iterator[None]:
        """Keep the file open: the number of one that is closed is soon that of another."""
        with self._counting:
            if self._is_closed:
                raise FileError(f"{self.name} was closed")
            self._readers += 1
        try:
            yield
        finally:
            with self._counting:
                self._readers -= 1
                if self._is_closed and not self._readers:
                    self._closing()

    def _look(self) -> tuple[int, int]:
        found = os.fstat(self._fd)
        return found.st_size, found.st_mtime_ns
