"""Values of one system as they are in its fork: the same, with the fork's handles in them."""

import weakref
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from accel_lab.compute.device import Device
from accel_lab.compute.message.buffer import Ref
from accel_lab.libraries.jit.kernel import Kernel
from accel_lab.libraries.jit.module_globals import Globals
from accel_lab.libraries.rng.generator import Generator
from accel_lab.notebook.object_ref import ObjectRef
from accel_lab.session.fork.taken import Key, parts, plain_copy
from accel_lab.session.plain.encoder import fields_of
from accel_lab.system import System


class Rebinding:
    """Makes what stands in a fork for a value.

    Parameters:
        system, fork: the two; only the fork's handles are held.
        pairs: their devices.
        refs: the fork's handles, by what they stand for.
        answers: of functions that returned no array.
        absent: why there is none for others.
    """

    def __init__(
        self,
        system: System,
        fork: System,
        pairs: list[tuple[Device, Device]],
        refs: Mapping[Key, Ref[Any]],
        answers: Mapping[Key, Any],
        absent: Mapping[Key, str],
    ) -> None:
        self._system = weakref.ref(system)
        self._fork = weakref.ref(fork)
        self._devices = {device.name: weakref.ref(device) for device, _ in pairs}
        self._others = {device.name: other for device, other in pairs}
        self._refs = refs
        self._answers = answers
        self._absent = absent
        self._known: dict[int, tuple[Callable[[], Any], Any]] = {}

    def made(self, value: Any) -> Any:
        """Return what stands for a value, and make what is not made yet.

        Raises:
            KeyError: a handle in it has none.
        """
        return self._made(value, {})

    def found(self, value: Any) -> Any:
        """Return what stands for something that was taken along.

        Raises:
            KeyError: it was not, or holds something that was not; says why.
        """
        if isinstance(value, Ref):
            if not self._is_ours(value.device) and value.device not in self._others.values():
                raise KeyError(f"{value!r} is of another system")
        elif not isinstance(value, Device | System | ObjectRef) and self._before(value) is None:
            is_whole = not isinstance(value, Generator | Kernel | Globals)
            if not is_whole or parts(value) is None:
                raise KeyError(f"no name led to this {type(value).__name__} when it was forked")
        return self.made(value)

    def _before(self, value: Any) -> Any:
        """Return what was made for this very object; None of one that is unknown."""
        weak, made = self._known.get(id(value), (None, None))
        return made if weak is not None and weak() is value else None

    def _made(self, value: Any, ahead: dict[int, Any]) -> Any:
        if id(value) in ahead:
            return ahead[id(value)]
        if isinstance(value, Ref):
            return self._handle(value)
        if isinstance(value, Device | System):
            return self._system_part(value)
        if isinstance(value, ObjectRef):
            return plain_copy(value) if self._is_ours(value.device) else value
        if isinstance(value, Generator | Kernel | Globals):
            return self._of_a_library(value, ahead)
        return self._container(value, ahead)

    def _system_part(self, value: Device | System) -> Any:
        if isinstance(value, System):
            return self._fork() if value is self._system() else value
        return self._others[value.name] if self._is_ours(value) else value

    def _of_a_library(self, value: Any, ahead: dict[int, Any]) -> Any:
        """Return what has a state on the host: one for each, whatever holds it."""
        made = self._before(value)
        if made is None and self._is_ours(value.device):
            made = self._stateful(value, ahead)
            self._known[id(value)] = weakref.ref(value), made
        return value if made is None else made

    def _stateful(self, value: Any, ahead: dict[int, Any]) -> Any:
        device = self._others[value.device.name]
        if isinstance(value, Generator):
            generator = Generator(device, 0)
            generator.state = value.state
            return generator
        if isinstance(value, Globals):
            declared = value.declared
            made = Globals(device, lambda: declared)
            made.update({name: self._made(ref, ahead) for name, ref in value.items()})
            return made
        variables, ref = self._made(value.globals, ahead), self._handle(value.ref)
        return Kernel(
            device, value.source, value.name, value.options, value.headers, variables, ref=ref
        )

    def _container(self, value: Any, ahead: dict[int, Any]) -> Any:
        kind = type(value)
        if kind is list:
            filled: list[Any] = []
            ahead[id(value)] = filled
            filled += [self._made(one, ahead) for one in value]
            return filled
        if kind is dict:
            table: dict[Any, Any] = {}
            ahead[id(value)] = table
            for key, one in value.items():
                table[self._made(key, ahead)] = self._made(one, ahead)
            return table
        if kind is np.ndarray:
            made = value.copy()
            if value.dtype.hasobject:
                made.flat = [self._made(one, ahead) for one in value.ravel().tolist()]
        elif kind in (tuple, set, frozenset):
            made = kind(self._made(one, ahead) for one in value)
        elif parts(value) is not None:
            made = self._record(value, ahead)
        else:
            return value
        ahead[id(value)] = made
        return made

    def _record(self, value: Any, ahead: dict[int, Any]) -> Any:
        """Return a record of a library's, with the fork's handles."""
        kind = type(value)
        fields = fields_of(kind) or ()
        values = [self._made(getattr(value, field), ahead) for field in fields]
        if issubclass(kind, tuple):
            return tuple.__new__(kind, values)
        made = object.__new__(kind)
        for field, one in zip(fields, values, strict=True):
            object.__setattr__(made, field, one)
        return made

    def _is_ours(self, device: Device) -> bool:
        known = self._devices.get(device.name)
        return known is not None and known() is device

    def _handle(self, ref: Ref[Any]) -> Any:
        if not self._is_ours(ref.device):
            return ref  # the fork's already, or another system's
        key = ref.device.name, ref.id
        if key in self._refs:
            return self._refs[key]
        if key in self._answers:
            return self._answers[key]
        raise KeyError(f"{ref!r}: {self._absent.get(key, 'no name led to it')}")
