"""A buffer's operators and methods: each sends one message of `array`, and returns at once.

The messages stand a floor above, in `libraries`, which gives its functions to `Operators.functions`
when it is imported.
"""

import importlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from accel_lab.compute.arrays.dtypes import NAMES, numpy_dtype
from accel_lab.errors import InvalidArgument

if TYPE_CHECKING:
    from accel_lab.compute.arrays.named_dtype import NamedDType
    from accel_lab.compute.device import Device
    from accel_lab.compute.message.buffer import AccelRef

GET_TIMEOUT_S = 60.0
MATRIX = 2  # axes
_DLPACK_HOST = (1, 0)
"""DLPack's numbers for the memory of the host: kDLCPU, and which."""
_PYTHONS = frozenset((int, float))
_POWERS = {(int, -1): "reciprocal", (int, 2): "square", (float, 0.5): "sqrt"}
"""What NumPy's `**` takes in place of `power`, which rounds otherwise and has other infinities."""
_POWERED = frozenset(("float16", "float32", "float64", "complex64", "complex128"))


class Functions(Protocol):
    """What operators call: the functions of `accel_lab.libraries.array.library`."""

    def unary(self, op: Any, x: Any, /) -> "AccelRef":
        """Return a function of each element."""

    def binary(self, op: Any, x: Any, y: Any, /) -> "AccelRef":
        """Return a function of the elements of two operands."""

    def matmul(self, a: Any, b: Any, /) -> "AccelRef":
        """Return a product of matrices."""

    def reduce(
        self,
        op: Any,
        x: Any,
        axis: Any = ...,
        /,
        *,
        keepdims: bool = ...,
        ddof: int = ...,
        dtype: Any = ...,
        out: Any = ...,
    ) -> "AccelRef":
        """Return a reduction along axes."""

    def part(self, x: Any, index: Any, /) -> "AccelRef":
        """Return x[index]."""

    def assign(self, x: Any, index: Any, value: Any, /) -> "AccelRef":
        """Do x[index] = value."""

    def reshape(self, x: Any, shape: Any, /) -> "AccelRef":
        """Return `x` in another shape."""

    def transpose(self, x: Any, axes: Any = ..., /) -> "AccelRef":
        """Return `x` with its axes permuted."""

    def cast(self, x: Any, dtype: Any, /) -> "AccelRef":
        """Return `x` in another dtype."""

    def copy(self, x: Any, /) -> "AccelRef":
        """Return a copy of `x`."""

    def called(self, function: str, /, *operands: Any) -> "AccelRef":
        """Return what NumPy's ufunc of this name does."""


