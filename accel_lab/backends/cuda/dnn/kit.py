"""CuPy's arrays and functions, for what is evaluated alike on both backends."""

from typing import Any

import cupy
import cupyx.scipy.special

from accel_lab.backends.cuda.array import narrow
from accel_lab.libraries.dnn.message import computed_in


class CudaKit:
    """CuPy's arrays; narrow floats that it lacks are arrays of their bits."""

    xp = cupy

    def widened(self, x: Any, dtype: str) -> Any:
        """Return an operand in the dtype that is computed in; None stays."""
        return narrow.widened(x, dtype, computed_in(dtype))

    def store(self, value: Any, out: Any, dtype: str) -> None:
        """Write a result, rounded."""
        narrow.store(value, out, dtype)

    def erf(self, x: Any) -> Any:
        """Return the error function of each element."""
        return cupyx.scipy.special.erf(x)
