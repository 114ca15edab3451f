"""TensorRT-RTX: engines of ONNX models, built without a card and executed on those that it has.

Compute capability 9.0 is none of these. Layers compute in the model's dtypes.
"""

import os
import pickle
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeAlias, cast

import numpy as np

from accel_lab.actor.reply import Reply
from accel_lab.compute.device import Device, device_first
from accel_lab.compute.execution.launch import Launch, LibraryActor, handles
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.handle import Handle
from accel_lab.compute.user_code.call import answer_parts
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.authoring.operand import array_of
from accel_lab.libraries.authoring.shape import Integers, ints
from accel_lab.libraries.tensorrt.engine import Engine
from accel_lab.libraries.tensorrt.errors import EngineError, UnsupportedCard
from accel_lab.libraries.tensorrt.messages import (
    Build,
    BuiltEngine,
    EngineFacts,
    Execute,
    Inspect,
    Load,
    OutputShapes,
    Profile,
    RuntimeCache,
    Serialize,
    Shape,
    Tensor,
)

__all__ = [
    "Build",
    "BuiltEngine",
    "Engine",
    "EngineError",
    "EngineFacts",
    "Execute",
    "Inspect",
    "Load",
    "OutputShapes",
    "RuntimeCache",
    "Serialize",
    "Tensor",
    "UnsupportedCard",
    "build",
    "execute",
    "inspect",
    "load",
    "output_shapes",
    "runtime_cache",
    "serialize",
]

File: TypeAlias = str | os.PathLike[str] | bytes | bytearray | memoryview
Shapes: TypeAlias = Mapping[str, Sequence[Integers]]


def build(
    device: Device,
    model: File | Any,
    *,
    profiles: Shapes | Iterable[Shapes] = (),
    options: Iterable[str] = (),
    capabilities: Iterable[float] = (),
    workspace_bytes: int = 0,
) -> Engine:
    """Build an engine from an ONNX model; does not block.

    Parameters:
        model: a path, the bytes themselves, or an `onnx.ModelProto`. Weights that lie in files of
            their own are read by `onnx.load(path)`, whose result this takes.
        profiles: for each input whose extents vary the least, the usual and the largest shape; one
            mapping, or several to choose from.
        options: "tf32", "strict_nans".
        capabilities: the compute capabilities of the cards that it is for, as 8.9; TensorRT's own
            choice if not given.
        workspace_bytes: the most memory that a layer may work in; TensorRT's own limit if 0.

    Raises:
        InvalidArgument: something does not fit, or is an option that TensorRT-RTX does not have.
        OSError: the file cannot be read.
    """
    device = device_first(device)
    several = (profiles,) if isinstance(profiles, Mapping) else tuple(profiles)
    words = (options,) if isinstance(options, str) else tuple(options)
    message = Build(
        _put(device, model),
        tuple(map(_profile, several)),
        words,
        tuple(float(one) for one in capabilities),
        workspace_bytes,
    )
    return Engine(device, device.ask(message))


def load(device: Device, plan: File, *, cache: File | AccelRef | None = None) -> Engine:
    """Load an engine that was saved; does not block.

    Parameters:
        plan: a path, or the bytes themselves.
        cache: what `runtime_cache` has returned of it, or a file of that. One of another card or
            version is not used.

    Raises:
        InvalidArgument: it is no file.
        OSError: a file cannot be read.
        UnsupportedDtype: the backend executes no engines.
    """
    device = device_first(device)
    kept = cache if cache is None or isinstance(cache, AccelRef) else _put(device, cache)
    return Engine(device, device.ask(Load(_put(device, plan), kept)))


def serialize(engine: Handle[BuiltEngine]) -> AccelRef:
    """Send `Serialize` to the device of an engine; `Engine.plan` is easier to write."""
    return engine.device.ask(Serialize(engine))


def runtime_cache(engine: Handle[BuiltEngine]) -> AccelRef:
    """Send `RuntimeCache` to the device of an engine; `Engine.runtime_cache` does so, too."""
    return engine.device.ask(RuntimeCache(engine))


def inspect(engine: Handle[BuiltEngine]) -> Reply[str]:
    """Send `Inspect` to the device of an engine; `Engine.inspect` does so, too."""
    return engine.device.ask(Inspect(engine))


def output_shapes(
    engine: Handle[BuiltEngine], shapes: Iterable[Integers], *, profile: int = 0
) -> Reply[tuple[Shape, ...]]:
    """Send `OutputShapes` to the device of an engine."""
    wanted = tuple(ints("shapes", one) for one in shapes)
    return engine.device.ask(OutputShapes(engine, wanted, profile))


def execute(
    engine: Handle[BuiltEngine],
    inputs: Iterable[AccelRef],
    outputs: Iterable[AccelRef],
    *,
    profile: int = 0,
) -> Reply[None]:
    """Send `Execute` to the device of an engine; calling an `Engine` is easier to write."""
    return engine.device.ask(Execute(engine, tuple(inputs), tuple(outputs), profile))


class Plan(Protocol):
    """A built engine in a context.

    Attributes:
        data: its plan.
        facts: what is known of it.
    """

    data: bytes
    facts: EngineFacts


class TensorrtLibrary(Protocol):
    """What every backend provides."""

    def build(self, m: Build, model: Any) -> Plan:
        """Build an engine; a worker's thread. Raises EngineError."""

    def bytes_to(self, data: bytes, out: Any) -> None:
        """Write bytes to an array."""


