"""Functions of each element: what they take, and the dtype and shape that come out of them.

An operand is a buffer, a number or a NumPy array, of which one at least is a buffer. Shapes
broadcast and dtypes promote as NumPy's: a Python number takes the dtype of what it meets, but for a
float beside bfloat16 or float8, which makes float32. A NumPy scalar or array has its own and is
uploaded, which waits for nothing on the device.
"""

import math
from typing import Any, ClassVar, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from accel_lab.compute.arrays.dtypes import is_complex, is_float
from accel_lab.compute.device import Device, device_of
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.operation import Operation, Spec
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.array.message import NUMPYS, ArrayMessage
from accel_lab.libraries.authoring.function import function
from accel_lab.libraries.authoring.operand import (
    RANGES,
    TRAVELLING,
    Number,
    Scalar,
    arrived,
    kind,
    require_out,
    result,
)
from accel_lab.libraries.authoring.options import Options
from accel_lab.libraries.authoring.promotion import Promoted, promote, weak
from accel_lab.libraries.authoring.shape import broadcast

UnaryOp: TypeAlias = Literal[
    "negative", "positive", "absolute", "sign", "square", "reciprocal", "sqrt", "exp", "expm1",
    "log", "log1p", "log2", "log10", "sin", "cos", "tan", "arcsin", "arccos", "arctan", "sinh",
    "cosh", "tanh", "floor", "ceil", "trunc", "rint", "isnan", "isinf", "isfinite", "conjugate",
    "invert", "logical_not", "arcsinh", "arccosh", "arctanh", "signbit", "real", "imag",
]  # fmt: skip
BinaryOp: TypeAlias = Literal[
    "add", "subtract", "multiply", "divide", "floor_divide", "remainder", "power", "arctan2",
    "maximum", "minimum", "equal", "not_equal", "less", "less_equal", "greater", "greater_equal",
    "logical_and", "logical_or", "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor",
    "left_shift", "right_shift", "hypot", "logaddexp", "copysign", "nextafter",
]  # fmt: skip
Operand: TypeAlias = AccelRef | Scalar | npt.NDArray[Any]

UNARY: frozenset[str] = frozenset(get_args(UnaryOp))
BINARY: frozenset[str] = frozenset(get_args(BinaryOp))
_NUMBERS = frozenset({bool, int, float, complex})
_COMPARISONS = frozenset({"equal", "not_equal", "less", "less_equal", "greater", "greater_equal"})
_INT64 = range(-(2**63), 2**63)


class Unary(ArrayMessage, frozen=True, tag=107):
    """Take NumPy's function `op` of each element of `x`; `out` may be `x`."""

    shapes: ClassVar = "(...)->(...)"
    in_place: ClassVar = ("x",)
    op: UnaryOp
    x: AccelRef
    _: Options
    out: AccelRef | None = None

    def infer(self) -> Spec:
        """Return the shape of `x` and the dtype that NumPy's function has for it."""
        require_word(self, self.op, UNARY)
        spec = Spec(self.x.shape, promote(self, self.op, self.x.dtype))
        require_out(self, self.out, spec)
        return spec


class Binary(ArrayMessage, frozen=True, tag=108):
    """Take NumPy's function `op` of the elements of `x` and `y`, broadcast to one shape.

    Where one of them is None, `number` stands in its place. On the wire a complex one is the list
    of its two parts. `out` may be `x` or `y`.
    """

    shapes: ClassVar = "(...)?,(...)?->(...)"
    broadcasts: ClassVar = True
    in_place: ClassVar = ("x", "y")
    op: BinaryOp
    x: AccelRef | None
    y: AccelRef | None
    number: Any = None
    out: AccelRef | None = None

    def infer(self) -> Spec:
        """Return the operands' common shape and the dtype that NumPy's function has for them."""
        require_word(self, self.op, BINARY)
        x, y = self.x, self.y
        if x is not None and y is not None and self.number is None:
            shape = x.shape if x.shape == y.shape else broadcast(self, x, y)
            spec = result(self, shape, promote(self, self.op, x.dtype, y.dtype))
        elif x is not None and y is None:
            number = weak(number_of(self, self.number), x.dtype)
            spec = Spec(x.shape, promote(self, self.op, x.dtype, number))
        elif y is not None and x is None:
            number = weak(number_of(self, self.number), y.dtype)
            spec = Spec(y.shape, promote(self, self.op, number, y.dtype))
        else:
            raise InvalidArgument("Binary takes x and y, or one of them and a number")
        if self.op == "nextafter" and spec.dtype not in NUMPYS:
            # It is computed in float32, of which the next number is rounded to the same again.
            raise InvalidArgument(f"Binary: there is no nextafter of {spec.dtype}")
        require_out(self, self.out, spec)
        return spec

    def sides(self) -> tuple[AccelRef | Number, AccelRef | Number]:
        """Return what stands for `x` and for `y`."""
        x, y = self.x, self.y
        return (
            number_of(self, self.number) if x is None else x,
            number_of(self, self.number) if y is None else y,
        )


