"""How transforms lie in memory: cuFFT's advanced layout, numbers in pairs, padded lines, halves."""

from typing import Any, ClassVar, Literal, TypeAlias, get_args

import numpy as np

from accel_lab.compute.arrays.dtypes import complex_of, is_complex, real_of
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.operation import Operation, Spec
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.authoring.dtype_sets import REAL_SINGLE_AND_DOUBLE, SINGLE_AND_DOUBLE
from accel_lab.libraries.authoring.function import function
from accel_lab.libraries.authoring.operand import describe, kind, require_out, result
from accel_lab.libraries.authoring.options import Ints, Options
from accel_lab.libraries.authoring.shaped import Shaped
from accel_lab.libraries.fft.transform import NORMS, Norm, require_integers, require_word

__all__ = [
    "Embedded",
    "Half",
    "Interleaved",
    "Padded",
    "embedded",
    "half",
    "interleaved",
    "padded",
]

Form: TypeAlias = Literal["c2c", "r2c", "c2r"]

MOST_AXES = 3
"""Along which cuFFT transforms at once."""


class Embedded(Shaped[AccelRef], frozen=True, tag=187):
    """View `batch` arrays of shape `n` in a vector, in the words of cuFFT's cufftPlanMany.

    Element (i, j, k) of array b is the one of number
    `offset + b * distance + ((i * embed[1] + j) * embed[2] + k) * stride`.
    By default `embed` is `n`, and the next array begins where the last one ends. The shape is
    `(batch, *n)`: transform the axes from 1 on.
    """

    library: ClassVar[str] = "fft"
    dtypes: ClassVar = SINGLE_AND_DOUBLE | {"float16"}
    shapes: ClassVar = "(k)->?"
    aliased: ClassVar[str] = "x"
    x: AccelRef
    n: Ints
    batch: int = 1
    _: Options
    stride: int = 1
    distance: int | None = None
    embed: Ints | None = None
    offset: int = 0

    def makes(self) -> Spec:
        """Return the shape of the view, which lies in `x`, no two of its elements at one place."""
        require_integers(self, "n", self.n)
        require_integers(self, "embed", self.embed)
        n, embed = self.embedding()
        if not n or min(n) < 1 or len(n) != len(embed):
            raise InvalidArgument(
                f"Embedded: n {n} are to be points from 1, and embed {embed} one for each"
            )
        for name in ("batch", "stride", "distance", "offset"):
            value, least = getattr(self, name), 0 if name == "offset" else 1
            if (value is not None or name != "distance") and (
                type(value) is not int or value < least
            ):
                text = f"{name} must be an integer from {least}, not {value!r}"
                raise InvalidArgument(f"Embedded: {text}")
        shape, reach = (self.batch, *n), 0
        for step, extent in sorted(zip(self.steps(), shape, strict=True)):
            if extent > 1 and step <= reach:
                text = f"n {n}, embed {embed}, batch {self.batch}, stride {self.stride}, distance"
                text = f"{text} {self.steps()[0]} put two elements at one place"
                raise InvalidArgument(f"Embedded: {text}")
            reach += step * (extent - 1)
        needed = self.offset + reach + 1
        if needed > self.x.size:
            text = f"the last array ends behind {needed} elements, and x is {describe(self.x)}"
            raise InvalidArgument(f"Embedded: {text}")
        return Spec(shape, self.x.dtype)

    def embedding(self) -> tuple[Any, Any]:
        """Return the shape of an array, and that of what it is embedded in."""
        return self.n, self.n if self.embed is None else self.embed

    def steps(self) -> tuple[int, ...]:
        """Return the elements from one to the next along each axis of the view."""
        _, embed = self.embedding()
        steps = [self.stride]
        for extent in embed[:0:-1]:
            steps.insert(0, steps[0] * extent)
        return (steps[0] * embed[0] if self.distance is None else self.distance, *steps)


