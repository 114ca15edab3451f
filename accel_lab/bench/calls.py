"""A call of a library, repeated many times; all of this runs inside the context.

A call is named by the file and the function of a backend's `baseline` that prepare it, as
"blas.axpy", and prepared once.
"""

from collections.abc import Callable
from functools import cache
from importlib import import_module
from time import perf_counter
from typing import Any, NamedTuple


class Call(NamedTuple):
    """One call of a library, ready to be made.

    Attributes:
        label: the library's name for it.
        run: makes it; enqueues where the device has streams.
        wait: blocks until all that was enqueued is done.
    """

    label: str
    run: Callable[[], object]
    wait: Callable[[], object]


def function(backend: str, what: str) -> Callable[..., Any]:
    """Return a function of a backend's baseline."""
    noun, _, name = what.partition(".")
    found: Callable[..., Any] = getattr(
        import_module(f"accel_lab.backends.{backend}.baseline.{noun}"), name
    )
    return found


def label(backend: str, what: str, *arguments: Any) -> str:
    """Return the name of a call; empty where there is none, or its library is not installed."""
    try:
        return prepared(backend, what, *arguments).label
    except ModuleNotFoundError:
        return ""


def many(backend: str, what: str, arguments: tuple[Any, ...], count: int) -> float:
    """Make a call `count` times and wait once; return the seconds."""
    _, run, wait = prepared(backend, what, *arguments)
    begin = perf_counter()
    for _ in range(count):
        run()
    wait()
    return perf_counter() - begin


def each(backend: str, what: str, arguments: tuple[Any, ...], count: int) -> list[float]:
    """Make a call `count` times and wait for each; return the seconds of each."""
    _, run, wait = prepared(backend, what, *arguments)
    samples = []
    for _ in range(count):
        begin = perf_counter()
        run()
        wait()
        samples.append(perf_counter() - begin)
    return samples


@cache
def prepared(backend: str, what: str, *arguments: Any) -> Call:
    """Prepare a call, once."""
    return Call(*function(backend, what)(*arguments))
