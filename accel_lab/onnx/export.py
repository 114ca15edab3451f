"""Writing a model: the nodes of a `dnn.Graph` as an ONNX graph, for whatever else runs one."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from accel_lab.compute.arrays.dtypes import numpy_dtype
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.dnn.activation import ALPHA
from accel_lab.libraries.dnn.graph import ConvNode, Graph, Node
from accel_lab.libraries.dnn.windows import windows
from accel_lab.onnx.file import package
from accel_lab.onnx.model import Port

VERSION, IR_VERSION = 20, 9
"""The operator set that has Gelu, and the version of the format that came with it."""
DTYPES = ("float16", "bfloat16", "float32", "float64")
_OPERATORS = {
    "relu": "Relu",
    "clipped_relu": "Clip",
    "sigmoid": "Sigmoid",
    "tanh": "Tanh",
    "elu": "Elu",
    "gelu": "Gelu",
    "gelu_tanh": "Gelu",
    "softplus": "Softplus",
    "exp": "Exp",
    "log": "Log",
    "sqrt": "Sqrt",
    "negative": "Neg",
    "absolute": "Abs",
    "add": "Add",
    "subtract": "Sub",
    "multiply": "Mul",
    "divide": "Div",
    "maximum": "Max",
    "minimum": "Min",
    "sum": "ReduceSum",
    "mean": "ReduceMean",
    "max": "ReduceMax",
    "min": "ReduceMin",
    "matmul": "MatMul",
}


def export(graph: Graph, operands: Sequence[Any], output: str = "y") -> Any:
    """Return a graph of nodes as `onnx.ModelProto`, whose last node is the output.

    What is between is computed in float32, in float64 where the operands are, as `Graph` does.

    Parameters:
        operands: for each operand of the graph a `Port`, which becomes an input, or an array,
            which becomes a constant; all of one float dtype and number of axes.
        output: the name of the output.

    Raises:
        InvalidArgument: there are fewer operands or more, or they do not fit.
        ModelError: the package `onnx` is missing.
    """
    onnx = package()
    if len(operands) != len(graph.operands):
        text = f"{len(operands)} operands for a graph of {len(graph.operands)}"
        raise InvalidArgument(f"export: {text}")
    if not graph.nodes:
        raise InvalidArgument("export: the graph has no node")
    return _Writing(onnx, operands, output).model(graph.nodes)


class _Writing:
    """Writes one model."""

    def __init__(self, onnx: Any, operands: Sequence[Any], output: str) -> None:
        self.onnx = onnx
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.inputs: list[Any] = []
        self.given = [one if isinstance(one, Port) else np.asarray(one) for one in operands]
        found = {(str(one.dtype), len(_shape(one))) for one in self.given}
        dtype, self.axes = min(found)
        if len(found) > 1 or dtype not in DTYPES:
            told = ", ".join(f"{one.dtype}{list(_shape(one))}" for one in self.given)
            text = f"operands have one dtype of {', '.join(DTYPES)} and one number of axes"
            raise InvalidArgument(f"export: {text}, not {told}")
        self.dtype = dtype
        self.wide = "float64" if dtype == "float64" else "float32"
        names = [one.name for one in self.given if isinstance(one, Port)]
        if len({*names, output}) <= len(names):
            raise InvalidArgument(f"export: the names {', '.join([*names, output])} are not unique")
        self.output, self.taken = output, {*names, output}

    def model(self, nodes: Sequence[Node]) -> Any:
        """Return the model."""
        helper = self.onnx.helper
        values = [self._operand(one) for one in self.given]
        for node in nodes:
            values.append(self._node(node, [values[at] for at in node[1]]))
        if self.dtype != self.wide:
            self._add("Cast", [values[-1]], to=self._code(self.dtype))
        self.nodes[-1].output[0] = self.output
        made = helper.make_tensor_value_info(self.output, self._code(self.dtype), None)
        graph = helper.make_graph(self.nodes, "graph", self.inputs, [made], self.constants)
        opset = [helper.make_opsetid("", VERSION)]
        proto = helper.make_model(graph, opset_imports=opset, ir_version=IR_VERSION)
        try:
            proto = self.onnx.shape_inference.infer_shapes(proto, strict_mode=True, data_prop=True)
        except self.onnx.shape_inference.InferenceError as error:
            raise InvalidArgument(f"export: the operands do not fit: {error}") from error
        self.onnx.checker.check_model(proto)
        return proto

    def _operand(self, one: Any) -> str:
        """Return the name of an operand in the dtype that is computed in."""
        if isinstance(one, Port):
            info = self.onnx.helper.make_tensor_value_info
            self.inputs.append(info(one.name, self._code(self.dtype), one.shape))
            name = one.name
        else:
            name = self._constant(one)
        if self.dtype == self.wide:
            return name
        return self._add("Cast", [name], to=self._code(self.wide))

    def _node(self, node: Node, given: list[str]) -> str:
        op, _, options = node
        if op == "swish":
            return self._add("Mul", [given[0], self._add("Sigmoid", given)])
        if op == "conv":
            slides = windows(ConvNode(*options), (1,) * (self.axes - 2))
            told = {"pads": (*slides.padding,) * 2, "strides": slides.stride}
            return self._add("Conv", given, **told, dilations=slides.dilation)
        attributes: dict[str, Any] = {}
        if op in ("gelu", "gelu_tanh"):
            attributes["approximate"] = "tanh" if op == "gelu_tanh" else "none"
        elif op == "clipped_relu":
            limits = (np.zeros((), self.wide), np.full((), ALPHA[op], self.wide))
            given = [*given, *map(self._constant, limits)]
        elif options:  # a reduction, along axes
            given = [*given, self._constant(np.array(options[0], np.int64))]
        return self._add(_OPERATORS[op], given, **attributes)

    def _add(self, operator: str, given: list[str], **attributes: Any) -> str:
        made = self._name()
        self.nodes.append(self.onnx.helper.make_node(operator, given, [made], **attributes))
        return made

    def _constant(self, x: Any) -> str:
        name = self._name()
        self.constants.append(self.onnx.numpy_helper.from_array(x, name))
        return name

    def _name(self) -> str:
        at = len(self.taken)
        while f"v{at}" in self.taken:
            at += 1
        self.taken.add(f"v{at}")
        return f"v{at}"

    def _code(self, dtype: str) -> int:
        code: int = self.onnx.helper.np_dtype_to_tensor_dtype(numpy_dtype(dtype))
        return code


def _shape(one: Any) -> tuple[Any, ...]:
    return one.shape or ()
