"""Level 1 of BLAS beside sums and norms: exchange, absolute sums, extremes, plane rotations."""

from typing import ClassVar, NamedTuple

from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.operation import Operation
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.authoring.dtype_sets import ALL, SINGLE_AND_DOUBLE
from accel_lab.libraries.authoring.operand import describe, kind
from accel_lab.libraries.authoring.options import Factor
from accel_lab.libraries.authoring.shaped import Shaped, real_of, same
from accel_lab.libraries.blas.message import BlasMessage, require_real


class Swap(Operation[None], frozen=True, array_like=True, eq=False, tag=147):
    """Exchange the elements of two buffers of one shape and dtype; both are written in place."""

    library: ClassVar[str] = "blas"
    dtypes: ClassVar = ALL
    written: ClassVar[str] = "pair"
    pair: tuple[AccelRef, AccelRef]

    def infer(self) -> None:
        """Refuse what cannot be exchanged; there is no result."""
        if len(self.pair) != len("xy"):
            raise InvalidArgument(f"Swap: pair has {len(self.pair)} buffers; it takes two")
        x, y = self.pair
        if x.shape != y.shape or x.dtype != y.dtype:
            text = f"x is {describe(x)} and y {describe(y)}; they are to be of one shape and dtype"
            raise InvalidArgument(f"Swap: {text}")
        if x.id == y.id:
            raise InvalidArgument(f"Swap: x and y are the same buffer {x.id}; it takes two")


class Asum(BlasMessage, frozen=True, tag=148):
    """Sum the magnitudes of all elements of `x`, whatever its shape.

    That of a complex one is `abs(re) + abs(im)`, as BLAS has it. The answer is a real 0-d buffer.
    """

    shapes: ClassVar = "(...)->()"
    results: ClassVar = (real_of,)
    dtypes: ClassVar = SINGLE_AND_DOUBLE
    x: AccelRef


class Extreme(BlasMessage, frozen=True):
    """The operand of `Iamax` and `Iamin`."""

    shapes: ClassVar = "(...)->()"
    results: ClassVar = ("int64",)
    dtypes: ClassVar = SINGLE_AND_DOUBLE
    x: AccelRef

    def check(self) -> None:
        """Refuse what has no element."""
        if not self.x.size:
            text = f"x is {describe(self.x)}; it is to have at least one element"
            raise InvalidArgument(f"{kind(self)}: {text}")


class Iamax(Extreme, frozen=True, tag=149):
    """Find the first element of largest magnitude.

    That is `abs(re) + abs(im)` of complex ones, as BLAS has it. The answer is its index in C order,
    from 0, a 0-d buffer of int64. Among NaNs it is any index.
    """


class Iamin(Extreme, frozen=True, tag=150):
    """Find the first element of least magnitude.

    That is `abs(re) + abs(im)` of complex ones, as BLAS has it. The answer is its index in C order,
    from 0, a 0-d buffer of int64. Among NaNs it is any index.
    """


class Rotated(NamedTuple):
    """What a rotation makes of two arrays."""

    x: AccelRef
    y: AccelRef


class Rot(Shaped[Rotated], frozen=True, array_like=True, eq=False, tag=151):
    """Rotate in the plane, element by element: c x + s y, and c y - conj(s) x, in new buffers.

    `c` is real, `s` any number of the dtype. `Rotg` makes them of two numbers.
    """

    library: ClassVar[str] = "blas"
    dtypes: ClassVar = SINGLE_AND_DOUBLE
    shapes: ClassVar = "(...),(...)->(...),(...)"
    results: ClassVar = (same, same)
    x: AccelRef
    y: AccelRef
    c: Factor
    s: Factor

    def check(self) -> None:
        """Refuse a complex cosine."""
        require_real(self, "c")


class Givens(NamedTuple):
    """A rotation: c a + s b = r, and c b - conj(s) a = 0."""

    c: AccelRef
    s: AccelRef
    r: AccelRef


class Rotg(Shaped[Givens], frozen=True, array_like=True, eq=False, tag=152):
    """Find the plane rotation, real c and s, that turns two 0-d buffers (a, b) into (r, 0).

    c a + s b = r, c b - conj(s) a = 0 and c² + abs(s)² = 1. The three are 0-d buffers; nothing
    waits for them.
    """

    library: ClassVar[str] = "blas"
    dtypes: ClassVar = SINGLE_AND_DOUBLE
    shapes: ClassVar = "(),()->(),(),()"
    results: ClassVar = (real_of, same, same)
    a: AccelRef
    b: AccelRef
