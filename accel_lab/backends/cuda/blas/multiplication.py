"""The call that enqueues one kind of product, with all that never changes filled in."""

from collections.abc import Callable
from typing import TypeAlias

from nvmath.bindings import cublas

from accel_lab.backends.cuda.blas.layout import Product
from accel_lab.backends.cuda.blas.precision import Precision

Multiply: TypeAlias = Callable[[int, int, int, int, int], None]
"""Enqueues a product: the addresses of alpha, b, a, beta and out."""

# For counts of 32 and of 64 bits.
_GEMM = cublas.gemm_ex, cublas.gemm_ex_64
_GEMM_STACK = cublas.gemm_strided_batched_ex, cublas.gemm_strided_batched_ex_64
_ALGORITHM = int(cublas.GemmAlgo.DFALT)


def multiplication(handle: int, product: Product, precision: Precision) -> Multiply:
    """Return the call for a product (cublasGemmEx) or a batch (cublasGemmStridedBatchedEx)."""
    make = _one if product.batch == 1 else _stack
    return make(handle, product, precision)


def _one(handle: int, product: Product, precision: Precision) -> Multiply:
    gemm = _GEMM[product.wide]
    op_b, op_a, n, m, k, leading_b, _, leading_a, _, leading_out, *_ = product
    element, compute = precision.element, precision.compute

    def multiply(alpha: int, b: int, a: int, beta: int, out: int) -> None:
        gemm(
            handle,
            op_b,
            op_a,
            n,
            m,
            k,
            alpha,
            b,
            element,
            leading_b,
            a,
            element,
            leading_a,
            beta,
            out,
            element,
            leading_out,
            compute,
            _ALGORITHM,
        )

    return multiply


def _stack(handle: int, product: Product, precision: Precision) -> Multiply:
    gemm = _GEMM_STACK[product.wide]
    p, element, compute = product, precision.element, precision.compute

    def multiply(alpha: int, b: int, a: int, beta: int, out: int) -> None:
        gemm(
            handle,
            p.op_b,
            p.op_a,
            p.n,
            p.m,
            p.k,
            alpha,
            b,
            element,
            p.leading_b,
            p.step_b,
            a,
            element,
            p.leading_a,
            p.step_a,
            beta,
            out,
            element,
            p.leading_out,
            p.step_out,
            p.batch,
            compute,
            _ALGORITHM,
        )

    return multiply
