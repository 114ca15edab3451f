"""What a `%%gpu` cell uses of the notebook and is sent with it, if it is small."""

import builtins
import re
import sys
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from accel_lab.compute.arrays.torch_interop import is_module
from accel_lab.compute.cells.captured_objects import arrays_in, change
from accel_lab.compute.cells.cell_execution import Ran
from accel_lab.compute.cells.mutable_parts import ATOMS, PARTS, Way, has_cells, is_own
from accel_lab.compute.cells.plain_data import thawed
from accel_lab.compute.cells.write_back import can_change, is_array, renew
from accel_lab.compute.device import Device
from accel_lab.compute.message.buffer import AccelRef, Ref
from accel_lab.compute.residency.typed import typed
from accel_lab.compute.user_code.call import pack
from accel_lab.compute.user_code.notebook_globals import NotebookGlobals
from accel_lab.display.sizes import compared
from accel_lab.errors import AccelError, InvalidArgument, StaleRef
from accel_lab.notebook.names import bound_names, used_names
from accel_lab.notebook.object_ref import ObjectRef
from accel_lab.notebook.space import Space
from accel_lab.system import System

CAPTURE_BYTES = 16 << 20
"""A larger capture belongs on the device."""
_HIDDEN = ("exit", "quit")
"""Built-in functions that IPython takes away while a cell runs."""
_NAME = re.compile(r"'(\w+)'")
_ARRAYS = ("__array_interface__", "__cuda_array_interface__", "__dlpack__")


