"""The generators that `random`, `numpy.random` and `torch` draw from when none is named.

A script has one of each. A notebook and its contexts are several processes: while a cell runs the
context draws from the notebook's, and so do the next cell and the notebook after it. Their states
travel as bytes, by the name of the module, where cells may need them.
"""

import pickle
import random
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from numpy.random import mtrand

_PYTHONS: Any = vars(random)["_inst"]
_NUMPYS: Any = vars(mtrand)["_rand"]
_DRAWING: frozenset[int] = frozenset(
    id(one)
    for one in (random, *vars(random).values())
    if one is random or getattr(one, "__self__", None) is _PYTHONS
)


class _Global(NamedTuple):
    state: Callable[[], bytes]
    set: Callable[[bytes], None]


def by_name(value: Any) -> Any:
    """Return how a global generator is pickled: functions as `random.shuffle` are its methods.

    None for all else. A copy would draw again in each cell what the one before it has drawn.
    """
    if value is _PYTHONS:
        return getattr, (random, "_inst")
    if value is _NUMPYS:
        return getattr, (mtrand, "_rand")
    return None


def states(source: str, names: dict[str, Any]) -> dict[str, bytes]:
    """Return those that a cell of the notebook may draw from, or set.

    What takes no time tells: its text, whether a seed has been set, and whether a name of the
    notebook's is `random` or one of its functions.
    """
    seeding = "random" in source or "seed" in source
    seeding = seeding or mtrand.get_bit_generator().seed_seq is None
    found = {}
    if seeding or not _DRAWING.isdisjoint(map(id, names.values())):
        found["random"] = _GLOBALS["random"].state()
    if seeding:
        found["numpy"] = _GLOBALS["numpy"].state()
    if "torch" in sys.modules:
        found["torch"] = _GLOBALS["torch"].state()
    return found


def set_states(states: dict[str, bytes]) -> None:
    """Have this process draw on from there."""
    for name, state in states.items():
        if name != "torch" or "torch" in sys.modules:
            _GLOBALS[name].set(state)


@contextmanager
def drawing_from(states: dict[str, bytes]) -> Iterator[dict[str, bytes]]:
    """Draw from the notebook's meanwhile; what has changed of them is in the yielded then.

    Afterwards this process has its own again: no two devices draw the same by accident.
    """
    changed: dict[str, bytes] = {}
    there = [name for name in states if name != "torch" or "torch" in sys.modules]
    own = {name: _GLOBALS[name].state() for name in there}
    set_states(states)
    try:
        yield changed
    finally:
        changed |= {
            name: state for name in there if (state := _GLOBALS[name].state()) != states[name]
        }
        set_states(own)


def _set_random(state: bytes) -> None:
    random.setstate(pickle.loads(state))  # noqa: S301 - from our own context


def _numpy() -> bytes:
    return pickle.dumps(mtrand.get_state(legacy=False))


def _set_numpy(state: bytes) -> None:
    mtrand.set_state(pickle.loads(state))  # noqa: S301 - from our own context


def _torch() -> bytes:
    state: bytes = sys.modules["torch"].get_rng_state().numpy().tobytes()
    return state


def _set_torch(state: bytes) -> None:
    torch = sys.modules["torch"]
    torch.set_rng_state(torch.frombuffer(bytearray(state), dtype=torch.uint8))


_GLOBALS = {
    "random": _Global(lambda: pickle.dumps(random.getstate()), _set_random),
    "numpy": _Global(_numpy, _set_numpy),
    "torch": _Global(_torch, _set_torch),
}
