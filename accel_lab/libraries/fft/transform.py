"""What the Fourier transforms have in common: extents, axes, factors.

Everything follows SciPy: the transformed axes are numbered as given, and the last of them is the
one of which a real transform keeps half.
"""

import math
from functools import lru_cache
from typing import Any, ClassVar, Literal, NamedTuple, SupportsIndex, TypeAlias, get_args

from accel_lab.compute.graph.parameter import as_index
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.operation import Operation, Spec
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.authoring.dtype_sets import SINGLE_AND_DOUBLE
from accel_lab.libraries.authoring.operand import describe, kind, require_out, result
from accel_lab.libraries.authoring.options import Ints, Options
from accel_lab.libraries.authoring.shaped import DtypeRule, Shaped, complex_of

Kind: TypeAlias = Literal["C2C", "R2C", "C2R"]
Norm: TypeAlias = Literal["backward", "ortho", "forward"]

NORMS: tuple[Norm, ...] = get_args(Norm)


class Frame(NamedTuple):
    """What a transform does to a shape.

    Attributes:
        axes: the transformed axes, counted from 0; the last is the halved one.
        lengths: how many points each of them has in the transform itself.
        source: the operand's shape once it is cropped or padded with zeros.
        shape: the result's.
    """

    axes: tuple[int, ...]
    lengths: tuple[int, ...]
    source: tuple[int, ...]
    shape: tuple[int, ...]

    def factor(self, norm: Norm | None, *, inverse: bool) -> float:
        """Return what the bare sum is multiplied by."""
        points = math.prod(self.lengths)
        if norm == "ortho":
            return 1 / math.sqrt(points)
        return 1 / points if (norm in (None, "backward")) == inverse else 1.0


class Transform(Shaped[AccelRef], frozen=True, array_like=True, eq=False):
    """The fields of all transforms.

    `s` has the points along each of `axes`, by which `x` is cropped or padded with zeros at the
    end; -1 is as many as `x` has. Without `s` nothing is cropped. Without `axes` they are the
    last ones, as many as `s` has, or all. `norm` is "backward", as without it, "ortho" or
    "forward".
    """

    library: ClassVar[str] = "fft"
    dtypes: ClassVar = SINGLE_AND_DOUBLE
    shapes: ClassVar = "(...)->?"
    results: ClassVar[tuple[DtypeRule, ...]] = (complex_of,)
    kind: ClassVar[Kind]
    x: AccelRef
    _: Options
    s: Ints | None = None
    axes: Ints | None = None
    norm: Norm | None = None
    out: AccelRef | None = None

    @property
    def given(self) -> tuple[Any, Any, Norm | None]:
        """What SciPy's functions take behind `x`: s, axes and norm."""
        return self.s, self.axes, self.norm

    def frame(self) -> Frame:
        """Return what is done to the shape of `x`."""
        s, axes, _ = self.given
        return frame(self.kind, self.x.shape, s, axes)

    def infer(self) -> Spec:
        """Return the shape with the axes' new extents, and the dtype of the same precision."""
        require_word(self, "norm", self.norm, (None, *NORMS))
        require_integers(self, "s", self.s)
        require_integers(self, "axes", self.axes)
        try:
            shape = self.frame().shape
        except InvalidArgument as error:
            raise InvalidArgument(f"{kind(self)}: {error}; x is {describe(self.x)}") from None
        (made,) = self.results
        spec = result(self, shape, made if isinstance(made, str) else made(self.x.dtype))
        require_out(self, self.out, spec)
        return spec


@lru_cache(maxsize=4096)
def frame(
    transform: Kind,
    shape: tuple[int, ...],
    s: Any,
    axes: Any,
) -> Frame:
    """Work out what a transform does to a shape; `s` and `axes` are tuples of integers, or None.

    Raises:
        InvalidArgument: the extents or axes do not fit.
    """
    chosen = _chosen(len(shape), s, axes)
    if not chosen and transform != "C2C":
        raise InvalidArgument("at least one axis must be transformed")
    lengths = [shape[axis] for axis in chosen]
    if s is not None:
        lengths = [n if given == -1 else given for n, given in zip(lengths, s, strict=True)]
    elif transform == "C2R":
        lengths[-1] = 2 * (lengths[-1] - 1)
    if any(n < 1 for n in lengths):
        raise InvalidArgument(
            f"a transform needs at least one point along each axis, not {lengths}"
        )
    whole, half = list(shape), list(shape)
    for axis, n in zip(chosen, lengths, strict=True):
        whole[axis] = half[axis] = n
    if chosen:
        half[chosen[-1]] = lengths[-1] // 2 + 1
    return Frame(
        chosen,
        tuple(lengths),
        tuple(half if transform == "C2R" else whole),
        tuple(half if transform == "R2C" else whole),
    )


def _chosen(ndim: int, s: tuple[int, ...] | None, axes: tuple[int, ...] | None) -> tuple[int, ...]:
    """Return the axes to transform, counted from 0."""
    if axes is None:
        count = ndim if s is None else len(s)
        if count > ndim:
            raise InvalidArgument(f"s has {count} extents, and x only {ndim} axes")
        return tuple(range(ndim - count, ndim))
    chosen = tuple(axis_from_0(axis, ndim) for axis in axes)
    if len(set(chosen)) < len(chosen):
        raise InvalidArgument(f"axes {list(axes)} name an axis twice")
    if s is not None and len(s) != len(chosen):
        raise InvalidArgument(f"s has {len(s)} extents for {len(chosen)} axes")
    return chosen


def axis_from_0(axis: int, ndim: int) -> int:
    """Return an axis counted from 0.

    Raises:
        InvalidArgument: there is no such axis.
    """
    if not -ndim <= axis < ndim:
        raise InvalidArgument(f"axis {axis} is none of its {ndim} axes")
    return axis + ndim if axis < 0 else axis


def one_integer(name: str, value: SupportsIndex) -> int:
    """Return the only integer that an argument may be.

    Raises:
        InvalidArgument: it is none.
    """
    try:
        return as_index(value)
    except TypeError:
        raise InvalidArgument(f"{name} must be one integer, not {value!r}") from None


def points(n: SupportsIndex | None) -> tuple[int, ...] | None:
    """Return the extent of one axis; here -1 is no word for the operand's own.

    Raises:
        InvalidArgument: it is no integer from 1.
    """
    if n is None:
        return None
    extent = one_integer("n", n)
    if extent < 1:
        raise InvalidArgument(f"n is {extent}; a transform needs at least one point")
    return (extent,)


def require_integers(m: Operation[Any], name: str, value: Any) -> None:
    """Refuse what is neither None nor a tuple of integers; True would be taken for 1.

    Raises:
        InvalidArgument: it is something else.
    """
    if value is not None and (
        not isinstance(value, tuple) or any(type(n) is not int for n in value)
    ):
        raise InvalidArgument(f"{kind(m)}: {name} is a tuple of integers or None, not {value!r}")


def require_word(m: Operation[Any], name: str, value: Any, words: tuple[Any, ...]) -> None:
    """Refuse what is none of a few words.

    Raises:
        InvalidArgument: with those there are.
    """
    # An array is equal to no word, and says so by an array.
    if not isinstance(value, str | int | None) or value not in words:
        *others, last = (repr(word) for word in words if word is not None)
        said = f"{', '.join(others)} or {last}"
        raise InvalidArgument(f"{kind(m)}: {name} is {value!r}; it may be {said}")
