"""Contractions of two tensors by cuTENSOR, which need not be installed."""

import contextlib
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import cupy
import numpy as np
from cuda import pathfinder
from nvmath import CudaDataType
from nvmath.bindings import cutensor

from accel_lab.backends.cuda.handles.fences import StreamFences
from accel_lab.libraries.authoring.plan_cache import PlanCache
from accel_lab.libraries.tensor.evaluation import product

if TYPE_CHECKING:
    from accel_lab.backends.cuda.device.device import CudaDevice

PLAN_LIMIT = 512
_WORKSPACE_LIMIT = 256 << 20  # bytes; what it takes comes from the pool for each call
_MOST_ALIGNED = 256
_IDENTITY = int(cutensor.Operator.OP_IDENTITY)
_TYPES = {
    "float32": int(CudaDataType.CUDA_R_32F),
    "float64": int(CudaDataType.CUDA_R_64F),
    "complex64": int(CudaDataType.CUDA_C_32F),
    "complex128": int(CudaDataType.CUDA_C_64F),
}
_OWN = {"float32": "float32", "complex64": "float32", "float64": "float64", "complex128": "float64"}


class Key(NamedTuple):
    """All that a plan depends on: how each of the three tensors lies, and what its axes are."""

    dtype: str
    compute: str
    modes: tuple[str, str, str]
    shapes: tuple[tuple[int, ...], ...]
    steps: tuple[tuple[int, ...], ...]
    aligned: tuple[int, ...]


class TensorPlan:
    """A plan of cuTENSOR.

    Attributes:
        work_bytes: the workspace that it needs for a call.
        held_bytes: what it holds on the device: nothing.
    """

    held_bytes = 0

    def __init__(self, handle: int, key: Key) -> None:
        self._tensors: list[int] = []
        self._operation = self._plan = 0
        try:
            self._describe(handle, key)
        except BaseException:
            self.destroy()
            raise

    def _describe(self, handle: int, key: Key) -> None:
        described = zip(key.shapes, key.steps, key.aligned, strict=True)
        for shape, steps, aligned in described:
            self._tensors.append(
                cutensor.create_tensor_descriptor(
                    handle, len(shape), shape, steps, _TYPES[key.dtype], aligned
                )
            )
        a, b, d = self._tensors
        modes_a, modes_b, modes_d = (tuple(map(ord, names)) for names in key.modes)
        self._operation = cutensor.create_contraction(
            handle,
            a,
            modes_a,
            _IDENTITY,
            b,
            modes_b,
            _IDENTITY,
            d,
            modes_d,
            _IDENTITY,
            d,
            modes_d,
            _compute(key.compute or _OWN[key.dtype]),
        )
        preference = cutensor.create_plan_preference(
            handle, int(cutensor.Algo.DEFAULT), int(cutensor.JitMode.NONE)
        )
        try:
            wanted: int = cutensor.estimate_workspace_size(
                handle,
                self._operation,
                preference,
                int(cutensor.WorksizePreference.WORKSPACE_DEFAULT),
            )
            self.work_bytes = min(wanted, _WORKSPACE_LIMIT)
            self._plan = cutensor.create_plan(handle, self._operation, preference, self.work_bytes)
        finally:
            cutensor.destroy_plan_preference(preference)

    def run(self, handle: int, a: Any, b: Any, d: Any, stream: int) -> None:
        """Enqueue d = a b (cutensorContract); the workspace is the pool's."""
        work = cupy.ndarray((self.work_bytes,), "B") if self.work_bytes else None
        one, none = np.ones(1, d.dtype), np.zeros(1, d.dtype)
        cutensor.contract(
            handle,
            self._plan,
            one.ctypes.data,
            a.data.ptr,
            b.data.ptr,
            none.ctypes.data,
            d.data.ptr,
            d.data.ptr,
            work.data.ptr if work is not None else 0,
            self.work_bytes,
            stream,
        )

    def destroy(self) -> None:
        """Give everything back."""
        # What cannot be destroyed belongs to a lost context, which the next call tells.
        with contextlib.suppress(cutensor.cuTENSORError):
            if self._plan:
                cutensor.destroy_plan(self._plan)
            if self._operation:
                cutensor.destroy_operation_descriptor(self._operation)
            while self._tensors:
                cutensor.destroy_tensor_descriptor(self._tensors.pop())


class Cutensor:
    """A handle, and the plans of the contractions that it did; for the dispatcher thread."""

    def __init__(self, device: "CudaDevice") -> None:
        self._device = device
        self._handle: int = cutensor.create()
        self._plans: PlanCache[TensorPlan] = PlanCache(
            partial(TensorPlan, self._handle), StreamFences(device), most=PLAN_LIMIT, most_bytes=1
        )

    def multiply(self, compute: str, x: Any, y: Any, of_x: str, of_y: str, makes: str) -> Any:
        """Return the contraction of two tensors of which every name counts."""
        if not of_x or not of_y:
            return product(cupy, x, y, of_x, of_y, makes)
        x, y = _addressable(x), _addressable(y)
        sizes = {**dict(zip(of_x, x.shape, strict=True)), **dict(zip(of_y, y.shape, strict=True))}
        d = cupy.ndarray(tuple([sizes[name] for name in makes]), x.dtype)
        three = (x, y, d)
        key = Key(
            str(x.dtype),
            compute,
            (of_x, of_y, makes),
            tuple([one.shape for one in three]),
            tuple([tuple([s // one.itemsize for s in one.strides]) for one in three]),
            tuple([min(one.data.ptr & -one.data.ptr, _MOST_ALIGNED) for one in three]),
        )
        self._plans.use(key).run(self._handle, x, y, d, self._device.active.ptr)
        return d

    def statistics(self) -> Mapping[str, int]:
        """Count its plans; any thread."""
        return {f"cuTENSOR {name}": count for name, count in self._plans.statistics().items()}

    def close(self) -> None:
        """Destroy plans and handle; waits for the device."""
        self._plans.close()
        with contextlib.suppress(cutensor.cuTENSORError):
            cutensor.destroy(self._handle)


def installed() -> bool:
    """Whether the shared library is there to be loaded."""
    try:
        pathfinder.load_nvidia_dynamic_lib("cutensor")
    except pathfinder.DynamicLibNotFoundError:
        return False
    return True


def _addressable(x: Any) -> Any:
    """Return a tensor without negative strides, or such as repeat an element."""
    plain = all(
        stride > 0 and stride % x.itemsize == 0
        for extent, stride in zip(x.shape, x.strides, strict=True)
        if extent > 1
    )
    return x if plain and all(stride > 0 for stride in x.strides) else cupy.ascontiguousarray(x)


def _compute(name: str) -> Any:
    kinds = cutensor.ComputeDesc
    return {
        "tf32": kinds.COMPUTE_TF32,
        "float32": kinds.COMPUTE_32F,
        "float64": kinds.COMPUTE_64F,
    }[name]()
