"""Philox4x32-10 in NumPy, in the word order of `rng`.

Every 32-bit number is held in 64 bits, so that a product with a multiplier has its high half.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.uint32]
Wide = npt.NDArray[np.uint64]

ROUNDS = 10
PLANE_BITS = 14  # the counter's second word has as many bits of an offset
BLOCKS = (1 << 14) + 1  # made at once: what that takes stays in a core's own cache
_MULTIPLIERS = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_WEYL = 0x9E3779B9, 0xBB67AE85
_LOW, _HALF = np.uint64(2**32 - 1), np.uint64(32)


def words(seed: int, stream: int, offset: int, count: int) -> Words:
    """Return `count` words of a seed's stream, the first of them word `offset`."""
    first = offset >> 2
    blocks = -(-(offset + count) >> 2) - first
    made = np.empty((blocks, 4), np.uint32)
    for at in range(0, blocks, BLOCKS):
        part = made[at : at + BLOCKS]
        index = np.arange(first + at, first + at + len(part), dtype=np.uint64)
        lanes = philox(_counter(index, stream), (seed & 0xFFFFFFFF, seed >> 32))
        for lane in range(4):
            part[:, lane] = lanes[lane]
    skipped = offset & 3
    return made.reshape(-1)[skipped : skipped + count]


def gathered(
    place: tuple[int, int, int], each: int, count: int, elements: Wide, plane: int
) -> Words:
    """Return words of elements, a row for each, in a plane of a seed's stream.

    Parameters:
        place: seed, stream, and the word with which element 0 begins.
        each: how many words an element takes, a multiple of 4.
        count: how many of them to return, a multiple of 4.
        plane: which; the words in a row are plane 0.
    """
    seed, stream, offset = place
    skipped = offset & 3
    blocks = count // 4 + (skipped > 0)
    first = elements * np.uint64(each // 4) + np.uint64(offset >> 2)
    index: Wide = np.add.outer(first, np.arange(blocks, dtype=np.uint64)).reshape(-1)
    counter = _counter(index, stream)
    counter[1] |= np.uint64(plane << PLANE_BITS)
    lanes = philox(counter, (seed & 0xFFFFFFFF, seed >> 32))
    made = np.stack(lanes, axis=1).astype(np.uint32).reshape(len(elements), 4 * blocks)
    return made[:, skipped : skipped + count]


def philox(counter: list[Wide], key: tuple[int, int]) -> list[Wide]:
    """Return the four words of each counter, given as four arrays of words, which are used up."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    left, right = np.empty_like(c0), np.empty_like(c0)
    for _ in range(ROUNDS):
        np.multiply(c0, _MULTIPLIERS[0], out=left)
        np.multiply(c2, _MULTIPLIERS[1], out=right)
        _mix(right, c1, np.uint64(k0), c0)
        _mix(left, c3, np.uint64(k1), c2)
        np.bitwise_and(right, _LOW, out=c1)
        np.bitwise_and(left, _LOW, out=c3)
        k0, k1 = (k0 + _WEYL[0]) & 0xFFFFFFFF, (k1 + _WEYL[1]) & 0xFFFFFFFF
    return [c0, c1, c2, c3]


def _mix(product: Wide, word: Wide, key: Any, out: Wide) -> None:
    """Write the product's high half, changed by a word and the key."""
    np.right_shift(product, _HALF, out=out)
    np.bitwise_xor(out, word, out=out)
    np.bitwise_xor(out, key, out=out)


def _counter(block: Wide, stream: int) -> list[Wide]:
    position = block >> np.uint64(16)
    within = block & np.uint64(0xFFFF)
    within |= np.uint64((stream & 0xFFFF) << 16)
    return [position & _LOW, position >> _HALF, within, np.full_like(block, stream >> 16)]
