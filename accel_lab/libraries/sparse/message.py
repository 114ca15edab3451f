"""What the messages of `sparse` have in common: a sparse matrix, as three buffers and a shape."""

from typing import Any, ClassVar, TypeVar

from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.operation import PartialSpec, Spec
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.authoring.dtype_sets import SINGLE_AND_DOUBLE
from accel_lab.libraries.authoring.operand import MAX_ELEMENTS, describe, kind
from accel_lab.libraries.authoring.shaped import Shaped
from accel_lab.libraries.sparse.matrix import FORMATS, Format, Shape

R = TypeVar("R")

VALUES = SINGLE_AND_DOUBLE | {"float16", "bfloat16"}
"""What a sparse matrix may store; sums of narrow floats are formed in float32."""
INDEX_DTYPES = ("int32", "int64")
_MOST = {"int32": 2**31 - 1, "int64": 2**63 - 1}


class OfMatrix(Shaped[R], frozen=True, array_like=True, eq=False):
    """A message of a sparse matrix: its buffers, its shape and its format."""

    library: ClassVar[str] = "sparse"
    dtypes: ClassVar = SINGLE_AND_DOUBLE
    values: AccelRef
    indices: AccelRef
    pointers: AccelRef
    shape: Shape
    format: Format


def require_matrix(m: Any, prefix: str = "", shape: Any = None, format_: str = "") -> None:
    """Refuse buffers that are no sparse matrix of the shape and format that a message says.

    Parameters:
        prefix: of the names of the fields.
        shape, format_: of a matrix that is not the message's first.

    Raises:
        InvalidArgument: they do not fit; what is in them only the device can see.
    """
    require_format(m, format_ or m.format)
    values = getattr(m, f"{prefix}values")
    shape = require_shape(m, m.shape if shape is None else shape)
    _require_places(m, prefix, values.shape, shape, format_ or m.format)


def require_shape(m: Any, shape: Any) -> Shape:
    """Return a matrix's shape.

    Raises:
        InvalidArgument: it is none.
    """
    is_pair = isinstance(shape, tuple | list) and len(shape) == len(("rows", "columns"))
    if not is_pair or not all(type(n) is int and 0 <= n <= MAX_ELEMENTS for n in shape):
        raise InvalidArgument(f"{kind(m)}: shape is {shape!r}, and is to be rows and columns")
    rows, columns = shape
    return rows, columns


def require_format(m: Any, format_: Any) -> None:
    """Refuse what is no format.

    Raises:
        InvalidArgument: it is none.
    """
    require_word(m, "format", format_, FORMATS)


def require_word(m: Any, name: str, said: Any, known: tuple[str, ...]) -> None:
    """Refuse an option that is none of its words.

    Raises:
        InvalidArgument: it is none.
    """
    if type(said) is not str or said not in known:
        *first, last = map(repr, known)
        text = f"{kind(m)}: {name} is {said!r}; it may be {', '.join(first)} or {last}"
        raise InvalidArgument(text)


def _require_places(
    m: Any, prefix: str, values: tuple[int, ...], shape: Shape, format_: str
) -> None:
    names = [f"{prefix}indices", f"{prefix}pointers"]
    indices, pointers = (getattr(m, name) for name in names)
    if indices.dtype not in INDEX_DTYPES:
        text = f"{kind(m)}: {names[0]} are {describe(indices)}, and are to be int32 or int64"
        raise InvalidArgument(text)
    if pointers.dtype != indices.dtype:
        text = f"{kind(m)}: {names[1]} are {describe(pointers)} and {names[0]} {describe(indices)}"
        raise InvalidArgument(f"{text}; they are to be of one dtype")
    axes = 3 if format_ == "bsr" else 1
    if len(values) != axes:
        text = f"{kind(m)}: {prefix}values are of shape {list(values)}, and {format_} has "
        raise InvalidArgument(text + ("(blocks, r, c)" if axes > 1 else "a vector of them"))
    if indices.shape != values[:1]:
        text = f"{kind(m)}: {names[0]} are {describe(indices)}, and are to be one for each"
        raise InvalidArgument(f"{text} of {values[0]} {prefix}values")
    expected = extent_of_pointers(m, shape, format_, values)
    if pointers.shape != (expected,):
        text = f"{kind(m)}: {names[1]} are {describe(pointers)}, and of {format_} {list(shape)}"
        raise InvalidArgument(f"{text} they are to be {expected}")
    if max(*shape, values[0]) > _MOST[indices.dtype]:
        raise InvalidArgument(f"{kind(m)}: {indices.dtype} is too narrow for {list(shape)}")


def extent_of_pointers(m: Any, shape: Shape, format_: str, values: tuple[int, ...]) -> int:
    """Return how many pointers a matrix has.

    Raises:
        InvalidArgument: its blocks do not divide it.
    """
    rows, columns = shape
    if format_ == "coo":
        return values[0]
    if format_ == "bsr":
        require_block(m, shape, values[1:])
        return rows // values[1] + 1
    return (columns if format_ == "csc" else rows) + 1


def require_block(m: Any, shape: Shape, block: Any) -> None:
    """Refuse blocks that do not divide a matrix.

    Raises:
        InvalidArgument: they are none, or do not divide it.
    """
    is_pair = isinstance(block, tuple | list) and len(block) == len(shape)
    if not is_pair or not all(type(n) is int and n > 0 for n in block):
        raise InvalidArgument(f"{kind(m)}: block is {block!r}, and is to be two extents above 0")
    if any(extent % step for extent, step in zip(shape, block, strict=True)):
        text = f"{kind(m)}: blocks of {list(block)} do not divide a matrix of {list(shape)}"
        raise InvalidArgument(text)


def require_csr(m: Any) -> None:
    """Refuse a matrix that is not square CSR, as what is solved has to be.

    Raises:
        InvalidArgument: it is not.
    """
    require_matrix(m)
    if m.format != "csr":
        raise InvalidArgument(f"{kind(m)}: the matrix is {m.format}, and is to be csr; convert it")


def require_square(m: Any) -> int:
    """Return the order of a square CSR matrix.

    Raises:
        InvalidArgument: it is not square, or not CSR.
    """
    require_csr(m)
    rows, columns = m.shape
    if rows != columns:
        raise InvalidArgument(f"{kind(m)}: the matrix is {[rows, columns]}, and is to be square")
    return int(rows)


def require_dtype(m: Any, *names: str) -> None:
    """Refuse dense operands that have not the dtype of the values.

    Raises:
        InvalidArgument: one has another.
    """
    dtype = m.values.dtype
    for name in names:
        ref = getattr(m, name)
        if ref is not None and ref.dtype != dtype:
            text = f"{name} is {describe(ref)} and the matrix {dtype}; convert with array.cast"
            raise InvalidArgument(f"{kind(m)} takes operands of one dtype, but {text}")


def require_extents(m: Any, name: str, *shapes: tuple[int, ...], why: str) -> None:
    """Refuse a dense operand that has none of these shapes.

    Raises:
        InvalidArgument: it has another.
    """
    ref = getattr(m, name)
    if ref is not None and ref.shape not in shapes:
        wanted = " or ".join(str(list(shape)) for shape in shapes)
        raise InvalidArgument(f"{kind(m)}: {name} is {describe(ref)}, and is to be {wanted}{why}")


def compressed(dtype: str, index_dtype: str, rows: int) -> tuple[PartialSpec, PartialSpec, Spec]:
    """Return the parts of a CSR matrix of which only the device knows how much is stored."""
    pointers = Spec((rows + 1,), index_dtype)
    return PartialSpec((None,), dtype), PartialSpec((None,), index_dtype), pointers
