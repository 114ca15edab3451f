"""What refers to objects, as the garbage collector reports it."""

import gc
from typing import Any

FEW = 16
"""For so many the collector looks at each object as often as it refers to something."""


def referrers(objects: list[Any]) -> list[Any]:
    """Return what refers to any of these, but this list; looks at every object that there is.

    From Python 3.13 on `gc.get_referrers` finds the tuple of its own arguments, too.
    """
    if len(objects) > FEW:
        return _of_many(objects)
    mark = object()
    found = gc.get_referrers(mark, *objects) if objects else []

    def is_own(one: Any) -> bool:
        return one is objects or (type(one) is tuple and bool(one) and one[0] is mark)

    return [one for one in found if not is_own(one)]


def _of_many(objects: list[Any]) -> list[Any]:
    """Look at what each object refers to, once: the collector would compare that with each."""
    wanted = set(map(id, objects))
    alone, referents = wanted.isdisjoint, gc.get_referents
    return [
        one for one in gc.get_objects() if one is not objects and not alone(map(id, referents(one)))
    ]
