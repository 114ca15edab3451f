"""Arrays: made, copied, converted, viewed in other shapes, and computed with as NumPy does.

`array.add`, `array.sum` and their like stand in `arithmetic`; the operators and methods of a buffer
send the same messages. A view shares the storage of the buffer it was made of: what is written
through one is read through the other, in the order in which the messages were sent.
"""

# ruff: noqa: PLC0414 - names of this module, wherever they are written

import builtins
from typing import Any, ClassVar, Literal, Protocol

from accel_lab.compute.arrays.dtypes import canonical, is_complex
from accel_lab.compute.device import Device, device_first, device_of
from accel_lab.compute.execution.launch import Launch, LibraryActor, handles
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.operation import Spec
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.array.arithmetic import *  # noqa: F403 - array.add and all the others
from accel_lab.libraries.array.elementwise import BINARY, UNARY, BinaryOp, UnaryOp, paired
from accel_lab.libraries.array.elementwise import Binary as Binary
from accel_lab.libraries.array.elementwise import Unary as Unary
from accel_lab.libraries.array.elementwise import Where as Where
from accel_lab.libraries.array.elementwise import binary as binary
from accel_lab.libraries.array.elementwise import unary as unary
from accel_lab.libraries.array.elementwise import where as where
from accel_lab.libraries.array.indexing import Take as Take
from accel_lab.libraries.array.indexing import is_taking, taken
from accel_lab.libraries.array.indexing import take as take
from accel_lab.libraries.array.matmul import Matmul as Matmul
from accel_lab.libraries.array.matmul import matmul as matmul
from accel_lab.libraries.array.message import ArrayMessage
from accel_lab.libraries.array.reduction import Reduce as Reduce
from accel_lab.libraries.array.reduction import ReduceOp
from accel_lab.libraries.array.reduction import reduce as reduce
from accel_lab.libraries.authoring.function import function
from accel_lab.libraries.authoring.operand import (
    Number,
    Scalar,
    array_of,
    describe,
    element,
    output,
    plain,
    result,
)
from accel_lab.libraries.authoring.options import Options
from accel_lab.libraries.authoring.shape import (
    Index,
    Integers,
    axis_order,
    filled_shape,
    index_entries,
    indexed_shape,
    ints,
    require_extents,
)


class Zeros(ArrayMessage, frozen=True, tag=100):
    """Make a buffer of zeros."""

    shape: tuple[int, ...]
    dtype: str

    def infer(self) -> Spec:
        """Return the shape and dtype that were given."""
        return result(self, require_extents("Zeros", self.shape), self.dtype)


class Full(ArrayMessage, frozen=True, tag=101):
    """Make a buffer whose every element is `value`, a number that the dtype can hold.

    On the wire a complex value is the list of its two parts.
    """

    shape: tuple[int, ...]
    value: Any
    dtype: str

    def infer(self) -> Spec:
        """Return the shape and dtype that were given."""
        spec = result(self, require_extents("Full", self.shape), self.dtype)
        self.element()
        return spec

    def element(self) -> Number:
        """Return the value as the Python type of the dtype's elements."""
        return element(self, "value", self.value, self.dtype)


class Copy(ArrayMessage, frozen=True, tag=102):
    """Copy `x` into a new contiguous buffer, or into `out` of the same shape and dtype."""

    shapes: ClassVar = "(...)->(...)"
    in_place: ClassVar = ("x",)
    x: AccelRef
    _: Options
    out: AccelRef | None = None


class Cast(ArrayMessage, frozen=True, tag=103):
    """Convert `x` to another dtype, in a new buffer even when nothing changes.

    Values are rounded to nearest. As in the array API standard it is undefined what becomes of
    a float that an integer dtype does not have, and complex becomes no real dtype but `bool`.
    """

    x: AccelRef
    dtype: str

    def infer(self) -> Spec:
        """Return the shape of `x` and the dtype that was given."""
        source = self.x.dtype
        spec = result(self, self.x.shape, self.dtype)
        if is_complex(source) and not is_complex(self.dtype) and self.dtype != "bool":
            raise InvalidArgument(
                f"Cast: x is {describe(self.x)}, and {self.dtype} has no imaginary part; "
                "cast to complex64, complex128 or bool"
            )
        return spec


class Slice(ArrayMessage, frozen=True, tag=104):
    """View a part of `x`, as NumPy's basic indexing does.

    `index` has one entry per axis from the first: an int takes one element and drops the axis,
    (start, stop, step) is a range of it, None adds an axis of length 1. Axes left out are whole.
    """

    aliased: ClassVar[str] = "x"
    x: AccelRef
    index: tuple[Index, ...]

    def infer(self) -> Spec:
        """Return the shape of the part."""
        return Spec(indexed_shape(self.x, self.index), self.x.dtype)


