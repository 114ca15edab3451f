"""Plain data: numbers, text, and containers of them, so small that a copy costs nothing."""

import pickle
from collections import Counter, OrderedDict, defaultdict, deque
from typing import Any

import numpy as np

ITEMS = 1 << 16
"""How many numbers, and characters, plain data may have."""
_NUMBERS: frozenset[type] = frozenset((type(None), bool, int, float, complex))
_TEXTS: frozenset[type] = frozenset((str, bytes, bytearray))
MAPPINGS: frozenset[type] = frozenset((dict, defaultdict, Counter, OrderedDict))
_SEQUENCES: frozenset[type] = frozenset((list, tuple, deque, set, frozenset))
CONTAINERS: frozenset[type] = MAPPINGS | _SEQUENCES
PLAIN_FACTORIES: frozenset[Any] = _NUMBERS | _TEXTS | CONTAINERS | {None}
"""What makes what is missing in a defaultdict, and calls nothing of the user's."""


def frozen(value: Any) -> bytes | None:
    """Return a copy as bytes, which `thawed` makes the value again; None if it is not plain.

    Plain are these types themselves: what derives from them may hold anything, and do anything
    when it is pickled.
    """
    try:
        return pickle.dumps(value) if _is_plain(value) else None
    except RuntimeError:  # nested too deeply (RecursionError), or a thread changes it meanwhile
        return None


def thawed(data: bytes) -> Any:
    """Return what `frozen` was given."""
    return pickle.loads(data)  # noqa: S301 - from our own context


def _is_plain(value: Any) -> bool:
    left, ahead = ITEMS, [value]
    while ahead and left >= 0:
        one = ahead.pop()
        kind = type(one)
        if kind in _SEQUENCES:
            parts = list(one)
        elif kind is dict or (kind in MAPPINGS and _has_no_more(one)):
            parts = [*one.keys(), *one.values()]
        elif kind in _TEXTS:
            left -= len(one)
            continue
        elif kind in _NUMBERS or isinstance(one, np.generic):
            continue
        else:
            return False
        left -= len(parts)
        ahead += [part for part in parts if type(part) not in _NUMBERS]
    return left >= 0


def _has_no_more(mapping: Any) -> bool:
    """Whether a mapping has no attributes, and calls nothing of the user's."""
    make = getattr(mapping, "default_factory", None)
    known = make is None or (type(make) is type and make in _NUMBERS | _TEXTS | CONTAINERS)
    return known and not getattr(mapping, "__dict__", None)
