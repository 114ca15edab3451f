"""A model with its products in int8: what goes into them is quantized, by explicit Q/DQ nodes.

Scales are symmetric, without a zero point: one for each tensor that flows, one for each output
channel of a constant.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from accel_lab.compute.device import Device, device_first
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.array import library as array
from accel_lab.onnx.calibration.observers import BINS, OBSERVERS, Observer
from accel_lab.onnx.errors import ModelError
from accel_lab.onnx.file import Source, bound, package, read

MOST = 127
"""The largest number of int8; its negative is the least that is used."""
SINCE = 13
"""The version of the operator set in which a scale may be one for each channel."""
_PRODUCTS = {"Conv": (0, 0), "MatMul": (1, 1), "Gemm": (1, 0)}
"""What is quantized: the axis of a weight's output channels, without and with transB."""


def quantize(
    source: Source,
    device: Device,
    samples: Sequence[Mapping[str, Any]],
    observer: Observer | str = "entropy",
) -> Any:
    """Return a model as `onnx.ModelProto` whose convolutions and products have int8 operands.

    It is run on the device with all samples, the inputs by name, twice if the observer counts.
    What an operator takes is observed there; then a QuantizeLinear and a DequantizeLinear stand
    before it. Constants are stored as int8. Load or save what is returned.

    Parameters:
        observer: chooses how much is cut off: "minmax", "entropy", "percentile", or one of your
            own.

    Raises:
        ModelError: it is no model that can be read, or of an operator set before 13.
        InvalidArgument: there is no such observer, no sample, or nothing to quantize.
    """
    device_first(device)
    if isinstance(observer, str):
        if observer not in OBSERVERS:
            words = ", ".join(OBSERVERS)
            raise InvalidArgument(f"quantize: observer is {observer!r}; it may be {words}")
        observer = OBSERVERS[observer]()
    if not samples:
        raise InvalidArgument("quantize: there is no sample to calibrate with")
    onnx = package()
    proto = onnx.ModelProto()
    proto.CopyFrom(read(onnx, source))
    _require_version(proto)
    _store_constants(onnx, proto.graph)
    weights = {one.name: one for one in proto.graph.initializer}
    flowing = _flowing(proto, weights)
    if not flowing:
        words = ", ".join(_PRODUCTS)
        raise InvalidArgument(f"quantize: the model has no {words} to quantize")
    limits = _limits(onnx, proto, device, samples, observer, flowing)
    _Rewriting(onnx, proto, weights, limits).all()
    onnx.checker.check_model(proto)
    return proto


def _require_version(proto: Any) -> None:
    named = [one.version for one in proto.opset_import if one.domain in ("", "ai.onnx")]
    version = max(named, default=0)
    if version < SINCE:
        raise ModelError(
            f"the model is of operator set {version}, where a scale is one for all channels; "
            f"convert it to {SINCE} or later with onnx.version_converter"
        )


def _store_constants(onnx: Any, graph: Any) -> None:
    """Make initializers of Constant nodes that are tensors: exporters write weights as either."""
    kept = []
    for node in graph.node:
        if node.op_type == "Constant" and [one.name for one in node.attribute] == ["value"]:
            stored = graph.initializer.add()
            stored.CopyFrom(node.attribute[0].t)
            stored.name = node.output[0]
        else:
            kept.append(onnx.NodeProto.FromString(node.SerializeToString()))
    del graph.node[:]
    graph.node.extend(kept)


def _products(proto: Any) -> list[Any]:
    return [node for node in proto.graph.node if node.op_type in _PRODUCTS and not node.domain]


def _flowing(proto: Any, weights: Mapping[str, Any]) -> list[str]:
    """Return the tensors that products take and that are no constants, each once."""
    taken = [node.input[:2] for node in _products(proto) if node.input[0] not in weights]
    return list(dict.fromkeys(name for both in taken for name in both if name not in weights))


def _limits(
    onnx: Any,
    proto: Any,
    device: Device,
    samples: Sequence[Mapping[str, Any]],
    observer: Observer,
    names: list[str],
) -> dict[str, float]:
    """Return the limit of each tensor that is float32 and not always 0."""
    model = bound(onnx, proto, device, names)
    most: dict[str, AccelRef] = {}
    for sample in samples:
        seen = model.run(sample)
        for name in names:
            x = seen[name]
            if x.dtype == "float32" and x.size:
                here = array.max(abs(x))
                most[name] = array.maximum(most[name], here) if name in most else here
    ends = {name: float(one) for name, one in most.items()}
    for name, end in ends.items():
        if not np.isfinite(end):
            raise InvalidArgument(f"quantize: {name} is {end} in a sample; int8 has no such number")
    ends = {name: end for name, end in ends.items() if end > 0}
    if not observer.counts:
        return {name: observer.limit(end, None) for name, end in ends.items()}
    counts = {name: np.zeros(BINS, np.int64) for name in ends}
    for sample in samples:
        seen = model.run(sample)
        for name, end in ends.items():
            found, _ = array.histogram(abs(seen[name]), BINS, (0.0, end))
            counts[name] += found.get()
    return {name: observer.limit(end, counts[name]) for name, end in ends.items()}


