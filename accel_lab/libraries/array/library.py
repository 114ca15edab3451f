"""Arrays: made, copied, converted, viewed in other shapes, and computed with as NumPy does.

`array.add`, `array.sum` and their like stand in `arithmetic`; the operators and methods of a buffer
send the same messages. A view shares the storage of the buffer it was made of: what is written
through one is read through the other, in the order in which the messages were sent.
"""

# ruff: noqa: PLC0414 - names of this module, wherever they are written

import builtins
from typing import Any, ClassVar

from accel_lab.compute.arrays.dtypes import is_complex, numpy_dtype
from accel_lab.compute.device import device_of
from accel_lab.compute.execution.launch import Launch, LibraryActor, handles
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.operation import Spec
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.array.arithmetic import *  # noqa: F403 - array.add and all the others
from accel_lab.libraries.array.counting import *  # noqa: F403 - array.unique and the like
from accel_lab.libraries.array.counting import Nonzero, Unique
from accel_lab.libraries.array.elementwise import BINARY, UNARY, paired
from accel_lab.libraries.array.elementwise import Binary as Binary
from accel_lab.libraries.array.elementwise import Unary as Unary
from accel_lab.libraries.array.elementwise import Where as Where
from accel_lab.libraries.array.elementwise import binary as binary
from accel_lab.libraries.array.elementwise import unary as unary
from accel_lab.libraries.array.elementwise import where as where
from accel_lab.libraries.array.fusing import binary_parts, unary_parts, where_parts
from accel_lab.libraries.array.indexing import *  # noqa: F403 - array.take and the like
from accel_lab.libraries.array.indexing import (
    Assign,
    AssignAlong,
    AssignAt,
    AssignMask,
    Assignment,
    Mask,
    index_of,
    is_taking,
    taken,
    taken_by_any,
)
from accel_lab.libraries.array.joining import *  # noqa: F403 - array.concatenate and the like
from accel_lab.libraries.array.joining import Concatenate
from accel_lab.libraries.array.making import *  # noqa: F403 - array.arange and the like
from accel_lab.libraries.array.message import ArrayMessage
from accel_lab.libraries.array.nan_ordering import *  # noqa: F403 - array.nanmedian and the like
from accel_lab.libraries.array.ordering import *  # noqa: F403 - array.sort and the like
from accel_lab.libraries.array.products import *  # noqa: F403 - array.matmul and the like
from accel_lab.libraries.array.products import Matmul, matmul
from accel_lab.libraries.array.reduction import Reduce as Reduce
from accel_lab.libraries.array.reduction import reduce as reduce
from accel_lab.libraries.array.scanning import *  # noqa: F403 - array.cumsum and the like
from accel_lab.libraries.array.shaping import *  # noqa: F403 - array.squeeze and the like
from accel_lab.libraries.array.without_nan import *  # noqa: F403 - array.nansum and the like
from accel_lab.libraries.authoring.function import function, maker
from accel_lab.libraries.authoring.operand import (
    Number,
    array_of,
    describe,
    element,
    output,
    result,
)
from accel_lab.libraries.authoring.options import DType, Factor, Ints, Options
from accel_lab.libraries.authoring.shape import (
    Index,
    axis_order,
    filled_shape,
    index_entries,
    indexed_shape,
    require_extents,
)


class Zeros(ArrayMessage, frozen=True, tag=100):
    """Make a buffer of zeros."""

    shape: Ints
    dtype: DType = "float32"

    def infer(self) -> Spec:
        """Return the shape and dtype that were given."""
        numpy_dtype(self.dtype)  # refuses what is none
        return result(self, require_extents("Zeros", self.shape), self.dtype)


class Full(ArrayMessage, frozen=True, tag=101):
    """Make a buffer whose every element is `value`, a number that the dtype can hold."""

    shape: Ints
    value: Factor
    dtype: DType = "float32"

    def infer(self) -> Spec:
        """Return the shape and dtype that were given."""
        numpy_dtype(self.dtype)  # refuses what is none
        spec = result(self, require_extents("Full", self.shape), self.dtype)
        element(self, "value", self.value, self.dtype)
        return spec


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

    shapes: ClassVar = "(...)->(...)"
    x: AccelRef
    dtype: DType

    def infer(self) -> Spec:
        """Return the shape of `x` and the dtype that was given."""
        source, spec = self.x.dtype, Spec(self.x.shape, self.dtype)
        numpy_dtype(self.dtype)  # refuses what is none
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

    shapes: ClassVar = "(...)->?"
    aliased: ClassVar[str] = "x"
    x: AccelRef
    index: tuple[Index, ...]

    def infer(self) -> Spec:
        """Return the shape of the part."""
        return Spec(indexed_shape(self.x, self.index), self.x.dtype)

    @property
    def entries(self) -> tuple[int | builtins.slice | None, ...]:
        """The index as Python has it."""
        return index_of(self.index)


class Reshape(ArrayMessage, frozen=True, tag=105):
    """Give `x` another shape with its elements in C order; one extent may be -1.

    The result is a view where the strides of `x` allow one, which they always do when `x` is
    contiguous; otherwise it is a copy. Copy first when later writes must not be shared. With
    `view` it fails where it would be a copy, which only the device knows.
    """

    shapes: ClassVar = "(...)->?"
    aliased: ClassVar[str] = "x"
    viewing: ClassVar[str] = "view"
    x: AccelRef
    shape: Ints
    _: Options
    view: bool = False

    def infer(self) -> Spec:
        """Return the shape that was given, with -1 worked out."""
        return result(self, filled_shape(self.x, self.shape), self.x.dtype)


