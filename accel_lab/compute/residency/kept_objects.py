"""The objects that `%%gpu` cells have left on devices, as their handles in the notebook show.

Asking a context would wait for what it computes, so a view looks at the handles. They know what an
object held when a cell was through with it. Looking runs nothing of the user's.
"""

import itertools
import weakref
from typing import Any, NamedTuple, Protocol

from accel_lab.compute.events.samples import KeptObject
from accel_lab.compute.residency.notebook_names import NAMED, NAMES, Namespace

CELLS = "%%gpu"


class Handle(Protocol):
    """What stands for an object in a device's context."""

    device: Any
    generation: int
    dropped: str

    @property
    def name(self) -> str:
        """What the cells call it."""

    @property
    def type(self) -> str:
        """Its type, as text."""

    @property
    def nbytes(self) -> int:
        """The memory of the device that it is seen to hold."""


class _Known(NamedTuple):
    handle: "weakref.ref[Handle]"
    space: str


_known: dict[int, _Known] = {}
"""By the handle's `id`: it may be equal to what it stands for, and then its hash is that's."""


def note(handle: Handle, space: str) -> None:
    """Take note of a new handle; it takes the place of what had its name in that namespace."""
    forget(handle.device, space, handle.name)
    key = id(handle)
    _known[key] = _Known(weakref.ref(handle, lambda _: _known.pop(key, None)), space)


def forget(device: object, space: str, name: str) -> None:
    """Cells no longer know an object by this name."""
    for key, (weak, where) in list(_known.items()):
        one = weak()
        if one is not None and (one.device, where, one.name) == (device, space, name):
            _known.pop(key, None)


def drop(device: object, lost: dict[str, str]) -> None:
    """Tell the handles of objects that were given up why that was, by the objects' names."""
    for weak, _ in list(_known.values()):
        one = weak()
        if one is not None and one.device is device and one.name in lost:
            one.dropped = lost[one.name]


def kept_objects(device: Any, names: Namespace | None) -> tuple[KeptObject, ...]:
    """Return what takes memory of a device, or did in its `generation`, the largest first.

    Any thread.

    Parameters:
        names: the notebook's.
    """
    here = {
        id(one): (one, space)
        for weak, space in list(_known.values())
        if (one := weak()) is not None and one.device is device and one.nbytes
    }
    kept_by: dict[int, list[str]] = {}
    for name, value in _items(names) if here else ():
        if id(value) in here and len(kept_by.setdefault(id(value), [])) < NAMED:
            kept_by[id(value)].append(name)
    found = [
        KeptObject(
            one.name,
            space,
            one.type,
            one.nbytes,
            one.generation,
            (*kept_by.get(key, ()), f"{CELLS} {one.name}"),
        )
        for key, (one, space) in here.items()
    ]
    return tuple(sorted(found, key=lambda one: -one.nbytes))


def _items(names: Namespace | None) -> list[tuple[str, Any]]:
    """Return the user's own names, the newest first."""
    if names is None:
        return []
    try:
        newest = list(itertools.islice(reversed(names.items()), NAMES))
    except RuntimeError:  # the main thread has just added one
        return []
    return [(n, v) for n, v in newest if type(n) is str and not n.startswith("_")]
