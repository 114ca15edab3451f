"""Reading a model: the file's nodes, constants and subgraphs, and what it asks for in vain."""

import os
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from accel_lab.compute.arrays.dtypes import NAMES
from accel_lab.compute.device import Device, device_first
from accel_lab.onnx.errors import ModelError, UnsupportedModel
from accel_lab.onnx.graph import Graph, used_by
from accel_lab.onnx.model import Model, Port
from accel_lab.onnx.node import Node
from accel_lab.onnx.registry import OLDEST, OPERATORS, Operator

DOMAINS = ("", "ai.onnx")
"""How ONNX's own domain is written."""
Source: TypeAlias = str | os.PathLike[str] | bytes | Any
"""A file's path, its bytes, or an `onnx.ModelProto`."""


def load(source: Source, device: Device) -> Model:
    """Return a model on a device, of a file, of a file's bytes, or of a `ModelProto`.

    Its weights are put on the device, and what it computes of constants alone is computed. Data
    that the file keeps in others beside it are read, too.

    Raises:
        ModelError: it is no valid ONNX model, or the package `onnx` is missing.
        UnsupportedModel: it has operators, versions or dtypes that accel_lab lacks.
    """
    device_first(device)
    onnx = package()
    return bound(onnx, read(onnx, source), device)


def bound(onnx: Any, read_proto: Any, device: Device, also: Sequence[str] = ()) -> Model:
    """Return a model of a `ModelProto` that `read` has returned.

    Parameters:
        also: names of tensors that are outputs, too.

    Raises:
        ModelError: it cannot be written out.
        UnsupportedModel: it asks for what there is not.
    """
    proto = _written_out(onnx, read_proto)
    versions = {one.domain: one.version for one in proto.opset_import}
    version = next((versions[name] for name in DOMAINS if name in versions), OLDEST)
    if version < OLDEST:
        text = f"the model asks for version {version} of the operator set"
        raise UnsupportedModel(
            f"{text}; convert it to {OLDEST} or later with onnx.version_converter",
            node="",
            operator="",
            missing=(text,),
        )
    reading = _Reading(onnx, version)
    graph = reading.graph(proto.graph)
    inputs = tuple(reading.port(one) for one in proto.graph.input)
    outputs = tuple(reading.port(one) for one in proto.graph.output)
    reading.require_nothing_missing()
    more = [name for name in also if name not in graph.outputs]
    graph.outputs += tuple(more)
    outputs += tuple(Port(name, "", None) for name in more)
    graph.fold(device, {})
    return Model(device, graph, inputs, outputs, version)


def package() -> Any:
    """Return the package `onnx`.

    Raises:
        ModelError: it is not installed.
    """
    try:
        import onnx  # an extra
        import onnx.inliner
    except ImportError as error:
        text = 'reading an ONNX model needs the package onnx: pip install "accel-lab[onnx]"'
        raise ModelError(text) from error
    return onnx


def read(onnx: Any, source: Source) -> Any:
    """Return a valid `ModelProto`.

    Raises:
        ModelError: it is none.
    """
    try:
        if isinstance(source, onnx.ModelProto):
            proto = source
        elif isinstance(source, bytes):
            proto = onnx.load_model_from_string(source)
        else:
            proto = onnx.load(os.fspath(source))
        onnx.checker.check_model(proto)
    except (OSError, TypeError, ValueError, onnx.checker.ValidationError) as error:
        raise ModelError(f"no ONNX model can be read: {error}") from error
    except Exception as error:
        if type(error).__name__ != "DecodeError":  # of protobuf, which onnx brings along
            raise
        raise ModelError(f"no ONNX model can be read: {error}") from error
    return proto


def _written_out(onnx: Any, proto: Any) -> Any:
    """Return a model without functions of its own, and without operators that ONNX makes of others.

    Those that there are here stay.
    """
    made = onnx.ModelProto()
    made.CopyFrom(proto)
    versions = {one.domain: one.version for one in proto.opset_import}
    _say_defaults(onnx, made.graph, versions)
    for function in made.functions:
        own = {one.domain: one.version for one in function.opset_import}
        _say_defaults(onnx, function, own)
    kept = [("", name) for name in OPERATORS]
    inline = onnx.inliner.inline_selected_functions
    try:
        return inline(made, kept, exclude=True, inline_schema_functions=True)
    except RuntimeError:
        # It needs the type of each input, also of one that is left out: what is not written out
        # is refused by name.
        return inline(made, [], exclude=True)


def _say_defaults(onnx: Any, graph: Any, versions: dict[str, int]) -> None:
    """Add to nodes that will be written out the attributes that nobody has said.

    The inliner leaves those out, and the operators inside would take defaults of their own.
    """
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                _say_defaults(onnx, attribute.g, versions)
        if node.op_type in OPERATORS or node.domain not in versions:
            continue
        try:
            schema = onnx.defs.get_schema(node.op_type, versions[node.domain], node.domain)
        except onnx.defs.SchemaError:  # a function of the model
            continue
        said = {attribute.name for attribute in node.attribute}
        for name, attribute in schema.attributes.items():
            if name not in said and attribute.default_value.type:
                node.attribute.append(attribute.default_value)


