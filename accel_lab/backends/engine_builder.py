"""TensorRT's builder and its parser of ONNX models, which need no card.

Runs in a context's process.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from accel_lab.errors import InvalidArgument
from accel_lab.libraries.tensorrt.errors import EngineError
from accel_lab.libraries.tensorrt.messages import (
    DTYPES,
    FLAGS,
    Build,
    EngineFacts,
    Profile,
    Tensor,
)

_HEARD = threading.local()


@cache
def package() -> Any:
    """Return TensorRT-RTX.

    Raises:
        EngineError: it is not installed.
    """
    try:
        import tensorrt_rtx
    except (ImportError, OSError) as error:
        text = f'engines need TensorRT-RTX: pip install "accel-lab[tensorrt]" ({error})'
        raise EngineError(text, library="tensorrt", name="NOT_INSTALLED") from error
    return tensorrt_rtx


@cache
def logger() -> Any:
    """Return what TensorRT tells its troubles to; it has one in a process."""
    trt = package()

    class Listener(trt.ILogger):  # type: ignore[misc, name-defined]
        def log(self, severity: Any, message: str) -> None:
            said = getattr(_HEARD, "said", None)
            if said is not None and severity <= trt.ILogger.WARNING:
                said.append((severity < trt.ILogger.WARNING, message.strip()))

    return Listener()


@contextmanager
def listening() -> Iterator[list[tuple[bool, str]]]:
    """Collect what TensorRT says to this thread: whether it is an error, and the text."""
    said: list[tuple[bool, str]] = []
    _HEARD.said = said
    try:
        yield said
    finally:
        _HEARD.said = None


def failure(what: str, said: list[tuple[bool, str]]) -> EngineError:
    """Return the error of what TensorRT does not do, with what it says."""
    texts = [text for is_error, text in said if is_error and "catchCudaError" not in text]
    return EngineError(f"{what}: {'; '.join(texts) or 'it says nothing'}", library="tensorrt")


def build(m: Build, model: bytes) -> tuple[bytes, EngineFacts]:
    """Return the plan of an engine, and what is known of it; any thread.

    Raises:
        EngineError: the model cannot be parsed, or the engine not built.
        InvalidArgument: a profile does not fit to the model.
    """
    trt = package()
    with listening() as said:
        builder = trt.Builder(logger())
        typed = trt.NetworkDefinitionCreationFlag.STRONGLY_TYPED
        network = builder.create_network(1 << int(typed))
        parser = trt.OnnxParser(network, logger())
        if not parser.parse(model):
            raise _unparsed(parser, said)
        inputs = tuple(_tensor(network.get_input(i)) for i in range(network.num_inputs))
        outputs = tuple(_tensor(network.get_output(i)) for i in range(network.num_outputs))
        for i in range(network.num_inputs):
            if network.get_input(i).is_shape_tensor:
                text = f"the model's input {inputs[i].name} is a shape: make it a constant"
                raise EngineError(text, library="tensorrt", name="SHAPE_INPUT")
        _require_profiles(m.profiles, inputs)
        plan = builder.build_serialized_network(network, _config(trt, builder, m))
        if plan is None:
            raise failure("TensorRT builds no engine", said)
        warnings = tuple(text for is_error, text in said if not is_error)
        data = bytes(plan)
    facts = EngineFacts(
        inputs, outputs, m.profiles, network.num_layers, len(data), warnings, trt.__version__
    )
    return data, facts


def named(dtype: Any, name: str) -> str:
    """Return the name of TensorRT's dtype of an input or an output.

    Raises:
        EngineError: it is none of ours.
    """
    found = DTYPES.get(dtype.name)
    if found is None:
        known = ", ".join(DTYPES.values())
        text = f"{name} is {dtype.name}; inputs and outputs may be {known}"
        raise EngineError(text, library="tensorrt", name="DTYPE")
    return found


def extents(shape: Any) -> tuple[int | None, ...]:
    """Return a shape with None for what varies."""
    return tuple(None if n < 0 else int(n) for n in shape)


def _tensor(one: Any) -> Tensor:
    return Tensor(one.name, named(one.dtype, one.name), extents(one.shape))


def _config(trt: Any, builder: Any, m: Build) -> Any:
    config = builder.create_builder_config()
    config.clear_flag(trt.BuilderFlag.TF32)
    for option in m.options:
        config.set_flag(getattr(trt.BuilderFlag, FLAGS[option]))
    if m.workspace_bytes:
        config.set_memory_pool_limit(trt.MemoryPoolType.WORKSPACE, m.workspace_bytes)
    config.num_compute_capabilities = len(m.capabilities)
    for at, capability in enumerate(m.capabilities):
        name = f"SM{round(10 * capability)}"
        config.set_compute_capability(getattr(trt.ComputeCapability, name), at)
    for profile in m.profiles:
        made = builder.create_optimization_profile()
        for name, shapes in profile.items():
            made.set_shape(name, *map(tuple, shapes))
        config.add_optimization_profile(made)
    return config


def _unparsed(parser: Any, said: list[tuple[bool, str]]) -> EngineError:
    """Return the error of a model that TensorRT does not take, with its first node."""
    found = [parser.get_error(i) for i in range(parser.num_errors)]
    if not found:
        return failure("TensorRT does not take the model", said)
    texts = []
    for one in found:
        at = f"node {one.node_name() or one.node()} ({one.node_operator()}): "
        why = one.desc() if one.desc() != "false" else ""
        code = one.code().name
        texts.append(f"{at if one.node_operator() else ''}{code}{why and f', {why}'}")
    first = found[0]
    return EngineError(
        f"TensorRT does not take the model: {'; '.join(texts)}",
        library="tensorrt",
        name=first.code().name,
        node=first.node_name(),
        operator=first.node_operator(),
    )


def _require_profiles(profiles: tuple[Profile, ...], inputs: tuple[Tensor, ...]) -> None:
    """Refuse profiles that do not say the shapes of the inputs that vary.

    Raises:
        InvalidArgument: they do not.
    """
    varying = {one.name: one for one in inputs if None in one.shape}
    if varying and not profiles:
        told = ", ".join(f"{name}: {one}" for name, one in varying.items())
        raise InvalidArgument(
            f"Build: extents vary of {told}; give profiles the least, the usual and the largest "
            "shape of each"
        )
    known = {one.name: one for one in inputs}
    for at, profile in enumerate(profiles):
        for name in profile.keys() - known.keys():
            text = f"profile {at} has {name!r}, and the model's inputs are {', '.join(known)}"
            raise InvalidArgument(f"Build: {text}")
        for name, one in varying.items():
            if name not in profile:
                raise InvalidArgument(f"Build: profile {at} lacks the input {name}, {one}")
        for name, shapes in profile.items():
            if not all(_fits(known[name].shape, shape) for shape in shapes):
                text = f"profile {at} has {shapes} for the input {name}, {known[name]}"
                raise InvalidArgument(f"Build: {text}")


def _fits(wanted: tuple[int | None, ...], shape: tuple[int, ...]) -> bool:
    return len(wanted) == len(shape) and all(
        n in (None, k) for n, k in zip(wanted, shape, strict=True)
    )
