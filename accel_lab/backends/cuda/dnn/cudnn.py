"""Convolutions, and graphs of nodes, by cuDNN's operation graphs, which need not be installed.

Only engines count that give the same bits each time and round no more than the message says.
"""

from typing import Any, Literal, NamedTuple, TypeAlias

from accel_lab.backends.cuda.dnn import nodes
from accel_lab.backends.cuda.dnn.nodes import NodesKey
from accel_lab.backends.cuda.handles.cudnn_disk import numbered
from accel_lab.libraries.dnn.windows import Windows

Direction: TypeAlias = Literal["forward", "data", "filter"]
DTYPES = ("float16", "bfloat16", "float32")
_TYPES = {"float16": "HALF", "bfloat16": "BFLOAT16", "float32": "FLOAT"}
_INEXACT: tuple[str, ...] = (
    "NONDETERMINISTIC",
    "DOWN_CONVERT_INPUTS",
    "REDUCED_PRECISION_REDUCTION",
    "FFT",
)
_INEXACT += ("WINOGRAD", "WINOGRAD_TILE_4x4", "WINOGRAD_TILE_6x6", "WINOGRAD_TILE_13x13")
_IN_TF32 = ("TENSOR_CORE",)


class Key(NamedTuple):
    """All that a plan depends on; shapes have their channels behind the first axis.

    Attributes:
        x: the shape of what is convolved.
        w: that of the filters.
        y: that of the result.
        bias: whether one is added.
        relu: whether what is below 0 becomes 0.
    """

    direction: Direction
    dtype: str
    layout: str
    x: tuple[int, ...]
    w: tuple[int, ...]
    y: tuple[int, ...]
    slides: Windows
    bias: bool = False
    relu: bool = False


def built(cudnn: Any, handle: int, key: Key | NodesKey) -> Any:
    """Return a built graph, given the operands and what is written."""
    graph, tensors = _described(cudnn, handle, key)
    numbered(tensors)
    graph.validate()
    graph.build_operation_graph()
    graph.create_execution_plans([cudnn.heur_mode.A, cudnn.heur_mode.FALLBACK])
    unwanted = _INEXACT + _IN_TF32 * (key.dtype == "float32")
    graph.deselect_numeric_notes([getattr(cudnn.numerical_note, n) for n in unwanted])
    graph.check_support()
    graph.build_plans()
    return graph


def _described(cudnn: Any, handle: int, key: Key | NodesKey) -> tuple[Any, list[Any]]:
    """Return a graph, and the tensors whose addresses it is given, the one that is written last."""
    kind = getattr(cudnn.data_type, _TYPES[key.dtype])
    wide = cudnn.data_type.FLOAT
    graph = cudnn.pygraph(
        handle=handle,
        io_data_type=kind,
        intermediate_data_type=wide,
        compute_data_type=wide,
    )
    if isinstance(key, NodesKey):
        tensors = nodes.described(cudnn, graph, key)
        tensors[-1].set_output(True).set_data_type(kind)
        return graph, tensors

    def tensor(name: str, shape: tuple[int, ...]) -> Any:
        dims, steps = _lies(shape, key.layout)
        return graph.tensor(name=name, dim=dims, stride=steps, data_type=kind)

    lone = len(key.slides.window) == 1  # cuDNN has two extents at least
    padding = [0] * lone + [*key.slides.padding]
    slides: dict[str, Any] = {
        "pre_padding": padding,
        "post_padding": padding,
        "stride": [1] * lone + [*key.slides.stride],
        "dilation": [1] * lone + [*key.slides.dilation],
        "compute_data_type": wide,
    }
    if key.direction == "data":
        given = [tensor("dy", key.y), tensor("w", key.w)]
        made, shape = graph.conv_dgrad(loss=given[0], filter=given[1], **slides), key.x
    elif key.direction == "filter":
        given = [tensor("x", key.x), tensor("dy", key.y)]
        made, shape = graph.conv_wgrad(image=given[0], loss=given[1], **slides), key.w
    else:
        given = [tensor("x", key.x), tensor("w", key.w)]
        made, shape = graph.conv_fprop(image=given[0], weight=given[1], **slides), key.y
    if key.bias:
        given.append(tensor("bias", (1, key.y[1], *(1,) * (len(key.y) - 2))))
        made = graph.bias(input=made, bias=given[-1])
    if key.relu:
        made = graph.relu(input=made)
    dims, steps = _lies(shape, key.layout)
    made.set_output(True).set_dim(dims).set_stride(steps).set_data_type(kind)
    return graph, [*given, made]


def _lies(shape: tuple[int, ...], layout: str) -> tuple[list[int], list[int]]:
    """Return the extents and steps of a contiguous array, its channels behind its first axis."""
    dims = [*shape[:2], 1, *shape[2:]] if len(shape) == 3 else [*shape]  # noqa: PLR2004 - one extent
    count = len(dims)
    order = [*range(count)] if layout == "channels_first" else [0, *range(2, count), 1]
    steps, step = [0] * count, 1
    for axis in reversed(order):
        steps[axis] = step
        step *= dims[axis]
    return dims, steps
