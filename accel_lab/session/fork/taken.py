"""What a fork takes along of a namespace: the handles in it, and what holds such handles."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from accel_lab.compute.cells.plain_data import thawed
from accel_lab.compute.device import Device
from accel_lab.compute.message.buffer import FREED, Ref
from accel_lab.compute.residency.notebook_names import below
from accel_lab.errors import AccelError
from accel_lab.libraries.jit.kernel import Kernel
from accel_lab.libraries.jit.module_globals import Globals
from accel_lab.libraries.rng.generator import Generator
from accel_lab.notebook.object_ref import ObjectRef
from accel_lab.session.plain.encoder import OWN, fields_of
from accel_lab.system import System

Key = tuple[str, int]
"""A device's name, and the number of a buffer there."""
_SEQUENCES = (list, tuple, set, frozenset)
_PLAIN = frozenset((type(None), bool, int, float, complex, str, bytes, bytearray, range, slice))


class Taken:
    """Finds what of a system names stand for.

    Attributes:
        names: those that stand for something of the system, or hold such a thing.
        refs: the handles of what is on its devices.
        absent: why others have nothing, as those of messages that failed.
        lost: why a name cannot be taken along.
    """

    def __init__(self, system: System, names: Mapping[str, Any]) -> None:
        self.names: dict[str, Any] = {}
        self.refs: dict[Key, Ref[Any]] = {}
        self.absent: dict[Key, str] = {}
        self.lost: dict[str, str] = {}
        self._system = system
        for name, value in names.items():
            try:
                if self._look(name, value):
                    self.names[name] = value
            except NotTakenError as error:
                self.lost[name] = str(error)

    def named(self, key: Key) -> str:
        """Return what the notebook calls a buffer."""
        return next(
            (name for name, value in self.names.items() if key in _keys_in(value)),
            f"a buffer of {key[0]}",
        )

    def _look(self, name: str, value: Any) -> bool:
        """Note the handles that a value is or holds; return whether it has to do with the system.

        Raises:
            NotTakenError: it holds some that cannot be taken along with it.
        """
        found = False
        for one in inside(value):
            if type(one) in _PLAIN:
                continue
            if isinstance(one, Ref):
                found = self._take(one) or found
            elif isinstance(one, ObjectRef):
                if one.device in self._system.devices:
                    _require_copy(one)
                    found = True
            elif isinstance(one, Generator | Kernel | Globals):
                found = one.device in self._system.devices or found
            elif one is self._system or isinstance(one, Device):
                found = found or one is self._system or one in self._system.devices
            elif parts(one) is None and (held := self._held_by(name, one)):
                kind = type(one)
                raise NotTakenError(
                    f"a {kind.__qualname__} of {kind.__module__} holds {held}, and a fork takes "
                    "plain containers along: bind a name to the handle itself"
                )
        return found

    def _take(self, ref: Ref[Any]) -> bool:
        if ref.device not in self._system.devices:
            return False
        try:
            key = ref.device.name, ref.id  # which makes one that waits
        except AccelError as error:
            raise NotTakenError(f"it cannot be made again: {error}") from error
        if ref.failed:
            self.absent[key] = f"its message failed: {ref.error}"
        elif ref.generation == FREED or not ref.is_valid:
            self.absent[key] = f"it is {ref.standing}"
        else:
            self.refs[key] = ref
        return True

    def _held_by(self, name: str, value: Any) -> str:
        """Return which handle of the system an object has; empty of none."""
        for where, ref in below(name, value, {}):
            if ref.device in self._system.devices:
                return f"the buffer {where}"
        return ""


class NotTakenError(Exception):
    """Something cannot be taken along; the text says why."""


def inside(value: Any) -> Iterator[Any]:
    """Yield a value, and all that is in it."""
    ahead, seen = [value], set[int]()
    while ahead:
        one = ahead.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        ahead += parts(one) or ()


def parts(value: Any) -> list[Any] | None:
    """Return what is in a container, or in a record of a library's; None of all else."""
    kind = type(value)
    found: list[Any] | None = None
    if kind in _SEQUENCES:
        found = list(value)
    elif kind is dict:
        found = [*value.keys(), *value.values()]
    elif kind is np.ndarray:
        found = value.ravel().tolist() if value.dtype.hasobject else []
    elif isinstance(value, Kernel):
        found = [value.globals, value.ref]
    elif isinstance(value, Globals):
        found = list(value.values())
    elif isinstance(value, Ref | Device | System | ObjectRef | Generator):
        found = []
    elif kind.__module__.startswith(OWN) and (fields := fields_of(kind)) is not None:
        found = [getattr(value, field) for field in fields]
    return found


def plain_copy(value: ObjectRef) -> Any:
    """Return the plain copy of an object of `%%gpu` cells."""
    assert value.copy is not None
    return thawed(value.copy)


def _require_copy(value: ObjectRef) -> None:
    if value.copy is None:
        raise NotTakenError(
            f"a {value.type} of %%gpu cells is in the context alone; .get() copies one that pickles"
        )


def _keys_in(value: Any) -> set[Key]:
    return {(one.device.name, one.id) for one in inside(value) if isinstance(one, Ref)}
