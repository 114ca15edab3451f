"""Adafactor: Shazeer and Stern, "Adaptive learning rates with sublinear memory cost", 2018."""

import math
from typing import ClassVar

import ml_dtypes

from accel_lab.blueprints.train.optimizers.optimizer import (
    Buffers,
    Into,
    Optimizer,
    Shape,
    require_least,
)
from accel_lab.blueprints.train.optimizers.schedules import Schedule
from accel_lab.compute.arrays.dtypes import numpy_dtype
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.libraries import array


class Adafactor(Optimizer):
    """Descend with a mean of squares for each row and column, as torch.optim.Adafactor.

    Parameters:
        epsilons: the least estimate, the dtype's own if it is None, and the least root mean square
            of a parameter.
        most: by how much, as a root mean square, an update may be.
    """

    is_elementwise: ClassVar = False

    def __init__(
        self,
        rate: float | Schedule = 1e-2,
        *,
        beta_decay: float = -0.8,
        epsilons: tuple[float | None, float] = (None, 1e-3),
        most: float = 1.0,
        decay: float = 0.0,
    ) -> None:
        super().__init__(rate)
        require_least(self, **{"-beta_decay": -beta_decay, "decay": decay, "most": most})
        require_least(self, **{"epsilons[0]": epsilons[0] or 0.0, "epsilons[1]": epsilons[1]})
        self.beta_decay, self.epsilons = beta_decay, epsilons
        self.most, self.decay = most, decay

    def slots(self, shape: Shape) -> dict[str, Shape]:
        """Return those of rows and columns; a vector has one of its own shape."""
        if len(shape) > 1:
            return {"rows": (*shape[:-1], 1), "columns": (*shape[:-2], 1, shape[-1])}
        return {"square": shape}

    def one(
        self, p: AccelRef, g: AccelRef, slots: Buffers, into: Into, step: int, rate: float
    ) -> tuple[AccelRef, Buffers]:
        """Return a parameter and its means after a step."""
        least, scale = self.epsilons
        if least is None:
            least = float(ml_dtypes.finfo(numpy_dtype(p.dtype)).eps)  # type: ignore[no-untyped-call]
        share = step**self.beta_decay
        size = array.maximum(_root_mean_square(p), scale) * min(rate, 1 / math.sqrt(step))
        squares = g * g
        if "rows" in slots:
            rows = _moved(slots["rows"], squares.mean(-1, keepdims=True), share, into("rows"))
            columns = squares.mean(-2, keepdims=True)
            columns = _moved(slots["columns"], columns, share, into("columns"))
            estimate = rows * columns / array.maximum(rows.mean(-2, keepdims=True), least)
            kept = {"rows": rows, "columns": columns}
        else:
            estimate = _moved(slots["square"], squares, share, into("square"))
            kept = {"square": estimate}
        update = g / array.sqrt(array.maximum(estimate, least * least))
        size = size / array.maximum(_root_mean_square(update) / self.most, 1.0)
        if self.decay:
            p = p * (1 - rate * self.decay)
        return array.subtract(p, update * size, out=into()), kept


def _moved(before: AccelRef, new: AccelRef, share: float, out: AccelRef | None) -> AccelRef:
    """Return a mean moved by a share of the way towards what is new."""
    if share == 1:
        return array.copy(new, out=out)
    return array.add(before, (new - before) * share, out=out)


def _root_mean_square(x: AccelRef) -> AccelRef:
    return array.sqrt((x * x).mean())
