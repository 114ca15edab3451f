"""The results of messages that have several: `Operation[SvdParts]` with a NamedTuple of refs.

All results of a message come at once and fail together. Their ids follow each other, so the first
stands for all of them on the wire. A result that an option asks for has its id in any case.
"""

import types
import typing
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import msgspec

from accel_lab.compute.message.handle import is_ref, kind_of


class Results(NamedTuple):
    """What messages of one type answer with.

    Attributes:
        kind: the NamedTuple.
        asked_by: for each result the field that asks for it; empty for one that is always made.
        of: for each result what it is a handle of; None for a buffer.
    """

    kind: Any
    asked_by: tuple[str, ...]
    of: tuple[type[Any] | None, ...]

    def made(self, message: Any) -> tuple[int, ...]:
        """Return the positions of the results that a message makes."""
        return tuple([at for at, by in enumerate(self.asked_by) if not by or getattr(message, by)])


def is_tuple_of_refs(hint: Any) -> bool:
    """Whether this is a NamedTuple of buffers and handles, some of which may be None."""
    if not (isinstance(hint, type) and issubclass(hint, tuple) and hasattr(hint, "_fields")):
        return False
    hints = typing.get_type_hints(hint)
    return bool(hints) and all(_ref_in(one) is not None for one in hints.values())


def _ref_in(hint: Any) -> Any:
    """Return the buffer or handle that this is, or may be; None if it is something else."""
    arms = typing.get_args(hint) if is_union(hint) else (hint,)
    found = [arm for arm in arms if is_ref(arm)]
    return found[0] if len(found) == len(set(arms) - {type(None)}) == 1 else None


def is_union(hint: Any) -> bool:
    """Whether this is one of several types."""
    return typing.get_origin(hint) in (typing.Union, types.UnionType)


@cache
def results_of(kind: Any) -> Results | None:
    """Return what messages of this type answer with; None if that is not several buffers.

    Raises:
        TypeError: a result may be None, and `asked_by` does not name the field that asks for it.
    """
    found = tuple_of(kind)
    if found is None:
        return None
    asked_by, hints = kind.asked_by, typing.get_type_hints(found)
    for name, hint in hints.items():
        by = asked_by.get(name, "")
        if is_union(hint) != bool(by) or (by and by not in kind.__struct_fields__):
            text = (
                f"{kind.__name__}: its result {name} is {'always made' if not by else 'asked for'}"
                f" by asked_by, and {found.__name__} declares it as {hint}; a result that may be "
                "None is declared `AccelRef | None`, and asked_by names a field for it"
            )
            raise TypeError(text)
    if unknown := asked_by.keys() - hints.keys():
        raise TypeError(f"{kind.__name__}: asked_by names {sorted(unknown)}, and it has no such")
    asking = tuple(asked_by.get(name, "") for name in hints)
    return Results(found, asking, tuple(kind_of(_ref_in(hint)) for hint in hints.values()))


def tuple_of(kind: Any) -> Any:
    """Return the NamedTuple that a message type answers with, which may still be in the making."""
    return next((arg for arg in _answers(kind) if is_tuple_of_refs(arg)), None)


def _answers(kind: Any) -> Iterator[Any]:
    for base in getattr(kind, "__orig_bases__", ()):
        yield from typing.get_args(base)


def ids_of(message: msgspec.Struct, result: int) -> tuple[int, ...]:
    """Return the ids of the buffers that a message makes.

    Parameters:
        result: the first of them, as on the wire: 0 for none, negative where the notebook does not
            know the shape.
    """
    if not result:
        return ()
    first, results = abs(result), results_of(type(message))
    if results is None:
        return (first,)
    return tuple([first + at for at in results.made(message)])