class Interleaved(Operation[AccelRef], frozen=True, array_like=True, eq=False, tag=188):
    """View pairs of real numbers along the last axis as complex ones, and complex ones as pairs.

    Neighbours along that axis must be neighbours in memory, and complex numbers begin at a multiple
    of their own size: a device reads them as one.
    """

    library: ClassVar[str] = "fft"
    dtypes: ClassVar = SINGLE_AND_DOUBLE
    aliased: ClassVar[str] = "x"
    x: AccelRef

    def infer(self) -> Spec:
        """Return the shape with twice or half the last extent."""
        x = self.x
        if not x.ndim or (not is_complex(x.dtype) and x.shape[-1] % 2):
            text = f"x is {describe(x)}; it is to have a last axis, real numbers in pairs"
            raise InvalidArgument(f"Interleaved: {text}")
        *outer, last = x.shape
        if is_complex(x.dtype):
            return Spec((*outer, 2 * last), real_of(x.dtype))
        return Spec((*outer, last // 2), complex_of(x.dtype))

    def view(self, x: Any, address: int) -> Any:
        """Return the view of an array of NumPy's or CuPy's, that is at an address.

        Raises:
            InvalidArgument: neighbours along the last axis are none in memory, or complex numbers
                would not be aligned.
        """
        shape, dtype = self.infer()
        size = np.dtype(dtype).itemsize
        if x.size > 1 and x.strides[-1] != x.itemsize:
            text = f"x {describe(self.x)} steps by {x.strides[-1]} bytes along its last axis"
            raise InvalidArgument(f"Interleaved: {text}, and not by {x.itemsize}; copy it first")
        if x.size and size > x.itemsize and any(at % size for at in (address, *x.strides[:-1])):
            text = f"x {describe(self.x)} has lines that begin between multiples of {size} bytes"
            raise InvalidArgument(f"Interleaved: {text}; copy it first")
        return x.view(dtype) if x.size else x.reshape(-1)[:0].view(dtype).reshape(shape)


class Padded(Operation[AccelRef], frozen=True, array_like=True, eq=False, tag=189):
    """Transform the last `ndim` axes of real numbers within their memory, forwards or back.

    A line of n points has room for its n // 2 + 1 components, in pairs: the last extent is
    2 (n // 2 + 1), and n is even unless `odd`. What is behind the points is not read, and 0 on the
    way back. `out` may be `x`. `interleaved` views the components as complex numbers.
    """

    library: ClassVar[str] = "fft"
    dtypes: ClassVar = REAL_SINGLE_AND_DOUBLE
    x: AccelRef
    ndim: int = 1
    _: Options
    odd: bool = False
    inverse: bool = False
    norm: Norm | None = None
    out: AccelRef | None = None

    def infer(self) -> Spec:
        """Return the operand's own shape and dtype."""
        x = self.x
        _require_last_axes(self, self.ndim, x.shape)
        require_word(self, "norm", self.norm, (None, *NORMS))
        if x.shape[-1] % 2 or not self.points:
            text = f"x is {describe(x)}; its last extent is to be 2 (n // 2 + 1) for n points"
            raise InvalidArgument(f"Padded: {text}")
        spec = Spec(x.shape, x.dtype)
        require_out(self, self.out, spec)
        return spec

    @property
    def points(self) -> int:
        """How many points a line has."""
        return self.x.shape[-1] - (1 if self.odd else 2)

    @property
    def axes(self) -> tuple[int, ...]:
        """The axes that are transformed, counted from the last."""
        return tuple(range(-self.ndim, 0))


class Half(Operation[AccelRef], frozen=True, array_like=True, eq=False, tag=190):
    """Transform the last `ndim` axes of float16 or bfloat16, whose extents are powers of two.

    A complex number is a pair along one more axis. `form` "c2c" takes pairs and makes pairs, "r2c"
    takes real numbers and makes n // 2 + 1 pairs, and "c2r" takes these back. What is beyond 65504
    is infinite in float16, as sums may be: a norm that divides keeps them small, and the transform
    is computed in single precision then.
    """

    library: ClassVar[str] = "fft"
    dtypes: ClassVar = frozenset({"float16", "bfloat16"})
    x: AccelRef
    form: Form = "c2c"
    ndim: int = 1
    _: Options
    inverse: bool = False
    norm: Norm | None = None
    out: AccelRef | None = None

    def infer(self) -> Spec:
        """Return the shape of this form."""
        require_word(self, "form", self.form, get_args(Form))
        require_word(self, "norm", self.norm, (None, *NORMS))
        x, shape = self.x, self.x.shape
        if self.form != "r2c":
            if shape[-1:] != (2,):
                text = f"x is {describe(x)}; the last axis is to be a pair, of extent 2"
                raise InvalidArgument(f"Half: {text}")
            shape = shape[:-1]
        if self.inverse and self.form != "c2c":
            raise InvalidArgument(f'Half: inverse is of "c2c"; "{self.form}" has one way')
        _require_last_axes(self, self.ndim, shape)
        lengths = self.lengths
        if any(n < 1 or n & (n - 1) for n in lengths):
            text = f"the points along the last axes are {[*lengths]}, and are to be powers of two"
            raise InvalidArgument(f"Half: {text}; x is {describe(x)}")
        outer = shape[: -self.ndim]
        made: tuple[int, ...] = lengths if self.form == "c2r" else (*lengths, 2)
        if self.form == "r2c":
            made = (*lengths[:-1], lengths[-1] // 2 + 1, 2)
        spec = result(self, (*outer, *made), x.dtype)
        require_out(self, self.out, spec, x)
        return spec

    @property
    def lengths(self) -> tuple[int, ...]:
        """The points along each of the transformed axes."""
        shape = self.x.shape if self.form == "r2c" else self.x.shape[:-1]
        *others, last = shape[-self.ndim :]
        return (*others, max(2 * (last - 1), 0) if self.form == "c2r" else last)

    @property
    def is_back(self) -> bool:
        """Whether it transforms backwards."""
        return self.inverse or self.form == "c2r"


def _require_last_axes(m: Operation[Any], ndim: Any, shape: tuple[int, ...]) -> None:
    """Refuse a number of axes that is none, and axes without a point."""
    if type(ndim) is not int or not 1 <= ndim <= min(MOST_AXES, len(shape)):
        text = f"ndim is {ndim!r}; the last axes of {[*shape]} are 1 to {MOST_AXES}, if there are"
        raise InvalidArgument(f"{kind(m)}: {text} so many")
    if 0 in shape[-ndim:]:
        text = f"x has the extents {[*shape]}, and a transform needs at least one point along each"
        raise InvalidArgument(f"{kind(m)}: {text}")


embedded, interleaved = function(Embedded), function(Interleaved)
padded, half = function(Padded), function(Half)
