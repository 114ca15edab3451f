"""Products that finish in one pass, on the host: NumPy, step by step."""

from typing import Any

import numpy as np

from accel_lab.compute.arrays.dtypes import numpy_dtype
from accel_lab.compute.execution.worker import Worker
from accel_lab.libraries.authoring.operand import Number
from accel_lab.libraries.blas_lt.epilogue import activated
from accel_lab.libraries.blas_lt.evaluation import (
    FusedOperands,
    Parts,
    combined,
    computed_in,
    evaluate,
)
from accel_lab.libraries.blas_lt.library import (
    FusedMatmul,
    Matmul,
    Trans,
    Tune,
    Tuned,
)


class HostBlasLt:
    """Calls NumPy at once: on the host, what is enqueued is done."""

    @np.errstate(all="ignore")
    def matmul(
        self, m: Matmul, a: Any, b: Any, c: Any, bias: Any, out: Any, alpha: Number, beta: Number
    ) -> None:
        """Write activation(alpha op(a) @ op(b) + beta c + bias)."""
        wide = numpy_dtype(computed_in(m.a.dtype, m.a.dtype))
        if alpha:  # else it counts for nothing, whatever is in it
            left, right = turned(a, m.trans_a), turned(b, m.trans_b)
            product = np.matmul(_as(left, wide), _as(right, wide))
        else:
            product = np.zeros(out.shape, wide)
        added = None if c is None else _as(c, wide)
        value = combined(product, alpha, added, beta, None if bias is None else _as(bias, wide))
        out[...] = activated(np, m.activation, value)

    @np.errstate(all="ignore")
    def fused_matmul(
        self,
        m: FusedMatmul,
        x: FusedOperands,
        out: Parts,
        factors: tuple[Number, Number],
    ) -> None:
        """Write what the message asks for."""
        wide = numpy_dtype(computed_in(m.a.dtype, m.made_dtype))
        left, right = turned(x.a, m.trans_a), turned(x.b, m.trans_b)
        rows, columns, _ = m.extents
        product = np.zeros((rows, columns), wide)
        if factors[0]:  # else it counts for nothing, whatever is in it
            product = _multiplied(left, right, wide)
        aux = x.aux if x.aux is None or m.activation == "relu" else _as(x.aux, wide)
        given = x._replace(
            a=_as(left, wide),
            b=_as(right, wide),
            c=None if x.c is None else _as(x.c, wide),
            bias=None if x.bias is None else _as(x.bias, wide),
            aux=aux,
        )
        for made, to in zip(evaluate(np, m, product, given, factors), out, strict=True):
            if to is not None:
                to[...] = made

    def measure(
        self, _: Tune, x: FusedOperands, factors: tuple[Number, Number], worker: Worker
    ) -> tuple[None, None, Tuned]:
        """Measure nothing: there is one way to do it."""
        del x, factors, worker
        return None, None, Tuned(0, 0.0, 0.0)

    def keep(self, call: None, algorithm: None) -> None:
        """Keep nothing."""


def turned(x: Any, trans: Trans) -> Any:
    """Return op(x); no dtype here is complex."""
    return x if trans == "n" else x.swapaxes(-1, -2)


def _multiplied(a: Any, b: Any, wide: Any) -> Any:
    """Return a @ b; of int8 exactly, as doubles hold any sum of so few bits."""
    if a.dtype != np.int8:
        return np.matmul(_as(a, wide), _as(b, wide))
    return np.matmul(a.astype(np.float64), b.astype(np.float64)).astype(np.int64).astype(wide)


def _as(x: Any, dtype: Any) -> Any:
    return x.astype(dtype, copy=False)
