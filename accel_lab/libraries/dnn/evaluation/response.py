"""Local response norm, one channel of the window after the other."""

from typing import Any

import numpy as np

from accel_lab.libraries.dnn.evaluation.kit import Kit
from accel_lab.libraries.dnn.message import moved, moved_back
from accel_lab.libraries.dnn.response import LocalResponseNorm, LocalResponseNormGradient


class Responses:
    """Local response norm and its gradient.

    Parameters:
        kit: the backend's arrays.
    """

    def __init__(self, kit: Kit) -> None:
        self.kit = kit

    @np.errstate(all="ignore")
    def local_response_norm(self, m: LocalResponseNorm, x: Any, out: Any) -> None:
        """Write the elements over the power."""
        x = moved(self.kit.widened(x, m.x.dtype), m.layout)
        made = x * self._base(m, x) ** -m.beta
        self.kit.store(moved_back(made, m.layout), out, m.x.dtype)

    @np.errstate(all="ignore")
    def local_response_norm_gradient(
        self, m: LocalResponseNormGradient, x: Any, dy: Any, out: Any
    ) -> None:
        """Write the gradient: that by the element, less that by the channels it is around."""
        x, dy = (moved(self.kit.widened(one, m.x.dtype), m.layout) for one in (x, dy))
        base = self._base(m, x)
        power = base**-m.beta
        behind, before = _around(m)
        around = _sums(self.kit.xp, dy * x * power / base, before, behind)
        made = dy * power - (2 * m.alpha * m.beta / m.size) * x * around
        self.kit.store(moved_back(made, m.layout), out, m.x.dtype)

    def _base(self, m: Any, x: Any) -> Any:
        return m.k + m.alpha / m.size * _sums(self.kit.xp, x * x, *_around(m))


def _around(m: Any) -> tuple[int, int]:
    """Return how many channels before and behind one count."""
    return m.size // 2, (m.size - 1) // 2


def _sums(xp: Any, x: Any, before: int, behind: int) -> Any:
    """Return the sum of each channel, of so many before it and of so many behind it."""
    made, count = xp.zeros_like(x), x.shape[1]
    for step in range(-min(before, count - 1), min(behind, count - 1) + 1):
        to = slice(max(0, -step), count - max(0, step))
        made[:, to] += x[:, to.start + step : to.stop + step]
    return made