class _Rewriting:
    """Writes Q/DQ nodes into a model."""

    def __init__(
        self, onnx: Any, proto: Any, weights: dict[str, Any], limits: dict[str, float]
    ) -> None:
        self.onnx, self.proto, self.weights, self.limits = onnx, proto, weights, limits
        self.made: list[Any] = []
        self.names = _names(proto.graph)
        self.done: dict[tuple[str, int], str] = {}

    def all(self) -> None:
        """Quantize what each product takes."""
        for node in self.proto.graph.node:
            if node.op_type in _PRODUCTS and not node.domain:
                self._one(node)
            self.made.append(node)
        kept = [self.onnx.NodeProto.FromString(node.SerializeToString()) for node in self.made]
        del self.proto.graph.node[:]
        self.proto.graph.node.extend(kept)
        self._drop_unused()

    def _one(self, node: Any) -> None:
        x, w = node.input[:2]
        if x not in self.limits or (w not in self.limits and not self._is_weight(w)):
            return
        turned = any(one.name == "transB" and one.i for one in node.attribute)
        axis = _PRODUCTS[node.op_type][turned]
        node.input[0] = self._flowing(x)
        node.input[1] = self._constant(w, axis) if self._is_weight(w) else self._flowing(w)

    def _is_weight(self, name: str) -> bool:
        one = self.weights.get(name)
        return (
            one is not None and one.data_type == self.onnx.TensorProto.FLOAT and len(one.dims) > 1
        )

    def _flowing(self, name: str) -> str:
        """Return the name of a tensor that is quantized and back."""
        if (name, -1) not in self.done:
            scale = np.float32(self.limits[name] / MOST)
            parameters = [self._add(name, "scale", scale), self._add(name, "zero", np.int8(0))]
            small, back = self._new(name, "quantized"), self._new(name, "dequantized")
            make = self.onnx.helper.make_node
            self.made.append(make("QuantizeLinear", [name, *parameters], [small]))
            self.made.append(make("DequantizeLinear", [small, *parameters], [back]))
            self.done[name, -1] = back
        return self.done[name, -1]

    def _constant(self, name: str, axis: int) -> str:
        """Return the name of a constant that is stored as int8 and made float32 by its scales."""
        if (name, axis) not in self.done:
            whole = self.onnx.numpy_helper.to_array(self.weights[name])
            at = axis if whole.ndim == 2 or axis == 0 else whole.ndim - 1  # noqa: PLR2004
            small, scales = symmetric(whole, at)
            inputs = [self._add(name, "int8", small), self._add(name, "scales", scales)]
            inputs.append(self._add(name, "zeros", np.zeros(len(scales), np.int8)))
            back = self._new(name, "dequantized")
            make = self.onnx.helper.make_node
            self.made.append(make("DequantizeLinear", inputs, [back], axis=at))
            self.done[name, axis] = back
        return self.done[name, axis]

    def _new(self, name: str, what: str) -> str:
        made, k = f"{name}_{what}", 0
        while made in self.names:
            k += 1
            made = f"{name}_{what}_{k}"
        self.names.add(made)
        return made

    def _add(self, name: str, what: str, x: Any) -> str:
        made = self._new(name, what)
        kept = self.onnx.numpy_helper.from_array(np.asarray(x), made)
        self.proto.graph.initializer.append(kept)
        return made

    def _drop_unused(self) -> None:
        """Drop the constants that are stored as int8 now and that nobody else uses."""
        small = {name for name, axis in self.done if axis >= 0}
        used = _names(self.proto.graph, made=False)
        kept = [one for one in self.proto.graph.initializer if one.name not in small - used]
        kept = [self.onnx.TensorProto.FromString(one.SerializeToString()) for one in kept]
        del self.proto.graph.initializer[:]
        self.proto.graph.initializer.extend(kept)
        inputs = [one for one in self.proto.graph.input if one.name not in small - used]
        inputs = [self.onnx.ValueInfoProto.FromString(one.SerializeToString()) for one in inputs]
        del self.proto.graph.input[:]
        self.proto.graph.input.extend(inputs)


def _names(graph: Any, *, made: bool = True) -> set[str]:
    """Return the names that a graph uses, also inside others, and those that it makes."""
    names = {one.name for one in graph.output}
    for node in graph.node:
        names |= {*node.input}
        for attribute in node.attribute:
            if attribute.HasField("g"):
                names |= _names(attribute.g, made=made)
        if made:
            names |= {*node.output}
    if made:
        names |= {one.name for one in (*graph.input, *graph.initializer)}
    return names


def symmetric(whole: npt.NDArray[Any], axis: int) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return a constant as int8, with a scale for each place along an axis."""
    others = tuple(k for k in range(whole.ndim) if k != axis)
    most = np.abs(whole).max(axis=others, keepdims=True)
    scales = np.where(most > 0, most / MOST, 1).astype(np.float32)
    small = np.clip(np.rint(whole / scales), -MOST, MOST).astype(np.int8)
    return small, scales.reshape(-1)