@dataclass
class Captures:
    """Values to bind, modules to import, arrays that are there, names to forget.

    Functions of the notebook, found in `home`, look up their globals among the names of its cells;
    so what they use is taken along under its name.

    `nbytes` is what the values take as they are sent. What of them a cell may change in place is
    `returned`: containers, NumPy arrays and instances of the notebook's own classes, each with the
    ways to arrays inside it. `lost` has what is left out, because the cell seems to make it anew.
    """

    home: NotebookGlobals
    given: dict[str, Any] = field(default_factory=dict)
    modules: list[str] = field(default_factory=list)
    kept: dict[str, Ref[Any]] = field(default_factory=dict)
    tensors: dict[str, str] = field(default_factory=dict)
    returned: dict[str, frozenset[Way]] = field(default_factory=dict)
    gone: list[str] = field(default_factory=list)
    lost: dict[str, Any] = field(default_factory=dict)
    nbytes: int = 0

    def add(self, device: Device, space: Space, name: str, value: Any) -> None:
        """Take a value that the cell uses.

        Raises:
            InvalidArgument: it is on another device, too large, or does not pickle.
            StaleRef: it was lost.
        """
        if isinstance(value, ObjectRef) and value.dropped:
            raise value.stale()
        if isinstance(value, ModuleType):
            self.modules.append(f"{name}={value.__name__}")
        elif isinstance(value, Ref) and value.device is not device:
            raise _elsewhere(device, name, value)
        elif not space.knows(name, value):
            with self.home.entered():
                nbytes, has_arrays = _require_small(
                    device, name, value, self.home.reached.get(name)
                )
            self.nbytes += nbytes
            self.given[name] = value
            if may_come_back(value):
                self.returned[name] = arrays_in(value) if has_arrays else frozenset()
        elif not isinstance(value, Ref):
            self._keep_all(device, space)
        elif device.holds(value):
            self._keep(space, name, value)  # the namespace has the array; its uses are ordered
        else:
            raise _stale(device, name, value)

    def add_behind(
        self, names: Iterable[str], device: Device, space: Space, *, strict: bool = True
    ) -> None:
        """Take what is used by functions behind these names and behind what was taken before.

        Parameters:
            strict: refuse what cannot be taken though a function of the notebook's uses it. One
                that a cell has defined may never come to do so.

        Raises:
            InvalidArgument, StaleRef: as `add`, if that is `strict`.
        """
        done, functions = set(names), self.home.reached
        while True:
            known = {name: self.home.names.get(name) for name in done | functions.keys()}
            objects = [value for value in known.values() if isinstance(value, ObjectRef)]
            classes = [one.type.removeprefix("__main__.") for one in objects]
            ahead = (functions.keys() | space.behind([*known, *classes])) - done
            if not ahead:
                return
            done |= ahead
            for name in sorted(ahead & self.home.names.keys()):
                value = self.home.names[name]
                if _is_there(name, value):
                    continue
                if is_lost(device, value):
                    self.lost[name] = value
                    continue
                passed_over = () if strict and name in functions else (InvalidArgument, StaleRef)
                with suppress(*passed_over):
                    self.add(device, space, name, value)

    def add_bound(
        self, bound: Iterable[str], used: Iterable[str], device: Device, space: Space
    ) -> None:
        """Take what the notebook has under names that the cell binds before it uses them itself.

        Functions that it calls may use them before, and it may delete them. What cannot be taken is
        left out, and so is the `_` of a loop, which the notebook has its last output under.
        """
        for name in sorted(self.home.names.keys() & bound):
            value = self.home.names[name]
            if name.strip("_") and self.is_past(space, name) and not _is_there(name, value):
                self._try_to_add(device, space, name, value)
        done = {*bound, *used, *self.given, *self.kept}
        self.add_behind(done, device, space, strict=False)

    def add_anew(self, device: Device, space: Space) -> set[str]:
        """Take what has another value by now under names that cells have got before.

        What they have left may use it, as functions in lists and generators do. What IPython has
        shown since is not taken: it would go along with each cell.

        Returns the names of what is not taken.
        """
        anew = {
            name
            for name, before in space.given.items()
            if self.home.names.get(name, before) is not before
        }
        for name in sorted(anew.difference(self.given)):
            if name.strip("_"):
                self._try_to_add(device, space, name, self.home.names[name])
        return anew.difference(self.given)

    def _try_to_add(self, device: Device, space: Space, name: str, value: Any) -> None:
        with suppress(InvalidArgument, StaleRef):
            if not is_lost(device, value):
                self.add(device, space, name, value)

    def is_past(self, space: Space, name: str) -> bool:
        """Whether the notebook has something else by now than cells know, and this one gets it not.

        What it binds to such a name would not be seen to be new, were it the same again.
        """
        return name not in self.given and not space.knows(name, self.home.names[name])

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

    def own(self, ran: Ran, chosen: frozenset[str] | None) -> dict[str, Any]:
        """Return what is the notebook's own of what a cell has bound, by the new names."""
        return {
            name: self.given[first]
            for name, first in ran.same.items()
            if name in ran.residents and first in self.returned
            if chosen is None or {name, first} <= chosen
        }

    def add_call(
        self, function: ObjectRef, args: Iterable[Any], device: Device, space: Space
    ) -> None:
        """Take what an object uses that is called, and functions of the notebook among its args.

        Raises:
            InvalidArgument, StaleRef: as `add`.
        """
        self._keep_all(device, space)
        deep = [one for one in args if type(one) not in ATOMS and not _is_whole(one)]
        with self.home.entered(), suppress(Exception):  # the call itself says what is wrong
            pack(deep, lambda one: 0 if isinstance(one, Ref) else None)
        self.add_behind([function.name], device, space)
        past = self.add_anew(device, space)
        self.gone = [name for name in space.given if name not in self.home.names or name in past]

    def _keep_all(self, device: Device, space: Space) -> None:
        """Take the arrays that are there: any may be reached through an object."""
        for name, ref in space.bound.items():
            if isinstance(ref, Ref) and device.holds(ref) and not ref.failed:
                self._keep(space, name, ref)

    def _keep(self, space: Space, name: str, ref: Ref[Any]) -> None:
        """Take an array that is there under its name, as the kind of tensor that it may be."""
        self.kept[name] = ref
        tensor, kind = space.tensors.get(name, (None, ""))
        if tensor is ref:
            self.tensors[name] = kind

    def why_missing(self, device: Device, error: AccelError) -> StaleRef | None:
        """Return what is behind a NameError: the cell uses what was lost before it makes it."""
        name = _missing(error)
        return _stale(device, name, self.lost[name]) if name in self.lost else None

    def unseen(self, error: AccelError) -> str:
        """Return what is behind a NameError: a name of the notebook's that the cell does not have.

        Empty if it is something else.
        """
        name = _missing(error)
        if name in {*self.given, *self.kept, *self.lost} or name not in self.home.names:
            return ""
        return "" if _is_there(name, self.home.names[name]) else name


def captures_of(source: str, home: NotebookGlobals, device: Device, space: Space) -> Captures:
    """Return what a cell of this source uses of the notebook's namespace.

    Raises:
        InvalidArgument, StaleRef: as `Captures.add`.
    """
    found = Captures(home)
    used, bound = used_names(source), bound_names(source)
    for name in used:
        value = home.names.get(name)
        if name in bound and is_lost(device, value):
            found.lost[name] = value
        elif name in home.names and not _is_there(name, value):
            found.add(device, space, name, value)
    found.add_behind(used, device, space)
    past = found.add_anew(device, space)
    found.add_bound(bound, used, device, space)
    past |= {name for name in home.names.keys() & bound if found.is_past(space, name)}
    found.gone = [
        name
        for name in space.given.keys() | (bound & space.bound.keys())
        if name not in home.names or name in past
    ]
    return found


