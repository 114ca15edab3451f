"""Memory in which each rank of a communicator has a channel to each other one.

A channel is four pieces long and has one writer and one reader. The writer fills a piece and then
moves the tail, the reader takes it and then moves the head, so that neither locks anything that a
killed process could hold. On x86-64 the order of plain loads and stores is enough for that (Intel
SDM 3A, 8.2); other processors would need barriers that Python does not have.

The file is anonymous: whoever makes it keeps it open, the others open it by that process's number,
and it is gone with the last of them.
"""

import os
from typing import Any

import numpy as np
import numpy.typing as npt

from accel_lab.compute.machine.memfd_mapping import Mapping
from accel_lab.compute.machine.ring import ORDERED
from accel_lab.errors import BackendUnavailable

PIECE_BYTES = 128 << 10
"""So much is copied at once: two of them fit into a core's own cache. Judged."""
PIECES = 4
_LINE = 64
_RANK_BYTES = _LINE
_HEAD_BYTES = 2 * _LINE
_CHANNEL_BYTES = _HEAD_BYTES + PIECES * PIECE_BYTES


def file_bytes(size: int) -> int:
    """Return how large the file of so many ranks is; it takes memory where it is written."""
    return size * _RANK_BYTES + size * size * _CHANNEL_BYTES


def make_file(size: int) -> int:
    """Make the file of a communicator of `size` ranks; return its descriptor.

    Raises:
        BackendUnavailable: this processor does not keep its stores in order.
        OSError: the system refuses.
    """
    if not ORDERED:
        raise BackendUnavailable("collective operations on the host need an x86-64 processor")
    fd = os.memfd_create("accel_lab communicator", os.MFD_CLOEXEC)
    os.ftruncate(fd, file_bytes(size))
    return fd


class Channel:
    """The memory from one rank to another; one process writes it, and one reads.

    Attributes:
        sent: how many pieces were written.
        taken: how many were read.
    """

    def __init__(self, memory: npt.NDArray[np.uint8]) -> None:
        words = memory[:_HEAD_BYTES].data.cast("Q")
        self._tail, self._head = words[:1], words[_LINE // 8 : _LINE // 8 + 1]
        self._pieces = memory[_HEAD_BYTES:].reshape(PIECES, PIECE_BYTES)
        self.sent: int = self._tail[0]
        self.taken: int = self._head[0]

    def send(self, data: npt.NDArray[np.uint8]) -> bool:
        """Write one piece, of at most `PIECE_BYTES`; return False where there is no room."""
        sent = self.sent
        if sent - self._head[0] == PIECES:
            return False
        self._pieces[sent % PIECES, : data.size] = data
        self.sent = self._tail[0] = sent + 1
        return True

    def piece(self, nbytes: int) -> npt.NDArray[np.uint8] | None:
        """Return the next piece, to be read before `take`; None where there is none yet."""
        taken = self.taken
        if self._tail[0] == taken:
            return None
        piece: npt.NDArray[np.uint8] = self._pieces[taken % PIECES, :nbytes]
        return piece

    def take(self) -> None:
        """Let the writer have the piece again."""
        self.taken = self._head[0] = self.taken + 1


class Channels:
    """One rank's end of all the channels of a communicator.

    Parameters:
        path: of the file.
        rank: whose end.

    Raises:
        OSError: the file is gone.
    """

    def __init__(self, path: str, rank: int, size: int) -> None:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        try:
            memory = Mapping(fd, file_bytes(size)).bytes()
        finally:
            os.close(fd)
        ranks = memory[: size * _RANK_BYTES].data.cast("Q")
        self._progress: list[Any] = [ranks[8 * one : 8 * (one + 1)] for one in range(size)]
        self._rank = rank

        def channel(source: int, target: int) -> Channel:
            at = size * _RANK_BYTES + (source * size + target) * _CHANNEL_BYTES
            return Channel(memory[at : at + _CHANNEL_BYTES])

        others = [one for one in range(size) if one != rank]
        self.to = {one: channel(rank, one) for one in others}
        self.of = {one: channel(one, rank) for one in others}
        self._progress[rank][0] = 1

    def all_are_here(self) -> bool:
        """Whether every rank has opened the file."""
        return all(words[0] for words in self._progress)
