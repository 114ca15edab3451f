"""What fields of a message are beside operands: numbers, and options by keyword.

A dataclass has `_: KW_ONLY` for this. msgspec orders the fields on the wire by it, so a message of
a library has `_: Options` instead, which a type checker takes for the same and msgspec leaves out.
"""

import typing
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeAlias, get_args

from accel_lab.compute.message.operation import Operation
from accel_lab.libraries.authoring.operand import Scalar

if TYPE_CHECKING:
    from dataclasses import KW_ONLY

    Options: TypeAlias = KW_ONLY
    Factor: TypeAlias = Scalar
else:
    Options = ClassVar
    Factor = Annotated[Any, Scalar]
    """A number of any kind; a complex one is a list of its two parts on the wire."""


def hints_of(kind: type[Operation[Any]]) -> dict[str, Any]:
    """Return the type of each field."""
    hints = typing.get_type_hints(kind, include_extras=True)
    return {name: hints[name] for name in kind.__struct_fields__}


def factors_of(kind: type[Operation[Any]]) -> tuple[str, ...]:
    """Return the fields that are a number, `Factor` or `Factor | None`."""
    hints = typing.get_type_hints(kind, include_extras=True)
    return tuple(n for n, hint in hints.items() if hint == Factor or Factor in get_args(hint))


def options_of(kind: type[Operation[Any]]) -> set[str]:
    """Return the fields that stand behind `_: Options`, in the class or in one of its bases."""
    found: set[str] = set()
    for base in kind.__mro__:
        names = list(vars(base).get("__annotations__", ()))
        if "_" in names:
            found |= set(names[names.index("_") + 1 :])
    return found
