"""Whether SQLite's write-ahead log is whole.

SQLite takes the first frame that is not what it was for the end of the log, as it is after a crash,
and silently forgets what comes behind. But a crash leaves no commit behind: where one of the same
log follows, it was damaged. The format is that of https://www.sqlite.org/walformat.html.
"""

from pathlib import Path

import numpy as np
import numpy.typing as npt

HEADER_BYTES = 32
FRAME_HEADER_BYTES = 24
_MAGIC = 0x377F0682  # the lowest bit says that the checksums are of big-endian words
_Sums = npt.NDArray[np.uint32]


def damaged_frame(path: Path) -> int | None:
    """Return the number of the first damaged frame of a log, from 1, 0 for its header.

    None means that it ends as a log may, or that there is none.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    if len(data) <= HEADER_BYTES + FRAME_HEADER_BYTES:
        return None
    head = np.frombuffer(data[:HEADER_BYTES], ">u4")
    magic, size = int(head[0]), int(head[2])
    order = ">u4" if magic & 1 else "<u4"
    sums = _add(np.zeros(2, np.uint32), data[:24], order)
    if magic & ~1 != _MAGIC or not np.array_equal(sums, head[6:8]):
        return 0
    step = FRAME_HEADER_BYTES + size
    frames = [
        data[start : start + step] for start in range(HEADER_BYTES, len(data) - step + 1, step)
    ]
    for number, frame in enumerate(frames, 1):
        words = np.frombuffer(frame[:FRAME_HEADER_BYTES], ">u4")
        sums = _add(sums, frame[:8] + frame[FRAME_HEADER_BYTES:], order)
        if not (np.array_equal(words[2:4], head[4:6]) and np.array_equal(sums, words[4:6])):
            salts = data[16:24]
            behind = (other for other in frames[number:] if other[8:16] == salts)
            return number if any(any(other[4:8]) for other in behind) else None
    return None


def _add(sums: _Sums, data: bytes, order: str) -> _Sums:
    """Continue a checksum over more bytes, a multiple of 8.

    Each pair of words (x, y) makes (s, t) into (s + t + x, s + 2 t + x + y), modulo 2³²: the same
    matrix each time, so the sum over all pairs is a product with its powers.
    """
    words = np.frombuffer(data, order).astype(np.uint32).reshape(-1, 2)
    powers = _powers(len(words))
    added = np.stack((words[:, 0], words[:, 0] + words[:, 1]), axis=1)
    total = np.einsum("nij,nj->i", powers[:-1][::-1], added)
    found: _Sums = powers[-1] @ sums + total
    return found.astype(np.uint32)


_known: dict[int, npt.NDArray[np.uint32]] = {}


def _powers(count: int) -> npt.NDArray[np.uint32]:
    """Return the matrix to the powers 0 to `count`."""
    if count not in _known:
        step = np.array([[1, 1], [1, 2]], np.uint32)
        powers = np.empty((count + 1, 2, 2), np.uint32)
        powers[0] = np.eye(2)
        for n in range(count):
            powers[n + 1] = powers[n] @ step
        _known[count] = powers
    return _known[count]
