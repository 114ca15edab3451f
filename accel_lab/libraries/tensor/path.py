"""In which order the operands of a contraction are multiplied: opt_einsum finds it, once."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Literal, NamedTuple, TypeAlias

from accel_lab.libraries.tensor.modes import modes_of

Optimize: TypeAlias = Literal["auto", "greedy", "optimal", "dp"]
PLANS = 4096


class Step(NamedTuple):
    """One product of two, or what is left to do with the last one.

    Attributes:
        operands: which of those that are left, the larger number first; they go, and what is made
            becomes the last.
        takes: the names of their axes.
        makes: those of what is made.
    """

    operands: tuple[int, ...]
    takes: tuple[str, ...]
    makes: str


@lru_cache(maxsize=PLANS)
def steps_of(
    text: str, shapes: tuple[tuple[int, ...], ...], optimize: Optimize
) -> tuple[Step, ...]:
    """Return the products of a contraction in their order."""
    modes = modes_of(text, shapes)
    left = list(modes.takes)
    steps: list[Step] = []
    for pair in _pairs(modes.takes, modes.makes, modes.extents, optimize):
        chosen = tuple(sorted(pair, reverse=True))
        takes = tuple(left.pop(at) for at in chosen)
        kept = set(modes.makes).union(*left)
        makes = "".join(dict.fromkeys(name for name in "".join(takes) if name in kept))
        if not left:
            makes = modes.makes
        steps.append(Step(chosen, takes, makes))
        left.append(makes)
    return tuple(steps)


def statistics() -> Mapping[str, int]:
    """Return how many contractions are known, and how often one was or was not."""
    told = steps_of.cache_info()
    return {"plans": told.currsize, "hits": told.hits, "misses": told.misses}


def _pairs(
    takes: tuple[str, ...], makes: str, extents: Mapping[str, int], optimize: Optimize
) -> list[tuple[int, ...]]:
    if len(takes) == 1:
        return [(0,)]
    if len(takes) == len("ab"):
        return [(0, 1)]
    from opt_einsum import paths  # it takes long to import, and few need it

    sizes = {name: max(extent, 1) for name, extent in extents.items()}
    find = {"auto": paths.auto, "greedy": paths.greedy, "optimal": paths.optimal}.get(optimize)
    chosen = find or paths.DynamicProgramming()
    found: list[tuple[int, ...]] = chosen(
        [frozenset(one) for one in takes], frozenset(makes), sizes
    )
    return found