class Where(ArrayMessage, frozen=True, tag=109):
    """Choose elements of `x` where `condition` is not zero and of `y` elsewhere, broadcast.

    Where `x` or `y` is None, the next of `numbers` stands in its place.
    """

    shapes: ClassVar = "(...),(...)?,(...)?->(...)"
    broadcasts: ClassVar = True
    condition: AccelRef
    x: AccelRef | None
    y: AccelRef | None
    numbers: tuple[Any, ...] = ()

    def infer(self) -> Spec:
        """Return the operands' common shape and the dtype of `x` and `y` together."""
        x, y = self.sides()
        dtypes = [side.dtype if isinstance(side, AccelRef) else None for side in (x, y)]
        known = next((dtype for dtype in dtypes if dtype is not None), "float64")
        promoted: list[Promoted] = [
            side.dtype if isinstance(side, AccelRef) else weak(side, known) for side in (x, y)
        ]
        refs = [side for side in (self.condition, x, y) if isinstance(side, AccelRef)]
        # As `maximum`: of narrow floats NumPy's `where` makes float64 beside Python's, or nothing.
        return result(self, broadcast(self, *refs), promote(self, "maximum", *promoted))

    def sides(self) -> tuple[AccelRef | Number, AccelRef | Number]:
        """Return what stands for `x` and for `y`.

        Raises:
            InvalidArgument: there are not as many numbers as gaps.
        """
        if len(self.numbers) != (self.x is None) + (self.y is None):
            raise InvalidArgument("Where takes a number for each of x and y that is None")
        left = iter(self.numbers)
        x = number_of(self, next(left)) if self.x is None else self.x
        return x, number_of(self, next(left)) if self.y is None else self.y


unary = function(Unary)


def binary(op: BinaryOp, x: Operand, y: Operand, *, out: AccelRef | None = None) -> AccelRef:
    """Return NumPy's function `op` of the elements of two operands; does not block.

    Either may be a number or a NumPy array, which is uploaded; one must be a buffer.

    Raises:
        InvalidArgument: there is no such function of these dtypes, the shapes do not broadcast,
            a number is not one of the dtype's, or the buffers are on two devices.
    """
    if isinstance(x, AccelRef) and isinstance(y, AccelRef):
        return x.device.ask(Binary(op, x, y, None, out))
    device = device_among(x, y)
    left, right = side(device, x, y, op), side(device, y, x, op)
    if not isinstance(left, AccelRef):
        assert isinstance(right, AccelRef)
        return device.ask(Binary(op, None, right, left, out))
    if not isinstance(right, AccelRef):
        return device.ask(Binary(op, left, None, right, out))
    return device.ask(Binary(op, left, right, None, out))


def where(condition: AccelRef, x: Operand, y: Operand) -> AccelRef:
    """Return elements of `x` where `condition` is not zero, else of `y`; does not block.

    Raises:
        InvalidArgument: the shapes do not broadcast, or the dtypes have none in common.
    """
    device = device_of(condition)
    sides = side(device, x, y), side(device, y, x)
    left, right = (one if isinstance(one, AccelRef) else None for one in sides)
    numbers = tuple(one for one in sides if not isinstance(one, AccelRef))
    return device.ask(Where(condition, left, right, numbers))


def device_among(*operands: Operand) -> Device:
    """Return the device of the first buffer among operands.

    Raises:
        InvalidArgument: there is no buffer.
    """
    for operand in operands:
        if isinstance(operand, AccelRef):
            return operand.device
    kinds = " and ".join(type(operand).__name__ for operand in operands)
    raise InvalidArgument(f"one operand must be an AccelRef, not {kinds}; put() one on a device")


def side(
    device: Device, value: Operand, beside: Operand | None = None, op: str = ""
) -> AccelRef | Number:
    """Return an operand as it goes into a message: an array uploaded, a number as it is.

    Parameters:
        beside: the other operand, whose dtype a large integer takes.
        op: what is computed of the two.

    Raises:
        InvalidArgument: it is none of these.
    """
    if isinstance(value, AccelRef):
        return value
    if isinstance(value, np.ndarray | np.generic):
        return device.put(value)
    if type(value) is int and value not in TRAVELLING and isinstance(beside, AccelRef):
        return among(value, beside.dtype, op)
    if isinstance(value, bool | int | float | complex):
        return value
    raise InvalidArgument(
        f"an operand is a buffer, a number or a NumPy array, not a {type(value).__name__}"
    )


def paired(
    op: str, x: AccelRef | Number, y: AccelRef | Number
) -> tuple[AccelRef | Number, AccelRef | Number]:
    """Return two operands as they are computed with: a number as `among` has it."""
    if isinstance(x, AccelRef):
        return x, y if isinstance(y, AccelRef) else among(y, x.dtype, op)
    return among(x, y.dtype, op) if isinstance(y, AccelRef) else x, y


def among(number: Number, dtype: str, op: str) -> Number:
    """Return a number as `op` computes with it beside elements of a dtype.

    NumPy takes no integer beyond int64 beside floats, and beyond 64 bits none can travel. It
    compares integers with any other, and divides them by any: infinity compares with all elements
    as an integer does that the dtype has not.

    Raises:
        InvalidArgument: it is an integer too large for any float, or for this function.
    """
    if type(number) is not int:
        return number
    if not (is_float(dtype) or is_complex(dtype)):
        if op in _COMPARISONS and dtype in RANGES:
            low, high = RANGES[dtype]
            return number if low <= number <= high else math.inf if number > 0 else -math.inf
        if number in TRAVELLING:
            return number
        if op != "divide":
            raise InvalidArgument(f"an integer beyond 64 bits has no place beside {dtype}")
    elif number in _INT64:
        return number
    try:
        return float(number)
    except OverflowError:
        raise InvalidArgument(f"an integer is too large beside {dtype}") from None


def number_of(message: Operation[Any], value: Any) -> Number:
    """Return a number as it was before it travelled.

    Raises:
        InvalidArgument: it is none.
    """
    value = arrived(value)
    if type(value) not in _NUMBERS:
        raise InvalidArgument(f"{kind(message)}: {value!r} is no number of Python's")
    number: Number = value
    return number


def require_word(message: Operation[Any], op: str, words: frozenset[str]) -> None:
    """Refuse a function that is not there.

    Raises:
        InvalidArgument: with those that are.
    """
    if op not in words:
        text = f"{kind(message)} has no {op!r}; it has {', '.join(sorted(words))}"
        raise InvalidArgument(text)
