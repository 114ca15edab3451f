"""An engine as the notebook holds it: what it takes and makes, and a call."""

import os
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from accel_lab.actor.reply import Reply
from accel_lab.compute.device import Device
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.handle import Handle
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.array import library as array
from accel_lab.libraries.tensorrt.messages import (
    BuiltEngine,
    EngineFacts,
    Execute,
    Inspect,
    OutputShapes,
    Profile,
    RuntimeCache,
    Serialize,
    Shape,
    Tensor,
)
from accel_lab.uncopied import Address


class Engine(Address):
    """An engine of TensorRT on one device: `y = engine(x)`.

    It can be named before it is built. When its context has been lost it is built or loaded again
    by itself.

    Attributes:
        device: where it is.
        handle: what the device keeps.
    """

    _instead = "save its plan, and load that where you need it"

    def __init__(self, device: Device, handle: Handle[BuiltEngine]) -> None:
        self.device, self.handle = device, handle
        self._shapes: dict[tuple[int, tuple[Shape, ...]], tuple[Shape, ...]] = {}

    def facts(self, timeout_s: float | None = None) -> EngineFacts:
        """Return what it takes and makes; blocks until it is built.

        Raises:
            EngineError: it cannot be built, or loaded.
            TimeoutError: not within `timeout_s` seconds.
        """
        facts: EngineFacts = self.handle.result(timeout_s).said
        return facts

    @property
    def inputs(self) -> dict[str, Tensor]:
        """What it takes, by name; blocks until it is built."""
        return {one.name: one for one in self.facts().inputs}

    @property
    def outputs(self) -> dict[str, Tensor]:
        """What it makes, by name, in the order in which a call returns it; blocks likewise."""
        return {one.name: one for one in self.facts().outputs}

    def __call__(self, *given: Any, profile: int = 0, **named: Any) -> Any:
        """Return the output, or a tuple of all outputs, as handles.

        Inputs are handles or NumPy arrays, in order or by name. Blocks until it is built, and,
        where extents vary, until TensorRT has told the shapes that it makes of new ones.

        Raises:
            InvalidArgument: an input is missing, unknown, or of another dtype or shape.
            UnsupportedDtype: the backend executes no engines.
        """
        names = [one.name for one in self.facts().inputs]
        if len(given) > len(names):
            raise InvalidArgument(f"the engine takes {len(names)} inputs, not {len(given)}")
        inputs = dict(zip(names, given, strict=False))
        if twice := inputs.keys() & named.keys():
            raise InvalidArgument(f"the engine's input {min(twice)} is given twice")
        made = tuple(self.run({**inputs, **named}, profile=profile).values())
        return made[0] if len(made) == 1 else made

    def run(self, inputs: Mapping[str, Any], *, profile: int = 0) -> dict[str, AccelRef]:
        """Return the outputs by name, as handles, of the inputs by name.

        Raises:
            InvalidArgument: an input is missing, unknown, or of another dtype or shape.
            UnsupportedDtype: the backend executes no engines.
        """
        facts = self.facts()
        taken = _taken(facts, inputs, profile)
        shapes = tuple(tuple(x.shape) for x in taken)
        made = self._made(facts, shapes, profile)
        refs = tuple(x if isinstance(x, AccelRef) else self.device.put(x) for x in taken)
        pairs = zip(facts.outputs, made, strict=True)
        outputs = tuple(array.zeros(self.device, shape, one.dtype) for one, shape in pairs)
        self.device.ask(Execute(self.handle, refs, outputs, profile))
        names = [one.name for one in facts.outputs]
        return dict(zip(names, outputs, strict=True))

    def plan(self) -> AccelRef:
        """Return its plan, the bytes of a file, as a vector of uint8."""
        return self.device.ask(Serialize(self.handle))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write its plan to a file, which `tensorrt.load` takes; blocks.

        Raises:
            EngineError: it cannot be built.
            OSError: the file cannot be written.
        """
        Path(path).write_bytes(self.plan().get().tobytes())

    def runtime_cache(self) -> AccelRef:
        """Return the kernels that were compiled for it on this card, for `tensorrt.load`.

        Raises:
            UnsupportedDtype: the backend executes no engines.
        """
        return self.device.ask(RuntimeCache(self.handle))

    def inspect(self) -> Reply[str]:
        """Return what TensorRT tells of its layers on this card, as JSON.

        Raises:
            UnsupportedDtype: the backend executes no engines.
        """
        return self.device.ask(Inspect(self.handle))

    def result(self, timeout_s: float | None = None) -> "Engine":
        """Block until it is built, and return it.

        Raises:
            EngineError: it cannot be built, or loaded.
            TimeoutError: not within `timeout_s` seconds.
        """
        self.handle.result(timeout_s)
        return self

    def __await__(self) -> Generator[Any, None, "Engine"]:
        """Wait in the running loop until it is built."""
        yield from self.handle.__await__()
        return self

    def free(self) -> None:
        """Give back what it takes, behind the calls before; does not block."""
        self.handle.free()

    def _made(
        self, facts: EngineFacts, shapes: tuple[Shape, ...], profile: int
    ) -> tuple[Shape, ...]:
        """Return the shapes of the outputs, which TensorRT is asked for once where they vary."""
        fixed = tuple(tuple(n for n in one.shape if n is not None) for one in facts.outputs)
        if all(len(a) == len(b.shape) for a, b in zip(fixed, facts.outputs, strict=True)):
            return fixed
        key = profile, shapes
        if key not in self._shapes:
            told = self.device.ask(OutputShapes(self.handle, shapes, profile)).result()
            self._shapes[key] = tuple(tuple(one) for one in told)
        return self._shapes[key]

    def __repr__(self) -> str:
        if not self.handle.done:
            return f"<tensorrt.Engine of {self.device.name}: being built>"
        if self.handle.failed:
            return f"<tensorrt.Engine of {self.device.name}: failed, {self.handle.error!r}>"
        facts = self.facts()
        taken, made = (", ".join(f"{one.name}: {one}" for one in some) for some in facts[:2])
        return f"<tensorrt.Engine of {self.device.name}: ({taken}) -> ({made})>"


def _taken(facts: EngineFacts, inputs: Mapping[str, Any], profile: int) -> list[Any]:
    """Return the inputs in their order, handles or arrays.

    Raises:
        InvalidArgument: they do not fit.
    """
    count = max(len(facts.profiles), 1)
    if type(profile) is not int or not 0 <= profile < count:
        raise InvalidArgument(f"profile is {profile!r}; the engine has those from 0 to {count - 1}")
    known = [one.name for one in facts.inputs]
    if unknown := inputs.keys() - {*known}:
        raise InvalidArgument(f"the engine has no input {min(unknown)!r}, but {', '.join(known)}")
    shapes = facts.profiles[profile] if facts.profiles else {}
    taken = []
    for one in facts.inputs:
        if one.name not in inputs:
            raise InvalidArgument(f"the engine's input {one.name}, {one}, is missing")
        value = inputs[one.name]
        x = value if isinstance(value, AccelRef) else np.asarray(value)
        _require_fit(one, x, shapes)
        taken.append(x)
    return taken


def _require_fit(one: Tensor, x: Any, shapes: Profile) -> None:
    """Refuse an input of another dtype, or of a shape for which the engine was not built.

    Raises:
        InvalidArgument: it is that.
    """
    found = f"{x.dtype}{list(x.shape)}"
    wanted = one.shape
    fits = str(x.dtype) == one.dtype and x.ndim == len(wanted)
    if not fits or any(n not in (None, k) for n, k in zip(wanted, x.shape, strict=True)):
        raise InvalidArgument(f"the engine's input {one.name} is {one}, not {found}")
    if one.name in shapes:
        least, _, most = shapes[one.name]
        if any(not a <= k <= b for a, k, b in zip(least, x.shape, most, strict=True)):
            raise InvalidArgument(
                f"the engine's input {one.name} was built for {list(least)} to {list(most)}, "
                f"not {found}"
            )
