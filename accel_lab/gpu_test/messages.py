"""One message of each library, and what NumPy and SciPy compute here.

Operands are small integers, whose sums of products every dtype of the table holds exactly.
"""

import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import scipy.fft
import scipy.sparse
import scipy.special

from accel_lab.compute.arrays.dtypes import is_complex, numpy_dtype
from accel_lab.compute.device import Device
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.gpu_test.outcome import Wrong
from accel_lab.journal.replay.tolerance import eps_of
from accel_lab.libraries import (
    array,
    attention,
    blas,
    blas_lt,
    cutlass,
    dnn,
    event,
    fft,
    jit,
    memory,
    module,
    primitives,
    rng,
    solver,
    sparse,
    tensor,
)

LIMIT_S = 120.0
"""For an answer: the first use of a library loads it, and may compile."""
ROUNDINGS = 16
N = 8
PAUSE_S = 0.02
FIRST_WORDS = (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)
"""Philox4x32-10 of a counter and a key of zeros, as Random123's `kat_vectors` has it."""
STEP = "__global__ void step(const float* x, float* y) { y[threadIdx.x] = 2 * x[threadIdx.x] + 1; }"


class Operands(NamedTuple):
    """Where a check runs, and what it draws its operands from."""

    device: Device
    dtype: str
    random: np.random.Generator

    def draw(self, *shape: int) -> Any:
        """Return integers from -2 to 2 as an array of the dtype; from 0 on without a sign."""
        native = numpy_dtype(self.dtype)
        if native.kind in "bu":
            return self.random.integers(0, 2 if self.dtype == "bool" else 3, shape).astype(native)
        drawn = self.random.integers(-2, 3, shape)
        if is_complex(self.dtype):
            return (drawn + 1j * self.random.integers(-2, 3, shape)).astype(native)
        return drawn.astype(native)

    def put(self, *arrays: Any) -> list[AccelRef]:
        """Send arrays to the device."""
        return [self.device.put(one) for one in arrays]


def wide(x: Any) -> Any:
    """Return an array in double precision, in which what is exact is computed."""
    x = np.asarray(x)
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)


def require_near(device: Device, ref: AccelRef, exact: Any, dtype: str) -> None:
    """Fetch a buffer and compare it.

    Raises:
        Wrong: it is of another shape or dtype, or further away than a few roundings.
    """
    found = device.get(ref).result(LIMIT_S)
    if found.shape != exact.shape or str(found.dtype) != dtype:
        raise Wrong(f"it is {found.dtype}{list(found.shape)}, expected {dtype}{list(exact.shape)}")
    error = np.max(np.abs(wide(found) - wide(exact)), initial=0.0)
    bound = ROUNDINGS * eps_of(dtype) * np.max(np.abs(wide(exact)), initial=1.0)
    if not error <= bound:
        raise Wrong(f"it is off by {error:.3g}, and may be by {bound:.3g}")


def _array(on: Operands) -> None:
    x, y = on.draw(N, N), on.draw(N, N)
    require_near(on.device, array.add(*on.put(x, y)), x + y, on.dtype)


def _attention(on: Operands) -> None:
    q, k, v = (on.draw(1, 2, N, 64) for _ in range(3))
    scores = wide(q) @ np.swapaxes(wide(k), -1, -2) / np.sqrt(64)
    exact = scipy.special.softmax(scores, axis=-1) @ wide(v)
    q_, k_, v_ = on.put(q, k, v)
    require_near(on.device, attention.attend(q_, k_, v_).y, exact, on.dtype)


def _blas(on: Operands) -> None:
    a, b = on.draw(N, 5), on.draw(5, 3)
    exact = wide(a) @ wide(b)
    exact = exact != 0 if on.dtype == "bool" else exact
    require_near(on.device, blas.gemm(*on.put(a, b)), exact, on.dtype)


def _blas_lt(on: Operands) -> None:
    a, b, bias = on.draw(16, 32), on.draw(32, 16), on.draw(16)
    exact = np.maximum(wide(a) @ wide(b) + wide(bias), 0)
    a_, b_, bias_ = on.put(a, b, bias)
    made = blas_lt.matmul(a_, b_, bias=bias_, activation="relu")
    require_near(on.device, made, exact, on.dtype)


def _cutlass(on: Operands) -> None:
    a, b = on.draw(16, 32), on.draw(32, 16)
    exact = np.maximum(wide(a) @ wide(b), 0)
    made = "int32" if on.dtype == "int8" else on.dtype
    require_near(on.device, cutlass.gemm(*on.put(a, b), epilogue="relu"), exact, made)


