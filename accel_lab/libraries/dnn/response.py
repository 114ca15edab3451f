"""Local response norm across channels, and its gradient (Krizhevsky et al., 2012).

x is divided by (k + alpha times the mean of the squares of `size` channels) ** beta; the channel
itself is in the middle of them, of an even number before it. What is beyond the channels is 0.
"""

from typing import Any

from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.operation import Spec
from accel_lab.libraries.authoring.function import function
from accel_lab.libraries.authoring.operand import named, one_dtype
from accel_lab.libraries.authoring.options import Options
from accel_lab.libraries.dnn.message import (
    LAYOUTS,
    DataLayout,
    Layer,
    refusal,
    require_choice,
    require_int,
    require_real,
    require_shape,
    spec_of,
)

_MOST = 1e30
"""The largest number that a parameter may be."""


class LocalResponseNorm(Layer[AccelRef], frozen=True, tag=671):
    """Divide each element by a power of the mean square of the channels around it."""

    x: AccelRef
    size: int
    _: Options
    alpha: float = 1e-4
    beta: float = 0.75
    k: float = 1.0
    layout: DataLayout = "channels_first"
    out: AccelRef | None = None

    def infer(self) -> Spec:
        """Return the shape of `x`."""
        require_response(self)
        return spec_of(self, self.x.shape, self.x.dtype)


class LocalResponseNormGradient(Layer[AccelRef], frozen=True, tag=672):
    """Return the gradient of `LocalResponseNorm` by `x`, of that by its result."""

    x: AccelRef
    dy: AccelRef
    size: int
    _: Options
    alpha: float = 1e-4
    beta: float = 0.75
    k: float = 1.0
    layout: DataLayout = "channels_first"
    out: AccelRef | None = None

    def infer(self) -> Spec:
        """Return the shape of `x`."""
        require_response(self)
        require_shape(self, self.dy, self.x.shape)
        return spec_of(self, self.x.shape, one_dtype(self, self.x, self.dy))


def require_response(message: Any) -> None:
    """Refuse options or an operand that do not fit.

    Raises:
        InvalidArgument: something does not fit.
    """
    x: AccelRef = message.x
    require_choice(message, "layout", LAYOUTS)
    require_int(message, "size", 1)
    for name in ("alpha", "beta", "k"):
        require_real(message, name, 0.0, _MOST)
    if x.ndim < 2:  # noqa: PLR2004 - batch and channels
        raise refusal(message, f"{named(message, x)}, which is to have a batch and channels")


local_response_norm = function(LocalResponseNorm)
local_response_norm_gradient = function(LocalResponseNormGradient)
