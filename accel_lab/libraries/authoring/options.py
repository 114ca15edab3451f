"""What fields of a message are beside operands: numbers, shapes, dtypes, and options by keyword.

A dataclass has `_: KW_ONLY` for this. msgspec orders the fields on the wire by it, so a message of
a library has `_: Options` instead, which a type checker takes for the same and msgspec leaves out.
"""

import typing
from collections.abc import Callable
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeAlias, get_args, get_origin

from accel_lab.compute.arrays.dtypes import canonical
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.operation import Operation
from accel_lab.compute.message.results import is_union
from accel_lab.libraries.authoring.operand import Scalar, flag, plain
from accel_lab.libraries.authoring.shape import Integers, ints

if TYPE_CHECKING:
    from dataclasses import KW_ONLY

    Options: TypeAlias = KW_ONLY
    Factor: TypeAlias = Scalar
    Scale: TypeAlias = Scalar | AccelRef
    Ints: TypeAlias = Integers
    DType: TypeAlias = Any
else:
    Options = ClassVar
    Factor = Annotated[Any, Scalar]
    """A number of any kind; a complex one is a list of its two parts on the wire."""
    Scale = Factor
    """A number; the function also takes a 0-d buffer, and then sends another message."""
    Ints = Annotated[tuple[int, ...], Integers]
    """Integers, as a shape or axes; one alone is a tuple of it."""
    DType = Annotated[str, object]
    """A dtype as NumPy takes it."""


def travelling(name: str, hint: Any) -> tuple[str, dict[str, Callable[..., Any]]]:
    """Return the text that makes of an argument what can travel, and the functions it calls.

    That is the argument itself where nothing is to be done.
    """
    arms = _arms(hint)
    unless = f"None if {name} is None else " * (type(None) in arms)
    if Factor in arms or int in arms:
        return f"as_number({name})", {"as_number": plain}  # None stays None
    if Ints in arms:
        return f"{unless}as_ints({name!r}, {name})", {"as_ints": ints}
    if DType in arms:
        return f"{unless}as_dtype({name})", {"as_dtype": canonical}
    if bool in arms:
        or_none = f" or {name} is None" * (type(None) in arms)
        plainly = f"{name} is True or {name} is False{or_none}"
        return f"{name} if {plainly} else as_flag({name!r}, {name})", {"as_flag": flag}
    return name, {}


def shown(hint: Any) -> Any:
    """Return the type of a field as whoever calls the function reads it."""
    arms = [arm.__metadata__[0] if get_origin(arm) is Annotated else arm for arm in _arms(hint)]
    return hint if arms == [*_arms(hint)] else reduce(or_, arms)


def _arms(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if is_union(hint) else (hint,)


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
