"""What trainers refuse: each text names the operand, what it is and should be."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from accel_lab.blueprints.train.autograd.variable import Variable
from accel_lab.blueprints.train.optimizers.clipping import LossScale
from accel_lab.compute.arrays.dtypes import is_float
from accel_lab.errors import InvalidArgument


def require_count(trainer: object, name: str, count: object) -> None:
    """Refuse what is no integer from 1.

    Raises:
        InvalidArgument: it is none.
    """
    if type(count) is not int or count < 1:
        text = f"{name} is {count!r}; it is an integer from 1"
        raise InvalidArgument(f"{type(trainer).__name__}: {text}")


def require_floats(trainer: object, parameters: Mapping[str, npt.ArrayLike]) -> dict[str, Any]:
    """Return parameters as arrays of their own.

    Raises:
        InvalidArgument: there are none, or one is not of floats.
    """
    kind, arrays = type(trainer).__name__, {name: np.array(x) for name, x in parameters.items()}
    if not arrays:
        raise InvalidArgument(f"{kind}: there are no parameters")
    for name, x in arrays.items():
        if not is_float(str(x.dtype)):
            text = f"parameter {name!r} is {x.dtype}{list(x.shape)}; it is to be of floats"
            raise InvalidArgument(f"{kind}: {text}")
    return arrays


def require_numerics(
    trainer: object, clip_norm: Any, loss_scale: LossScale | None, compute: str | None
) -> None:
    """Refuse what no step can be taken with.

    Raises:
        InvalidArgument: the norm is no number above 0, the scale none that stays one, or the dtype
            is not a float's.
    """
    kind = type(trainer).__name__
    if clip_norm is not None and not _is_above_0(clip_norm):
        raise InvalidArgument(f"{kind}: clip_norm is {clip_norm!r}; it is a number above 0")
    if loss_scale is not None:
        if not isinstance(loss_scale, LossScale):
            text = f"loss_scale is {loss_scale!r}; it is a LossScale, as LossScale(1024.0)"
            raise InvalidArgument(f"{kind}: {text}")
        scale, growth, backoff, every, _ = loss_scale
        is_one = _is_above_0(scale) and _is_above_0(growth) and _is_above_0(backoff)
        if not is_one or growth < 1 or backoff > 1 or type(every) is not int or every < 1:
            text = "scale is above 0, growth from 1, backoff above 0 up to 1, every from 1"
            raise InvalidArgument(f"{kind}: loss_scale is {loss_scale!r}; {text}")
    if compute is not None and not is_float(compute):
        raise InvalidArgument(f"{kind}: compute is {compute!r}; it is a float's, as 'float16'")


def _is_above_0(number: Any) -> bool:
    return isinstance(number, int | float) and 0 < number < float("inf")


def require_loss(made: object) -> Variable:
    """Return what a loss, or a stage, has returned.

    Raises:
        InvalidArgument: it is no variable, or one that no parameter changes.
    """
    if not isinstance(made, Variable):
        kind = type(made).__name__
        raise InvalidArgument(f"loss is to return a variable, as train.mse, not {kind}")
    if not made.is_tracked:
        raise InvalidArgument("loss depends on no parameter, so there is nothing to learn from it")
    return made
