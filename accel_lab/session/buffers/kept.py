"""Handles of buffers that are made again when somebody first uses them.

Such a handle has no number, no generation and no state: whatever asks for one of these has it made.
From then on it is a handle as any other, of the class that any other is of.
"""

import threading
import weakref
from collections.abc import Callable
from typing import Any

from accel_lab.actor.reply import Reply
from accel_lab.compute.device import Device
from accel_lab.compute.message.buffer import AccelRef, Ref
from accel_lab.compute.message.handle import Handle
from accel_lab.compute.output import cell_origin

_OF_EACH = tuple(
    slot for slot in (*Reply.__slots__, *Ref.__slots__) if slot not in ("__weakref__", "_value")
)
_OF_ARRAYS = (*_OF_EACH, *AccelRef.__slots__)
_lock = threading.RLock()
"""Held while buffers are made again, by one thread at a time: what they need may be shared."""


class Family:
    """Buffers that may share memory, and so are made together.

    Parameters:
        make: makes them all, and returns them by their numbers; waits until they are made.
    """

    def __init__(self, make: Callable[[], dict[int, Ref[Any]]]) -> None:
        self._make = make
        self._made: dict[int, Ref[Any]] | None = None
        self._waiting: list[tuple[int, weakref.ref[Ref[Any]]]] = []

    def wait(self, id_: int, kept: Ref[Any]) -> None:
        """Have a handle stand for one of them when they are made."""
        with _lock:
            if self._made is None:
                self._waiting.append((id_, weakref.ref(kept)))
            else:
                _become(kept, self._made[id_])

    def bring(self) -> None:
        """Make them, unless they are made; blocks until they are.

        Raises:
            AccelError: they cannot be made; the next who asks tries again.
        """
        with _lock:
            if self._made is None:
                self._made = self._make()
                for id_, weak in self._waiting:
                    if (kept := weak()) is not None:
                        _become(kept, self._made[id_])


class Waiting:
    """What a handle that waits has in place of its answer.

    Attributes:
        node: what a commit has of it.
    """

    def __init__(self, family: Family, node: Any) -> None:
        self.family = family
        self.node = node


class _Kept:
    """What both kinds of handles do."""

    __slots__ = ()
    waits = True

    def __getattr__(self, name: str) -> Any:
        """Make the buffer when something of it is asked for."""
        own: Any = self
        if isinstance(own, AccelRef):
            if name not in (*_OF_ARRAYS, "shape", "dtype"):
                return AccelRef.__getattr__(own, name)
        elif name not in _OF_EACH:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        waiting = object.__getattribute__(self, "_value")
        if type(waiting) is Waiting:
            waiting.family.bring()
        return getattr(self, name)


class KeptRef(_Kept, AccelRef):
    """A buffer of an array that waits to be made again."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<AccelRef {self._what()} of {self.device.name}, waits until it is used>"


class KeptHandle(_Kept, Handle[Any]):
    """A handle of something else that waits to be made again."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<Handle of {self.device.name}, waits until it is used>"


def kept_ref(
    device: Device, family: Family, id_: int, node: Any, shape: list[int] | None, dtype: str | None
) -> Ref[Any]:
    """Return a handle that waits.

    Parameters:
        shape, dtype: of an array, where they are known; no dtype says that it is something else.
    """
    kind: Any = KeptHandle if dtype is None else KeptRef
    kept: Any = kind.__new__(kind)
    object.__setattr__(kept, "_value", Waiting(family, node))
    kept.device = device
    kept.origin = cell_origin.current()
    kept.library = ""
    if dtype is not None:
        if shape is not None:
            kept.learn(tuple(shape), dtype)
        else:
            kept.known = False
    family.wait(id_, kept)
    found: Ref[Any] = kept
    return found


def node_of(ref: Ref[Any]) -> Any:
    """Return what a commit has of a handle that waits; None of one that does not."""
    waits = getattr(type(ref), "waits", False)
    value = object.__getattribute__(ref, "_value") if waits else None
    return value.node if type(value) is Waiting else None


def _become(kept: Ref[Any], made: Ref[Any]) -> None:
    """Have a handle be what was made for it."""
    for slot in _OF_ARRAYS if isinstance(made, AccelRef) else _OF_EACH:
        try:
            value = object.__getattribute__(made, slot)
        except AttributeError:  # as the kind of what is an array
            continue
        object.__setattr__(kept, slot, value)
    object.__setattr__(kept, "_value", object.__getattribute__(made, "_value"))
    object.__setattr__(kept, "__class__", type(made))
