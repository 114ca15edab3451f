"""Which objects are part of an answer itself, and which of a library's objects in it.

A DataFrame or a sparse matrix needs the arrays inside it as arrays; those in lists, dicts, tuples
and instances of the user's own classes may stay where they are.
"""

import sys
from collections import deque
from functools import cache
from types import SimpleNamespace
from typing import Any

from accel_lab.compute.cells.mutable_parts import ATOMS, attributes
from accel_lab.compute.cells.user_modules import is_installed

_PACKAGE = __name__.partition(".")[0]
_COLLECTIONS = (list, tuple, deque, set, frozenset)


def users_objects(value: Any) -> dict[int, Any]:
    """Return what containers and instances of the user's classes lead to, by its identity."""
    found: dict[int, Any] = {}
    ahead = [value]
    while ahead:
        one = ahead.pop()
        if type(one) in ATOMS or id(one) in found:
            continue
        found[id(one)] = one
        if isinstance(one, dict):
            ahead += dict.values(one)
        elif isinstance(one, _COLLECTIONS):
            ahead += one
        if _is_users(one):
            ahead += attributes(one).values()
    return found


def _is_users(one: Any) -> bool:
    """Whether its attributes are the user's own, as those of a bare namespace are."""
    if isinstance(one, type):
        return False
    return isinstance(one, SimpleNamespace) or not _is_librarys(type(one).__module__)


@cache
def _is_librarys(module: str) -> bool:
    """Whether a module is neither the user's nor one of ours."""
    if module == "__main__" or module.partition(".")[0] == _PACKAGE:
        return False
    file = getattr(sys.modules.get(module), "__file__", None)
    return not file or is_installed(file)
