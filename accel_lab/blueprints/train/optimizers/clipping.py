"""Gradients that are too large, or not finite."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from accel_lab.blueprints.train.optimizers.optimizer import Buffers
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.errors import InvalidArgument
from accel_lab.libraries import array

_NARROW = frozenset({"float16", "bfloat16"})
_LEAST_SCALE, _LARGEST_SCALE = 2.0**-126, 2.0**127
"""Beyond these a scale, or one divided by it, is no float32."""


def norm(gradients: Sequence[AccelRef]) -> AccelRef:
    """Return the root of the sum of all squares, in float32 at least, as a buffer.

    Raises:
        InvalidArgument: there are none.
    """
    return array.sqrt(sum_of_squares(gradients))


def sum_of_squares(gradients: Sequence[AccelRef]) -> AccelRef:
    """Return the sum of all squares, in float32 at least, as a buffer.

    Raises:
        InvalidArgument: there are none.
    """
    if not gradients:
        raise InvalidArgument("norm: there are no gradients")
    return array.stack([array.square(_wide(one)).sum() for one in gradients]).sum()


def clip_by_norm(
    gradients: Mapping[str, AccelRef], most: float, had: AccelRef | None = None
) -> tuple[Buffers, AccelRef]:
    """Return gradients scaled down together to a norm, as torch.nn.utils.clip_grad_norm_.

    The second is the norm that they had. Nothing blocks.

    Parameters:
        had: that norm, where these are not all gradients that count.

    Raises:
        InvalidArgument: `most` is no number above 0, or there are none.
    """
    if not most > 0:
        raise InvalidArgument(f"clip_by_norm: most is {most!r}; it is a number above 0")
    if had is None:
        had = norm(list(gradients.values()))
    factor = array.minimum(most / (had + 1e-6), 1.0)
    return {name: _scaled(g, factor) for name, g in gradients.items()}, had


def _scaled(g: AccelRef, factor: AccelRef) -> AccelRef:
    """Return it in its own dtype."""
    made = g * factor
    return made if made.dtype == g.dtype else made.astype(g.dtype)


def _wide(g: AccelRef) -> AccelRef:
    return g.astype("float32") if g.dtype in _NARROW else g


class LossScale(NamedTuple):
    """By how much a loss is scaled so that narrow gradients do not vanish (torch.amp.GradScaler).

    A step whose gradients are not finite is left out, and the scale shrinks; after `every` good
    ones in a row it grows.

    Attributes:
        scale: the factor.
        good: how many steps went well since it changed.
    """

    scale: float = 65536.0
    growth: float = 2.0
    backoff: float = 0.5
    every: int = 2000
    good: int = 0

    def after(self, *, finite: bool) -> "LossScale":
        """Return what holds after a step."""
        if not finite:
            return self._replace(scale=max(self.scale * self.backoff, _LEAST_SCALE), good=0)
        if self.good + 1 >= self.every:
            grown = self.scale * self.growth
            return self._replace(scale=grown if grown <= _LARGEST_SCALE else self.scale, good=0)
        return self._replace(good=self.good + 1)


def are_finite(gradients: Sequence[AccelRef]) -> AccelRef:
    """Return whether all elements of all gradients are finite, as a buffer."""
    return array.all(array.stack([array.all(array.isfinite(one)) for one in gradients]))
