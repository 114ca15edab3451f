"""Host memory that no process has to map: anonymous files, written and read in pieces.

A process that maps memory pays for each of its pages, and once more to have them page-locked; one
that reads a file pays for the copy alone. Writers to one file wait for each other, so there are
several, and a piece lies in the one that its number says.
"""

import contextlib
import os
from typing import Any, Self

import numpy.typing as npt

FILES = 8
PIECE_BYTES = 16 << 20
PAGE_BYTES = 4096


class Stripes:
    """Some anonymous files; several threads may use it at once.

    They take memory for what has been written, and vanish with the last descriptor of them.

    Parameters:
        fds: the files, which this owns from now on.
    """

    def __init__(self, fds: list[int]) -> None:
        self.fds = fds

    @classmethod
    def make(cls) -> Self:
        """Make empty files.

        Raises:
            OSError: no descriptors.
        """
        fds: list[int] = []
        try:
            for _ in range(FILES):
                fds.append(os.memfd_create("accel_lab kept", os.MFD_CLOEXEC))  # noqa: PERF401 - to be closed
        except OSError:
            cls(fds).close()
            raise
        return cls(fds)

    def write(self, piece: int, data: npt.NDArray[Any]) -> None:
        """Write one piece, bytes of at most PIECE_BYTES; blocks, and releases the GIL.

        Raises:
            OSError: the system has no memory for it.
        """
        fd, at = self._place(piece)
        left = memoryview(data)  # type: ignore[arg-type]
        while left.nbytes:
            written = os.pwrite(fd, left, at)
            left, at = left[written:], at + written

    def read(self, piece: int, into: npt.NDArray[Any]) -> None:
        """Fill a uint8 array from the begin of a piece; blocks, and releases the GIL.

        Raises:
            EOFError: so much was never written.
        """
        fd, at = self._place(piece)
        left = memoryview(into)  # type: ignore[arg-type]
        while left.nbytes:
            found = os.preadv(fd, [left], at)
            if not found:
                raise EOFError(f"piece {piece} ends {left.nbytes} bytes early")
            left, at = left[found:], at + found

    def written_bytes(self) -> int:
        """Return how much of the host's memory the files have by now."""
        return sum(os.fstat(fd).st_blocks * 512 for fd in self.fds)

    def close(self) -> None:
        """Close the files; a second call is fine."""
        fds, self.fds = self.fds, []
        for fd in fds:
            with contextlib.suppress(OSError):
                os.close(fd)

    def _place(self, piece: int) -> tuple[int, int]:
        return self.fds[piece % FILES], piece // FILES * PIECE_BYTES


def pieces(nbytes: int) -> int:
    """Return how many pieces so many bytes take."""
    return -(-nbytes // PIECE_BYTES)


def in_pages(nbytes: int) -> int:
    """Return how much memory so many bytes take."""
    return -(-nbytes // PAGE_BYTES) * PAGE_BYTES
