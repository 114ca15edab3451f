"""Fourier transforms on cuda: cuFFT through nvmath's bindings, and a kernel for what surrounds it.

How cuFFT is asked depends on shapes, strides and options alone and is kept, so that a repeated
transform costs little more than the call. Work areas come from CuPy's pool: a plan keeps a small
one and borrows a large one for each call.
"""

import contextlib
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import cupy
from cupy.cuda import runtime
from nvmath.bindings import cufft

from accel_lab.backends.cuda.array.narrow import store, widened
from accel_lab.backends.cuda.fft.copies import Element
from accel_lab.backends.cuda.fft.copy_kernels import Addresses, CopyKernels, Enqueue
from accel_lab.backends.cuda.fft.passes import Plan, packed
from accel_lab.backends.cuda.fft.route import Array, Run, Step, Task, route
from accel_lab.backends.cuda.fft.spectra import CudaSpectra, Transforms
from accel_lab.backends.cuda.handles.fences import StreamFences
from accel_lab.backends.spectra import Tools
from accel_lab.libraries.authoring.plan_cache import PlanCache
from accel_lab.libraries.fft.layouts import Half, Padded
from accel_lab.libraries.fft.library import C2C, C2R, R2C
from accel_lab.libraries.fft.transform import Kind, frame

if TYPE_CHECKING:
    from accel_lab.backends.cuda.device.device import CudaDevice
    from accel_lab.backends.cuda.device.stream import CudaStream

Precision: TypeAlias = Literal["float16", "bfloat16", "single", "double"]

PLAN_LIMIT = 256
WORK_LIMIT = 256 << 20  # bytes of the work areas that are kept
CACHE_LIMIT = 4096
_FORWARD, _INVERSE = -1, 1
_SINGLE: Mapping[Kind, Any] = {"C2C": cufft.Type.C2C, "R2C": cufft.Type.R2C, "C2R": cufft.Type.C2R}
_DOUBLE: Mapping[Kind, Any] = {"C2C": cufft.Type.Z2Z, "R2C": cufft.Type.D2Z, "C2R": cufft.Type.Z2D}
_TYPES: Mapping[Precision, Mapping[Kind, Any]] = {"single": _SINGLE, "double": _DOUBLE}
_KINDS: Mapping[str, Kind] = {"c2c": "C2C", "r2c": "R2C", "c2r": "C2R"}
# Real and complex, cudaDataType of library_types.h: CUDA_R_16F, CUDA_C_16F, CUDA_R_16BF, …
_HALVES: Mapping[str, tuple[int, int]] = {"float16": (2, 6), "bfloat16": (14, 15)}
# Looked up here, so that a missing one is missed at once.
_EXECUTE: Mapping[Precision, Mapping[Kind, Any]] = {
    "single": {"C2C": cufft.exec_c2c, "R2C": cufft.exec_r2c, "C2R": cufft.exec_c2r},
    "double": {"C2C": cufft.exec_z2z, "R2C": cufft.exec_d2z, "C2R": cufft.exec_z2d},
}
_DOUBLES = "dD"


class Key:
    """What a plan of cuFFT depends on; there is one object for each, which is cheap to look up."""

    __slots__ = ("plan", "precision")

    def __init__(self, precision: Precision, plan: Plan) -> None:
        self.precision = precision
        self.plan = plan


class CudaPlan:
    """A plan of cuFFT without a work area of its own.

    Attributes:
        handle: cuFFT's.
        work_bytes: the size of the work area that it needs.
        held_bytes: what of it is kept between calls.
        area: the work area that is kept.
        stream: where it enqueues; None as long as each call must prepare it.
    """

    __slots__ = ("area", "handle", "held_bytes", "stream", "work_bytes")

    def __init__(self, key: Key) -> None:
        plan = key.plan
        self.stream: CudaStream | None = None
        self.area: Any = None
        self.handle: int = cufft.create()
        try:
            cufft.set_auto_allocation(self.handle, 0)
            source = list(plan.source.embed), plan.source.stride, plan.source.distance
            target = list(plan.target.embed), plan.target.stride, plan.target.distance
            begin = self.handle, len(plan.n), list(plan.n)
            self.work_bytes: int
            if key.precision in _HALVES:
                real, pair = _HALVES[key.precision]
                read, written = (real if plan.kind == one else pair for one in ("R2C", "C2R"))
                self.work_bytes = cufft.xt_make_plan_many(
                    *begin, *source, read, *target, written, plan.batch, pair
                )
            else:
                # Its kernels count in 32 bits wherever that is enough.
                kind = int(_TYPES[key.precision][plan.kind])
                self.work_bytes = cufft.make_plan_many64(*begin, *source, *target, kind, plan.batch)
        except BaseException:
            self.destroy()
            raise
        self.held_bytes = self.work_bytes if self.work_bytes <= WORK_LIMIT else 0

    def prepare(self, stream: "CudaStream") -> Any:
        """Put it on a stream and give it a work area, which must be kept until it is enqueued."""
        cufft.set_stream(self.handle, stream.ptr)
        area = self.area
        if area is None and self.work_bytes:
            area = cupy.ndarray((self.work_bytes,), "B")
            cufft.set_work_area(self.handle, area.data.ptr)
        if self.held_bytes == self.work_bytes:
            self.area, self.stream = area, stream
        return area

    def destroy(self) -> None:
        """Give everything back."""
        self.area = None
        # A plan that cannot be destroyed belongs to a lost context, which the next call tells.
        with contextlib.suppress(cufft.cuFFTError):
            cufft.destroy(self.handle)


