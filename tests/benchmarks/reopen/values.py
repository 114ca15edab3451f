"""The names of a session that is measured, and how their values are told apart.

Part was uploaded: arrays that the journal keeps, and larger ones of which a commit keeps the bytes.
All else was made by messages: drawn, by operations on what was drawn, and by a few libraries.
"""

import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from accel_lab import AccelRef, Device, array, blas, fft, rng

JOURNALED_BYTES = 32 << 20
KEPT_BYTES = 512 << 20
MADE_BYTES = 1 << 30
LEAST_BYTES = 65 << 20
"""A larger upload than 64 MiB is in no journal: a commit keeps its bytes."""
SEED = 35
PART = 1 << 24
_FACTOR = 0x9E3779B97F4A7C15
_WORD = 1 << 64


class Kind(NamedTuple):
    """How a value was made.

    Attributes:
        make: returns one of so many float32 numbers; the last argument numbers them.
        units: how far it may be off on another backend, as of a replay, in units of epsilon.
    """

    make: Callable[[Device, int, int], AccelRef]
    units: float


def uploaded(device: Device, count: int, number: int) -> AccelRef:
    """Upload numbers of every exponent."""
    words = np.random.default_rng(number).integers(0, 0x7F000000, count, np.uint32)
    return device.put(words.view(np.float32))


def uniform(device: Device, count: int, number: int) -> AccelRef:
    """Draw uniform numbers."""
    return rng.Generator(device, SEED, stream=number).uniform((count,), "float32")


def normal(device: Device, count: int, number: int) -> AccelRef:
    """Draw normal numbers."""
    return rng.Generator(device, SEED, stream=number).normal((count,), "float32")


def affine(device: Device, count: int, number: int) -> AccelRef:
    """Make numbers element by element of what was drawn."""
    return uniform(device, count, number) * 2.0 + 1.0


def written(device: Device, count: int, number: int) -> AccelRef:
    """Write several times to what was drawn."""
    x = uniform(device, count, number)
    for factor in (1.5, 0.75, 1.25):
        blas.scal(x, factor, out=x)
    return x


def wave(device: Device, count: int, number: int) -> AccelRef:
    """Make numbers by functions that each machine has its own of."""
    return array.exp(array.sin(uniform(device, count, number)))


LARGE = {
    "uniform": Kind(uniform, 0),
    "normal": Kind(normal, 8),
    "affine": Kind(affine, 4),
    "written": Kind(written, 6),
    "wave": Kind(wave, 128),
}


def product(device: Device, side: int, number: int) -> AccelRef:
    """Multiply two matrices."""
    a, b = (uniform(device, side * side, number + one).reshape(side, side) for one in (0, 1))
    return blas.gemm(a, b)


def _of_drawn(make: Callable[[AccelRef], AccelRef]) -> Callable[[Device, int, int], AccelRef]:
    return lambda device, side, number: make(uniform(device, side * side, number))


def few(side: int) -> dict[str, Kind]:
    """Return small ones, of several libraries."""
    count = side * side
    sums = 8 + 4 * count**0.5
    return {
        "product": Kind(product, 8 + 4 * side**0.5),
        "total": Kind(_of_drawn(array.sum), sums),
        "running": Kind(_of_drawn(array.cumsum), sums),
        "sorted": Kind(_of_drawn(array.sort), 0),
        "spectrum": Kind(_of_drawn(fft.rfft), 16 * (2 + np.log2(count))),
    }


class Value(NamedTuple):
    """A value to be made.

    Attributes:
        numbers: how many, or how long a side of it is.
    """

    name: str
    kind: Kind
    numbers: int
    is_uploaded: bool = False


def values(nbytes: int, share: float, side: int) -> list[Value]:
    """Return what makes about so many bytes together.

    Parameters:
        share: how much of them is uploaded, the half of it in the journal.
        side: of the small ones.
    """
    upload, found = Kind(uploaded, 0), list[Value]()
    journaled = int(nbytes * share / 2)
    kept = int(nbytes * share) - journaled
    if kept < LEAST_BYTES:
        journaled, kept = journaled + kept, 0
    for which, size, most in (("sent", journaled, JOURNALED_BYTES), ("kept", kept, KEPT_BYTES)):
        found += [
            Value(f"{which}_{at}", upload, count, is_uploaded=True)
            for at, count in enumerate(_cut(size, most))
        ]
    kinds = list(LARGE.items())
    least = -(-int(nbytes * (1 - share)) // len(kinds))  # so that there is one of each kind
    for at, count in enumerate(_cut(int(nbytes * (1 - share)), min(MADE_BYTES, max(least, 4)))):
        name, kind = kinds[at % len(kinds)]
        found.append(Value(f"{name}_{at}", kind, count))
    return found + [Value(name, kind, side) for name, kind in few(side).items()]


def _cut(nbytes: int, most: int) -> list[int]:
    """Return how many float32 numbers each of some buffers has."""
    pieces = -(-nbytes // most)
    return [nbytes // pieces // 4] * pieces if pieces else []


def digest(x: Any) -> int:
    """Return 64 bits of all bits of an array, and of where each is; runs where the array is."""
    xp = sys.modules[type(x).__module__.partition(".")[0]]
    words, found = x.reshape(-1).view("uint32"), 0
    places = xp.arange(1, min(PART, words.size) + 1, dtype="uint64") * xp.uint64(_FACTOR)
    for first in range(0, words.size, PART):
        part = words[first : first + PART].astype("uint64")
        part *= places[: part.size]
        found = (found * 31 + int(part.sum(dtype="uint64"))) % _WORD
    return found


def digests(names: dict[str, Any], device: Device) -> dict[str, int]:
    """Return the digest of each array."""
    refs = {name: one for name, one in names.items() if isinstance(one, AccelRef)}
    return {name: device.run(digest, one, pure=True).result() for name, one in refs.items()}
