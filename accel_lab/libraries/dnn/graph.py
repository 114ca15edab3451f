"""An operation graph of your own nodes, which cuDNN may run in one launch.

Only the last node is written. What is between is in float32, in float64 where the operands are.
On `cuda` a maximum, a minimum or relu may lose a NaN.
"""

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from accel_lab.compute.device import device_of
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.operation import Spec
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.authoring.operand import one_dtype, result
from accel_lab.libraries.authoring.shape import Integers, ints
from accel_lab.libraries.dnn.activation import ACTIVATIONS
from accel_lab.libraries.dnn.message import Layer, refusal
from accel_lab.libraries.dnn.windows import windows

Shape: TypeAlias = tuple[int, ...]
Node: TypeAlias = tuple[str, tuple[int, ...], tuple[tuple[int, ...], ...]]
"""An operation, the values that it takes, operands first and nodes behind them, and its options."""

NODE_UNARY = (*ACTIVATIONS, "exp", "log", "sqrt", "negative", "absolute")
NODE_BINARY = ("add", "subtract", "multiply", "divide", "maximum", "minimum")
NODE_REDUCTIONS = ("sum", "mean", "max", "min")
MOST_NODES = 64
_TAKES = {
    **dict.fromkeys((*NODE_UNARY, *NODE_REDUCTIONS), 1),
    **dict.fromkeys((*NODE_BINARY, "conv", "matmul"), 2),
}
_OPTIONS = {**dict.fromkeys(_TAKES, 0), **dict.fromkeys(NODE_REDUCTIONS, 1), "conv": 3}
_MATRIX = 2


class RunGraph(Layer[AccelRef], frozen=True, tag=673):
    """Run a graph of nodes, and return what the last one makes; `Graph` writes them."""

    tensors: tuple[AccelRef, ...]
    nodes: tuple[Node, ...]

    def infer(self) -> Spec:
        """Return the shape of the last node."""
        if not self.tensors or not 0 < len(self.nodes) <= MOST_NODES:
            text = f"there are {len(self.tensors)} operands and {len(self.nodes)} nodes"
            raise refusal(self, f"{text}; one of each is wanted, and {MOST_NODES} nodes at most")
        dtype = one_dtype(self, *self.tensors)
        return result(self, node_shapes(self)[-1], dtype)


class Value:
    """What an operand or a node of a graph is; Python's operators work on it.

    Attributes:
        graph: whose it is.
        at: which.
    """

    def __init__(self, graph: "Graph", at: int) -> None:
        self.graph = graph
        self.at = at

    def __add__(self, other: "Value") -> "Value":
        return self.graph.combine("add", self, other)

    def __sub__(self, other: "Value") -> "Value":
        return self.graph.combine("subtract", self, other)

    def __mul__(self, other: "Value") -> "Value":
        return self.graph.combine("multiply", self, other)

    def __truediv__(self, other: "Value") -> "Value":
        return self.graph.combine("divide", self, other)

    def __matmul__(self, other: "Value") -> "Value":
        return self.graph.matmul(self, other)


class Graph:
    """Nodes that are written once, and run as often as you call the graph with operands.

    Each method adds a node and returns its value; each raises `InvalidArgument` for an operation
    that there is not, or a value of another graph.

    Attributes:
        operands: the values that the graph is called with.
        nodes: what was added, in its order; the last one is the result.
    """

    def __init__(self, operands: int) -> None:
        self.operands = tuple([Value(self, at) for at in range(operands)])
        self.nodes: list[Node] = []

    def conv(
        self,
        x: Value,
        w: Value,
        *,
        padding: Integers = 0,
        stride: Integers = 1,
        dilation: Integers = 1,
    ) -> Value:
        """Convolve as `Conv` does, in one group, with the channels behind the batch."""
        options = {"padding": padding, "stride": stride, "dilation": dilation}
        return self._added("conv", x, w, options=[ints(*option) for option in options.items()])

    def matmul(self, a: Value, b: Value) -> Value:
        """Multiply matrices, or as many of the one as of the other."""
        return self._added("matmul", a, b)

    def apply(self, op: str, x: Value) -> Value:
        """Return a function of each element: an activation, exp, log, sqrt, negative, absolute."""
        return self._added(op, x, among=NODE_UNARY)

    def combine(self, op: str, a: Value, b: Value) -> Value:
        """Return the sum, product or the like of two; an extent of 1 goes with any other."""
        return self._added(op, a, b, among=NODE_BINARY)

    def reduce(self, op: str, x: Value, axes: Integers) -> Value:
        """Return the sum, mean, max or min along axes, which stay with extent 1."""
        return self._added(op, x, among=NODE_REDUCTIONS, options=[ints("axes", axes)])

    def __call__(self, *operands: AccelRef) -> AccelRef:
        """Send `RunGraph` to the device of the first operand, and do not block.

        Raises:
            InvalidArgument: there are fewer operands or more, or they do not fit.
        """
        if len(operands) != len(self.operands):
            text = f"{len(operands)} operands for a graph of {len(self.operands)}"
            raise InvalidArgument(f"RunGraph: {text}")
        return run_graph(operands, tuple(self.nodes))

    def _added(
        self,
        op: str,
        *values: Value,
        among: Sequence[str] = ("conv", "matmul"),
        options: Sequence[Shape] = (),
    ) -> Value:
        if op not in among:
            raise InvalidArgument(f"Graph: op is {op!r}; it may be {', '.join(among)}")
        for value in values:
            if getattr(value, "graph", None) is not self:
                text = f"{op} takes values of this graph, and {value!r} is none"
                raise InvalidArgument(f"Graph: {text}")
        self.nodes.append((op, tuple([value.at for value in values]), tuple(options)))
        return Value(self, len(self.operands) + len(self.nodes) - 1)


