"""The names of the notebook that lead to the handle of a buffer.

The namespace is the main thread's, which may change it at any moment, so it is only looked at:
nothing of the user's runs here (no property, no `__getattr__`, no `repr`, no comparison), and what
cannot be read this time is left out.
"""

import itertools
import sys
import time
import weakref
from collections.abc import Collection, Iterator
from types import FunctionType, GetSetDescriptorType, MemberDescriptorType, ModuleType
from typing import Any

from accel_lab.compute.message.buffer import Ref

LIMIT_S = 0.01
"""How much of the processor a search may take; what is not found by then is left out."""
NAMES = 5_000
"""How many names are looked at, the newest."""
ITEMS = 1_000
"""How many items of a container are looked at, the first."""
NAMED = 5
"""How many names of a buffer are kept."""

Namespace = dict[str, Any]
Held = dict[tuple[str, int], dict[int, tuple[str, ...]]]
"""Names by device and generation, and by buffer: the device's own where the handle is good there,
however old it is, else the one in which the buffer was lost."""

_NEVER = (ModuleType, type, FunctionType)
_LISTS_OF_TEXT = {"In", "_ih", "_dh", "_oh"}  # the last one is `Out` again


def notebook() -> Namespace | None:
    """Return the namespace of the notebook that this process runs; None outside IPython."""
    interactive = sys.modules.get("IPython")
    shell = interactive.get_ipython() if interactive is not None else None
    space = getattr(shell, "user_ns", None)
    return space if type(space) is dict else None


def names() -> Namespace:
    """Return the namespace of the notebook, or of the script that runs."""
    found = notebook()
    return vars(sys.modules["__main__"]) if found is None else found


def held_in(
    space: Namespace | None, devices: Collection[object], *, limit_s: float = LIMIT_S
) -> Held:
    """Return what the names in `space` hold of these devices."""
    found: Held = {}
    for name, ref in handles(space, limit_s):
        device = ref.device
        if any(device is one for one in devices):
            generation = device.generation if device.holds(ref) else ref.generation
            by_id = found.setdefault((device.name, generation), {})
            names = by_id.get(ref.id, ())
            if len(names) < NAMED:
                by_id[ref.id] = (*names, name)
    return found


def handle_in(space: Namespace | None, device: object, id_: int) -> Ref[Any] | None:
    """Return the handle of a buffer, if a name in `space` holds it."""
    found = handles(space, LIMIT_S)
    return next((ref for _, ref in found if ref.id == id_ and ref.device is device), None)


def handles(space: Namespace | None, limit_s: float) -> Iterator[tuple[str, Ref[Any]]]:
    """Yield every handle with its name: the user's own names first, of those the newest first."""
    if space is None:
        return
    try:
        newest = list(itertools.islice(reversed(space), NAMES))
    except RuntimeError:  # the main thread has just added one
        return
    names = [name for name in newest if type(name) is str]
    until = time.thread_time() + limit_s
    for outputs in (False, True):
        for name in names:
            if time.thread_time() > until:
                return
            if (name.startswith("_") or name == "Out") is not outputs:
                continue
            try:
                yield from below(name, space.get(name), space)
            except Exception:  # noqa: BLE001, S112 - changed meanwhile, or stranger than we think
                continue


def below(name: str, value: Any, space: Namespace) -> Iterator[tuple[str, Ref[Any]]]:
    """Yield the handles at a name of the namespace and directly inside what is there."""
    kind = type(value)
    if issubclass(kind, Ref):
        is_output = name[1:].isdigit() and int(name[1:]) in space.get("Out", ())  # _5 is Out[5]
        if not kind.waits and not is_output:
            yield name, value
    elif issubclass(kind, _NEVER) or name in _LISTS_OF_TEXT:
        return
    elif issubclass(kind, dict):
        for key, item in list(itertools.islice(dict.items(value), ITEMS)):
            if _is_handle(type(item)):
                yield f"{name}[{_written(key)}]", item
    elif issubclass(kind, list | tuple):
        base: type[Any] = list if issubclass(kind, list) else tuple
        for index, item in enumerate(base.__getitem__(value, slice(ITEMS))):
            if _is_handle(type(item)):
                yield f"{name}[{index}]", item
    else:
        yield from _attributes(name, value)


def _is_handle(kind: type) -> bool:
    """Whether something of this type is the handle of a buffer that is there."""
    return issubclass(kind, Ref) and not kind.waits


def _attributes(name: str, value: Any) -> Iterator[tuple[str, Ref[Any]]]:
    for field in _fields(type(value)):
        if field == "__dict__":
            own = object.__getattribute__(value, field)
            for key, item in list(itertools.islice(dict.items(own), ITEMS)):
                if _is_handle(type(item)):
                    yield f"{name}.{key}", item
        else:
            item = object.__getattribute__(value, field)
            if _is_handle(type(item)):
                yield f"{name}.{field}", item


_known_fields: weakref.WeakKeyDictionary[type, tuple[str, ...]] = weakref.WeakKeyDictionary()


def _fields(kind: type) -> tuple[str, ...]:
    """Return the slots of a type, and `__dict__` where its objects have one: what runs no code."""
    fields = _known_fields.get(kind)
    if fields is None:
        stored = (MemberDescriptorType, GetSetDescriptorType)
        first: dict[str, object] = {}
        for base in kind.__mro__:
            for field, descriptor in base.__dict__.items():
                first.setdefault(field, descriptor)
        fields = _known_fields[kind] = tuple(
            field
            for field, descriptor in first.items()
            if type(descriptor) is stored[0]
            or (field == "__dict__" and type(descriptor) is stored[1])
        )
    return fields


def _written(key: Any) -> str:
    """Write a key as one would; `…` where that would run somebody's code."""
    return repr(key) if type(key) in (str, int, float, bool, bytes, type(None)) else "…"
