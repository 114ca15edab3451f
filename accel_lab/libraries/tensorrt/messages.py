"""The messages of `tensorrt`: build an engine, load one, save it, look into it, execute it."""

from typing import Any, ClassVar, NamedTuple, TypeAlias

from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.handle import Handle
from accel_lab.compute.message.operation import Operation, PartialSpec
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.authoring.operand import kind, named
from accel_lab.libraries.tensorrt.errors import EVERYWHERE

Shape: TypeAlias = tuple[int, ...]
Profile: TypeAlias = dict[str, tuple[Shape, Shape, Shape]]
"""The least, the usual and the largest shape of each input whose extents vary."""

FLAGS = {"tf32": "TF32", "strict_nans": "STRICT_NANS"}
"""The options, and the builder's flags that they are."""
REFUSED = {
    "refit": "TensorRT-RTX 1.7 fails to build an engine whose weights can be changed; build again",
    "strip_plan": "it needs refit, with which TensorRT-RTX 1.7 fails",
    "version_compatible": "it needs TensorRT's lean runtime, which TensorRT-RTX lacks",
    "sparsity": "TensorRT-RTX takes the flag and builds the same engine",
    "dla": "TensorRT-RTX takes the device and builds the same engine for the card",
    "tactic_sources": "TensorRT-RTX takes them and builds the same engine",
    "timing_cache": "TensorRT-RTX times nothing while it builds; load takes a runtime cache",
}
"""What TensorRT has and an engine here has not, and why."""
CAPABILITIES = (7.5, 8.0, 8.6, 8.9, 12.0, 12.1)
"""The compute capabilities for which TensorRT-RTX 1.7 builds."""
DTYPES = {
    "FLOAT": "float32",
    "HALF": "float16",
    "BF16": "bfloat16",
    "FP8": "float8_e4m3fn",
    "INT8": "int8",
    "UINT8": "uint8",
    "INT32": "int32",
    "INT64": "int64",
    "BOOL": "bool",
}
"""What TensorRT calls the dtypes that an engine's inputs and outputs may have."""


class BuiltEngine:
    """An engine of TensorRT in a context."""


class Tensor(NamedTuple):
    """An input or an output of an engine.

    Attributes:
        shape: its extents; None for one that varies.
    """

    name: str
    dtype: str
    shape: tuple[int | None, ...]

    def __str__(self) -> str:
        return f"{self.dtype}[{', '.join('?' if n is None else str(n) for n in self.shape)}]"


class EngineFacts(NamedTuple):
    """What is known of an engine.

    Attributes:
        inputs: what it takes, in the order of the model.
        outputs: what it makes.
        profiles: the shapes for which it was built; none where no extent varies.
        layers: how many layers TensorRT has made of the model's nodes.
        nbytes: the size of its plan, which `save` writes.
        warnings: what TensorRT warned of.
        version: that of TensorRT-RTX.
    """

    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    profiles: tuple[Profile, ...]
    layers: int
    nbytes: int
    warnings: tuple[str, ...]
    version: str


def _with_engine(message: Any) -> tuple[AccelRef, ...]:
    """Return the buffers that are written, and the engine: it does one thing at a time."""
    return (*message.changes(), message.engine)


class Build(Operation[Handle[BuiltEngine]], frozen=True, array_like=True, eq=False, tag=674):
    """Build an engine from `model`, the bytes of an ONNX file; this needs no card.

    Each of `profiles` has the shapes of all inputs whose extents vary. Layers compute in the
    dtypes of the model, int8 and float8 where it has QuantizeLinear and DequantizeLinear; float64
    becomes float32. float32 is not rounded to TF32 without the option "tf32". `capabilities` are
    those of the cards for which it is built, TensorRT's own choice if there are none.
    """

    library: ClassVar[str] = "tensorrt"
    dtypes: ClassVar = frozenset({"uint8"})
    model: AccelRef
    profiles: tuple[Profile, ...] = ()
    options: tuple[str, ...] = ()
    capabilities: tuple[float, ...] = ()
    workspace_bytes: int = 0

    def infer(self) -> None:
        """Refuse what is no file, and what TensorRT-RTX does not have."""
        _require_file(self, self.model)
        for option in self.options:
            if option in REFUSED:
                raise InvalidArgument(f"Build: there is no option {option!r}: {REFUSED[option]}")
            if option not in FLAGS:
                words = ", ".join(FLAGS)
                raise InvalidArgument(f"Build: an option is {option!r}; it may be {words}")
        for capability in self.capabilities:
            if capability not in CAPABILITIES:
                raise InvalidArgument(
                    f"Build: TensorRT-RTX has no engines for compute capability {capability}, "
                    f"but for {', '.join(map(str, CAPABILITIES))}; {EVERYWHERE}"
                )
        if type(self.workspace_bytes) is not int or self.workspace_bytes < 0:
            text = f"Build: workspace_bytes is {self.workspace_bytes!r}; it is an integer from 0"
            raise InvalidArgument(text)
        for at, profile in enumerate(self.profiles):
            for name, shapes in profile.items():
                _require_ordered(f"profile {at}, input {name}", shapes)


