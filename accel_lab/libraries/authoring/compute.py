"""In what a product is computed, where its user may say so."""

from typing import Any, Literal, TypeAlias

from accel_lab.errors import InvalidArgument
from accel_lab.libraries.authoring.operand import describe, kind

Compute: TypeAlias = Literal["", "tf32"]
"""In what sums are formed at least; without it in the operands' own precision."""


def require_compute(message: Any) -> None:
    """Refuse a precision that there is not, or not for the dtype.

    Raises:
        InvalidArgument: it is none.
    """
    said = message.compute
    if not said:
        return
    if said != "tf32":
        text = f"compute is {said!r}; it may be '' or 'tf32'"
        raise InvalidArgument(f"{kind(message)}: {text}")
    if message.a.dtype not in {"float32", "complex64"}:
        text = f"compute is 'tf32' and a is {describe(message.a)}; it is for float32 and complex64"
        raise InvalidArgument(f"{kind(message)}: {text}")
