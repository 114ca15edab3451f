"""Check operands, alike for every library, and word the refusals.

A refusal names the operand, what it is and what was expected. Nothing here touches a device.
"""

import math
from contextlib import suppress
from typing import Any, TypeAlias

import numpy as np

from accel_lab.compute.arrays.dtypes import NAMES, is_complex, is_float, numpy_dtype
from accel_lab.compute.execution.buffer_table import Buffer
from accel_lab.compute.execution.launch import Launch
from accel_lab.compute.message.buffer import AccelRef, Ref
from accel_lab.compute.message.operation import Operation, Spec
from accel_lab.display.buffer_number import short
from accel_lab.errors import InvalidArgument

Number: TypeAlias = bool | int | float | complex
Scalar: TypeAlias = Number | np.generic

MAX_ELEMENTS = 2**58  # of 16 bytes at most: a size in bytes stays far below 2**63
TRAVELLING = range(-(2**63), 2**64)
_FLOATS = frozenset(filter(is_float, NAMES))
_COMPLEXES = frozenset(filter(is_complex, NAMES))
RANGES = {
    name: (int(np.iinfo(numpy_dtype(name)).min), int(np.iinfo(numpy_dtype(name)).max))
    for name in NAMES
    if numpy_dtype(name).kind in "iu"
}


def describe(ref: AccelRef) -> str:
    """Return a buffer's dtype and shape for people, as `float32[3, 4]`."""
    return f"{ref.dtype}{list(ref.shape)}"


def kind(message: Operation[Any] | str) -> str:
    """Return the message's type for people, as `Gemm`; the name itself if it is one."""
    return message if isinstance(message, str) else type(message).__name__


def named(message: Operation[Any], ref: AccelRef) -> str:
    """Return which operand of the message this is, and what it is, as `a is float32[3, 4]`."""
    fields = message.__struct_fields__
    name = next((name for name in fields if getattr(message, name) is ref), "an operand")
    return f"{name} is {describe(ref)}"


def array_of(ref: Ref[Any]) -> Any:
    """Return an operand's array to make a view of it, or the thing, without order; context only."""
    assert isinstance(ref, Buffer)
    return ref.array


def one_dtype(message: Operation[Any], first: AccelRef, *others: AccelRef | None) -> str:
    """Return the dtype that all operands have.

    Raises:
        InvalidArgument: they differ.
    """
    dtype = first.dtype
    for ref in others:
        # Nearly always it is the same object, which costs less than to compare two.
        if ref is not None and ref.dtype is not dtype and ref.dtype != dtype:
            raise InvalidArgument(
                f"{kind(message)} takes operands of one dtype, but {named(message, first)} and "
                f"{named(message, ref)}; convert with array.cast"
            )
    return dtype


def result(message: Operation[Any], shape: tuple[int, ...], dtype: str) -> Spec:
    """Return the description of a new result.

    Raises:
        InvalidArgument: no device could ever address it.
    """
    if math.prod(filter(None, shape)) > MAX_ELEMENTS:  # an array of none has strides too
        raise InvalidArgument(
            f"{kind(message)} would make {dtype}{list(shape)}, whose extents above 0 multiply to "
            f"more than {MAX_ELEMENTS} elements"
        )
    return Spec(shape, dtype)


def require_out(
    message: Operation[Any], out: AccelRef | None, spec: Spec, *apart: AccelRef | None
) -> None:
    """Refuse an `out` of another shape or dtype, or one that is an operand among `apart`.

    Raises:
        InvalidArgument: it does not fit.
    """
    if out is None:
        return
    shape, dtype = spec
    if out.shape != shape or out.dtype != dtype:
        raise InvalidArgument(
            f"{kind(message)} results in {dtype}{list(shape)}, but out is {describe(out)}"
        )
    for ref in apart:
        if ref is not None and ref.id == out.id:
            raise InvalidArgument(
                f"{kind(message)} reads an operand while it writes out, but "
                f"{named(message, ref)}, and out is the same buffer {short(out.id)}; "
                "give another out, or none"
            )