class Transpose(ArrayMessage, frozen=True, tag=106):
    """View `x` with its axes permuted; None reverses them."""

    shapes: ClassVar = "(...)->?"
    aliased: ClassVar[str] = "x"
    x: AccelRef
    axes: Ints | None = None

    def infer(self) -> Spec:
        """Return the permuted shape."""
        shape = self.x.shape
        return Spec(tuple(shape[axis] for axis in self.order), self.x.dtype)

    @property
    def order(self) -> tuple[int, ...]:
        """The permutation of the axes, counted from 0."""
        return axis_order(self.x, self.axes)


zeros, full = maker(Zeros), maker(Full)
copy, cast = function(Copy), function(Cast)
reshape, transpose = function(Reshape), function(Transpose)


def slice(x: AccelRef, index: Any) -> AccelRef:  # noqa: A001 - read as array.slice
    """View a part of `x`; `index` is what NumPy's basic indexing takes, as `np.s_[1:, ::-1]`.

    Does not block.

    Raises:
        InvalidArgument: the index does not fit, or is an array or a list.
    """
    device = device_of(x)
    return device.ask(Slice(x, index_entries(x, index)))


def part(x: AccelRef, index: Any) -> AccelRef:
    """Return x[index]: a view for what `slice` takes, new for arrays of integers or a mask.

    Does not block.

    Raises:
        InvalidArgument: the index does not fit, or has a mask of the device beside other arrays.
    """
    if isinstance(index, tuple) and builtins.any(map(is_taking, index)):
        return taken(x, index[0]) if len(index) == 1 else taken_by_any(x, index)
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
        f"numpy.{function} has no message: fetch the buffer with ref.get(), or call the function "
        f"on the device with gpu.run(function, ref)"
    )


class ArrayActor(LibraryActor):
    """Makes, copies, converts and views buffers, and computes with them."""

    library = "array"
    fusable: ClassVar = {Unary: unary_parts, Binary: binary_parts, Where: where_parts}

    @handles(Reshape)
    def reshape(self, m: Reshape, launch: Launch) -> None:
        """Make a view, or a copy where none can be."""
        spec = m.infer()
        view = self.lib.reshape(array_of(m.x), spec.shape)
        if view is not None:
            launch.view(m.x, view, *spec)
            return
        if m.view:
            text = f"Reshape: the strides of x {describe(m.x)} allow no view of {list(spec.shape)}"
            raise InvalidArgument(text)
        x, out = launch.read(m.x), launch.empty()
        self.lib.copy(m, x, self.lib.reshape(out, m.x.shape))

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

    def _apply(self, launch: Launch, op: str, out: Any, *operands: AccelRef | Number) -> None:
        arrays: list[Any] = []
        dtypes: list[str] = []
        for operand in operands:
            if isinstance(operand, AccelRef):
                arrays.append(launch.read(operand))
                dtypes.append(operand.dtype)
            else:
                arrays.append(operand)
                dtypes.append("")
        message: Any = launch.message
        spec = launch.spec or message.infer()
        self.lib.apply(op, tuple(arrays), tuple(dtypes), out, dtype=spec.dtype)

    @handles(Concatenate)
    def concatenate(self, m: Concatenate, launch: Launch) -> None:
        """Enqueue a copy of each operand to its place."""
        out = launch.empty()
        self.lib.concatenate(m, [launch.read(x) for x in m.xs], out)

    @handles(Assign)
    def assign(self, m: Assign, launch: Launch) -> None:
        """Enqueue a write to a part."""
        self._assign(self.lib.assign, m, launch)

    @handles(AssignAt)
    def assign_at(self, m: AssignAt, launch: Launch) -> None:
        """Enqueue a write to what is at integers."""
        self._assign(self.lib.assign_at, m, launch)

    @handles(AssignAlong)
    def assign_along(self, m: AssignAlong, launch: Launch) -> None:
        """Enqueue a write along an axis."""
        self._assign(self.lib.assign_along, m, launch)

    @handles(AssignMask)
    def assign_mask(self, m: AssignMask, launch: Launch) -> None:
        """Enqueue a write to where a mask is True."""
        found = self._assign(self.lib.assign_mask, m, launch)
        if m.counted is not None:
            launch.check(found, m.judge)

    def _assign(self, write: Any, m: Assignment, launch: Launch) -> Any:
        """Have a value written to a part of `out`; what shares its memory is copied before."""
        if launch.spec is None:
            m.infer()  # the notebook could not: an operand's shape was unknown to it
        out: Any = m.out
        whole, is_same = launch.write(out), launch.context.backend.same_memory

        def read(ref: Any) -> Any:
            x = launch.read(ref)
            return x.copy() if ref.storage is out.storage and is_same(x, whole) else x

        chosen = [read(ref) for ref in m.chosen_by()]
        value = m.element() if m.value is None else read(m.value)
        return write(m, whole, value, *chosen)

    # Of these the device says how much there is, which is waited for.

    @handles(Mask)
    def mask(self, m: Mask, launch: Launch) -> None:
        """Have the elements kept that a mask says."""
        x, kept = launch.read(m.x), launch.read(m.mask)
        launch.blocking(lambda _: self.lib.mask(x, kept), launch.take)

    @handles(Unique)
    def unique(self, m: Unique, launch: Launch) -> None:
        """Have elements found and counted."""
        x = launch.read(m.x)
        launch.blocking(lambda _: self.lib.unique(m, x), lambda made: launch.take_all(*made))

    @handles(Nonzero)
    def nonzero(self, m: Nonzero, launch: Launch) -> None:
        """Have found what is not zero."""
        x, dtype = launch.read(m.x), m.x.dtype
        launch.blocking(lambda _: self.lib.nonzero(x, dtype), launch.take)
