"""Sobol's points: evenly spread, so that means over them converge faster than over random ones.

Directions are those of S. Joe and F. Kuo, "Constructing Sobol sequences with better two-dimensional
projections", SIAM J. Sci. Comput. 30, 2008 (new-joe-kuo-6), as cuRAND and SciPy have them; they are
read from SciPy's own file.
"""

from functools import lru_cache
from importlib.resources import files
from typing import Any, ClassVar, SupportsIndex

import numpy as np

from accel_lab.compute.device import Device, device_first
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.operation import Spec
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.authoring.operand import kind
from accel_lab.libraries.rng.messages import Draw
from accel_lab.libraries.rng.philox import words
from accel_lab.libraries.rng.place import described, placed, whole

DIMENSIONS = 20_000  # as many as cuRAND has
BITS = {"uint32": 32, "float32": 32, "uint64": 64, "float64": 64}


class Sobol(Draw, frozen=True, array_like=True, eq=False, kw_only=True, tag=233):
    """Make Sobol's points (n, d) from point `offset` on, in order of their Gray codes.

    uint32 and uint64 are cuRAND's SOBOL32 and SOBOL64, with a point in each row. float32 is made of
    32 bits as `Uniform` makes it of a word; float64 is (v // 2**11) 2**-53 + 2**-54 of 64 bits.

    Scrambled points are spread by random lower triangular matrices of bits and random shifts
    (J. Matoušek, "On the L2-discrepancy for anchored boxes", J. Complexity 14, 1998), made of
    Philox's words of the seed's stream. cuRAND has a fixed scramble of its own instead. Points that
    are not scrambled do not depend on `seed` and `stream`.
    """

    dtypes: ClassVar = frozenset(BITS)
    uncaptured: ClassVar = "each launch would make the same points"
    scrambled: bool = False

    @property
    def consumes(self) -> int:
        """How many points this makes."""
        return self.shape[0]

    def infer(self) -> Spec:
        """Return the shape and dtype that were given."""
        if len(self.shape) != 2 or not 1 <= self.shape[1] <= DIMENSIONS:  # noqa: PLR2004 - (n, d)
            raise InvalidArgument(
                f"{kind(self)}: points are of a shape (n, d) with d from 1 to {DIMENSIONS}, not "
                f"{self.shape}"
            )
        spec = super().infer()
        bits = BITS.get(self.dtype, 64)
        if self.offset + self.consumes > 2**bits:
            raise InvalidArgument(
                f"{kind(self)}: {self.dtype} has 2**{bits} points, and {self.consumes} from "
                f"{self.offset} on are wanted; take uint64 or float64"
            )
        return spec

    @property
    def numbers(self) -> tuple[Any, Any]:
        """What the backends compute with: (d, bits) directions and (d) shifts."""
        bits = BITS[self.dtype]
        if self.scrambled:
            return scrambled(self.shape[1], bits, self.seed, self.stream)
        directions = joe_kuo(self.shape[1], bits)
        return directions, np.zeros(len(directions), directions.dtype)


def sobol(
    device: Device,
    n: SupportsIndex,
    dimensions: SupportsIndex = 1,
    dtype: object = None,
    *,
    scrambled: bool = False,
    seed: SupportsIndex | None = None,
    stream: SupportsIndex = 0,
    offset: SupportsIndex = 0,
    out: AccelRef | None = None,
) -> AccelRef:
    """Make `n` of Sobol's points, as `Sobol` says; float32 unless told otherwise.

    Does not block. Points that are not scrambled have seed 0 in the message, whatever is given.

    Raises:
        InvalidArgument: something does not fit.
    """
    what = described((whole(n), whole(dimensions)), dtype, out, "float32")
    place = placed(seed if scrambled else 0, stream, offset)
    return device_first(device).ask(Sobol(*what, *place, out, scrambled=scrambled))


@lru_cache(maxsize=4)
def joe_kuo(dimensions: int, bits: int) -> Any:
    """Return the directions (dimensions, bits), the first one with the highest bit."""
    with np.load(str(files("scipy") / "stats" / "_sobol_direction_numbers.npz")) as file:
        polynomials = file["poly"][:dimensions].astype(np.uint64)
        first = file["vinit"][:dimensions].astype(np.uint64)
    degree = np.frompyfunc(lambda p: int(p).bit_length() - 1, 1, 1)(polynomials).astype(int)
    made = np.zeros((dimensions, bits), np.uint64)
    made[0] = 1
    known = np.minimum(first.shape[1], bits)
    made[1:, :known] = np.where(np.arange(known) < degree[1:, None], first[1:, :known], 0)
    for which in np.unique(degree[1:]):
        rows = 1 + np.flatnonzero(degree[1:] == which)
        for at in range(which, bits):
            value = made[rows, at - which].copy()
            for back in range(1, which + 1):
                has = polynomials[rows] >> np.uint64(which - back) & np.uint64(1)
                value ^= has * (made[rows, at - back] << np.uint64(back))
            made[rows, at] = value
    made <<= np.arange(bits - 1, -1, -1, dtype=np.uint64)
    return made.astype(f"u{bits // 8}")


@lru_cache(maxsize=4)
def scrambled(dimensions: int, bits: int, seed: int, stream: int) -> tuple[Any, Any]:
    """Return scrambled directions and shifts.

    Each dimension takes `bits` + 1 numbers of the stream: a row of its matrix for each bit, the
    highest one first, and its shift.
    """
    dtype = f"u{bits // 8}"
    drawn = words(seed, stream, 0, dimensions * (bits + 1) * bits // 32)
    numbers = np.ascontiguousarray(drawn).view(dtype).reshape(dimensions, bits + 1)
    directions = joe_kuo(dimensions, bits)
    made = np.zeros_like(directions)
    one = directions.dtype.type(1)
    for row in range(bits):
        place = directions.dtype.type(bits - 1 - row)
        # Of the bits above, those that the number has; its own always.
        mask = (numbers[:, row] >> place | one) << place
        parity = (np.bitwise_count(directions & mask[:, None]) & 1).astype(dtype)
        made |= parity << place
    return made, numbers[:, bits].copy()