class Operators:
    """The operators of NumPy's arrays, on buffers.

    They send and return, and wait for nothing; the exceptions are what needs Python's own values:
    `get`, `item`, `bool`, `int`, `float`, `complex`, `round`, `in`, a format as in f"{loss:.2f}",
    an integer's use as in `range(n)`, `names[best]` and `x[:n]`, and NumPy's own functions. Where
    only the context can tell a shape, what asks for it waits too: `len`, iterating, `...` in an
    index.
    The other side may be a buffer of the same device, a number, or a NumPy array, which is
    uploaded. `x += y` makes a new buffer and gives it the name `x`: what shares the memory of the
    old one, and other names of it, keep the old values. `x[...] = y` writes to the buffer itself.
    """

    __slots__ = ()

    functions: ClassVar[Functions]

    if TYPE_CHECKING:
        device: Device
        shape: tuple[int, ...]
        dtype: NamedDType
        known: bool

        @property
        def size(self) -> int:
            """The number of elements."""

    def __add__(self, other: Any) -> "AccelRef":
        return self._binary("add", other)

    def __radd__(self, other: Any) -> "AccelRef":
        return self._reflected("add", other)

    def __sub__(self, other: Any) -> "AccelRef":
        return self._binary("subtract", other)

    def __rsub__(self, other: Any) -> "AccelRef":
        return self._reflected("subtract", other)

    def __mul__(self, other: Any) -> "AccelRef":
        return self._binary("multiply", other)

    def __rmul__(self, other: Any) -> "AccelRef":
        return self._reflected("multiply", other)

    def __truediv__(self, other: Any) -> "AccelRef":
        return self._binary("divide", other)

    def __rtruediv__(self, other: Any) -> "AccelRef":
        return self._reflected("divide", other)

    def __floordiv__(self, other: Any) -> "AccelRef":
        return self._binary("floor_divide", other)

    def __rfloordiv__(self, other: Any) -> "AccelRef":
        return self._reflected("floor_divide", other)

    def __mod__(self, other: Any) -> "AccelRef":
        return self._binary("remainder", other)

    def __rmod__(self, other: Any) -> "AccelRef":
        return self._reflected("remainder", other)

    def __pow__(self, other: Any) -> "AccelRef":
        if type(other) in _PYTHONS and self.known and self.dtype in _POWERED:
            function = _POWERS.get((type(other), other))
            if function is not None:
                return self.functions.unary(function, self)
        return self._binary("power", other)

    def __rpow__(self, other: Any) -> "AccelRef":
        return self._reflected("power", other)

    def __and__(self, other: Any) -> "AccelRef":
        return self._binary("bitwise_and", other)

    def __rand__(self, other: Any) -> "AccelRef":
        return self._reflected("bitwise_and", other)

    def __or__(self, other: Any) -> "AccelRef":
        return self._binary("bitwise_or", other)

    def __ror__(self, other: Any) -> "AccelRef":
        return self._reflected("bitwise_or", other)

    def __xor__(self, other: Any) -> "AccelRef":
        return self._binary("bitwise_xor", other)

    def __rxor__(self, other: Any) -> "AccelRef":
        return self._reflected("bitwise_xor", other)

    def __lshift__(self, other: Any) -> "AccelRef":
        return self._binary("left_shift", other)

    def __rlshift__(self, other: Any) -> "AccelRef":
        return self._reflected("left_shift", other)

    def __rshift__(self, other: Any) -> "AccelRef":
        return self._binary("right_shift", other)

    def __rrshift__(self, other: Any) -> "AccelRef":
        return self._reflected("right_shift", other)

    def __matmul__(self, other: Any) -> "AccelRef":
        return self.functions.matmul(self, other) if _is_operand(other) else NotImplemented

    def __rmatmul__(self, other: Any) -> "AccelRef":
        return self.functions.matmul(other, self) if _is_operand(other) else NotImplemented

    def __eq__(self, other: object) -> "AccelRef":  # type: ignore[override] # as NumPy's
        return self._binary("equal", _no_sequence(other))

    def __ne__(self, other: object) -> "AccelRef":  # type: ignore[override] # as NumPy's
        return self._binary("not_equal", _no_sequence(other))

    # Sets and dicts take a handle for what it is; `==` compares what it stands for.
    __hash__ = object.__hash__

    def __lt__(self, other: Any) -> "AccelRef":
        return self._binary("less", other)

    def __le__(self, other: Any) -> "AccelRef":
        return self._binary("less_equal", other)

    def __gt__(self, other: Any) -> "AccelRef":
        return self._binary("greater", other)

    def __ge__(self, other: Any) -> "AccelRef":
        return self._binary("greater_equal", other)

    def __neg__(self) -> "AccelRef":
        return self.functions.unary("negative", self)

    def __pos__(self) -> "AccelRef":
        return self.functions.unary("positive", self)

    def __abs__(self) -> "AccelRef":
        return self.functions.unary("absolute", self)

    def __invert__(self) -> "AccelRef":
        return self.functions.unary("invert", self)

    def __getitem__(self, index: Any) -> "AccelRef":
        """Return a view of a part, or new elements for integers or a mask; see `array.part`."""
        return self.functions.part(self, index)

    def __setitem__(self, index: Any, value: object) -> None:
        """Write to a part of it, of which other names and views know; see `array.assign`."""
        self.functions.assign(self, index, value)

    def __len__(self) -> int:
        shape = self.shape
        if not shape:
            text = "a 0-d buffer has no length"
            raise TypeError(text)
        return shape[0]

    def __iter__(self) -> Iterator["AccelRef"]:
        """Iterate over the rows, each a view."""
        return map(self.__getitem__, range(len(self)))

    @property
    def mT(self) -> "AccelRef":  # noqa: N802 - the array API standard's name
        """A view with the last two axes in each other's place.

        Raises:
            InvalidArgument: it has less than two.
        """
        ndim = len(self.shape)
        if ndim < MATRIX:
            text = f"{self.dtype}{list(self.shape)} is no matrix: mT is of two axes or more"
            raise InvalidArgument(text)
        return self.functions.transpose(self, (*range(ndim - MATRIX), ndim - 1, ndim - MATRIX))

    @property
    def T(self) -> "AccelRef":  # noqa: N802 - NumPy's name
        """A view with the axes reversed."""
        return self.functions.transpose(self)

    def transpose(self, *axes: Any) -> "AccelRef":
        """Return a view with the axes permuted, reversed when none are given."""
        order = axes[0] if len(axes) == 1 else axes or None
        return self.functions.transpose(self, order)

    def reshape(self, *shape: Any) -> "AccelRef":
        """Return the elements in C order in another shape: a view where strides allow one."""
        return self.functions.reshape(self, shape[0] if len(shape) == 1 else shape)

    def ravel(self) -> "AccelRef":
        """Return the elements in C order along one axis: a view where strides allow one."""
        return self.functions.reshape(self, -1)

    def astype(self, dtype: object) -> "AccelRef":
        """Return a new buffer of another dtype, also when nothing changes."""
        return self.functions.cast(self, dtype)

    def copy(self) -> "AccelRef":
        """Return a new buffer with the same elements, in C order."""
        return self.functions.copy(self)

    def __copy__(self) -> "AccelRef":
        return self.copy()

    def __deepcopy__(self, memo: object) -> "AccelRef":
        return self.copy()

    def sum(
        self, axis: Any = None, dtype: Any = None, out: Any = None, *, keepdims: bool = False
    ) -> "AccelRef":
        """Return the sum along an axis, several, or all of them."""
        return self.functions.reduce("sum", self, axis, dtype=dtype, out=out, keepdims=keepdims)

    def prod(
        self, axis: Any = None, dtype: Any = None, out: Any = None, *, keepdims: bool = False
    ) -> "AccelRef":
        """Return the product along an axis, several, or all of them."""
        return self.functions.reduce("prod", self, axis, dtype=dtype, out=out, keepdims=keepdims)

    def mean(
        self, axis: Any = None, dtype: Any = None, out: Any = None, *, keepdims: bool = False
    ) -> "AccelRef":
        """Return the mean along an axis, several, or all of them."""
        return self.functions.reduce("mean", self, axis, dtype=dtype, out=out, keepdims=keepdims)

    def std(
        self,
        axis: Any = None,
        dtype: Any = None,
        out: Any = None,
        ddof: int = 0,
        *,
        keepdims: bool = False,
    ) -> "AccelRef":
        """Return the standard deviation, by n - ddof along an axis, several, or all of them."""
        return self.functions.reduce(
            "std", self, axis, dtype=dtype, out=out, ddof=ddof, keepdims=keepdims
        )

    def var(
        self,
        axis: Any = None,
        dtype: Any = None,
        out: Any = None,
        ddof: int = 0,
        *,
        keepdims: bool = False,
    ) -> "AccelRef":
        """Return the variance, by n - ddof along an axis, several, or all of them."""
        return self.functions.reduce(
            "var", self, axis, dtype=dtype, out=out, ddof=ddof, keepdims=keepdims
        )

    def max(self, axis: Any = None, out: Any = None, *, keepdims: bool = False) -> "AccelRef":
        """Return the largest elements along an axis, several, or all of them."""
        return self.functions.reduce("max", self, axis, out=out, keepdims=keepdims)

    def min(self, axis: Any = None, out: Any = None, *, keepdims: bool = False) -> "AccelRef":
        """Return the smallest elements along an axis, several, or all of them."""
        return self.functions.reduce("min", self, axis, out=out, keepdims=keepdims)

    def any(self, axis: Any = None, out: Any = None, *, keepdims: bool = False) -> "AccelRef":
        """Return whether an element is not zero along an axis, several, or all of them."""
        return self.functions.reduce("any", self, axis, out=out, keepdims=keepdims)

    def all(self, axis: Any = None, out: Any = None, *, keepdims: bool = False) -> "AccelRef":
        """Return whether no element is zero along an axis, several, or all of them."""
        return self.functions.reduce("all", self, axis, out=out, keepdims=keepdims)

    def argmax(self, axis: Any = None, out: Any = None, *, keepdims: bool = False) -> "AccelRef":
        """Return where the first largest element is along an axis, several, or all of them."""
        return self.functions.reduce("argmax", self, axis, out=out, keepdims=keepdims)

    def argmin(self, axis: Any = None, out: Any = None, *, keepdims: bool = False) -> "AccelRef":
        """Return where the first smallest element is along an axis, several, or all of them."""
        return self.functions.reduce("argmin", self, axis, out=out, keepdims=keepdims)

    def to_device(self, device: "Device", /, *, stream: object = None) -> "AccelRef":
        """Return a copy on another device of the same system; itself where it is there already.

        Raises:
            InvalidArgument: it is no device, or there is a stream, which devices here choose.
        """
        if stream is not None:
            text = "to_device takes no stream: a device orders what it is sent by itself"
            raise InvalidArgument(text)
        if device is self.device:
            return self  # type: ignore[return-value]
        if not isinstance(device, type(self.device)):
            raise InvalidArgument(f"to_device takes a device, as ref.device, not {device!r}")
        return device.put(self)

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        """Return `accel_lab.array_api`, the array API standard's functions on handles.

        Raises:
            InvalidArgument: it has no such version of the standard.
        """
        # By its name: it stands floors above, on the functions that handles stand on.
        return importlib.import_module("accel_lab.array_api.version").namespace(api_version)

    def __dlpack_device__(self) -> tuple[int, int]:
        """Return where `__dlpack__` puts the contents: memory of the host."""
        return _DLPACK_HOST

    # What follows waits for the device.

    def __dlpack__(
        self,
        *,
        stream: object = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """Fetch the contents for np.from_dlpack(ref), torch.from_dlpack(ref); blocks.

        They are a copy in memory of the host: that of the device is another process's.

        Raises:
            BufferError: they are wanted without a copy, elsewhere, or their dtype is not DLPack's.
            AccelError: what made the buffer failed, or it is gone.
        """
        if copy is False:
            text = "a buffer on a device can only be copied: copy=False is not possible"
            raise BufferError(text)
        if dl_device is not None and tuple(dl_device) != _DLPACK_HOST:
            raise BufferError(f"a buffer is fetched to the host, {_DLPACK_HOST}, not {dl_device}")
        fetched: Any = self.get()
        return fetched.__dlpack__(stream=stream, max_version=max_version)

    def get(self, timeout_s: float = GET_TIMEOUT_S) -> npt.NDArray[Any]:
        """Fetch the contents as a NumPy array of their own; blocks until they are here.

        Raises:
            AccelError: what made the buffer failed, or it is gone.
            TimeoutError: they are not here within `timeout_s` seconds.
        """
        return self.device.get(self, timeout_s=timeout_s).result(timeout_s)  # type: ignore[arg-type]

    def item(self) -> Any:
        """Fetch the only element as a Python number; blocks.

        Raises:
            InvalidArgument: there is none, or there are several.
        """
        if self.size != 1:
            text = f"{self.dtype}{list(self.shape)} has {self.size} elements, not one"
            raise InvalidArgument(text)
        return self.get().item()

    def __bool__(self) -> bool:
        """Fetch the only element and say whether it is not zero; blocks.

        Raises:
            InvalidArgument: there is none, or there are several.
        """
        if self.size != 1:
            text = (
                f"{self.dtype}{list(self.shape)} is neither true nor false: use .any() or .all(), "
                "or compare handles with `is`"
            )
            raise InvalidArgument(text)
        return bool(self.get())

    def __int__(self) -> int:
        return int(self.item())

    def __index__(self) -> int:
        """Fetch the integer of a 0-d buffer, for range(ref), names[ref] and [0] * ref; blocks.

        Raises:
            TypeError: it has axes, or holds something else; nothing is fetched.
        """
        if self.shape or numpy_dtype(self.dtype).kind not in "iu":
            text = (
                f"{self.dtype}{list(self.shape)} cannot be an index: a 0-d buffer of integers can"
            )
            raise TypeError(text)
        return int(self.get())

    def __float__(self) -> float:
        return float(self.item())

    def __complex__(self) -> complex:
        return complex(self.item())

    def __round__(self, ndigits: int | None = None) -> Any:
        """Fetch the only element of a 0-d buffer and round it; blocks.

        Raises:
            TypeError: it has axes.
        """
        return round(self._scalar("round()"), ndigits)

    def __format__(self, spec: str) -> str:
        """Fetch the only element of a 0-d buffer and write it; blocks. Without a spec, as `str`.

        Raises:
            TypeError: it has axes.
        """
        return format(self._scalar(f"the format {spec!r}"), spec) if spec else str(self)

    def _scalar(self, asks: str) -> Any:
        if self.shape:
            text = (
                f"{self.dtype}{list(self.shape)} has axes, and {asks} takes a 0-d buffer: "
                "use one element, ref[0], or NumPy's array, ref.get()"
            )
            raise TypeError(text)
        return self.item()

    def __contains__(self, value: object) -> bool:
        """Whether an element is equal to `value`; blocks."""
        found: Any = self == value
        return isinstance(found, Operators) and bool(found.any())

    def __array__(
        self,
        dtype: Any = None,
        copy: bool | None = None,  # noqa: FBT001 - NumPy's signature
    ) -> npt.NDArray[Any]:
        """Fetch the contents for NumPy, as np.asarray(ref) asks; blocks.

        Raises:
            ValueError: NumPy was told not to copy.
            AccelError: what made the buffer failed, or it is gone.
        """
        if copy is False:
            text = "a buffer on a device can only be copied: copy=False is not possible"
            raise ValueError(text)
        fetched = self.get()
        return fetched if dtype is None else fetched.astype(dtype, copy=False)

    @property
    def __numpy_dtype__(self) -> np.dtype[Any]:
        """Tell NumPy the dtype without fetching anything: np.dtype(ref), np.result_type(ref)."""
        if self.dtype not in NAMES:
            raise AttributeError(f"a {self.dtype} has no dtype of NumPy's")
        return numpy_dtype(self.dtype)

    def to_numpy(self) -> npt.NDArray[Any]:
        """Fetch the contents, as pandas calls it; blocks. Matplotlib's `hist` asks for no other."""
        return self.get()

    def __array_ufunc__(self, ufunc: Any, method: str, *operands: Any, **options: Any) -> Any:
        """Send the message that does what NumPy's ufunc does: np.sin(ref), np_array + ref.

        Raises:
            InvalidArgument: there is none, or NumPy's options ask for more.
        """
        if method != "__call__" or options:
            asked = ", ".join(options) or method
            text = (
                f"numpy.{ufunc.__name__} with {asked} does not run on a device: fetch the buffer "
                "with ref.get(), or use the functions of accel_lab.array"
            )
            raise InvalidArgument(text)
        return self.functions.called(ufunc.__name__, *operands)

    def _binary(self, op: str, other: object) -> "AccelRef":
        return self.functions.binary(op, self, other) if _is_operand(other) else NotImplemented

    def _reflected(self, op: str, other: object) -> "AccelRef":
        return self.functions.binary(op, other, self) if _is_operand(other) else NotImplemented


def _no_sequence(value: object) -> object:
    """Refuse what Python would say is not equal to an array, without looking into it.

    Raises:
        TypeError: it is a list or a tuple.
    """
    if isinstance(value, list | tuple):
        kind = type(value).__name__
        raise TypeError(f"a {kind} cannot be an operand: compare with np.asarray of it")
    return value


def _is_operand(value: object) -> bool:
    return isinstance(value, Operators | int | float | complex | np.ndarray | np.generic)
