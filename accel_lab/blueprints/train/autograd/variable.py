"""A handle that remembers what it was computed from, so that gradients can go back to it."""

import itertools
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, NamedTuple, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from accel_lab.compute.arrays.named_dtype import NamedDType
from accel_lab.compute.device import Device
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.errors import InvalidArgument

Pull: TypeAlias = Callable[[AccelRef], AccelRef]
"""Returns the gradient by an operand, of the gradient by the result."""

_numbers = itertools.count()


class Link(NamedTuple):
    """An operand of what was computed, and how a gradient goes back to it."""

    of: "Variable"
    pull: Pull


class Functions(Protocol):
    """What operators call: the functions of `autograd`."""

    def add(self, x: Any, y: Any, /) -> "Variable":
        """Return x + y."""

    def subtract(self, x: Any, y: Any, /) -> "Variable":
        """Return x - y."""

    def multiply(self, x: Any, y: Any, /) -> "Variable":
        """Return x * y."""

    def divide(self, x: Any, y: Any, /) -> "Variable":
        """Return x / y."""

    def power(self, x: Any, y: Any, /) -> "Variable":
        """Return x to the power of y."""

    def negative(self, x: Any, /) -> "Variable":
        """Return -x."""

    def absolute(self, x: Any, /) -> "Variable":
        """Return the absolute value."""

    def matmul(self, a: Any, b: Any, /) -> "Variable":
        """Return a product of matrices."""

    def part(self, x: Any, index: Any, /) -> "Variable":
        """Return x[index]."""

    def reshape(self, x: Any, shape: Any, /) -> "Variable":
        """Return `x` in another shape."""

    def transpose(self, x: Any, axes: Any = ..., /) -> "Variable":
        """Return `x` with its axes permuted."""

    def cast(self, x: Any, dtype: Any, /) -> "Variable":
        """Return `x` in another dtype."""

    def sum(self, x: Any, axis: Any = ..., /, *, keepdims: bool = ...) -> "Variable":
        """Return the sum along axes."""

    def mean(self, x: Any, axis: Any = ..., /, *, keepdims: bool = ...) -> "Variable":
        """Return the mean along axes."""

    def max(self, x: Any, axis: Any = ..., /, *, keepdims: bool = ...) -> "Variable":
        """Return the largest elements along axes."""

    def min(self, x: Any, axis: Any = ..., /, *, keepdims: bool = ...) -> "Variable":
        """Return the smallest elements along axes."""