def _elsewhere(device: Device, name: str, value: Ref[Any]) -> InvalidArgument:
    """Say that a handle is of another device than the cell's, and what brings it there."""
    where = f"{name} is on {value.device.name}"
    if value.device.state == "stopped":
        where += " of a system that is closed"
    text = f"{where}, and the cell runs on {device.name}"
    if isinstance(value, AccelRef) and value.device.state != "stopped":
        text += f": {typed(device, f'{name} = <gpu>.put({name})')} copies it there"
    return InvalidArgument(text)


def may_come_back(value: Any) -> bool:
    """Whether what a cell changes of this in place is changed in the notebook."""
    if type(value) is tuple:
        return any(map(may_come_back, value))
    return can_change(value) or is_own(value) or is_module(value) or has_cells(value)


def _is_whole(value: Any) -> bool:
    """Whether there are no functions inside."""
    return isinstance(value, Ref | ObjectRef) or is_array(value)


def is_lost(device: Device, value: Any) -> bool:
    """Whether this stands for something that its context has taken along."""
    if isinstance(value, ObjectRef):
        return value.device is device and (
            value.generation != device.generation or bool(value.dropped)
        )
    return isinstance(value, Ref) and value.device is device and not device.holds(value)


def _is_there(name: str, value: Any) -> bool:
    """Whether a context has its own of this, as `open` and `display`."""
    return (hasattr(builtins, name) or name in _HIDDEN) and is_ipythons(value)


def is_ipythons(value: Any) -> bool:
    """Whether this is what IPython has put into the notebook by itself."""
    return str(getattr(value, "__module__", "")).startswith("IPython.")


def _missing(error: AccelError) -> str:
    """Return the name that a NameError is about, which a cell has raised; empty if it is none."""
    if not isinstance(error.__cause__, NameError):
        return ""
    found = _NAME.search(str(error.__cause__))  # its `name` does not travel
    return found[1] if found is not None else ""


def _stale(device: Device, name: str, value: Any) -> StaleRef:
    """Say that what a name stands for is gone, why, and what to do."""
    if isinstance(value, ObjectRef):
        return value.stale()
    keep = typed(device, f"<gpu>.checkpoint({name})")
    return StaleRef(
        f"{name!r} was lost with its context ({device.durability(value).why}); run its cell "
        f"again, and {keep} to have it kept"
    )


def _require_small(device: Device, name: str, value: Any, function: str | None) -> tuple[int, bool]:
    """Refuse a capture that does not pickle, or is large; its buffers cost nothing.

    Parameters:
        function: what uses it, if not the cell itself.

    Returns the bytes that it takes, and whether there are NumPy's arrays inside it.

    Raises:
        InvalidArgument: it is; says what to do.
    """
    if isinstance(value, Ref | ObjectRef):
        return 0, False
    which = f"{name}, which {function} uses," if function else name
    if isinstance(value, Device | System):
        raise InvalidArgument(
            f"{which.removesuffix(',')}, a {type(value).__name__}, stays in the notebook: use it "
            "in a cell without %%gpu. A %%gpu cell runs on the device, where its arrays are"
        )
    nbytes = getattr(value, "nbytes", 0)
    has_arrays = False

    def place(part: Any) -> int | None:
        nonlocal has_arrays
        if type(part) in ATOMS:
            return None
        has_arrays = has_arrays or is_array(part)
        return 0 if isinstance(part, Ref) else None

    if not isinstance(nbytes, int) or nbytes <= CAPTURE_BYTES:
        try:
            nbytes = len(pack(value, place))
        except Exception as error:
            text = (
                f"{which.removesuffix(',')}, a {type(value).__name__}, cannot go into the cell: "
                f"{error}; make it in a %%gpu cell, or pass what it is made of"
            )
            raise InvalidArgument(text) from error
    if nbytes > CAPTURE_BYTES:
        can_be_put = any(hasattr(value, one) for one in _ARRAYS)
        put = f"put it on the device first: {typed(device, f'{name} = <gpu>.put({name})')}"
        write = compared(nbytes, CAPTURE_BYTES)
        raise InvalidArgument(
            f"{which} is {write(nbytes)}, more than the {write(CAPTURE_BYTES)} that a cell takes "
            f"along; {put if can_be_put else f'make {name} in a %%gpu cell'}"
        )
    return nbytes, has_arrays
