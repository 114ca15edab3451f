"""Sums of arrays that lie densely in memory, launched at a fraction of CuPy's own cost.

CuPy takes 6 us to launch an elementwise kernel, half of it in Python. Here the arguments are
packed at once and cuLaunchKernel is called with them.
"""

from collections.abc import Callable
from functools import partial
from struct import Struct
from typing import Any, Literal, NamedTuple, TypeAlias

import cupy
import numpy as np
from cupy.cuda import driver

from accel_lab.backends.cuda.device.narrow_floats import FORMATS, HALF, SOURCE
from accel_lab.libraries.jit.arguments import keeping

UpdateName: TypeAlias = Literal["axpy", "scal"]

THREADS = 256
BLOCK_LIMIT = 1 << 16  # each thread goes on to the elements that are left

_WORD = 8
_ARGUMENTS = Struct("=QQQQq")  # where alpha is; x, y, out, their length


class _Form(NamedTuple):
    """How a kernel holds and computes elements, in C++."""

    element: str
    number: str
    read: str = "{}"
    write: str = "{}"
    is_complex: bool = False


_FORMS = {
    "float16": _Form("unsigned short", "float", HALF.decode("{}"), HALF.encode("{}")),
    "bfloat16": _Form(
        "unsigned short",
        "float",
        FORMATS["bfloat16"].decode("{}"),
        FORMATS["bfloat16"].encode("{}"),
    ),
    "float32": _Form("float", "float"),
    "float64": _Form("double", "double"),
    "complex64": _Form("number", "float", is_complex=True),
    "complex128": _Form("number", "double", is_complex=True),
}

_REAL = """
typedef {number} number;
__device__ number times(number a, number b) {{ return a * b; }}
__device__ number plus(number a, number b) {{ return a + b; }}
"""
_COMPLEX = """
struct number {{ {number} real, imaginary; }};
__device__ number times(number a, number b) {{
  return {{a.real * b.real - a.imaginary * b.imaginary,
           a.real * b.imaginary + a.imaginary * b.real}};
}}
__device__ number plus(number a, number b) {{
  return {{a.real + b.real, a.imaginary + b.imaginary}};
}}
"""
_VALUES = {"axpy": "plus(times(alpha, {x}), {y})", "scal": "times(alpha, {x})"}
_KERNEL = """
extern "C" __global__ void {name}(
    const {element}* x, const {element}* y, {element}* out, long long n, number alpha) {{
  long long step = (long long)gridDim.x * blockDim.x;
  for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step)
    out[i] = {value};
}}
"""


class Update:
    """Enqueues alpha x + y, or alpha x; the result may be an operand itself.

    Compiled when made; used by the dispatcher thread.
    """

    def __init__(self, name: UpdateName, dtype: str) -> None:
        self._kernel: Any = cupy.RawKernel(update_source(name, dtype), f"accel_lab_{name}").kernel
        self._function: int = self._kernel.ptr
        self._bytes, self._at = _block()

    def __call__(self, x: Any, y: Any, out: Any, alpha: int, stream: int) -> None:
        """Enqueue for contiguous arrays of one size; `alpha` is the factor's address."""
        n = out.size
        if n == 0:
            return
        # The driver copies the arguments before it returns.
        _ARGUMENTS.pack_into(self._bytes, 4 * _WORD, alpha, x.data.ptr, y.data.ptr, out.data.ptr, n)
        blocks = min((n + THREADS - 1) // THREADS, BLOCK_LIMIT)
        driver.launchKernel(self._function, blocks, 1, 1, THREADS, 1, 1, 0, stream, self._at, 0)

    def again(
        self, x: Any, y: Any, out: Any, alpha: int, factor: Any, stream: int
    ) -> Callable[[], object]:
        """Return what enqueues this once more; of the arrays it keeps the addresses alone."""
        n = out.size
        block, at = _block()
        _ARGUMENTS.pack_into(block, 4 * _WORD, alpha, x.data.ptr, y.data.ptr, out.data.ptr, n)
        blocks = min((n + THREADS - 1) // THREADS, BLOCK_LIMIT)
        launch = (self._function, blocks, 1, 1, THREADS, 1, 1, 0, stream, at, 0)
        return keeping(partial(driver.launchKernel, *launch), (block, factor))


def _block() -> tuple[memoryview, int]:
    """Return memory for the arguments, whose pointers are there already, and its address."""
    # Five addresses of arguments, then four of the arguments: alpha has a place of its own.
    words: Any = np.zeros(9, np.uint64)
    at: int = words.ctypes.data
    words[:4] = [at + (5 + i) * _WORD for i in range(4)]
    return memoryview(words).cast("B"), at


def update_source(name: UpdateName, dtype: str) -> str:
    """Return the C++ of one kernel."""
    form = _FORMS[dtype]
    numbers = (_COMPLEX if form.is_complex else _REAL).format(number=form.number)
    value = _VALUES[name].format(x=form.read.format("x[i]"), y=form.read.format("y[i]"))
    kernel = _KERNEL.format(
        name=f"accel_lab_{name}", element=form.element, value=form.write.format(value)
    )
    return SOURCE + numbers + kernel
