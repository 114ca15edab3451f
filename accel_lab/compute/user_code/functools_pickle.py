"""Pickle functions in wrappers of `functools`, which pickle by name only, or not at all.

A notebook's names are not those of a context, so there the function goes, and is wrapped anew.
"""

import sys
from collections.abc import Callable
from functools import cached_property, lru_cache, singledispatch
from types import FunctionType
from typing import Any

_CACHED = type(lru_cache(lambda: None))
_dispatching: Any = singledispatch(lambda _: None)


def reduced(value: Any) -> tuple[Any, ...] | None:
    """Return how to make a cached or a dispatching function again; None for anything else.

    What a cache holds stays behind. A function that can be imported pickles by its name. A cached
    property has a lock until Python 3.12.
    """
    if type(value) is cached_property:
        return _property, (value.func, value.attrname)
    if not inside(value) or _is_imported(value):
        return None
    if type(value) is _CACHED:
        return _cached, (value.__wrapped__, value.cache_parameters())
    return _dispatched, (dict(value.registry),)


def inside(value: Any) -> tuple[Any, ...]:
    """Return what a cached or a dispatching function calls; nothing for anything else."""
    if type(value) is _CACHED:
        return (value.__wrapped__,)
    if type(value) is cached_property:
        return (value.func,)
    if type(value) is FunctionType and value.__code__ is _dispatching.__code__:
        registry: Any = vars(value)["registry"]
        return tuple(registry.values())
    return ()


def _is_imported(function: Any) -> bool:
    """Whether the module and the name that a function has lead to it in every process."""
    found: Any = None if function.__module__ == "__main__" else sys.modules.get(function.__module__)
    for name in getattr(function, "__qualname__", "").split("."):  # a wrapped partial has none
        found = getattr(found, name, None)
    return found is function


def _property(function: Callable[[Any], Any], name: str | None) -> Any:
    made = cached_property(function)
    made.attrname = name  # a class that is made of its parts does not tell it
    return made


def _cached(function: Callable[..., Any], parameters: dict[str, Any]) -> Any:
    return lru_cache(**parameters)(function)


def _dispatched(registry: dict[type, Callable[..., Any]]) -> Any:
    wrapper = singledispatch(registry[object])
    for kind, function in registry.items():
        wrapper.register(kind, function)
    return wrapper
