"""What a `%%gpu` cell takes along of the notebook: by itself, if it is small."""

import builtins
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

from accel_lab.compute.buffer import AccelRef
from accel_lab.compute.execution import Ran
from accel_lab.compute.lent import arrays_in, change
from accel_lab.compute.parts import ATOMS, PARTS, Way, is_own
from accel_lab.compute.plain import thawed
from accel_lab.compute.renewal import can_change, is_array, renew
from accel_lab.compute.tensors import is_module
from accel_lab.compute.user_code import pack
from accel_lab.errors import AccelError, InvalidArgument, StaleRef
from accel_lab.notebook.names import bound_names, used_names
from accel_lab.notebook.object_ref import ObjectRef
from accel_lab.notebook.reached import reached_names
from accel_lab.notebook.space import Space

if TYPE_CHECKING:
    from accel_lab.compute.device import Device

CAPTURE_BYTES = 16 << 20
"""A larger capture belongs on the device."""
_HIDDEN = ("exit", "quit")
"""Built-in functions that IPython takes away while a cell runs."""
_ARRAYS = ("__array_interface__", "__cuda_array_interface__", "__dlpack__")


@dataclass
class Captures:
    """Values to bind, modules to import, arrays that are there.

    `nbytes` is what the values take as they are sent. What of them a cell may change in place is
    `returned`: containers, NumPy arrays and instances of the notebook's own classes, each with the
    ways to arrays inside it. `lost` has what is left out, because the cell seems to make it anew.
    """

    given: dict[str, Any] = field(default_factory=dict)
    modules: list[str] = field(default_factory=list)
    kept: dict[str, AccelRef] = field(default_factory=dict)
    tensors: dict[str, str] = field(default_factory=dict)
    returned: dict[str, frozenset[Way]] = field(default_factory=dict)
    lost: dict[str, Any] = field(default_factory=dict)
    nbytes: int = 0

    def add(self, device: "Device", space: Space, name: str, value: Any) -> None:
        """Take a value that the cell uses.

        Raises:
            InvalidArgument: it is on another device, too large, or does not pickle.
            StaleRef: it was lost.
        """
        if isinstance(value, ModuleType):
            self.modules.append(f"{name}={value.__name__}")
        elif isinstance(value, AccelRef) and value.device is not device:
            where = value.device.name
            if value.device.state == "stopped":
                where += " of a system that is closed"
            raise InvalidArgument(f"{name} is on {where}, and the cell runs on {device.name}")
        elif space.bound.get(name) is not value:
            nbytes, has_arrays = _require_small(name, value)
            self.nbytes += nbytes
            self.given[name] = value
            if may_come_back(value):
                self.returned[name] = arrays_in(value) if has_arrays else frozenset()
        elif not isinstance(value, AccelRef):  # through which it may reach any array that is there
            for other, ref in space.bound.items():
                if isinstance(ref, AccelRef) and device.holds(ref) and not ref.failed:
                    self._keep(space, other, ref)
        elif device.holds(value):
            self._keep(space, name, value)  # the namespace has the array; its uses are ordered
        else:
            raise _stale(device, name, value)

    def take_back(self, ran: Ran, chosen: frozenset[str] | None) -> None:
        """Change in place what was given, as the cell has changed its copies; None are all names.

        An array keeps its shape, and what it has if it may not be written or is another size now.
        """
        # A cell that was stopped before it began has an earlier one's outcome.
        mine = {
            name: value for name, value in self.given.items() if chosen is None or name in chosen
        }
        for name in mine.keys() & ran.returned.keys():
            renew(mine[name], thawed(ran.returned[name]))
        for name in mine.keys() & ran.changed.keys():
            change(mine[name], thawed(ran.changed[name]))
        for name in mine.keys() & ran.stays.keys() & ran.residents.keys():
            sys.stderr.write(
                f"accel_lab: {ran.stays[name]} does not come back, so {name} stays "
                f"there, and the name is its handle; {name}.get() is a copy\n"
            )
        for name in mine.keys() & ran.beyond.keys():
            sys.stderr.write(
                f"accel_lab: {ran.beyond[name]} has more parts than are compared ({PARTS:,}), so "
                "what a cell changes in it does not come back; bind that to a name of its own\n"
            )

    def _keep(self, space: Space, name: str, ref: AccelRef) -> None:
        """Take an array that is there under its name, as the kind of tensor that it may be."""
        self.kept[name] = ref
        tensor, kind = space.tensors.get(name, (None, ""))
        if tensor is ref:
            self.tensors[name] = kind

    def why_missing(self, device: "Device", error: AccelError) -> StaleRef | None:
        """Return what is behind a NameError: the cell uses what was lost before it makes it."""
        if not isinstance(error.__cause__, NameError):
            return None
        text = str(error.__cause__)  # its `name` does not travel
        found = (pair for pair in self.lost.items() if f"'{pair[0]}'" in text)
        return next((_stale(device, *pair) for pair in found), None)