class Reshape(ArrayMessage, frozen=True, tag=105):
    """Give `x` another shape with its elements in C order; one extent may be -1.

    The result is a view where the strides of `x` allow one, which they always do when `x` is
    contiguous; otherwise it is a copy. Copy first when later writes must not be shared.
    """

    aliased: ClassVar[str] = "x"
    x: AccelRef
    shape: tuple[int, ...]

    def infer(self) -> Spec:
        """Return the shape that was given, with -1 worked out."""
        return result(self, filled_shape(self.x, self.shape), self.x.dtype)


class Transpose(ArrayMessage, frozen=True, tag=106):
    """View `x` with its axes permuted; None reverses them."""

    aliased: ClassVar[str] = "x"
    x: AccelRef
    axes: tuple[int, ...] | None = None

    def infer(self) -> Spec:
        """Return the permuted shape."""
        shape = self.x.shape
        return Spec(tuple(shape[axis] for axis in axis_order(self.x, self.axes)), self.x.dtype)


def zeros(device: Device, shape: Integers, dtype: object = "float32") -> AccelRef:
    """Make a buffer of zeros on a device; does not block.

    Raises:
        InvalidArgument: no such shape or dtype.
    """
    return device_first(device).ask(Zeros(ints("shape", shape), canonical(dtype)))


def full(
    device: Device,
    shape: Integers,
    value: Scalar,
    dtype: object = "float32",
) -> AccelRef:
    """Make a buffer whose every element is `value` on a device; does not block.

    Raises:
        InvalidArgument: no such shape or dtype, or the dtype does not hold the value.
    """
    return device_first(device).ask(Full(ints("shape", shape), plain(value), canonical(dtype)))


copy = function(Copy)


def cast(x: AccelRef, dtype: object) -> AccelRef:
    """Convert `x` to another dtype in a new buffer, as `Cast` says; does not block.

    Raises:
        InvalidArgument: no such dtype, or it would lose imaginary parts.
    """
    return device_of(x).ask(Cast(x, canonical(dtype)))


def slice(x: AccelRef, index: Any) -> AccelRef:  # noqa: A001 - read as array.slice
    """View a part of `x`; `index` is what NumPy's basic indexing takes, as `np.s_[1:, ::-1]`.

    Does not block.

    Raises:
        InvalidArgument: the index does not fit, or is an array or a list.
    """
    device = device_of(x)
    return device.ask(Slice(x, index_entries(x, index)))


def reshape(x: AccelRef, shape: Integers) -> AccelRef:
    """Give `x` another shape, as a view where its strides allow one; does not block.

    Raises:
        InvalidArgument: its elements do not fill the shape.
    """
    return device_of(x).ask(Reshape(x, ints("shape", shape)))


def transpose(x: AccelRef, axes: Integers | None = None) -> AccelRef:
    """View `x` with its axes permuted, reversed when `axes` is None; does not block.

    Raises:
        InvalidArgument: the axes are no permutation.
    """
    return device_of(x).ask(Transpose(x, None if axes is None else ints("axes", axes)))


def part(x: AccelRef, index: Any) -> AccelRef:
    """Return x[index]: a view for what `slice` takes, new for an array of integers.

    Does not block.

    Raises:
        InvalidArgument: the index does not fit, is a mask, or mixes arrays with anything else.
    """
    if isinstance(index, tuple) and builtins.any(map(is_taking, index)):
        raise InvalidArgument(
            "an index in square brackets is basic, or one array of integers for the first axis; "
            "array.take(x, indices, axis) takes along another"
        )
    return taken(x, index) if is_taking(index) else slice(x, index)


def called(function: Any, *operands: Any) -> AccelRef:
    """Do what NumPy's ufunc of this name does, for `numpy.sin(ref)`; does not block.

    Raises:
        InvalidArgument: there is no message for it, or the operands do not fit.
    """
    if function in UNARY:
        return unary(function, *operands)
    if function in BINARY:
        return binary(function, *operands)
    if function == "matmul":
        return matmul(*operands)
    raise InvalidArgument(
        f"no message does numpy.{function}: fetch the buffer with ref.get(), or call it where the "
        f"buffer is, with gpu.run(function, ref)"
    )


