"""What the messages of `cutlass` have in common: how sums are made, and how they end."""

from typing import Any, Literal, TypeAlias

from accel_lab.errors import InvalidArgument
from accel_lab.libraries.authoring.operand import describe, element, kind

Epilogue: TypeAlias = Literal["identity", "relu", "gelu"]

EPILOGUES: tuple[Epilogue, ...] = ("identity", "relu", "gelu")
MOST = 65_535 * 8 * 64
"""So many rows, columns or terms of a sum a product has at most."""
MOST_OF_INT8 = 131_071
"""So many terms of int8, and a bias, fit into int32, whatever they are."""
SUMS = {"float16": "float32", "bfloat16": "float32", "int8": "int32"}
"""The dtype in which a product of another is summed and finished."""


def made_of(dtype: str) -> str:
    """Return the dtype of a product."""
    return "int32" if dtype == "int8" else dtype


def require_epilogue(message: Any) -> None:
    """Refuse an end that there is not.

    Raises:
        InvalidArgument: there is none of that name.
    """
    if type(message.epilogue) is not str or message.epilogue not in EPILOGUES:
        raise refusal(
            message, f"epilogue is {message.epilogue!r}; it may be {', '.join(EPILOGUES)}"
        )


def require_extents(message: Any, a: Any, b: Any) -> None:
    """Refuse a product that no tile counts, or whose sums its dtype does not hold.

    Raises:
        InvalidArgument: an extent or a sum is too large, or int8 is to have a GELU.
    """
    require_counted(message, a, b)
    if a.dtype != "int8":
        return
    if message.epilogue == "gelu":
        raise refusal(message, "int8 has no gelu; convert with array.cast")
    scale = element(message, "scale", message.scale, "int8")
    most = MOST_OF_INT8 // max(abs(int(scale.real)), 1)
    if a.shape[1] > most:
        text = f"a is {describe(a)}, and int32 holds sums of {most} scaled products"
        raise refusal(message, f"{text}; cut it along k")


def require_counted(message: Any, a: Any, b: Any) -> None:
    """Refuse a product that no tile counts.

    Raises:
        InvalidArgument: an extent is too large.
    """
    if max(*a.shape, *b.shape) > MOST:
        raise refusal(message, f"a is {describe(a)}, b {describe(b)}; at most {MOST} each")


def refusal(message: Any, why: str) -> InvalidArgument:
    """Return the error of a message that does not fit."""
    return InvalidArgument(f"{kind(message)}: {why}")
