"""Random numbers on cuda, by accel_lab's own kernels; words and uniforms equal the host's.

cuRAND's own generator keeps a state, which a replayed graph would move on. Launches go to the
driver with arguments that are packed at once, because CuPy's own take twice as long.
"""

from struct import Struct
from typing import TYPE_CHECKING, Any, TypeAlias

import cupy
import numpy as np
from cupy.cuda import driver

from accel_lab.backends.cuda.rng.distributions import CudaDistributions
from accel_lab.backends.cuda.rng.engines import CudaEngines
from accel_lab.backends.cuda.rng.kernels import MAX_NDIM, Form, Kind, drawing_source
from accel_lab.libraries.rng.messages import words_each
from accel_lab.libraries.rng.selection import Permutation

if TYPE_CHECKING:
    from accel_lab.backends.cuda.device.device import CudaDevice

Place: TypeAlias = tuple[int, int, int]

THREADS = 256
BLOCK_LIMIT = 1 << 16  # each thread goes on to the elements that are left

_WORD = 8
_ARGUMENTS = 9
_FIXED = Struct("=QqQQQ")  # out, its length, seed, stream, offset; three numbers follow
_NUMBERS = {"u64": Struct("=QQQ"), "float": Struct("=f4xf4xf4x"), "double": Struct("=ddd")}


class CudaRng(CudaDistributions, CudaEngines):
    """Enqueues on the device's active stream; used by the dispatcher thread.

    A kernel is compiled at its first use, and kept on disk for every later process.
    """

    def __init__(self, device: "CudaDevice") -> None:
        self._device = device
        super().__init__()
        self._drawings: dict[tuple[Kind, str, int, bool], Drawing] = {}

    def integers(self, out: Any, place: Place, *, low: int, span: int) -> None:
        """Write integers from `low` on, `span` different ones."""
        width = 8 * out.itemsize
        each = words_each(span)
        self._draw(("integers", f"uint{width}", each), out, place, low % 2**64, span % 2**64, 0)

    def uniform(
        self,
        out: Any,
        place: Place,
        *,
        dtype: str,
        low: float,
        span: float,
        high: float,
    ) -> None:
        """Write low + u span, at most `high`."""
        self._draw(("uniform", dtype, _each(dtype)), out, place, low, span, high)

    def normal(self, out: Any, place: Place, *, dtype: str, mean: float, std: float) -> None:
        """Write z std + mean."""
        self._draw(("normal", dtype, _each(dtype)), out, place, mean, std, 0.0)

    def permutation(self, m: Permutation, out: Any) -> None:
        """Write what sorts as many numbers (cupy.argsort, which is stable)."""
        if not out.size:
            return
        keys = cupy.empty(out.shape, np.uint64)
        self.integers(keys, (m.seed, m.stream, m.offset), low=0, span=2**64)
        out[...] = cupy.argsort(keys)

    def _draw(
        self, what: tuple[Kind, str, int], out: Any, place: Place, a: Any, b: Any, c: Any
    ) -> None:
        # `_c_contiguous` is ten times cheaper than `flags`.
        key = (*what, out._c_contiguous)  # noqa: SLF001
        drawing = self._drawings.get(key)
        if drawing is None:
            drawing = self._drawings[key] = Drawing(Form(*key))
        drawing(out, place, a, b, c, self._device.active.ptr)


class Drawing:
    """Enqueues one kernel; compiled when made, used by the dispatcher thread."""

    def __init__(self, form: Form) -> None:
        self._kernel: Any = cupy.RawKernel(drawing_source(form), form.name).kernel
        self._function: int = self._kernel.ptr
        self._count = 4 // form.each
        self._numbers = _NUMBERS[form.number]
        self._dense = form.dense
        # The addresses of the arguments, then all of them but the layout, which has its place.
        # A dense kernel does not look at its layout, but the driver copies one.
        words: Any = np.zeros(2 * _ARGUMENTS, np.uint64)
        self._at: int = words.ctypes.data
        words[:_ARGUMENTS] = [self._at + (_ARGUMENTS + i) * _WORD for i in range(_ARGUMENTS)]
        self._layout: Any = np.zeros(1 + 2 * MAX_NDIM, np.int64)
        words[_ARGUMENTS - 1] = self._layout.ctypes.data
        self._bytes = memoryview(words).cast("B")

    def __call__(self, out: Any, place: Place, a: Any, b: Any, c: Any, stream: int) -> None:
        """Enqueue for an array of any strides if the form is not dense, else a contiguous one."""
        n = out.size
        if n == 0:
            return
        if not self._dense:
            ndim = out.ndim
            self._layout[0] = ndim
            self._layout[1 : 1 + ndim] = out.shape
            self._layout[1 + MAX_NDIM : 1 + MAX_NDIM + ndim] = out.strides
        # The driver copies the arguments before it returns.
        _FIXED.pack_into(self._bytes, _ARGUMENTS * _WORD, out.data.ptr, n, *place)
        self._numbers.pack_into(self._bytes, _ARGUMENTS * _WORD + _FIXED.size, a, b, c)
        threads = -(-n // self._count)
        blocks = min(-(-threads // THREADS), BLOCK_LIMIT)
        driver.launchKernel(self._function, blocks, 1, 1, THREADS, 1, 1, 0, stream, self._at, 0)


def _each(dtype: str) -> int:
    return 2 if dtype == "float64" else 1