def captures_of(source: str, names: dict[str, Any], device: "Device", space: Space) -> Captures:
    """Return what a cell of this source uses of the notebook's namespace.

    Raises:
        InvalidArgument, StaleRef: as `Captures.add`.
    """
    found = Captures()
    used, bound = used_names(source), bound_names(source)
    for name in used:
        if name not in names:
            continue
        value = names[name]
        if _is_there(name, value):
            continue
        if name in bound and is_lost(device, value):
            found.lost[name] = value
            continue
        found.add(device, space, name, value)
    _add_behind(found, used, names, device, space)
    # These are pickled with the functions anyway; as names of their own they come back.
    nbytes = found.nbytes
    for name in reached_names(found.given.values(), names):
        if name not in found.given and may_come_back(names[name]):
            with suppress(InvalidArgument):  # it is not pickled after all
                found.add(device, space, name, names[name])
    found.nbytes = nbytes
    return found


def _add_behind(
    found: Captures, used: list[str], names: dict[str, Any], device: "Device", space: Space
) -> None:
    """Add what functions and methods use that cells have defined and this one may call."""
    objects = (names[name] for name in used if isinstance(names.get(name), ObjectRef))
    classes = (one.type.removeprefix("__main__.") for one in objects)
    for name in sorted(space.behind([*used, *classes]).difference(used)):
        value = names.get(name)
        if name not in names or _is_there(name, value):
            continue
        if is_lost(device, value):
            found.lost[name] = value
        else:
            with suppress(InvalidArgument, StaleRef):  # the function may never come to use it
                found.add(device, space, name, value)


def may_come_back(value: Any) -> bool:
    """Whether what a cell changes of this in place is changed in the notebook."""
    return can_change(value) or is_own(value) or is_module(value)


def is_lost(device: "Device", value: Any) -> bool:
    """Whether this stands for something that its context has taken along."""
    if isinstance(value, ObjectRef):
        return value.device is device and value.generation != device.generation
    return isinstance(value, AccelRef) and value.device is device and not device.holds(value)


def _is_there(name: str, value: Any) -> bool:
    """Whether a context has its own of this, as `open` and `display`."""
    return (hasattr(builtins, name) or name in _HIDDEN) and is_ipythons(value)


def is_ipythons(value: Any) -> bool:
    """Whether this is what IPython has put into the notebook by itself."""
    return str(getattr(value, "__module__", "")).startswith("IPython.")


def _stale(device: "Device", name: str, value: Any) -> StaleRef:
    """Say that what a name stands for is gone, why, and what to do."""
    if isinstance(value, ObjectRef):
        return StaleRef(f"{name!r}, a {value.type}, was lost with its context; run its cell again")
    return StaleRef(
        f"{name!r} was lost with its context ({device.durability(value).why}); run its cell "
        f"again, and gpu.checkpoint({name}) to have it kept"
    )


def _require_small(name: str, value: Any) -> tuple[int, bool]:
    """Refuse a capture that does not pickle, or is large; its buffers cost nothing.

    Returns the bytes that it takes, and whether there are NumPy's arrays inside it.

    Raises:
        InvalidArgument: it is; says what to do.
    """
    if isinstance(value, AccelRef | ObjectRef):
        return 0, False
    nbytes = getattr(value, "nbytes", 0)
    has_arrays = False

    def place(part: Any) -> int | None:
        nonlocal has_arrays
        if type(part) in ATOMS:
            return None
        has_arrays = has_arrays or is_array(part)
        return 0 if isinstance(part, AccelRef) else None

    if not isinstance(nbytes, int) or nbytes <= CAPTURE_BYTES:
        try:
            nbytes = len(pack(value, place))
        except Exception as error:
            text = (
                f"{name}, a {type(value).__name__}, cannot go into the cell: {error}; make it in a "
                "%%gpu cell, or pass what it is made of"
            )
            raise InvalidArgument(text) from error
    if nbytes > CAPTURE_BYTES:
        large = _largest_used(value)
        which = f"{name}, with {large} which it uses," if large else name
        array = value.__globals__[large] if large else value
        large = large or name
        can_be_put = any(hasattr(array, one) for one in _ARRAYS)
        put = f"put it on the device first: {large} = gpu.put({large})"
        raise InvalidArgument(
            f"{which} is {nbytes:,} bytes, more than the {CAPTURE_BYTES:,} that a cell takes "
            f"along; {put if can_be_put else f'make {large} in a %%gpu cell'}"
        )
    return nbytes, has_arrays


def _largest_used(function: Any) -> str:
    """Name the largest global of a function; none of anything else, and where none has a size."""
    if not isinstance(function, FunctionType):
        return ""
    known = function.__globals__
    sizes = {name: getattr(known.get(name), "nbytes", 0) for name in function.__code__.co_names}
    return max(
        (name for name, nbytes in sizes.items() if nbytes), key=sizes.__getitem__, default=""
    )
