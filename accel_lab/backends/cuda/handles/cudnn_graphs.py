"""cuDNN's operation graphs by its Python frontend, which need not be installed."""

import contextlib
import importlib
from collections.abc import Callable, Hashable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from accel_lab.backends.cuda.handles.binding import HandleBinding
from accel_lab.backends.cuda.handles.fences import StreamFences
from accel_lab.libraries.authoring.plan_cache import PlanCache

if TYPE_CHECKING:
    from accel_lab.backends.cuda.device.device import CudaDevice

PLAN_LIMIT = 256
_ALIGNED = 16  # bytes; what the frontend says of a tensor

Build: TypeAlias = Callable[[Any, int, Any], tuple[Any, list[Any]]]
"""Given the frontend, a handle and a key, returns a built graph and the tensors that it is given,
those written last."""


class GraphPlan:
    """A built graph, or the knowledge that cuDNN has none.

    Attributes:
        work_bytes: the workspace that it needs for a call.
        held_bytes: what it holds on the device: nothing.
        is_there: whether cuDNN can do it.
    """

    held_bytes = 0
    work_bytes = 0

    def __init__(self, build: Build, cudnn: Any, handle: int, key: Any) -> None:
        self._graph: Any = None
        self._tensors: list[Any] = []
        # What cuDNN has no engine for raises one or the other, by where it finds out.
        with contextlib.suppress(cudnn.cudnnGraphNotSupportedError, RuntimeError):
            graph, tensors = build(cudnn, handle, key)
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


class CudnnGraphs:
    """A handle, and the plans of what it did; for the dispatcher thread."""

    def __init__(self, device: "CudaDevice", build: Build, cudnn: Any) -> None:
        self._cudnn = cudnn
        self._handle: int = cudnn.create_handle()
        self._binding = HandleBinding(device, partial(_put, cudnn, self._handle))
        self.plans: PlanCache[GraphPlan] = PlanCache(
            partial(GraphPlan, build, cudnn, self._handle),
            StreamFences(device),
            most=PLAN_LIMIT,
            most_bytes=1,
        )

    def run(self, key: Hashable, arrays: list[Any], workspace: Callable[[int], Any]) -> bool:
        """Enqueue a graph, and return whether cuDNN has it.

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

    def lend(self) -> int:
        """Return the handle on the active stream, for the user's code."""
        self._binding.bind()
        return self._handle

    def take_back(self) -> None:
        """Have its stream set anew."""
        self._binding.forget()

    def statistics(self) -> Mapping[str, int]:
        """Count its plans; any thread."""
        return {f"cuDNN {name}": count for name, count in self.plans.statistics().items()}

    def close(self) -> None:
        """Destroy plans and handle; waits for the device."""
        self.plans.close()
        # What cannot be destroyed belongs to a lost context, which the next call tells.
        with contextlib.suppress(RuntimeError):
            self._cudnn.destroy_handle(self._handle)


def cudnn_graphs(device: "CudaDevice", build: Build) -> CudnnGraphs | None:
    """Return graphs of a kind; None where cuDNN or its Python frontend is not installed."""
    try:
        return CudnnGraphs(device, build, importlib.import_module("cudnn"))
    except (ImportError, RuntimeError):  # the frontend is there, and no cuDNN
        return None


def is_packed(x: Any) -> bool:
    """Whether an array is contiguous and aligned."""
    return bool(x.flags.c_contiguous and x.data.ptr % _ALIGNED == 0)


def packed(x: Any) -> Any:
    """Return an operand that is contiguous and aligned."""
    return x if is_packed(x) else x.copy("C")


def _put(cudnn: Any, handle: int, stream: int) -> None:
    cudnn.set_stream(handle=handle, stream=stream)