class ConvNode(NamedTuple):
    """What a convolution of a graph is told."""

    padding: Shape
    stride: Shape
    dilation: Shape


def run_graph(operands: Sequence[AccelRef], nodes: Sequence[Node]) -> AccelRef:
    """Send `RunGraph` and do not block; `Graph` is easier to write.

    Raises:
        InvalidArgument: there is no operand, or they do not fit.
    """
    if not operands:
        raise InvalidArgument("RunGraph: there is no operand")
    return device_of(operands[0]).ask(RunGraph(tuple(operands), tuple(nodes)))


def node_shapes(message: RunGraph) -> list[Shape]:
    """Return the shape of each operand, and behind them of each node.

    Raises:
        InvalidArgument: a node takes what there is not, or what does not fit.
    """
    shapes = [ref.shape for ref in message.tensors]
    for number, (op, inputs, options) in enumerate(message.nodes):
        fits = _TAKES.get(op) == len(inputs) and _OPTIONS[op] == len(options)
        if not fits or any(not 0 <= at < len(shapes) for at in inputs):
            text = f"node {number} is {op!r} of {inputs} with {options}"
            raise refusal(message, f"{text}, which there is not")
        given = [shapes[at] for at in inputs]
        made = _shape_of(op, given, options)
        if made is None:
            text = f"node {number}: {op} of shapes {' and '.join(str([*one]) for one in given)}"
            raise refusal(message, f"{text} with {options}; they do not fit")
        shapes.append(made)
    return shapes


def _shape_of(op: str, given: list[Shape], options: Sequence[Shape]) -> Shape | None:
    """Return what a node makes; None if that does not fit."""
    if op in NODE_UNARY:
        return given[0]
    if op in NODE_BINARY:
        return _broadcast(*given)
    if op in NODE_REDUCTIONS:
        return _reduced(given[0], options[0])
    x, w = given
    return _multiplied(x, w) if op == "matmul" else _convolved(x, w, ConvNode(*options))


def _broadcast(a: Shape, b: Shape) -> Shape | None:
    if len(a) != len(b) or any(m != n and 1 not in (m, n) for m, n in zip(a, b, strict=True)):
        return None
    return tuple([n if m == 1 else m for m, n in zip(a, b, strict=True)])


def _reduced(x: Shape, axes: Shape) -> Shape | None:
    at = {axis % len(x) for axis in axes if -len(x) <= axis < len(x)}
    if not at or len(at) != len(axes) or any(x[axis] < 1 for axis in at):
        return None
    return tuple([1 if axis in at else n for axis, n in enumerate(x)])


def _multiplied(a: Shape, b: Shape) -> Shape | None:
    fits = len(a) == len(b) >= _MATRIX and a[:-2] == b[:-2] and a[-1] == b[-2]
    return (*a[:-1], b[-1]) if fits else None


def _convolved(x: Shape, w: Shape, told: ConvNode) -> Shape | None:
    if len(x) != len(w) or len(x) <= _MATRIX or x[1] != w[1]:
        return None
    places = windows(told, w[2:]).places(x[2:])
    return (x[0], w[0], *places) if min(places) >= 1 else None