class ArrayLibrary(Protocol):
    """What a backend provides; arrays may have any strides, and each call only enqueues.

    dtypes are the buffers' own, because a backend may store narrow floats as integers.
    """

    def copy(self, x: Any, out: Any) -> None:
        """Copy `x` into `out` of the same shape and dtype; they do not overlap."""

    def cast(self, x: Any, out: Any, *, source: str, target: str) -> None:
        """Convert `x` into `out`, a new array of the same shape."""

    def slice(self, x: Any, index: tuple[int | builtins.slice | None, ...]) -> Any:
        """Return a view by basic indexing; an array even when it has no axes."""

    def reshape(self, x: Any, shape: tuple[int, ...]) -> Any | None:
        """Return a view in C order, or None when the strides allow none; never copies."""

    def transpose(self, x: Any, axes: tuple[int, ...]) -> Any:
        """Return a view with permuted axes."""

    def apply(
        self,
        op: UnaryOp | BinaryOp | Literal["where", "matmul"],
        operands: tuple[Any, ...],
        dtypes: tuple[str, ...],
        out: Any,
        *,
        dtype: str,
    ) -> None:
        """Write NumPy's function `op` of arrays and Python's numbers; `out` may be an operand.

        `dtypes` are those of the operands, empty for a number; `dtype` is that of `out`.
        """

    def reduce(
        self,
        op: ReduceOp,
        x: Any,
        out: Any,
        *,
        axes: tuple[int, ...],
        keepdims: bool,
        ddof: int,
        source: str,
        computed: str,
        dtype: str,
    ) -> None:
        """Write a reduction along `axes`.

        `source` and `dtype` are those of `x` and `out`; `computed` is that to compute in, empty
        for NumPy's choice.
        """


class ArrayActor(LibraryActor):
    """Makes, copies, converts and views buffers, and computes with them."""

    library = "array"
    lib: ArrayLibrary

    @handles(Copy)
    def copy(self, m: Copy, launch: Launch) -> None:
        """Copy; nothing is to be done for a buffer that is its own `out`."""
        out, x = output(launch, "x"), launch.read(m.x)
        if out is not x:
            self.lib.copy(x, out)

    @handles(Cast)
    def cast(self, m: Cast, launch: Launch) -> None:
        """Convert into a new buffer."""
        self.lib.cast(launch.read(m.x), launch.empty(), source=m.x.dtype, target=m.dtype)

    @handles(Slice)
    def slice(self, m: Slice, launch: Launch) -> None:
        """Make a view; nothing is enqueued."""
        spec = m.infer()  # refuses what is out of range, where the notebook could not
        index = tuple(builtins.slice(*e) if isinstance(e, tuple) else e for e in m.index)
        launch.view(m.x, self.lib.slice(array_of(m.x), index), *spec)

    @handles(Reshape)
    def reshape(self, m: Reshape, launch: Launch) -> None:
        """Make a view, or a copy where none can be."""
        spec = m.infer()
        view = self.lib.reshape(array_of(m.x), spec.shape)
        if view is not None:
            launch.view(m.x, view, *spec)
            return
        x, out = launch.read(m.x), launch.empty()
        self.lib.copy(x, self.lib.reshape(out, m.x.shape))

    @handles(Transpose)
    def transpose(self, m: Transpose, launch: Launch) -> None:
        """Make a view; nothing is enqueued."""
        spec = m.infer()
        launch.view(m.x, self.lib.transpose(array_of(m.x), axis_order(m.x, m.axes)), *spec)

    @handles(Unary)
    def unary(self, m: Unary, launch: Launch) -> None:
        """Enqueue one function of each element."""
        self._apply(launch, m.op, output(launch, "x"), m.x)

    @handles(Binary)
    def binary(self, m: Binary, launch: Launch) -> None:
        """Enqueue one function of two operands."""
        self._apply(launch, m.op, output(launch, "x", "y"), *paired(m.op, *m.sides()))

    @handles(Where)
    def where(self, m: Where, launch: Launch) -> None:
        """Enqueue one choice."""
        self._apply(launch, "where", launch.empty(), m.condition, *paired("where", *m.sides()))

    @handles(Matmul)
    def matmul(self, m: Matmul, launch: Launch) -> None:
        """Enqueue one product."""
        self._apply(launch, "matmul", output(launch, "a", "b"), m.a, m.b)

    @handles(Reduce)
    def reduce(self, m: Reduce, launch: Launch) -> None:
        """Enqueue one reduction; the answer stays on the device."""
        out, x = output(launch, "x"), launch.read(m.x)
        self.lib.reduce(
            m.op,
            x,
            out,
            axes=m.axes(),
            keepdims=m.keepdims,
            ddof=m.ddof,
            source=m.x.dtype,
            computed=m.dtype,
            dtype=(launch.spec or m.infer()).dtype,
        )

    def _apply(self, launch: Launch, op: Any, out: Any, *operands: AccelRef | Number) -> None:
        refs = [isinstance(operand, AccelRef) for operand in operands]
        arrays = tuple(
            launch.read(one) if is_ref else one for one, is_ref in zip(operands, refs, strict=True)
        )
        dtypes = tuple(one.dtype if isinstance(one, AccelRef) else "" for one in operands)
        message: Any = launch.message
        spec = launch.spec or message.infer()
        self.lib.apply(op, arrays, dtypes, out, dtype=spec.dtype)