class Executing(Protocol):
    """What a backend provides, too, that executes engines."""

    def load(self, plan: Any, cache: Any) -> Plan:
        """Load an engine; a worker's thread. Raises EngineError."""

    def is_open(self, plan: Plan) -> bool:
        """Whether an engine is on the card."""

    def open(self, plan: Plan) -> None:
        """Load an engine onto the card; a worker's thread. Raises EngineError."""

    def runtime_cache(self, plan: Plan) -> bytes:
        """Return the kernels that were compiled for it."""

    def inspect(self, plan: Plan) -> str:
        """Return what TensorRT tells of its layers."""

    def output_shapes(self, m: OutputShapes, plan: Plan) -> tuple[Shape, ...]:
        """Return the shapes of the outputs. Raises EngineError."""

    def execute(self, m: Execute, plan: Plan, inputs: Any, outputs: Any, workspace: Any) -> None:
        """Enqueue an engine. Raises EngineError."""


class TensorrtActor(LibraryActor):
    """Builds, loads and executes engines in one context."""

    library: ClassVar = "tensorrt"
    lib: TensorrtLibrary

    @handles(Build)
    def build(self, m: Build, launch: Launch) -> None:
        """Build beside the dispatcher."""
        model = launch.read(m.model)
        launch.blocking(lambda _: self.lib.build(m, model), lambda plan: _keep(plan, launch))

    @handles(Load)
    def load(self, m: Load, launch: Launch) -> None:
        """Load beside the dispatcher."""
        plan = launch.read(m.plan)
        cache = None if m.cache is None else launch.read(m.cache)
        launch.blocking(
            lambda _: self._executing.load(plan, cache), lambda made: _keep(made, launch)
        )

    @handles(Serialize)
    def serialize(self, m: Serialize, launch: Launch) -> None:
        """Write the plan to a new buffer."""
        self._answer_bytes(launch, launch.read(m.engine).data)

    @handles(RuntimeCache)
    def runtime_cache(self, m: RuntimeCache, launch: Launch) -> None:
        """Write the compiled kernels to a new buffer."""
        plan, lib = launch.write(m.engine), self._executing
        self._once_open(launch, plan, lambda: self._answer_bytes(launch, lib.runtime_cache(plan)))

    @handles(Inspect)
    def inspect(self, m: Inspect, launch: Launch) -> None:
        """Ask TensorRT."""
        plan, lib = launch.write(m.engine), self._executing
        self._once_open(launch, plan, lambda: _answer(launch, lib.inspect(plan)))

    @handles(OutputShapes)
    def output_shapes(self, m: OutputShapes, launch: Launch) -> None:
        """Ask TensorRT."""
        plan, lib = launch.write(m.engine), self._executing
        self._once_open(launch, plan, lambda: _answer(launch, lib.output_shapes(m, plan)))

    @handles(Execute)
    def execute(self, m: Execute, launch: Launch) -> None:
        """Enqueue an engine."""
        _require_fit(m, array_of(m.engine).facts)
        plan, lib = launch.write(m.engine), self._executing
        inputs = [launch.read(one) for one in m.inputs]
        outputs = [launch.write(one) for one in m.outputs]
        self._once_open(
            launch, plan, lambda: lib.execute(m, plan, inputs, outputs, launch.workspace)
        )

    def _once_open(self, launch: Launch, plan: Plan, then: Callable[[], None]) -> None:
        """Go on at once, or once the engine is on the card: that takes a while the first time."""
        lib = self._executing
        if lib.is_open(plan):
            then()
        else:
            launch.blocking(lambda _: lib.open(plan), lambda _: then())

    @property
    def _executing(self) -> Executing:
        return cast("Executing", self.lib)

    def _answer_bytes(self, launch: Launch, data: bytes) -> None:
        self.lib.bytes_to(data, launch.empty((len(data),)))


def _keep(plan: Plan, launch: Launch) -> None:
    """Keep an engine, and tell what it takes and makes."""
    launch.keep(plan)
    _answer(launch, plan.facts)


def _answer(launch: Launch, value: object) -> None:
    data = pickle.dumps(value)
    launch.finish = lambda: answer_parts(launch.seq, data)


def _require_fit(m: Execute, facts: EngineFacts) -> None:
    """Refuse operands that are not as many as the engine's, or of other dtypes.

    Raises:
        InvalidArgument: they are that.
    """
    for what, given, wanted in (
        ("inputs", m.inputs, facts.inputs),
        ("outputs", m.outputs, facts.outputs),
    ):
        if [one.dtype for one in given] != [one.dtype for one in wanted]:
            told = ", ".join(f"{one.name}: {one}" for one in wanted)
            found = ", ".join(f"{one.dtype}{list(one.shape)}" for one in given)
            raise InvalidArgument(f"Execute: the {what} of the engine are {told}, not {found}")


def _profile(given: Shapes) -> Profile:
    """Return a profile as it can travel; `Build` refuses what is none."""
    if not isinstance(given, Mapping):
        raise InvalidArgument(f"a profile has the shapes of inputs by name, and is not {given!r}")
    made: dict[str, Any] = {}
    for name, shapes in given.items():
        if not isinstance(shapes, tuple | list):
            raise InvalidArgument(f"a profile has three shapes of {name}, and not {shapes!r}")
        made[name] = tuple(ints(name, shape) for shape in shapes)
    return made


def _put(device: Device, file: File | Any) -> AccelRef:
    """Return the bytes of a file on a device.

    Raises:
        InvalidArgument: it is no file.
        OSError: it cannot be read.
    """
    if isinstance(file, str | os.PathLike):
        data = Path(file).read_bytes()
    elif isinstance(file, bytes | bytearray | memoryview):
        data = bytes(file)
    elif hasattr(file, "SerializeToString"):  # a ModelProto
        data = file.SerializeToString()
    else:
        raise InvalidArgument(f"a path, bytes or an onnx.ModelProto is wanted, not {file!r}")
    if not data:
        raise InvalidArgument("the file is empty")
    return device.put(np.frombuffer(data, np.uint8))
