"""What the messages of `tensor` have in common: names of axes, functions, and what is refused."""

from collections.abc import Iterable
from typing import Any, Literal, TypeAlias

from accel_lab.compute.arrays.dtypes import is_complex
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.authoring.dtype_sets import SINGLE_AND_DOUBLE
from accel_lab.libraries.authoring.operand import describe, kind
from accel_lab.libraries.tensor.modes import Modes, modes_of

BinaryOp: TypeAlias = Literal["add", "mul", "max", "min"]
UnaryOp: TypeAlias = Literal[
    "identity", "sqrt", "relu", "conj", "rcp", "sigmoid", "tanh", "exp", "log", "abs", "neg",
    "sin", "cos", "tan", "sinh", "cosh", "asin", "acos", "atan", "asinh", "acosh", "atanh",
    "ceil", "floor", "swish", "soft_plus", "soft_sign",
]  # fmt: skip
Compute: TypeAlias = Literal["", "tf32", "float32", "float64"]

DTYPES = SINGLE_AND_DOUBLE | {"float16", "bfloat16"}
BINARY = ("add", "mul", "max", "min")
UNARY = (
    "identity", "sqrt", "relu", "conj", "rcp", "sigmoid", "tanh", "exp", "log", "abs", "neg",
    "sin", "cos", "tan", "sinh", "cosh", "asin", "acos", "atan", "asinh", "acosh", "atanh",
    "ceil", "floor", "swish", "soft_plus", "soft_sign",
)  # fmt: skip
COMPUTES: dict[str, tuple[str, ...]] = {
    "float16": ("float32",),
    "bfloat16": ("float32",),
    "float32": ("float32", "tf32", "float64"),
    "complex64": ("float32", "tf32", "float64"),
    "float64": ("float64", "float32"),
    "complex128": ("float64", "float32"),
}
"""In what sums of each dtype may be formed; the first is what they are if nobody says."""
_OF_REALS = frozenset(
    {"relu", "ceil", "floor", "swish", "sigmoid", "soft_plus", "soft_sign", "max", "min", "abs"}
)


def computed_in(dtype: str, compute: str = "") -> str:
    """Return the dtype that is computed in, at least as precise as asked for."""
    if is_complex(dtype):
        return "complex128" if compute == "float64" else dtype
    if dtype == "float64" or compute == "float64":
        return "float64"
    return "float32"


def named_axes(message: Any, refs: Iterable[AccelRef]) -> Modes:
    """Return the names of all axes of a message's operands.

    Raises:
        InvalidArgument: they do not fit its text.
    """
    several = tuple(refs)
    try:
        return modes_of(message.subscripts, tuple([ref.shape for ref in several]))
    except ValueError as error:
        given = " and ".join(_given(message, at, ref) for at, ref in enumerate(several))
        raise InvalidArgument(f"{kind(message)}: {error}; {given}") from None


def _given(message: Any, at: int, ref: AccelRef) -> str:
    fields = message.__struct_fields__
    name = next((one for one in fields if getattr(message, one) is ref), f"tensors[{at}]")
    return f"{name} is {describe(ref)}"


def require_op(message: Any, name: str, known: tuple[str, ...], dtype: str) -> None:
    """Refuse a function that there is not, or not of complex numbers.

    Raises:
        InvalidArgument: it is none.
    """
    said = getattr(message, name)
    if type(said) is not str or said not in known:
        text = f"{name} is {said!r}; it may be {', '.join(known)}"
        raise InvalidArgument(f"{kind(message)}: {text}")
    if said in _OF_REALS and is_complex(dtype):
        raise InvalidArgument(f"{kind(message)}: {name} is {said!r}, which {dtype} has not")


def require_whole(message: Any, modes: Modes) -> None:
    """Refuse a text that would leave an axis out, or has one twice in an operand.

    Raises:
        InvalidArgument: it does.
    """
    for names in modes.takes:
        for name in names:
            if name not in modes.makes or names.count(name) > 1:
                shown = name if name.isascii() else "..."
                text = f"{shown} of {message.subscripts!r} is to be once in each operand"
                advice = "and in the result; reduce or contract others"
                raise InvalidArgument(f"{kind(message)}: {text}, {advice}")