class Load(Operation[Handle[BuiltEngine]], frozen=True, array_like=True, eq=False, tag=675):
    """Load an engine from `plan`, the bytes that `Serialize` returned.

    `cache` is what `RuntimeCache` returned of such an engine: kernels that TensorRT then need not
    compile again.
    """

    library: ClassVar[str] = "tensorrt"
    dtypes: ClassVar = frozenset({"uint8"})
    lacking: ClassVar[str] = EVERYWHERE
    plan: AccelRef
    cache: AccelRef | None = None

    def infer(self) -> None:
        """Refuse what is no file."""
        _require_file(self, self.plan)
        if self.cache is not None:
            _require_file(self, self.cache)


class Serialize(Operation[AccelRef], frozen=True, array_like=True, eq=False, tag=676):
    """Return an engine's plan as a vector of uint8: the bytes of a file, which `Load` takes."""

    library: ClassVar[str] = "tensorrt"
    dtypes: ClassVar = frozenset({""})
    engine: Handle[BuiltEngine]

    def infer(self) -> PartialSpec:
        """Return a vector of bytes."""
        return PartialSpec((None,), "uint8")


class RuntimeCache(Operation[AccelRef], frozen=True, array_like=True, eq=False, tag=677):
    """Return the kernels that TensorRT has compiled for an engine, as a vector of uint8."""

    library: ClassVar[str] = "tensorrt"
    dtypes: ClassVar = frozenset({""})
    lacking: ClassVar[str] = EVERYWHERE
    engine: Handle[BuiltEngine]

    def infer(self) -> PartialSpec:
        """Return a vector of bytes."""
        return PartialSpec((None,), "uint8")

    overwrites = _with_engine


class Inspect(Operation[str], frozen=True, array_like=True, eq=False, tag=678):
    """Return what TensorRT tells of an engine's layers on this card, as JSON."""

    library: ClassVar[str] = "tensorrt"
    dtypes: ClassVar = frozenset({""})
    lacking: ClassVar[str] = EVERYWHERE
    engine: Handle[BuiltEngine]

    overwrites = _with_engine


class OutputShapes(
    Operation[tuple[tuple[int, ...], ...]], frozen=True, array_like=True, eq=False, tag=679
):
    """Return the shapes of an engine's outputs, of the shapes of its inputs in their order."""

    library: ClassVar[str] = "tensorrt"
    dtypes: ClassVar = frozenset({""})
    lacking: ClassVar[str] = EVERYWHERE
    engine: Handle[BuiltEngine]
    shapes: tuple[Shape, ...]
    profile: int = 0

    overwrites = _with_engine


class Execute(Operation[None], frozen=True, array_like=True, eq=False, tag=680):
    """Execute an engine on its inputs, in their order, and write its outputs, in theirs.

    Which profile it is executed with matters where it was built for several.
    """

    library: ClassVar[str] = "tensorrt"
    dtypes: ClassVar = frozenset({"", *DTYPES.values()})
    lacking: ClassVar[str] = EVERYWHERE
    written: ClassVar[str] = "outputs"
    uncaptured: ClassVar[str] = "TensorRT compiles kernels while it executes"
    engine: Handle[BuiltEngine]
    inputs: tuple[AccelRef, ...]
    outputs: tuple[AccelRef, ...]
    profile: int = 0

    def infer(self) -> None:
        """Refuse outputs that are written twice, or read."""
        seen = {ref.id for ref in self.inputs}
        for ref in self.outputs:
            if ref.id in seen:
                text = f"{kind(self)}: an output is another output or an input as well"
                raise InvalidArgument(text)
            seen.add(ref.id)

    overwrites = _with_engine


def _require_file(message: Operation[Any], ref: AccelRef) -> None:
    """Refuse a buffer that is not the bytes of a file.

    Raises:
        InvalidArgument: it is none.
    """
    if ref.dtype != "uint8" or ref.ndim != 1 or not ref.size:
        text = f"a file is a vector of uint8, and {named(message, ref)}"
        raise InvalidArgument(f"{kind(message)}: {text}")


def _require_ordered(what: str, shapes: object) -> None:
    """Refuse shapes that are not three, one within the next.

    Raises:
        InvalidArgument: they are not.
    """
    rows = [tuple(one) for one in shapes] if isinstance(shapes, tuple | list) else []
    good = len(rows) == 3 and len({*map(len, rows)}) == 1  # noqa: PLR2004 - least, usual, largest
    if not good or not all(0 <= a <= b <= c for a, b, c in zip(*rows, strict=True)):
        raise InvalidArgument(
            f"Build: {what} has the shapes {shapes!r}; give the least, the usual and the largest, "
            "of the same number of axes, each within the next"
        )
