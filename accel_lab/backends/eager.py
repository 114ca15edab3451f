"""Expressions as people write them, of fresh results, over any array library's functions."""

from collections.abc import Callable
from typing import Any, Protocol

LEAST = 0.25


class Functions(Protocol):
    """What the expressions need beside operators and methods."""

    exp: Callable[[Any], Any]
    maximum: Callable[[Any, float], Any]
    where: Callable[[Any, Any, float], Any]
    rfft: Callable[[Any], Any]


def loop(f: Functions, a: Any, b: Any) -> Any:
    """Seventeen operations of many kinds: a product, functions, sums, a view and a transform."""
    c = a @ b
    d = c * 0.01 + a
    e = f.exp(-abs(d))
    g = e / e.sum(0)
    part = g[::2, 1:]
    chosen = f.where(part > LEAST, part, 0.0)
    mean = f.maximum(chosen, 0.1).mean()
    return abs(f.rfft(g)).max() + mean


def chain(f: Functions, a: Any, b: Any) -> Any:
    """Eight functions of each element."""
    c = f.exp(-abs(a * 0.5 + b))
    return f.where(c > LEAST, c * 2.0, 0.0)


def add(_: Functions, a: Any, b: Any) -> Any:
    """Return one sum."""
    return a + b


EXPRESSIONS: dict[str, Callable[[Functions, Any, Any], Any]] = {
    "add": add,
    "chain": chain,
    "loop": loop,
}


HUNDRED = "100 small operations, as a graph"
ROUNDS = 20


class Named(Protocol):
    """What a round needs beside operators and methods."""

    tanh: Callable[[Any], Any]
    rfft: Callable[[Any], Any]


def hundred(f: Any, x: Any, w: Any) -> Any:
    """Do a hundred operations of five kinds: a product, a sum, a function, a total, a transform."""
    named: Named = f
    spectrum = None
    for _ in range(ROUNDS):
        y = named.tanh(x @ w + x)
        spectrum = named.rfft(y.sum(0))
        x = y
    return x, spectrum