class CudaFft(CudaSpectra):
    """Enqueues on the device's active stream; used by the dispatcher thread."""

    def __init__(self, device: "CudaDevice") -> None:
        self._device = device
        self._transforms: dict[Any, Transform] = {}
        self._keys: dict[tuple[Precision, Plan], Key] = {}
        self._kernels = CopyKernels(device)
        self._plans: PlanCache[CudaPlan] = PlanCache(
            CudaPlan,
            StreamFences(device),
            most=PLAN_LIMIT,
            most_bytes=WORK_LIMIT,
        )
        self._tools = Tools(cupy, Transforms(self._transform))

    def c2c(self, m: C2C, x: Any, out: Any) -> None:
        """Write the complex transform (cufftExecC2C, cufftExecZ2Z)."""
        self._transform(m.kind, m.given, x, out, inverse=m.inverse)

    def r2c(self, m: R2C, x: Any, out: Any) -> None:
        """Write half of the transform of a real array (cufftExecR2C, cufftExecD2Z)."""
        self._transform(m.kind, m.given, x, out, inverse=False)

    def c2r(self, m: C2R, x: Any, out: Any) -> None:
        """Write the real array of a half (cufftExecC2R, cufftExecZ2D), of a copy of it."""
        self._transform(m.kind, m.given, x, out, inverse=True)

    def padded(self, m: Padded, x: Any, out: Any) -> None:
        """Write the transform of padded lines, in place where the memory has no gaps."""
        if not out.size:
            return
        dtype = "complex64" if x.dtype.char == "f" else "complex128"
        if m.inverse:
            pairs = cupy.ascontiguousarray(x).view(dtype)
            s = (*x.shape[x.ndim - m.ndim : -1], m.points)
            self._transform("C2R", (s, m.axes, m.norm), pairs, out[..., : m.points], inverse=True)
            out[..., m.points :] = 0
            return
        dense = out if out.flags.c_contiguous else cupy.empty(out.shape, out.dtype)
        lines, pairs = x[..., : m.points], dense.view(dtype)
        self._transform("R2C", (None, m.axes, m.norm), lines, pairs, inverse=False)
        if dense is not out:
            out[...] = dense

    def half(self, m: Half, x: Any, out: Any) -> None:
        """Write the transform (cufftXtMakePlanMany, cufftXtExec)."""
        if not out.size:
            return
        if math.prod(m.lengths) == 1:
            out[...] = 0
            (out[..., 0] if m.form == "r2c" else out)[...] = x
            return
        factor = frame("C2C", m.lengths, None, None).factor(m.norm, inverse=m.is_back)
        if factor < 1:
            self._half_in_single(m, x, out)
            return
        precision: Precision = "float16" if m.x.dtype == "float16" else "bfloat16"
        source = cupy.array(x, order="C")  # what becomes real numbers is overwritten
        target = out if out.flags.c_contiguous else cupy.empty(out.shape, out.dtype)
        kept = self._plans.use(self._key(precision, packed(_KINDS[m.form], m.lengths, m.x.size)))
        _area = kept.prepare(self._device.active)
        direction = _INVERSE if m.is_back else _FORWARD
        cufft.xt_exec(kept.handle, source.data.ptr, target.data.ptr, direction)
        if target is not out:
            out[...] = target

    def _half_in_single(self, m: Half, x: Any, out: Any) -> None:
        """Transform in single precision: what is scaled at the end may be too large until then."""
        kind, axes = _KINDS[m.form], tuple(range(-m.ndim, 0))
        given = widened(x, m.x.dtype, "float32")
        if kind != "R2C":
            given = cupy.ascontiguousarray(given).view("complex64")[..., 0]
        made = cupy.ndarray(out.shape, "float32")
        target = made if kind == "C2R" else made.view("complex64")[..., 0]
        s = m.lengths if kind == "C2R" else None
        self._transform(kind, (s, axes, m.norm), given, target, inverse=m.is_back)
        store(made, out, m.x.dtype)

    def statistics(self) -> Mapping[str, int]:
        """Return the plans there are, what they hold, and how often one was there; any thread."""
        return {**self._plans.statistics(), "work bytes": self._plans.held_bytes}

    def give_way(self) -> bool:
        """Destroy the plans that were used longest ago, half of them; waits for the device."""
        if not self._plans:
            return False
        runtime.deviceSynchronize()  # another library may have asked for room, on its stream
        return self._plans.shrink()

    def trim(self) -> None:
        """Destroy every plan; waits for the device. The next transforms plan anew."""
        self._transforms.clear()
        runtime.deviceSynchronize()  # another library may have asked for room, on its stream
        self._plans.close()

    def close(self) -> None:
        """Destroy every plan; waits for the device."""
        self._transforms.clear()
        # What cannot be waited for belongs to a lost context, which the next call tells.
        with contextlib.suppress(runtime.CUDARuntimeError):
            self._plans.close()

    def _transform(self, kind: Kind, given: Any, x: Any, out: Any, *, inverse: bool) -> None:
        if not out.size:
            return
        s, axes, norm = given
        at_x, at_out = x.data.ptr, out.data.ptr
        key = (
            kind,
            inverse,
            norm,
            s,
            axes,
            x.dtype.char,
            x.shape,
            # `_c_contiguous` is ten times cheaper than `flags`.
            x._c_contiguous or x.strides,  # noqa: SLF001
            out._c_contiguous or out.strides,  # noqa: SLF001
            at_x % 16,
            at_out % 16,
        )
        transform = self._transforms.get(key)
        if transform is None:
            if len(self._transforms) >= CACHE_LIMIT:
                self._transforms.clear()
                self._keys.clear()
            made = frame(kind, x.shape, s, axes)
            factor = made.factor(norm, inverse=inverse)
            task = Task(kind, made, factor, _array(x), _array(out))
            precision: Precision = "double" if x.dtype.char in _DOUBLES else "single"
            transform = self._planned(task, precision, inverse=inverse)
            self._transforms[key] = transform
        enqueued = self._device.active.enqueuing()
        transform(at_x, at_out)
        if enqueued is not None and transform.in_one:
            enqueued()

    def _planned(self, task: Task, precision: Precision, *, inverse: bool) -> "Transform":
        """Find out, once, how to do a transform."""
        found = route(task)
        direction = _INVERSE if inverse else _FORWARD
        steps = [self._step(step, precision, direction) for step in found.steps]
        return Transform(steps, found.first_bytes, found.second_bytes)

    def _key(self, precision: Precision, plan: Plan) -> Key:
        return self._keys.setdefault((precision, plan), Key(precision, plan))

    def _step(self, step: Step, precision: Precision, direction: int) -> Enqueue:
        is_double = precision == "double"
        if not isinstance(step, Run):
            return self._kernels.enqueue(step, double=is_double)
        plan, offsets, _ = step.work
        execute = _EXECUTE[precision][plan.kind]
        extra = (direction,) if plan.kind == "C2C" else ()
        key = self._key(precision, plan)
        element = 16 if is_double else 8
        from_one = element // 2 if plan.kind == "R2C" else element
        to_one = element // 2 if plan.kind == "C2R" else element
        shifts = tuple((from_one * i, to_one * o) for i, o in offsets)
        source, target = step.source, step.target
        use, device = self._plans.use, self._device

        def enqueue(at: Addresses) -> None:
            kept = use(key)
            stream = device.active
            _area = None if kept.stream is stream else kept.prepare(stream)
            for i, o in shifts:
                execute(kept.handle, at[source] + i, at[target] + o, *extra)

        def enqueue_one(at: Addresses) -> None:
            kept = use(key)
            stream = device.active
            _area = None if kept.stream is stream else kept.prepare(stream)
            execute(kept.handle, at[source], at[target], *extra)

        return enqueue_one if shifts == ((0, 0),) else enqueue