def _dnn(on: Operands) -> None:
    x = on.draw(3, N)
    exact = scipy.special.softmax(wide(x), axis=-1)
    require_near(on.device, dnn.softmax(on.device.put(x)), exact, on.dtype)


def _event(on: Operands) -> None:
    start = event.record(on.device)
    start.result(LIMIT_S)
    on.device.run(time.sleep, PAUSE_S)
    end = event.record(on.device)
    passed_ms = event.elapsed(start, end)
    if not passed_ms >= 0.99 * PAUSE_S * 1e3:
        raise Wrong(f"{passed_ms:.3g} ms passed where {PAUSE_S * 1e3:.3g} ms of work lay between")


def _fft(on: Operands) -> None:
    x = on.draw(3, 12)
    made = {"float32": "complex64", "float64": "complex128"}.get(on.dtype, on.dtype)
    require_near(on.device, fft.c2c(on.device.put(x), axes=-1), scipy.fft.fft(wide(x)), made)


def _graph(on: Operands) -> None:
    x, y = np.full((4, 4), 3.0), np.full((4, 4), 2.0)
    first, second = on.put(x, y)
    with on.device.graph(a=first) as recorded:
        made = array.add(blas.gemm(first, second), first)
    recorded.launch(a=second)
    require_near(on.device, made, y @ y + y, "float64")
    recorded.close()


def _jit(on: Operands) -> None:
    x = np.arange(32, dtype=np.float32)
    given, made = on.put(x, np.zeros_like(x))
    jit.compile(on.device, STEP, "step")(1, len(x), (given, made)).result(LIMIT_S)
    require_near(on.device, made, 2 * x + 1, "float32")


def _memory(on: Operands) -> None:
    a = on.draw(N)
    grown = memory.grow(memory.growing(on.device, a.shape, 64 * N, on.dtype), 2 * N)
    array.assign(grown, (slice(None, N),), on.device.put(a))
    require_near(on.device, grown[:N], wide(a), on.dtype)


def _module(on: Operands) -> None:
    x = np.arange(32, dtype=np.float32)
    given, made = on.put(x, np.zeros_like(x))
    built = module.build(on.device, STEP)
    built["step"](1, len(x), (given, made)).result(LIMIT_S)
    require_near(on.device, made, 2 * x + 1, "float32")
    built.unload()


def _primitives(on: Operands) -> None:
    x = on.draw(1000)
    require_near(on.device, primitives.sort(on.device.put(x)), np.sort(x), on.dtype)


def _rng(on: Operands) -> None:
    exact = np.array(FIRST_WORDS, np.uint32).view(on.dtype)
    drawn = on.device.get(rng.words(on.device, len(exact), on.dtype, seed=0)).result(LIMIT_S)
    if not np.array_equal(drawn, exact):
        raise Wrong(f"the first words are {list(map(hex, drawn))}")


def _solver(on: Operands) -> None:
    a, b = on.draw(N, N) + 20 * np.eye(N, dtype=on.dtype), on.draw(N, 2)
    exact = np.linalg.solve(wide(a), wide(b))
    require_near(on.device, solver.solve(*on.put(a, b)), exact, on.dtype)


def _sparse(on: Operands) -> None:
    a, x = on.draw(N, N), on.draw(N)
    exact = scipy.sparse.csr_array(wide(a)) @ wide(x)
    a_, x_ = on.put(a, x)
    require_near(on.device, sparse.spmv(sparse.sparsify(a_), x_), exact, on.dtype)


def _tensor(on: Operands) -> None:
    a, b = on.draw(4, 3, 2), on.draw(3, 5)
    exact = np.einsum("ijk,jl->lik", wide(a), wide(b))
    made = tensor.contract("ijk,jl->lik", *on.put(a, b))
    require_near(on.device, made, exact, on.dtype)


MESSAGES: Mapping[str, Callable[[Operands], None]] = {
    "array.Binary": _array,
    "attention.Attend": _attention,
    "blas.Gemm": _blas,
    "blas_lt.Matmul": _blas_lt,
    "cutlass.Gemm": _cutlass,
    "dnn.Softmax": _dnn,
    "event.Elapsed": _event,
    "fft.C2C": _fft,
    "graph.LaunchGraph": _graph,
    "jit.LaunchKernel": _jit,
    "memory.Growing": _memory,
    "module.Build": _module,
    "primitives.Sort": _primitives,
    "rng.Words": _rng,
    "solver.Solve": _solver,
    "sparse.Spmv": _sparse,
    "tensor.Contract": _tensor,
}
"""What is sent to one device, by its name in the backend's table; raises Wrong."""
