"""Pickle the notebook's classes that have slots: cloudpickle makes them without slots.

What was made of such a copy would have a `__dict__`, and could not be read where the class has
none.
"""

from types import MemberDescriptorType
from typing import Any, NamedTuple

_MAKE = "_make_skeleton_class"
_KEPT = (str, tuple, list, dict)
"""What `__slots__` may be; anything else, as an iterator, need not have its items any more."""


def with_slots(kind: type, made: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return how to make a class with its slots, given how cloudpickle makes it without."""
    known = vars(kind)
    if "__slots__" not in known or getattr(made[0], "__name__", "") != _MAKE:
        return made
    if NamedTuple in known.get("__orig_bases__", ()):
        return made  # which makes its own
    make, (meta, name, bases, given, *number), (state, slots), *more = made
    slot_names = {key for key, one in known.items() if _is_slot(kind, one)}
    declared = known["__slots__"]
    if not isinstance(declared, _KEPT):
        declared = tuple(sorted(slot_names | known.keys() & {"__dict__", "__weakref__"}))
    names = {declared} if isinstance(declared, str) else declared
    later = {key: known[key] for key in names if key in known and _is_own(key, known[key])}
    state = {
        key: one
        for key, one in (state | later).items()
        if key != "__slots__" and key not in slot_names
    }
    given = {**given, "__slots__": declared}
    return make, (meta, name, bases, given, *number), (state, slots), *more


def _is_slot(kind: type, value: Any) -> bool:
    return type(value) is MemberDescriptorType and value.__objclass__ is kind


def _is_own(name: str, value: Any) -> bool:
    """Whether a class has been given this itself since, by the name of a slot."""
    return name not in ("__dict__", "__weakref__") and type(value) is not MemberDescriptorType
