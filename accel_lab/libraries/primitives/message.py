"""What the messages of `primitives` have in common: vectors of numbers, and lists of segments."""

from typing import Any, ClassVar, TypeVar

import numpy as np

from accel_lab.compute.message.buffer import AccelRef
from accel_lab.errors import AccelError, InvalidArgument, OutOfBounds
from accel_lab.libraries.authoring.operand import describe, kind
from accel_lab.libraries.authoring.shaped import Shaped
from accel_lab.libraries.primitives.operators import NUMBERS

R = TypeVar("R")
INDICES = ("int32", "int64")


class Primitive(Shaped[R], frozen=True, array_like=True, eq=False):
    """A message of `primitives`: of vectors of numbers."""

    library: ClassVar[str] = "primitives"
    dtypes: ClassVar = NUMBERS


def require_vector(message: Any, name: str, *, like: str = "", dtypes: Any = NUMBERS) -> AccelRef:
    """Return an operand that is a vector.

    Parameters:
        like: another operand, which has as many elements.

    Raises:
        InvalidArgument: it is none, or of another dtype or length.
    """
    ref: AccelRef = getattr(message, name)
    if ref.ndim != 1:
        raise InvalidArgument(f"{kind(message)}: {name} is {describe(ref)}, and is to be a vector")
    if ref.dtype not in dtypes:
        several = ", ".join(sorted(dtypes))
        text = f"{kind(message)}: {name} is {describe(ref)}, and is to be one of {several}"
        raise InvalidArgument(f"{text}; convert with array.cast")
    if like:
        other: AccelRef = getattr(message, like)
        if other.shape != ref.shape:
            text = f"{name} is {describe(ref)} and {like} {describe(other)}"
            raise InvalidArgument(f"{kind(message)}: {text}; they are to be of one length")
    return ref


def require_offsets(message: Any, offsets: AccelRef) -> int:
    """Return how many segments there are.

    Raises:
        InvalidArgument: the offsets are no vector of integers, or there are none.
    """
    require_vector(message, "offsets", dtypes=INDICES)
    if not offsets.size:
        text = "offsets are where segments begin, and where the last one ends: at least one"
        raise InvalidArgument(f"{kind(message)}: {text}, not {describe(offsets)}")
    return offsets.size - 1


def judge_offsets(message: Any, wrong: Any, extent: int) -> AccelError | None:
    """Return what is wrong with offsets, of a status that counts the wrong ones."""
    if not int(np.asarray(wrong).sum()):
        return None
    text = f"offsets are to go from 0 to {extent} without a step back, and do not"
    return OutOfBounds(f"{kind(message)}: {text}")


def require_count(message: Any, name: str, least: int, most: int) -> None:
    """Refuse what is no integer in a range.

    Raises:
        InvalidArgument: it is none.
    """
    said = getattr(message, name)
    if type(said) is not int or not least <= said <= most:
        text = f"{name} is {said!r}; it is an integer from {least} to {most}"
        raise InvalidArgument(f"{kind(message)}: {text}")