class Variable:
    """A buffer on a device by which one may ask for gradients.

    `Variable(ref)` is a beginning, as a parameter. What functions of `train` return of it are
    variables, too; they send the messages of `array` and `dnn` at once and wait for nothing. What
    is given to them as a handle, a NumPy array or a number is constant.

    Attributes:
        value: the handle.
        links: what it was computed from; empty at a beginning, and of what is constant.
        is_tracked: whether gradients go to it.
        number: how many variables there were before it.
    """

    __slots__ = ("__weakref__", "is_tracked", "links", "number", "value")
    __array_ufunc__ = None
    __hash__ = object.__hash__

    functions: ClassVar[Functions]

    def __init__(
        self, value: AccelRef, links: tuple[Link, ...] = (), *, is_tracked: bool = True
    ) -> None:
        if not isinstance(value, AccelRef):
            kind = type(value).__name__
            raise InvalidArgument(
                f"Variable: value is to be a handle, as gpu.put gives, not {kind}"
            )
        self.value = value
        self.links = links
        self.is_tracked = is_tracked
        self.number = next(_numbers)

    @property
    def shape(self) -> tuple[int, ...]:
        """Its shape."""
        return self.value.shape

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self.value.ndim

    @property
    def size(self) -> int:
        """The number of elements."""
        return self.value.size

    @property
    def dtype(self) -> NamedDType:
        """Its dtype."""
        return self.value.dtype

    @property
    def device(self) -> Device:
        """Where it is."""
        return self.value.device

    def get(self) -> npt.NDArray[Any]:
        """Return its contents; blocks."""
        return np.asarray(self.value.get())

    def __add__(self, other: Any) -> "Variable":
        return self.functions.add(self, other)

    def __radd__(self, other: Any) -> "Variable":
        return self.functions.add(other, self)

    def __sub__(self, other: Any) -> "Variable":
        return self.functions.subtract(self, other)

    def __rsub__(self, other: Any) -> "Variable":
        return self.functions.subtract(other, self)

    def __mul__(self, other: Any) -> "Variable":
        return self.functions.multiply(self, other)

    def __rmul__(self, other: Any) -> "Variable":
        return self.functions.multiply(other, self)

    def __truediv__(self, other: Any) -> "Variable":
        return self.functions.divide(self, other)

    def __rtruediv__(self, other: Any) -> "Variable":
        return self.functions.divide(other, self)

    def __pow__(self, other: Any) -> "Variable":
        return self.functions.power(self, other)

    def __rpow__(self, other: Any) -> "Variable":
        return self.functions.power(other, self)

    def __matmul__(self, other: Any) -> "Variable":
        return self.functions.matmul(self, other)

    def __rmatmul__(self, other: Any) -> "Variable":
        return self.functions.matmul(other, self)

    def __neg__(self) -> "Variable":
        return self.functions.negative(self)

    def __abs__(self) -> "Variable":
        return self.functions.absolute(self)

    def __getitem__(self, index: Any) -> "Variable":
        return self.functions.part(self, index)

    @property
    def T(self) -> "Variable":  # noqa: N802 - NumPy's name
        """A view with the axes reversed."""
        return self.functions.transpose(self)

    def transpose(self, *axes: Any) -> "Variable":
        """Return a view with the axes permuted, reversed when none are given."""
        return self.functions.transpose(self, axes[0] if len(axes) == 1 else axes or None)

    def reshape(self, *shape: Any) -> "Variable":
        """Return the elements in C order in another shape."""
        return self.functions.reshape(self, shape[0] if len(shape) == 1 else shape)

    def astype(self, dtype: object) -> "Variable":
        """Return it in another dtype; its gradient comes back in this one."""
        return self.functions.cast(self, dtype)

    def sum(self, axis: Any = None, *, keepdims: bool = False) -> "Variable":
        """Return the sum along an axis, several, or all of them."""
        return self.functions.sum(self, axis, keepdims=keepdims)

    def mean(self, axis: Any = None, *, keepdims: bool = False) -> "Variable":
        """Return the mean along an axis, several, or all of them."""
        return self.functions.mean(self, axis, keepdims=keepdims)

    def max(self, axis: Any = None, *, keepdims: bool = False) -> "Variable":
        """Return the largest elements along an axis, several, or all of them."""
        return self.functions.max(self, axis, keepdims=keepdims)

    def min(self, axis: Any = None, *, keepdims: bool = False) -> "Variable":
        """Return the smallest elements along an axis, several, or all of them."""
        return self.functions.min(self, axis, keepdims=keepdims)

    def __repr__(self) -> str:
        what = "constant" if not self.is_tracked else "computed" if self.links else "beginning"
        return f"Variable({self.value.label}, {what})"


def of(value: AccelRef, links: Iterable[tuple[Any, Pull]] = ()) -> Variable:
    """Return what was computed of operands; gradients go to those that are tracked."""
    kept = tuple(
        Link(operand, pull)
        for operand, pull in links
        if isinstance(operand, Variable) and operand.is_tracked
    )
    return Variable(value, kept, is_tracked=bool(kept))


def plain(operand: Any) -> Any:
    """Return what a message takes of an operand."""
    return operand.value if isinstance(operand, Variable) else operand


def plain_ref(operand: Any, name: str) -> AccelRef:
    """Return the handle of an operand.

    Raises:
        InvalidArgument: it has none.
    """
    value = plain(operand)
    if not isinstance(value, AccelRef):
        kind = type(value).__name__
        raise InvalidArgument(f"{name} is to be a variable or a handle, not {kind}")
    return value
