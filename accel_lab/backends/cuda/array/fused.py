"""Functions of each element computed together on cuda: one kernel, made when it comes again.

What is seen for the second time is compiled beside the dispatcher; until that is done each function
goes alone, so nothing waits for a compiler. Kernels are kept on disk.
"""

import contextlib
import queue
import threading
from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from cupy.cuda import driver, nvrtc, runtime

from accel_lab.backends.cuda.array.fused_layout import Layout, layout_of
from accel_lab.backends.cuda.array.fused_source import (
    NAME,
    Variant,
    as_packed,
    number_kinds,
    packing,
    source_of,
)
from accel_lab.compute.fusion.program import Enqueue, Program
from accel_lab.compute.machine.disk_cache import DiskCache, cache_folder, key_of

if TYPE_CHECKING:
    from accel_lab.backends.cuda.device.device import CudaDevice

FORMAT = 1
THREADS = 256
PER_THREAD = 4
BLOCK_LIMIT = 1 << 16
NARROW_LIMIT = 2**31
KNOWN = 2048
WORTH_IT = 2
"""At which time that it is wanted a kernel is compiled."""
CUBIN = "kernel.cubin"
# As CuPy compiles its own, but that nothing is contracted: a step has the bits of a kernel alone.
OPTIONS = ("-std=c++17", "-ftz=true", "-fmad=false")


class Kernel:
    """A variant: first seen, then being compiled, then ready; or left to CuPy for good."""

    __slots__ = ("cubin", "function", "kinds", "lacks", "memory", "seen", "struct", "words")

    def __init__(self) -> None:
        self.seen = 0
        self.lacks = False
        self.cubin: bytes | None = None
        self.function = 0

    def ready(self, variant: Variant) -> None:
        """Load it; the dispatcher thread."""
        assert self.cubin is not None
        self.function = driver.moduleGetFunction(driver.moduleLoadData(self.cubin), NAME)
        self.struct = packing(variant)
        kinds = number_kinds(variant.program)
        self.kinds = kinds if any(kind != "d" for kind in kinds) else None
        # The address of the only argument, and then the argument.
        self.words: Any = np.zeros(2 + self.struct.size // 8, np.uint64)
        self.words[0] = self.words.ctypes.data + 8
        self.memory: Any = self.words.view(np.uint8)


class FusedKernels:
    """The kernels of one context; used by the dispatcher thread."""

    least = 2
    """From how many functions on a kernel is worth being compiled: CuPy's own are there."""

    def __init__(self, device: "CudaDevice") -> None:
        self._device = device
        self._kernels: dict[Variant, Kernel] = {}
        self._layouts: dict[Any, Layout] = {}
        self._compiler = Compiler(device.index)

    def __call__(
        self, program: Program, shape: tuple[int, ...], arrays: Sequence[Any]
    ) -> Enqueue | None:
        """Return what enqueues a program; None while its kernel is not there."""
        form = shape, tuple([(x.shape, x.strides) for x in arrays])
        layout = self._layouts.get(form)
        if layout is None:
            if len(self._layouts) >= KNOWN:
                self._layouts.clear()
            layout = self._layouts[form] = layout_of(shape, arrays)
        count = prod(shape)
        variant = Variant(program, layout.places, layout.rank, count >= NARROW_LIMIT)
        kernel = self._kernels.get(variant)
        if kernel is None:
            if len(self._kernels) >= KNOWN:
                return None
            kernel = self._kernels[variant] = Kernel()
        if not kernel.function and not self._is_there(variant, kernel):
            return None
        return partial(self._enqueue, kernel, count, layout.tail, arrays)

    def _is_there(self, variant: Variant, kernel: Kernel) -> bool:
        if kernel.lacks:
            return False
        if kernel.cubin is not None:
            kernel.ready(variant)
            return True
        kernel.seen += 1
        if kernel.seen == WORTH_IT:
            self._compiler.compile(variant, kernel)
        return False

    def _enqueue(
        self,
        kernel: Kernel,
        count: int,
        tail: tuple[int, ...],
        arrays: Sequence[Any],
        numbers: Sequence[Any],
        outs: Sequence[Any],
    ) -> None:
        if kernel.kinds is not None:
            numbers = [as_packed(*one) for one in zip(numbers, kernel.kinds, strict=True)]
        kernel.struct.pack_into(
            kernel.memory,
            8,
            *[x.data.ptr for x in arrays],
            *[x.data.ptr for x in outs],
            *numbers,
            count,
            *tail,
        )
        blocks = min(-(-count // (THREADS * PER_THREAD)), BLOCK_LIMIT)
        stream = self._device.active.ptr
        at: int = kernel.words.ctypes.data
        driver.launchKernel(kernel.function, blocks, 1, 1, THREADS, 1, 1, 0, stream, at, 0)


class Compiler:
    """Compiles kernels on a thread of its own, or finds them on disk."""

    def __init__(self, index: int) -> None:
        properties = runtime.getDeviceProperties(index)
        self._architecture = f"{properties['major']}{properties['minor']}"
        self._cache = DiskCache(cache_folder() / "cuda-fused")
        self._queue: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def compile(self, variant: Variant, kernel: Kernel) -> None:
        """Have a kernel compiled; returns at once."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="fused kernels", daemon=True)
            self._thread.start()
        self._queue.put(partial(self._make, variant, kernel))

    def _run(self) -> None:
        while True:
            self._queue.get()()

    def _make(self, variant: Variant, kernel: Kernel) -> None:
        try:
            source = source_of(variant)
            if source is None:
                kernel.lacks = True
            else:
                kernel.cubin = self._cubin(source)
        except Exception:  # noqa: BLE001 - then each function goes alone, as before
            kernel.lacks = True

    def _cubin(self, source: str) -> bytes:
        key = key_of(FORMAT, self._architecture, nvrtc.getVersion(), OPTIONS, source)
        found = self._cache.get(key)
        if found is not None and CUBIN in found:
            return found[CUBIN]
        program = nvrtc.createProgram(source, f"{NAME}.cu", (), ())
        try:
            nvrtc.compileProgram(program, (f"-arch=sm_{self._architecture}", *OPTIONS))
            cubin: bytes = nvrtc.getCUBIN(program)
        finally:
            nvrtc.destroyProgram(program)
        with contextlib.suppress(OSError):  # without a disk it is compiled in every process
            self._cache.put(key, {CUBIN: cubin})
        return cubin