class _Reading:
    """Reads one model's graphs, and gathers what is missing."""

    def __init__(self, onnx: Any, version: int) -> None:
        self.onnx, self.version = onnx, version
        self._missing: dict[str, tuple[str, str]] = {}

    def graph(self, proto: Any) -> Graph:
        """Return a graph."""
        constants = {one.name: self._array(one, one.name) for one in proto.initializer}
        for one in proto.sparse_initializer:
            self._miss(one.values.name, "", f"{one.values.name} is a sparse initializer")
        nodes = [self._node(one) for one in proto.node]
        inputs = tuple(one.name for one in proto.input)
        outputs = tuple(one.name for one in proto.output)
        made = {*inputs, *constants}.union(*(node.outputs for node in nodes))
        used = {*outputs}.union(*map(used_by, nodes))
        return Graph(inputs, outputs, nodes, frozenset(used - made), constants)

    def _node(self, proto: Any) -> Node:
        own, name = proto.domain in DOMAINS, proto.op_type
        label = name if own else f"{proto.domain}.{name}"
        where = proto.name or ", ".join(filter(None, proto.output))
        attributes = {one.name: self._attribute(one, where, label) for one in proto.attribute}
        found: Operator | None = OPERATORS.get(name) if own else None
        node = Node(
            proto.name,
            name,
            self.version,
            tuple(proto.input),
            tuple(proto.output),
            attributes,
            found or Operator(_none),
        )
        if found is None:
            self._miss(where, label, f"operator {label}")
        elif self.version < found.since:
            self._miss(where, label, f"{label} before version {found.since}")
        elif found.refuses is not None and (text := found.refuses(node)):
            self._miss(where, label, f"{label}: {text}")
        return node

    def _attribute(self, proto: Any, where: str, label: str) -> Any:
        kinds = self.onnx.AttributeProto
        if proto.type == kinds.GRAPH:
            return self.graph(proto.g)
        if proto.type == kinds.TENSOR:
            return self._array(proto.t, where, label)
        if proto.type in (kinds.STRING, kinds.FLOAT, kinds.INT, kinds.TYPE_PROTO):
            value = self.onnx.helper.get_attribute_value(proto)
            return value.decode(errors="replace") if isinstance(value, bytes) else value
        if proto.type in (kinds.STRINGS, kinds.FLOATS, kinds.INTS):
            values = self.onnx.helper.get_attribute_value(proto)
            return [v.decode(errors="replace") if isinstance(v, bytes) else v for v in values]
        self._miss(where, label, f"{label}: attribute {proto.name}")
        return None

    def _array(self, proto: Any, where: str, label: str = "") -> Any:
        dtype = self._dtype(proto.data_type)
        if dtype not in NAMES:
            self._miss(where, label, f"dtype {dtype}")
            return np.zeros(0)
        # A copy: what protobuf has in between is let go.
        return np.array(self.onnx.numpy_helper.to_array(proto))

    def _dtype(self, code: int) -> str:
        if code == self.onnx.TensorProto.STRING:
            return "string"
        try:
            return str(self.onnx.helper.tensor_dtype_to_np_dtype(code))
        except KeyError:
            return f"number {code}"

    def port(self, proto: Any) -> Port:
        """Return what an input or an output is."""
        kind = proto.type.WhichOneof("value")
        of, is_tensor = proto.type, kind == "tensor_type"
        while of.WhichOneof("value") in ("sequence_type", "optional_type"):
            of = getattr(of, of.WhichOneof("value")).elem_type
        if of.WhichOneof("value") != "tensor_type":
            self._miss(proto.name, "", f"{proto.name} is a {kind}")
            return Port(proto.name, "", None, is_tensor)
        tensor = of.tensor_type
        dtype = self._dtype(tensor.elem_type)
        if dtype not in NAMES:
            self._miss(proto.name, "", f"dtype {dtype} of {proto.name}")
        if not tensor.HasField("shape"):
            return Port(proto.name, dtype, None, is_tensor)
        return Port(proto.name, dtype, tuple(map(_extent, tensor.shape.dim)), is_tensor)

    def _miss(self, node: str, operator: str, text: str) -> None:
        told = f"{operator} of operator set {self.version}" if operator else ""
        self._missing.setdefault(text, (node, told))

    def require_nothing_missing(self) -> None:
        """Refuse the model if something is missing.

        Raises:
            UnsupportedModel: something is.
        """
        if not self._missing:
            return
        missing = tuple(self._missing)
        node, operator = self._missing[missing[0]]
        at = f", first at node {node}" if node else ""
        text = f"the model asks for what there is not{at}: {'; '.join(missing)}"
        raise UnsupportedModel(text, node=node, operator=operator, missing=missing)


def _extent(dim: Any) -> int | str | None:
    if dim.HasField("dim_value"):
        return dim.dim_value if dim.dim_value > 0 else None  # some exporters write 0 or -1 for any
    return dim.dim_param or None


def _none(*_: Any) -> Any:
    """Stand for an operator that there is not; the model is refused."""
    raise AssertionError