def output(launch: Launch, *operands: str) -> Any:
    """Return the array to write: a new one, or `out` once it is known to fit; context only.

    Two views of one storage may overlap, which only the context can see. What happens when `out`
    is an operand itself has been decided by `infer`.

    Raises:
        InvalidArgument: `out` does not fit, or overlaps one of the operands named.
        OutOfMemory: the pool cannot hold a new one.
    """
    message: Any = launch.message
    out = message.out
    if out is None:
        return launch.empty()
    if launch.spec is None:
        message.infer()  # the notebook could not: an operand's shape was unknown to it
    storage = out.storage
    for name in operands:
        ref = getattr(message, name)
        if ref is None or ref is out or ref.storage is not storage:
            continue
        if launch.context.backend.same_memory(ref.array, out.array):
            raise InvalidArgument(
                f"{kind(message)}: {name} {describe(ref)} and out {describe(out)} are "
                f"overlapping views of one buffer; copy {name} first"
            )
    return launch.write(out)


def plain(value: Scalar | None) -> Any:
    """Return a number as it can travel: NumPy's as Python's, an integer of over 64 bits as a float.

    No integer dtype has one so large. Anything else is returned as it is.
    """
    if isinstance(value, np.generic):
        return value.item()
    if type(value) is int and value not in TRAVELLING:
        with suppress(OverflowError):  # the message refuses it
            return float(value)
    return value


def flag(name: str, value: Any) -> bool:
    """Return what is true or false as Python's bool, which can travel.

    Raises:
        InvalidArgument: it is neither, as an array.
    """
    try:
        return bool(value)
    except Exception:  # noqa: BLE001 - it is the user's own
        raise InvalidArgument(f"{name} is to be True or False, not {value!r}") from None


def arrived(value: Any) -> Any:
    """Return a number as it was before it travelled; anything else as it is."""
    if isinstance(value, list) and [type(part) for part in value] == [float, float]:
        return complex(*value)
    return value


def element(message: Operation[Any] | str, name: str, value: Any, dtype: str) -> Number:
    """Return a number as the Python type that a dtype's elements have.

    On the wire a complex number is the list of its two parts.

    Floating-point values are rounded to the dtype later, as NumPy does; nothing else may change.

    Raises:
        InvalidArgument: it is no number, has an imaginary part that the dtype lacks, or is not
            one of the integers that the dtype has.
    """
    if type(value) is float and dtype in _FLOATS:
        return value
    value = arrived(value)
    if isinstance(value, complex):
        if dtype in _COMPLEXES:
            return value
        if value.imag != 0:
            raise InvalidArgument(
                f"{kind(message)}: {name} is {value}, and {dtype} has no complex values"
            )
        value = value.real
    elif not isinstance(value, int | float):
        raise InvalidArgument(
            f"{kind(message)}: {name} must be a number, not {type(value).__name__}"
        )
    if dtype in _FLOATS or dtype in _COMPLEXES:
        try:
            return float(value)
        except OverflowError:
            raise InvalidArgument(
                f"{kind(message)}: {name} is {value}, too large for {dtype}"
            ) from None
    low, high = RANGES.get(dtype, (0, 1))
    if not low <= value <= high or value != int(value):
        raise InvalidArgument(
            f"{kind(message)}: {name} is {value}, and {dtype} has the integers from {low} to {high}"
        )
    return bool(value) if dtype == "bool" else int(value)


def coefficient(message: Operation[Any], name: str, value: Scalar, dtype: str) -> Number:
    """Return a factor as `element` does; it travels as a complex number of two doubles.

    Raises:
        InvalidArgument: as `element`, or it is an integer that no double holds.
    """
    exact = element(message, name, value, dtype)
    if type(exact) is int and int(float(exact)) != exact:
        raise InvalidArgument(f"{kind(message)}: {name} is {exact}, which is no exact double")
    return exact


def require_scaled(
    message: Operation[Any], name: str, ref: AccelRef | None, factor: str, dtype: str
) -> None:
    """Refuse an operand without the factor that scales it, or a factor but 0 without the operand.

    Raises:
        InvalidArgument: one is there without the other, or the factor is none of the dtype's.
    """
    value = getattr(message, factor)
    if value is None:
        if ref is not None:
            raise InvalidArgument(
                f"{kind(message)}: {name} is {describe(ref)}, but without {factor} it would not be "
                "read"
            )
    elif coefficient(message, factor, value, dtype) and ref is None:
        text = f"{kind(message)}: {factor} is {value}, but there is no {name} to scale"
        raise InvalidArgument(text)
