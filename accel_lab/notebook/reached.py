"""Which of the notebook's names its functions and classes use, wherever they are called."""

from collections.abc import Iterable, Iterator
from types import FunctionType
from typing import Any

from accel_lab.compute.definitions import globals_of
from accel_lab.compute.wrapped import inside

_WRAPPERS = (staticmethod, classmethod)


def reached_names(values: Iterable[Any], names: dict[str, Any]) -> list[str]:
    """Return the names of the notebook's that are used by functions among, or behind, some values.

    Behind a class are its methods, behind an instance its class, behind a function those that it
    calls.
    """
    found: dict[str, None] = {}
    seen: set[int] = set()
    ahead = list(values)
    while ahead:
        value = ahead.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        ahead += inside(value)
        if type(value) is not FunctionType:
            ahead += _functions_of(value)
            continue
        ahead += _enclosed_by(value)
        if value.__globals__ is names:
            used = [name for name in globals_of(value.__code__) if name in names]
            found |= dict.fromkeys(used)
            ahead += (names[name] for name in used)
    return list(found)


def _functions_of(value: Any) -> Iterator[Any]:
    """Yield what may be a function behind a class of the notebook's, or one of its instances."""
    if isinstance(value, _WRAPPERS):
        yield value.__func__
    elif isinstance(value, property):
        yield from (value.fget, value.fset, value.fdel)
    elif type(value).__module__ == "__main__":
        yield type(value)
    elif isinstance(value, type) and value.__module__ == "__main__":
        yield from value.__bases__
        yield from vars(value).values()


def _enclosed_by(function: FunctionType) -> Iterator[Any]:
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # nothing is in it yet
            continue
