"""A few messages of each library, of fresh results: what the calls of `baseline/workloads` do."""

from collections.abc import Callable
from typing import Any, NamedTuple

from accel_lab.backends.workloads import OPERANDS, count
from accel_lab.compute.device import Device
from accel_lab.libraries.array import library as array
from accel_lab.libraries.blas import library as blas
from accel_lab.libraries.blas_lt import library as blas_lt
from accel_lab.libraries.fft import library as fft
from accel_lab.libraries.rng import library as rng
from accel_lab.libraries.solver import library as solver
from accel_lab.libraries.sparse import library as sparse
from accel_lab.libraries.tensor import library as tensor

HUGE = 8192


class Workload(NamedTuple):
    """A message that is sent again and again, each time for a new result.

    Attributes:
        title: for people; a size follows.
        function: sends it; takes the operands and returns the buffer that is waited for.
        host, cuda: the sizes to measure on each backend, small and large.
        cupy, torch: whether CuPy and PyTorch have the same.
        flops: by the size, what a call of its device computes; None where nobody counts it so.
    """

    title: str
    function: Callable[..., Any]
    host: tuple[int, ...]
    cuda: tuple[int, ...]
    cupy: bool = True
    torch: bool = True
    flops: Callable[[int], float] | None = None


def prepare(device: Device, name: str, size: int) -> Callable[[], Any]:
    """Put the operands of a workload on a device, and return what sends it."""
    given = OPERANDS[name](size)
    function = WORKLOADS[name].function
    placed: list[Any]
    if name.startswith("rng."):
        placed = [rng.Generator(device, 0), *given]
    elif OPERANDS[name] is count:
        placed = list(_narrow(device, name, size))
    else:
        placed = [device.put(x) for x in given]
    if name.startswith("sparse."):
        values, indices, pointers, x, block = placed
        shape = (len(given[3]), len(given[3]))
        placed = [sparse.csr(values, indices, pointers, shape), x, block]
    return lambda: function(*placed)


def _narrow(device: Device, name: str, n: int) -> tuple[Any, ...]:
    """Make two square matrices of bfloat16, or of float8 and with a scale of one."""
    a, b = (rng.normal(device, (n, n), seed=seed) for seed in (0, 1))
    if name == "blas_lt.bf16":
        return a.astype("bfloat16"), b.astype("bfloat16")
    narrow = "float8_e4m3fn"
    return a.astype(narrow), b.astype(narrow), array.full(device, (), 1.0, "float32")


def _fp8(a: Any, b: Any, one: Any) -> Any:
    """Multiply by the transpose of `b`, as the card's float8 has it."""
    made = blas_lt.fused_matmul(a, b, scale_a=one, scale_b=one, trans_b="t", dtype="bfloat16")
    return made.d


def _products(n: int) -> float:
    return 2.0 * n**3


_THOUSAND, _MILLION = (4096, 1 << 20), (4096, 1 << 24)
_SMALL, _LARGE = (64, 512), (64, 4096)
_PLANE = (64, 1024)
_FACTORS, _SPECTRA = (64, 2048), (64, 1024)

