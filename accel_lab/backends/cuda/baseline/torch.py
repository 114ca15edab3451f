"""The same calls of PyTorch, where it is installed; it has a current stream of its own."""

from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

from accel_lab.backends.cuda.baseline import Call
from accel_lab.backends.eager import EXPRESSIONS
from accel_lab.backends.workloads import OPERANDS


def axpy(size: int) -> Call:
    """Prepare a sum of two square matrices, into a third."""
    torch, wait = _torch()
    x, y, out = (torch.ones(size, size, device="cuda") for _ in range(3))
    return "torch.add", lambda: torch.add(x, y, out=out), wait


def c2c(*shape: int) -> Call:
    """Prepare a transform of complex numbers along the last axis."""
    torch, wait = _torch()
    x = torch.randn(*shape, dtype=torch.complex64, device="cuda")
    return "torch.fft.fft", lambda: torch.fft.fft(x), wait


def r2c(*shape: int) -> Call:
    """Prepare a transform of real numbers along the last axis."""
    torch, wait = _torch()
    x = torch.randn(*shape, device="cuda")
    return "torch.fft.rfft", lambda: torch.fft.rfft(x), wait


def uniform(count: int) -> Call:
    """Prepare a draw of float32."""
    torch, wait = _torch()
    out = torch.empty(count, device="cuda")
    return "torch.rand", lambda: torch.rand(count, out=out), wait


def expression(name: str, size: int) -> Call:
    """Prepare an expression of two square matrices."""
    torch, wait = _torch()
    functions: Any = SimpleNamespace(
        exp=torch.exp,
        maximum=lambda x, least: torch.clamp(x, min=least),
        where=torch.where,
        rfft=torch.fft.rfft,
    )
    a, b = (torch.randn(size, size, device="cuda") for _ in "ab")
    evaluate = EXPRESSIONS[name]
    return "PyTorch", lambda: evaluate(functions, a, b), wait


def call(name: str, size: int) -> Call:
    """Prepare a workload of fresh results."""
    torch, wait = _torch()
    label, function = _calls(torch)[name]
    given: list[Any] = [
        x if isinstance(x, int) else torch.from_numpy(x).cuda() for x in OPERANDS[name](size)
    ]
    if name.startswith("sparse."):
        values, indices, pointers, x, block = given
        shape = (len(x), len(x))
        given = [torch.sparse_csr_tensor(pointers, indices, values, shape), x, block]
    elif name.startswith("blas_lt.") and name != "blas_lt.relu":
        a, b = (torch.randn(size, size, device="cuda").bfloat16() for _ in "ab")
        if name != "blas_lt.bf16":
            a, b = a.to(torch.float8_e4m3fn), b.to(torch.float8_e4m3fn).t()
        given = [a, b, torch.ones((), device="cuda")]
    return label, partial(function, *given), wait


def _calls(torch: Any) -> dict[str, tuple[str, Callable[..., Any]]]:
    """Return the calls that PyTorch has; float8 is summed as precisely as it is, and fast."""
    linalg = torch.linalg

    def scaled(*, fast: bool) -> Callable[..., Any]:
        kinds = {"out_dtype": torch.bfloat16, "use_fast_accum": fast}
        multiply = torch._scaled_mm  # noqa: SLF001 - it has no other name
        return lambda a, b, one: multiply(a, b, scale_a=one, scale_b=one, **kinds)

    def triangle(a: Any, b: Any) -> Any:
        return linalg.solve_triangular(a, b, upper=False)

    def three(a: Any, b: Any, c: Any) -> Any:
        return torch.einsum("ijk,jkl,lm->im", a, b, c)

    drawn = {"device": "cuda"}
    return {
        "blas.axpy": ("torch.add", torch.add),
        "blas.dot": ("torch.dot", torch.dot),
        "blas.gemv": ("torch.mv", lambda a, _, x: torch.mv(a, x)),
        "blas.gemm": ("torch.mm", torch.mm),
        "blas.batched": ("torch.bmm", torch.bmm),
        "blas.trsm": ("torch solve_triangular", triangle),
        "blas_lt.relu": ("torch.addmm, relu", lambda a, b, r: torch.relu(torch.addmm(r, a, b))),
        "blas_lt.bf16": ("torch.mm", lambda a, b, _: torch.mm(a, b)),
        "blas_lt.fp8": ("torch._scaled_mm", scaled(fast=False)),
        "blas_lt.fp8-fast": ("torch._scaled_mm fast", scaled(fast=True)),
        "fft.c2c": ("torch.fft.fft", torch.fft.fft),
        "fft.r2c": ("torch.fft.rfft", torch.fft.rfft),
        "fft.2d": ("torch.fft.rfft2", lambda x, _: torch.fft.rfft2(x)),
        "rng.uniform": ("torch.rand", lambda n: torch.rand(n, **drawn)),
        "rng.normal": ("torch.randn", lambda n: torch.randn(n, **drawn)),
        "rng.integers": ("torch.randint", lambda n: torch.randint(0, 1000, (n,), **drawn)),
        "rng.permutation": ("torch.randperm", lambda n: torch.randperm(n, **drawn)),
        "solver.solve": ("torch.linalg.solve", linalg.solve),
        "solver.cholesky": ("torch.linalg.cholesky", linalg.cholesky),
        "solver.qr": ("torch.linalg.qr", lambda a, _: linalg.qr(a)[1]),
        "solver.svd": ("torch.linalg.svd", lambda a, _: linalg.svd(a, full_matrices=False)[1]),
        "solver.eigh": ("torch.linalg.eigh", lambda a: linalg.eigh(a)[0]),
        "sparse.spmv": ("torch csr @", lambda a, x, _: a @ x),
        "sparse.spmm": ("torch csr @", lambda a, _, block: a @ block),
        "sparse.spgemm": ("torch csr @", lambda a, *_: a @ a),
        "tensor.contract": ("torch.tensordot", lambda a, b, _: torch.tensordot(a, b, 2)),
        "tensor.three": ("torch.einsum", three),
        "tensor.reduce": ("torch.sum", lambda x, *_: x.sum(1)),
        "tensor.permute": ("torch.permute, copied", lambda x, *_: x.permute(2, 0, 1).contiguous()),
        "array.exp": ("torch.exp", lambda x, _: torch.exp(x)),
        "array.where": ("torch.where", lambda x, y: torch.where(x > y, x, y)),
        "array.sum": ("torch.sum", lambda x, _: x.sum(0)),
        "array.cumsum": ("torch.cumsum", lambda x, _: torch.cumsum(x, 1)),
        "array.sort": ("torch.sort", lambda x, _: torch.sort(x)[0]),
        "array.take": ("torch.index_select", lambda x, at: x[at]),
        "array.concatenate": ("torch.cat", lambda x, y: torch.cat([x, y])),
        "array.unique": ("torch.unique", torch.unique),
    }


def _torch() -> tuple[Any, Any]:
    import torch

    return torch, torch.cuda.current_stream().synchronize
