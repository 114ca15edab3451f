"""Convolutions, and graphs of nodes, by cuDNN's operation graphs, which need not be installed.

Only engines count that give the same bits each time and round no more than the message says.
"""

import contextlib
import importlib
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from accel_lab.backends.cuda.dnn import nodes
from accel_lab.backends.cuda.dnn.nodes import NodesKey
from accel_lab.backends.cuda.handles.binding import HandleBinding
from accel_lab.backends.cuda.handles.fences import StreamFences
from accel_lab.libraries.authoring.plan_cache import PlanCache
from accel_lab.libraries.dnn.windows import Windows

if TYPE_CHECKING:
    from accel_lab.backends.cuda.device.device import CudaDevice

Direction: TypeAlias = Literal["forward", "data", "filter"]
PLAN_LIMIT = 256
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


class Plan:
    """A built graph, or the knowledge that cuDNN has none.

    Attributes:
        work_bytes: the workspace that it needs for a call.
        held_bytes: what it holds on the device: nothing.
        is_there: whether cuDNN can do it.
    """

    held_bytes = 0
    work_bytes = 0

    def __init__(self, cudnn: Any, handle: int, key: Key | NodesKey) -> None:
        self._graph: Any = None
        self._tensors: list[Any] = []
        # What cuDNN has no engine for raises one or the other, by where it finds out.
        with contextlib.suppress(cudnn.cudnnGraphNotSupportedError, RuntimeError):
            graph, tensors = _described(cudnn, handle, key)
            graph.validate()
            graph.build_operation_graph()
            graph.create_execution_plans([cudnn.heur_mode.A, cudnn.heur_mode.FALLBACK])
            unwanted = _INEXACT + _IN_TF32 * (key.dtype == "float32")
            graph.deselect_numeric_notes([getattr(cudnn.numerical_note, n) for n in unwanted])
            graph.check_support()
            graph.build_plans()
            self.work_bytes = int(graph.get_workspace_size())
            self._graph, self._tensors = graph, tensors

    @property
    def is_there(self) -> bool:
        """Whether cuDNN can do it."""
        return self._graph is not None

    def run(self, handle: int, arrays: list[Any], work: int) -> None:
        """Enqueue it: operands, and behind them what is written."""
        pointers = [x.data.ptr for x in arrays]
        self._graph.execute(dict(zip(self._tensors, pointers, strict=True)), work, handle=handle)

    def destroy(self) -> None:
        """Give everything back."""
        self._graph = None
        self._tensors.clear()


class Cudnn:
    """A handle, and the plans of what it did; for the dispatcher thread."""

    def __init__(self, device: "CudaDevice", cudnn: Any) -> None:
        self._cudnn = cudnn
        self._handle: int = cudnn.create_handle()
        put = partial(_put, cudnn, self._handle)
        self._binding = HandleBinding(device, put)
        self.plans: PlanCache[Plan] = PlanCache(
            partial(Plan, cudnn, self._handle),
            StreamFences(device),
            most=PLAN_LIMIT,
            most_bytes=1,
        )

    def run(self, key: Key | NodesKey, arrays: list[Any], workspace: Callable[[int], Any]) -> bool:
        """Enqueue a convolution or a graph, and return whether cuDNN has it.

        Parameters:
            arrays: the operands and behind them what is written, contiguous and aligned.
        """
        self._binding.bind()
        plan = self.plans.use(key)
        if not plan.is_there:
            return False
        work = workspace(plan.work_bytes) if plan.work_bytes else None
        plan.run(self._handle, arrays, 0 if work is None else work.data.ptr)
        return True

    def statistics(self) -> Mapping[str, int]:
        """Count its plans; any thread."""
        return {f"cuDNN {name}": count for name, count in self.plans.statistics().items()}

    def close(self) -> None:
        """Destroy plans and handle; waits for the device."""
        self.plans.close()
        # What cannot be destroyed belongs to a lost context, which the next call tells.
        with contextlib.suppress(RuntimeError):
            self._cudnn.destroy_handle(self._handle)


def found(device: "CudaDevice") -> Cudnn | None:
    """Return cuDNN; None where it or its Python frontend is not installed."""
    try:
        return Cudnn(device, importlib.import_module("cudnn"))
    except (ImportError, RuntimeError):  # the frontend is there, and no cuDNN
        return None


def _put(cudnn: Any, handle: int, stream: int) -> None:
    cudnn.set_stream(handle=handle, stream=stream)


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
