"""What refers to objects, as the garbage collector reports it."""

import gc
from typing import Any


def referrers(objects: list[Any]) -> list[Any]:
    """Return what refers to any of these, but this list; looks at every object that there is.

    From Python 3.13 on `gc.get_referrers` finds the tuple of its own arguments, too.
    """
    mark = object()
    found = gc.get_referrers(mark, *objects) if objects else []

    def is_own(one: Any) -> bool:
        return one is objects or (type(one) is tuple and bool(one) and one[0] is mark)

    return [one for one in found if not is_own(one)]
