"""Refuse coroutines, by name, where nobody would await them: they would run nothing."""

import inspect
from collections.abc import Callable
from functools import partial
from types import AsyncGeneratorType, CoroutineType
from typing import Any

from accel_lab.errors import InvalidArgument

UNAWAITED = frozenset((CoroutineType, AsyncGeneratorType))


def require_plain(function: Callable[..., Any], what: str, instead: str) -> None:
    """Refuse an `async def`, also in a partial, or as what calls an object.

    Parameters:
        what: names it in the text, as "the handler Loader.load".
        instead: says what to write.

    Raises:
        InvalidArgument: it is one.
    """
    is_plain = inspect.isroutine(function) or isinstance(function, type)
    call = function if is_plain else getattr(function, "__call__", None)  # noqa: B004
    for one in (function, call):
        if inspect.iscoroutinefunction(one) or inspect.isasyncgenfunction(one):
            raise InvalidArgument(f"{what} is async, and nobody awaits it here: {instead}")


def discarded(value: object) -> str:
    """Name a coroutine or an async generator, which is closed unrun; empty for all else."""
    if isinstance(value, CoroutineType):
        value.close()
        return f"the coroutine {value.__qualname__}()"
    if isinstance(value, AsyncGeneratorType):
        return f"the async generator {value.__qualname__}()"
    return ""


def refuse(outcome: object, who: str) -> None:
    """Refuse one that somebody has returned.

    Raises:
        TypeError: always.
    """
    raise TypeError(f"{who} has returned {discarded(outcome)}, which nobody awaits")


def name_of(function: Callable[..., Any]) -> str:
    """Return what people call a function, or what a partial or an object calls."""
    while isinstance(function, partial):
        function = function.func
    return str(getattr(function, "__qualname__", type(function).__name__))