WORKLOADS: dict[str, Workload] = {
    "blas.axpy": Workload("Axpy", blas.axpy, _THOUSAND, _MILLION),
    "blas.dot": Workload("Dot", blas.dot, _THOUSAND, _MILLION),
    "blas.gemv": Workload("Gemv", lambda a, _, x: blas.gemv(a, x), (64, 2048), (64, 8192)),
    "blas.gemm": Workload("Gemm", blas.gemm, _SMALL, _LARGE),
    "blas.batched": Workload(
        "Gemm 64x64, stack of", blas.gemm_strided_batched, (4, 256), (4, 4096)
    ),
    "blas.trsm": Workload("Trsm", blas.trsm, _SMALL, _LARGE),
    "blas_lt.relu": Workload(
        "Matmul, bias and relu",
        lambda a, b, row: blas_lt.matmul(a, b, bias=row, activation="relu"),
        _SMALL,
        _LARGE,
    ),
    "blas_lt.bf16": Workload(
        "Matmul of bfloat16", blas_lt.matmul, (), (HUGE,), cupy=False, flops=_products
    ),
    "blas_lt.fp8": Workload("Matmul of float8", _fp8, (), (HUGE,), cupy=False, flops=_products),
    "blas_lt.fp8-fast": Workload(
        "Matmul of float8, theirs summed fast", _fp8, (), (HUGE,), cupy=False, flops=_products
    ),
    "fft.c2c": Workload("C2C", fft.fft, _THOUSAND, _MILLION),
    "fft.r2c": Workload("R2C of 1024, rows", fft.rfft, (4, 1024), (4, 16384)),
    "fft.2d": Workload("R2C in two axes", lambda x, _: fft.rfft2(x), _SMALL, _LARGE),
    "fft.dct": Workload("DCT of 1024, rows", fft.dct, (4, 1024), (4, 16384), torch=False),
    "fft.convolve": Workload("Convolve with 256", fft.convolve, _THOUSAND, _MILLION, torch=False),
    "rng.uniform": Workload("Uniform", lambda g, n: g.uniform(n), _THOUSAND, _MILLION),
    "rng.normal": Workload("Normal", lambda g, n: g.normal(n), _THOUSAND, _MILLION),
    "rng.integers": Workload("Integers", lambda g, n: g.integers(0, 1000, n), _THOUSAND, _MILLION),
    "rng.permutation": Workload(
        "Permutation", lambda g, n: g.permutation(n), (4096, 1 << 18), _MILLION
    ),
    "solver.solve": Workload("Solve", solver.solve, _SMALL, _FACTORS),
    "solver.cholesky": Workload("Cholesky", solver.cholesky, _SMALL, _FACTORS),
    "solver.qr": Workload("QR", lambda a, _: solver.qr(a).r, (64, 256), _FACTORS),
    "solver.svd": Workload("SVD", lambda a, _: solver.svd(a).s, (64, 128), _SPECTRA),
    "solver.eigh": Workload("Eigh", lambda a: solver.eigh(a).w, (64, 128), _SPECTRA),
    "sparse.spmv": Workload("SpMV", lambda a, x, _: sparse.spmv(a, x), (16, 256), (16, 2048)),
    "sparse.spmm": Workload("SpMM", lambda a, _, b: sparse.spmm(a, b), (16, 128), (16, 1024)),
    "sparse.spgemm": Workload(
        "SpGEMM", lambda a, *_: sparse.spgemm(a, a).values, (16, 128), (16, 1024)
    ),
    "sparse.cg": Workload(
        "CG", lambda a, x, _: sparse.cg(a, x).x, (16, 64), (16, 256), torch=False
    ),
    "tensor.contract": Workload(
        "Contract two axes",
        lambda a, b, _: tensor.contract("ijk,jkl->il", a, b),
        (16, 64),
        (16, 256),
    ),
    "tensor.three": Workload(
        "Contract three",
        lambda a, b, c: tensor.contract("ijk,jkl,lm->im", a, b, c),
        (16, 64),
        (16, 256),
    ),
    "tensor.reduce": Workload(
        "Reduce", lambda x, *_: tensor.reduce("ijk->ik", x), (16, 128), (16, 512)
    ),
    "tensor.permute": Workload(
        "Permute", lambda x, *_: tensor.permute("ijk->kij", x), (16, 128), (16, 512)
    ),
    "array.exp": Workload("exp", lambda x, _: array.exp(x), _PLANE, _LARGE),
    "array.where": Workload("where", lambda x, y: array.where(x > y, x, y), _PLANE, _LARGE),
    "array.sum": Workload("sum of columns", lambda x, _: x.sum(axis=0), _PLANE, _LARGE),
    "array.cumsum": Workload("cumsum", lambda x, _: array.cumsum(x, axis=1), _PLANE, _LARGE),
    "array.sort": Workload("sort", lambda x, _: array.sort(x), _PLANE, _LARGE),
    "array.take": Workload("rows taken", lambda x, at: x[at], _PLANE, _LARGE),
    "array.concatenate": Workload(
        "concatenate", lambda x, y: array.concatenate([x, y]), _PLANE, _LARGE
    ),
    "array.unique": Workload("unique", array.unique, (4096, 1 << 18), _MILLION),
}
