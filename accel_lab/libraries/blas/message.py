"""What the messages of `blas` have in common: their options, and what is refused of these."""

from typing import Any, ClassVar, Literal, TypeAlias

from accel_lab.compute.message.buffer import AccelRef
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.authoring.dtype_sets import ALL
from accel_lab.libraries.authoring.operand import arrived, describe, kind
from accel_lab.libraries.authoring.shaped import Shaped
from accel_lab.libraries.authoring.signature import parse

Trans: TypeAlias = Literal["n", "t", "c"]
Uplo: TypeAlias = Literal["l", "u"]
"""Which triangle of a matrix counts, the lower or the upper one; the other is not read."""
Side: TypeAlias = Literal["l", "r"]
"""On which side of the other operand a matrix stands."""

_VALUES: dict[str, tuple[str, ...]] = {"uplo": ("l", "u"), "side": ("l", "r")}
_VALUES |= dict.fromkeys(("trans", "trans_a", "trans_b"), ("n", "t", "c"))


class BlasMessage(Shaped[AccelRef], frozen=True, array_like=True, eq=False):
    """A message of `blas`: it answers with a buffer, and every dtype has it on some backend."""

    library: ClassVar[str] = "blas"
    dtypes: ClassVar = ALL


def require_options(message: Any, *names: str) -> None:
    """Refuse an option that is none of its letters.

    Raises:
        InvalidArgument: one is not.
    """
    for name in names:
        said, known = getattr(message, name), _VALUES[name]
        if type(said) is not str or said not in known:
            *first, last = map(repr, known)
            text = f"{name} is {said!r}; it may be {', '.join(first)} or {last}"
            raise InvalidArgument(f"{kind(message)}: {text}")


def require_side(message: Any, name: str, of: AccelRef) -> None:
    """Refuse an operand that does not fit the side on which it stands of `of`.

    Raises:
        InvalidArgument: its last extent is not that of the rows ("l") or of the columns ("r").
    """
    ref, side = getattr(message, name), message.side
    extent = of.shape[-2 if side == "l" else -1]
    if ref.shape[-1] != extent:
        other = next(field for field in message.__struct_fields__ if getattr(message, field) is of)
        raise InvalidArgument(
            f"{kind(message)}: {name} is {describe(ref)} on side {side!r} of {other} "
            f"{describe(of)}, where its extent is to be {extent}; "
            f"it takes {parse(message.shapes).text}"
        )


def require_real(message: Any, *names: str) -> None:
    """Refuse a number with an imaginary part, which the operation has not.

    Raises:
        InvalidArgument: one has.
    """
    for name in names:
        value = arrived(getattr(message, name))
        if isinstance(value, complex) and value.imag != 0:
            raise InvalidArgument(f"{kind(message)}: {name} is {value}, and is to be real")
