"""What the host computes for a backend that lacks it, where the user says `fallback="host"`.

A backend says by `FALLS_BACK` that it can be helped so: its `mirrors` are arrays of NumPy's in the
place of its own.

Runs in both.
"""

from collections.abc import Mapping
from typing import Any

from accel_lab.backends.host.support import SUPPORT
from accel_lab.compute.message.support import Served
from accel_lab.compute.message.validation import require_word
from accel_lab.errors import InvalidArgument

FALLBACKS = ("host",)
APART = frozenset({"collective", "event", "graph", "jit", "memory", "module", "tensorrt"})
"""Libraries whose messages are about the device itself: its queue, its memory and its kernels."""


def helped() -> dict[str, frozenset[str]]:
    """Return the table of what the host computes for another backend."""
    return {row: has for row, has in SUPPORT.items() if row.partition(".")[0] not in APART}


def accepted(fallback: Any, asked: str, backend: str, module: Any) -> str:
    """Return what helps a backend out, empty for nothing.

    Where `auto` has chosen a backend that cannot be helped so, nothing does.

    Parameters:
        asked: the backend that the user has named.

    Raises:
        InvalidArgument: there is no such help, or not for the backend that was named.
    """
    if fallback is None:
        return ""
    require_word(fallback, "fallback", FALLBACKS)
    if falls_back(module):
        return str(fallback)
    if asked == backend:
        why = "it is the host" if backend == "host" else "its table tells what it has"
        raise InvalidArgument(
            f'{backend} takes no fallback: {why}; leave it out, or take System("wgpu", '
            f"fallback={fallback!r})"
        )
    return ""


def falls_back(module: Any) -> bool:
    """Whether a backend's package says that the host may help out."""
    return bool(getattr(module, "FALLS_BACK", False))


def served(module: Any, fallback: str) -> Mapping[str, frozenset[str]]:
    """Return the table of what a device computes, by itself or with the host's help."""
    own: Mapping[str, frozenset[str]] = module.SUPPORT
    if not falls_back(module):
        return own
    limit, more = getattr(module, "require_possible", None), helped()
    if not fallback:
        return Served(own, more, limit)
    both = {row: own.get(row, frozenset()) | has for row, has in more.items()}
    return Served({**own, **both}, {}, limit)
