"""Random generators of Python and NumPy: which there are, and how to set one to another's state."""

import random
from typing import Any

import numpy as np

_BITS: frozenset[type] = frozenset(
    (
        np.random.MT19937,
        np.random.PCG64,
        np.random.PCG64DXSM,
        np.random.Philox,
        np.random.SFC64,
    )
)
_KINDS: frozenset[type] = _BITS | {
    random.Random,
    np.random.Generator,
    np.random.RandomState,
    np.random.SeedSequence,
}


def is_generator(value: Any) -> bool:
    """Whether this is one, of these types themselves: what derives from them may hold anything."""
    return type(value) in _KINDS


def set_as(mine: Any, other: Any) -> bool:
    """Have a generator draw next what another of its type would; whether that could be."""
    if isinstance(mine, random.Random):
        mine.setstate(other.getstate())
    elif isinstance(mine, np.random.RandomState):
        state = other.get_state(legacy=False)
        if state["bit_generator"] != mine.get_state(legacy=False)["bit_generator"]:
            return False
        mine.set_state(state)
    elif isinstance(mine, np.random.Generator):
        return _set_bits_as(mine.bit_generator, other.bit_generator)
    elif isinstance(mine, np.random.SeedSequence):
        return _spawn_as(mine, other)
    else:
        return _set_bits_as(mine, other)
    return True


def _set_bits_as(mine: Any, other: Any) -> bool:
    if type(mine) is not type(other) or not _spawn_as(mine.seed_seq, other.seed_seq):
        return False
    mine.state = other.state
    return True


def _spawn_as(mine: Any, other: Any) -> bool:
    """Have a seed spawn next what another would: it can be told how many it has, and not set."""
    if not isinstance(mine, np.random.SeedSequence):
        return True
    if not isinstance(other, np.random.SeedSequence):
        return False
    more = other.n_children_spawned - mine.n_children_spawned
    if more < 0 or mine.state | {"n_children_spawned": other.n_children_spawned} != other.state:
        return False
    if more:
        mine.spawn(more)
    return True
