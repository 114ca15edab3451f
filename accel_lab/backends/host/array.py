"""Arrays on the host: NumPy, with ml_dtypes for the floats that NumPy lacks."""

from typing import Any

import numpy as np

from accel_lab.libraries.operand import Number


class HostArray:
    """Calls NumPy at once: on the host, what is enqueued is done."""

    def zeros(self, out: Any) -> None:
        """Write zeros."""
        out[...] = 0

    @np.errstate(all="ignore")
    def full(self, out: Any, value: Number, *, dtype: str) -> None:  # noqa: ARG002 - `out` has it
        """Write `value`, rounded to the dtype."""
        out[...] = value

    def copy(self, x: Any, out: Any) -> None:
        """Copy `x` into `out`."""
        np.copyto(out, x)

    @np.errstate(all="ignore")
    def cast(self, x: Any, out: Any, *, source: str, target: str) -> None:  # noqa: ARG002 - as above
        """Convert `x` into `out`."""
        np.copyto(out, x, casting="unsafe")

    def slice(self, x: Any, index: tuple[int | slice | None, ...]) -> Any:
        """Return a view; the Ellipsis keeps one without axes from becoming a scalar."""
        return x[(*index, ...)]

    def reshape(self, x: Any, shape: tuple[int, ...]) -> Any | None:
        """Return a view, or None where NumPy would have to copy."""
        try:
            return x.reshape(shape, copy=False)
        except ValueError:
            return None

    def transpose(self, x: Any, axes: tuple[int, ...]) -> Any:
        """Return a view with permuted axes."""
        return x.transpose(axes)
