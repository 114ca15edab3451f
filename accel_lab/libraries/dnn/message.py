"""What the messages of `dnn` have in common: floats, layouts, and what is refused."""

from typing import Any, ClassVar, Literal, TypeAlias, TypeVar

from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.operation import Spec
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.authoring.dtype_sets import REAL_FLOATS
from accel_lab.libraries.authoring.operand import describe, kind, named, require_out, result
from accel_lab.libraries.authoring.shaped import Shaped

R = TypeVar("R")
DataLayout: TypeAlias = Literal["channels_first", "channels_last"]
LAYOUTS = ("channels_first", "channels_last")


class Layer(Shaped[R], frozen=True, array_like=True, eq=False):
    """A message of `dnn`: of floats, computed in float32 at least and rounded once."""

    library: ClassVar[str] = "dnn"
    dtypes: ClassVar = REAL_FLOATS


def computed_in(dtype: str) -> str:
    """Return the dtype that is computed in."""
    return "float64" if dtype == "float64" else "float32"


def refusal(message: Any, text: str) -> InvalidArgument:
    """Return the error of a message that does not fit."""
    return InvalidArgument(f"{kind(message)}: {text}")


def require_choice(message: Any, name: str, choices: tuple[str, ...]) -> None:
    """Refuse an option that is not one of these words.

    Raises:
        InvalidArgument: it is none.
    """
    said = getattr(message, name)
    if said not in choices:
        raise refusal(message, f"{name} is {said!r}; it may be {', '.join(choices)}")


def require_int(message: Any, name: str, least: int, most: int | None = None) -> int:
    """Return an option that is an integer in a range.

    Raises:
        InvalidArgument: it is none.
    """
    said = getattr(message, name)
    if type(said) is not int or said < least or (most is not None and said > most):
        until = "" if most is None else f" to {most}"
        raise refusal(message, f"{name} is {said!r}; it is an integer from {least}{until}")
    return said


def require_real(message: Any, name: str, least: float, most: float) -> float:
    """Return an option that is a number in a range.

    Raises:
        InvalidArgument: it is none.
    """
    said = getattr(message, name)
    if type(said) not in (int, float) or not least <= said <= most:
        raise refusal(message, f"{name} is {said!r}; it is a number from {least} to {most}")
    return float(said)


def spec_of(message: Any, shape: tuple[int, ...], dtype: str, *apart: AccelRef | None) -> Spec:
    """Return what a message makes; an `out` fits it, and is none of the operands `apart`.

    Raises:
        InvalidArgument: it does not, or is one.
    """
    spec = result(message, shape, dtype)
    require_out(message, message.out, spec, *apart)
    return spec


def require_shape(message: Any, ref: AccelRef | None, shape: tuple[int, ...]) -> None:
    """Refuse an operand of another shape; one that is not there fits.

    Raises:
        InvalidArgument: it has another.
    """
    if ref is not None and ref.shape != shape:
        raise refusal(message, f"{named(message, ref)}, and is to have the shape {list(shape)}")


def of_ints(message: Any, name: str) -> tuple[int, ...]:
    """Return an option of several integers.

    Raises:
        InvalidArgument: it is none.
    """
    said = getattr(message, name)
    if not isinstance(said, tuple) or any(type(n) is not int for n in said):
        raise refusal(message, f"{name} is {said!r}; it is a tuple of integers")
    return said


def require_axis(message: Any, ref: AccelRef) -> None:
    """Refuse an `axis` that an operand does not have.

    Raises:
        InvalidArgument: it has none such.
    """
    axis = message.axis
    if type(axis) is not int or not -ref.ndim <= axis < ref.ndim:
        had = f"{describe(ref)} has {ref.ndim} axes, and axis is {axis!r}"
        raise refusal(message, had)


def channels_first(shape: tuple[int, ...], layout: str) -> tuple[int, ...]:
    """Return a shape with its channels behind its first axis."""
    return shape if layout == "channels_first" else (shape[0], shape[-1], *shape[1:-1])


def as_layout(shape: tuple[int, ...], layout: str) -> tuple[int, ...]:
    """Return the shape in a layout, of one whose channels are behind its first axis."""
    return shape if layout == "channels_first" else (shape[0], *shape[2:], shape[1])


def moved(x: Any, layout: str) -> Any:
    """Return a view of an array with its channels behind its first axis."""
    return x if layout == "channels_first" else x.transpose(0, x.ndim - 1, *range(1, x.ndim - 1))


def moved_back(x: Any, layout: str) -> Any:
    """Return a view in a layout, of an array whose channels are behind its first axis."""
    return x if layout == "channels_first" else x.transpose(0, *range(2, x.ndim), 1)
