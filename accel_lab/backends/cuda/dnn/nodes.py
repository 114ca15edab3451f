"""Graphs of the user's nodes, in cuDNN's words."""

from typing import Any, NamedTuple

from accel_lab.libraries.dnn.activation import ALPHA
from accel_lab.libraries.dnn.graph import ConvNode, Node, Shape
from accel_lab.libraries.dnn.windows import windows

FUNCTIONS = {
    "gelu_tanh": "gelu_approx_tanh",
    "negative": "neg",
    "absolute": "abs",
    "subtract": "sub",
    "multiply": "mul",
    "divide": "div",
    "maximum": "max",
    "minimum": "min",
}
"""What cuDNN calls otherwise than we do."""

REDUCTIONS = {"sum": "ADD", "mean": "AVG", "max": "MAX", "min": "MIN"}
LEAST_AXES = 3
"""How many axes cuDNN wants; those of extent 1 are put before the others."""


class NodesKey(NamedTuple):
    """All that a plan of nodes depends on.

    Attributes:
        shapes: those of the operands, and of what each node makes.
    """

    dtype: str
    shapes: tuple[Shape, ...]
    nodes: tuple[Node, ...]

    @property
    def fits(self) -> bool:
        """Whether each operand is read, and convolutions have the two extents that cuDNN wants."""
        convolves = any(op == "conv" for op, _, _ in self.nodes)
        read = {at for _, inputs, _ in self.nodes for at in inputs}
        all_read = read.issuperset(range(len(self.shapes) - len(self.nodes)))
        return all_read and (not convolves or min(map(len, self.shapes)) > LEAST_AXES)


def described(cudnn: Any, graph: Any, key: NodesKey) -> list[Any]:
    """Add the nodes to a graph, and return the tensors of the operands and of the result."""
    values = []
    given = len(key.shapes) - len(key.nodes)
    for at, shape in enumerate(key.shapes[:given]):
        dims, steps = _lies(shape)
        values.append(graph.tensor(name=f"operand {at}", dim=dims, stride=steps))
    for node, shape in zip(key.nodes, key.shapes[given:], strict=True):
        op, inputs, options = node
        arguments = [values[at] for at in inputs]
        if op == "conv":
            slides = windows(ConvNode(*options), key.shapes[inputs[1]][2:])
            made = graph.conv_fprop(
                image=arguments[0],
                weight=arguments[1],
                pre_padding=[*slides.padding],
                post_padding=[*slides.padding],
                stride=[*slides.stride],
                dilation=[*slides.dilation],
            )
        elif op in REDUCTIONS:
            mode = getattr(cudnn.reduction_mode, REDUCTIONS[op])
            made = graph.reduction(input=arguments[0], mode=mode)
        elif op == "clipped_relu":
            made = graph.relu(arguments[0], upper_clip=ALPHA[op])
        else:
            made = getattr(graph, FUNCTIONS.get(op, op))(*arguments)
        dims, steps = _lies(shape)
        values.append(made.set_dim(dims).set_stride(steps))
    return [*values[:given], values[-1]]


def _lies(shape: Shape) -> tuple[list[int], list[int]]:
    """Return the extents and steps of a contiguous array, of three axes at least."""
    dims = [1] * (LEAST_AXES - len(shape)) + [*shape]
    steps = [1] * len(dims)
    for axis in range(len(dims) - 1, 0, -1):
        steps[axis - 1] = steps[axis] * dims[axis]
    return dims, steps
