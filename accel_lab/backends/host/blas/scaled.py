"""Products and sums on the host whose factors are buffers, which are read."""

from typing import Any

import numpy as np

from accel_lab.backends.host.blas.products import HostProducts
from accel_lab.libraries.authoring.operand import Number
from accel_lab.libraries.blas.scaled import AxpyBy, GemvBy, ProductBy, ScalBy


class HostScaled(HostProducts):
    """What is scaled by numbers that the device has."""

    def gemm_by(
        self, m: ProductBy, a: Any, b: Any, alpha: Any, c: Any, beta: Any, out: Any
    ) -> None:
        """Write alpha op(a) @ op(b) + beta c."""
        other = _number(beta)
        self.gemm(m, a, b, c if other else None, out, _number(alpha), other)

    gemm_strided_batched_by = gemm_by

    def gemv_by(self, m: GemvBy, a: Any, x: Any, alpha: Any, y: Any, beta: Any, out: Any) -> None:
        """Write alpha op(a) @ x + beta y."""
        other = _number(beta)
        self.gemv(m, a, x, y if other else None, out, _number(alpha), other)

    def axpy_by(self, m: AxpyBy, x: Any, y: Any, alpha: Any, out: Any) -> None:
        """Write alpha x + y."""
        self.axpy(m, x, y, out, _number(alpha))

    def scal_by(self, m: ScalBy, x: Any, alpha: Any, out: Any) -> None:
        """Write alpha x."""
        self.scal(m, x, out, _number(alpha))


def _number(factor: Any) -> Number:
    """Return what a 0-d array has; 0 where there is none."""
    return 0 if factor is None else np.asarray(factor).item()
