"""cuDNN's operation graphs by its Python frontend, which need not be installed."""

import contextlib
import importlib
from collections.abc import Callable, Hashable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from cupy.cuda import runtime

from accel_lab.backends.cuda.handles.binding import HandleBinding
from accel_lab.backends.cuda.handles.cudnn_disk import PlansOnDisk
from accel_lab.backends.cuda.handles.fences import StreamFences
from accel_lab.compute.machine.disk_cache import cache_folder
from accel_lab.libraries.authoring.plan_cache import PlanCache

if TYPE_CHECKING:
    from accel_lab.backends.cuda.device.device import CudaDevice

PLAN_LIMIT = 256
_ALIGNED = 16  # bytes; what the frontend says of a tensor

Build: TypeAlias = Callable[[Any, int, Any], Any]
"""Given the frontend, a handle and a key, returns a built graph, whose tensors are `numbered` in
the order in which it is given their addresses, those written last."""


class GraphPlan:
    """A built graph, or the knowledge that cuDNN has none.

    Attributes:
        work_bytes: the workspace that it needs for a call.
        held_bytes: what it holds on the device: nothing.
        is_there: whether cuDNN can do it.
    """

    held_bytes = 0
    work_bytes = 0

    def __init__(self, build: Build, disk: PlansOnDisk, cudnn: Any, handle: int, key: Any) -> None:
        self._graph: Any = disk.load(handle, key)
        if self._graph is None:
            # What cuDNN has no engine for raises one or the other, by where it finds out.
            with contextlib.suppress(cudnn.cudnnGraphNotSupportedError, RuntimeError):
                self._graph = build(cudnn, handle, key)
                disk.keep(key, self._graph)
        if self._graph is not None:
            self.work_bytes = int(self._graph.get_workspace_size())

    @property
    def is_there(self) -> bool:
        """Whether cuDNN can do it."""
        return self._graph is not None

    def run(self, handle: int, arrays: list[Any], work: int) -> None:
        """Enqueue it: operands, and behind them what is written."""
        pointers = {number: x.data.ptr for number, x in enumerate(arrays, 1)}
        self._graph.execute(pointers, work, handle=handle)

    def destroy(self) -> None:
        """Give everything back."""
        self._graph = None


class CudnnGraphs:
    """A handle, and the plans of what it did; for the dispatcher thread."""

    def __init__(self, device: "CudaDevice", build: Build, cudnn: Any) -> None:
        self._cudnn = cudnn
        self._handle: int = cudnn.create_handle()
        self._binding = HandleBinding(device, partial(_put, cudnn, self._handle))
        self.disk = PlansOnDisk(
            cudnn, cache_folder() / "cudnn", _card(device.index), runtime.streamIsCapturing
        )
        self.plans: PlanCache[GraphPlan] = PlanCache(
            partial(GraphPlan, build, self.disk, cudnn, self._handle),
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
        counts = {**self.plans.statistics(), **self.disk.statistics()}
        return {f"cuDNN {name}": count for name, count in counts.items()}

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


def _card(index: int) -> tuple[str, int, int, int]:
    """Return the name of a card, its compute capability, and how many processors it has."""
    told = runtime.getDeviceProperties(index)
    return told["name"].decode(), told["major"], told["minor"], told["multiProcessorCount"]


def _put(cudnn: Any, handle: int, stream: int) -> None:
    cudnn.set_stream(handle=handle, stream=stream)