class Transform:
    """The steps of one kind of transform.

    Attributes:
        in_one: whether there is only one.
    """

    __slots__ = ("_first_bytes", "_second_bytes", "_steps", "in_one")

    def __init__(self, steps: list[Enqueue], first_bytes: int, second_bytes: int) -> None:
        self._steps = steps
        self.in_one = len(steps) == 1
        self._first_bytes = first_bytes
        self._second_bytes = second_bytes

    def __call__(self, x: int, out: int) -> None:
        """Enqueue them; arrays in between return to the pool, which reuses them in order."""
        at_first = at_second = 0
        if self._first_bytes:
            first = cupy.ndarray((self._first_bytes,), "B")
            at_first = first.data.ptr
        if self._second_bytes:
            second = cupy.ndarray((self._second_bytes,), "B")
            at_second = second.data.ptr
        at = (x, out, at_first, at_second)
        for step in self._steps:
            step(at)


def _array(x: Any) -> Array:
    """Say where an array lies, and whether cuFFT may read or write complex numbers there."""
    is_complex = x.dtype.kind == "c"
    number = x.itemsize if is_complex else 2 * x.itemsize
    aligned = x.data.ptr % number == 0
    element: Element = "real" if not is_complex else "complex" if aligned else "loose"
    return Array(x.shape, x.strides, x.itemsize, element, aligned)
