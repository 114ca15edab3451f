"""Engines of TensorRT on cuda, built as on the host, and executed on the active stream."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import cupy
import numpy as np

from accel_lab.backends import engine_builder
from accel_lab.backends.cuda.tensorrt.opened import Opened
from accel_lab.backends.engine_builder import failure, listening
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.tensorrt.messages import Build, EngineFacts, Execute, OutputShapes

if TYPE_CHECKING:
    from accel_lab.backends.cuda.device.device import CudaDevice

_ALIGNED = 256
"""TensorRT wants the addresses of its memory, inputs and outputs to be multiples of this."""


class CudaPlan:
    """A built engine, and what it is on the card once it is asked for something there.

    Attributes:
        data: its plan.
        facts: what is known of it.
        opened: None before that.
    """

    def __init__(self, data: bytes, facts: EngineFacts, opened: Opened | None = None) -> None:
        self.data, self.facts, self.opened = data, facts, opened

    def nbytes(self) -> int:
        """Return how much it takes on the device: its weights, once they are there."""
        return 0 if self.opened is None else self.opened.nbytes

    def close(self) -> None:
        """Let go of what is on the card."""
        if self.opened is not None:
            self.opened.close()
            self.opened = None


class CudaTensorrt:
    """Enqueues on the device's active stream; builds and loads on a worker's thread."""

    def __init__(self, device: "CudaDevice") -> None:
        self._device = device
        self._engines = 0

    def build(self, m: Build, model: Any) -> CudaPlan:
        """Build an engine; it is loaded when it is executed.

        Raises:
            EngineError: it cannot be built, or TensorRT is missing.
            InvalidArgument: a profile does not fit to the model.
        """
        data, facts = engine_builder.build(m, model.get().tobytes())
        self._engines += 1
        return CudaPlan(data, facts)

    def load(self, plan: Any, cache: Any) -> CudaPlan:
        """Load an engine.

        Raises:
            EngineError: TensorRT does not load it.
        """
        data = plan.get().tobytes()
        opened = Opened(data, b"" if cache is None else cache.get().tobytes())
        self._engines += 1
        return CudaPlan(data, opened.facts(len(data)), opened)

    def is_open(self, plan: CudaPlan) -> bool:
        """Whether an engine is on the card."""
        return plan.opened is not None

    def open(self, plan: CudaPlan) -> None:
        """Load what was built.

        Raises:
            EngineError: TensorRT does not load it.
        """
        plan.opened = Opened(plan.data, b"")

    def bytes_to(self, data: bytes, out: Any) -> None:
        """Copy bytes to the device."""
        out.set(np.frombuffer(data, np.uint8))

    def runtime_cache(self, plan: CudaPlan) -> bytes:
        """Return the kernels that were compiled for it."""
        return bytes(_opened(plan).cache.serialize())

    def inspect(self, plan: CudaPlan) -> str:
        """Return what TensorRT tells of its layers, as JSON."""
        trt = engine_builder.package()
        inspector = _opened(plan).engine.create_engine_inspector()
        text: str = inspector.get_engine_information(trt.LayerInformationFormat.JSON)
        return text

    def output_shapes(self, m: OutputShapes, plan: CudaPlan) -> tuple[tuple[int, ...], ...]:
        """Return the shapes of the outputs.

        Raises:
            EngineError: it was not built for these inputs.
        """
        names = [one.name for one in plan.facts.inputs]
        if len(names) != len(m.shapes):
            raise InvalidArgument(f"OutputShapes: the inputs are {names}, not {list(m.shapes)}")
        given = {name: tuple(shape) for name, shape in zip(names, m.shapes, strict=True)}
        known = _opened(plan).set_shapes(given, m.profile, self._device.active.ptr)
        return tuple(known[one.name] for one in plan.facts.outputs)

    def execute(
        self,
        m: Execute,
        plan: CudaPlan,
        inputs: Sequence[Any],
        outputs: Sequence[Any],
        workspace: Callable[[int], Any],
    ) -> None:
        """Enqueue an engine.

        Raises:
            EngineError: TensorRT does not.
            InvalidArgument: an output is of another shape than the engine makes.
        """
        opened, stream = _opened(plan), self._device.active.ptr
        given = dict(zip([one.name for one in plan.facts.inputs], inputs, strict=True))
        made = dict(zip([one.name for one in plan.facts.outputs], outputs, strict=True))
        known = opened.set_shapes({name: x.shape for name, x in given.items()}, m.profile, stream)
        for name, out in made.items():
            if out.shape != known[name]:
                text = f"the output {name} is of shape {list(known[name])}, not {list(out.shape)}"
                raise InvalidArgument(f"Execute: {text}")
        with listening() as said:
            context = opened.context
            nbytes = max(int(context.update_device_memory_size_for_shapes()), _ALIGNED)
            memory = workspace(nbytes)
            context.set_device_memory(memory.data.ptr, nbytes)
            read = {
                name: x if _is_placed(x) else cupy.array(x, order="C") for name, x in given.items()
            }
            written = {
                name: out if _is_placed(out) else cupy.empty(out.shape, out.dtype)
                for name, out in made.items()
            }
            for name, x in (*read.items(), *written.items()):
                # One without elements has no address, and TensorRT wants one.
                context.set_tensor_address(name, x.data.ptr if x.size else memory.data.ptr)
            if not context.execute_async_v3(stream):
                raise failure("TensorRT does not execute the engine", said)
        for name, out in made.items():
            if written[name] is not out:
                out[...] = written[name]

    def statistics(self) -> Mapping[str, int]:
        """Count engines."""
        return {"engines": self._engines}


def _opened(plan: CudaPlan) -> Opened:
    assert plan.opened is not None, "it is opened first"
    return plan.opened


def _is_placed(x: Any) -> bool:
    """Whether TensorRT takes an array where it lies."""
    return bool(x.flags.c_contiguous and x.data.ptr % _ALIGNED == 0)
