"""Functions of each element, and their derivatives."""

import math
from typing import Any

from accel_lab.libraries.dnn.activation import ALPHA
from accel_lab.libraries.dnn.evaluation.kit import Kit

_ROOT = math.sqrt(0.5)
_TANH = math.sqrt(2 / math.pi)
_CUBIC = 0.044715  # Hendrycks and Gimpel, Gaussian Error Linear Units


def number(op: str, alpha: Any) -> float:
    """Return the number of a function, its usual one if nobody says another."""
    return float(ALPHA.get(op, 1.0) if alpha is None else alpha)


def activated(kit: Kit, op: str, x: Any, alpha: Any = None) -> Any:  # noqa: PLR0911 - one each
    """Return a function of each element."""
    xp, a = kit.xp, number(op, alpha)
    if op == "relu":
        return xp.maximum(x, 0)
    if op == "clipped_relu":
        return xp.minimum(xp.maximum(x, 0), a)
    if op == "sigmoid":
        return sigmoid(xp, x)
    if op == "tanh":
        return xp.tanh(x)
    if op == "elu":
        return xp.where(x > 0, x, a * xp.expm1(xp.minimum(x, 0)))
    if op == "gelu":
        return x * _normal(kit, x)
    if op == "gelu_tanh":
        return 0.5 * x * (1 + xp.tanh(_TANH * (x + _CUBIC * x * x * x)))
    if op == "swish":
        return x * sigmoid(xp, a * x)
    if op == "softplus":
        return xp.logaddexp(a * x, xp.zeros_like(x)) / a
    return x


def derivative(kit: Kit, op: str, x: Any, alpha: Any = None) -> Any:  # noqa: PLR0911 - one each
    """Return the derivative of that function; at a corner it is 0, as PyTorch has it."""
    xp, a = kit.xp, number(op, alpha)
    if op == "relu":
        return (x > 0).astype(x.dtype)
    if op == "clipped_relu":
        return ((x > 0) & (x < a)).astype(x.dtype)
    if op == "sigmoid":
        s = sigmoid(xp, x)
        return s * (1 - s)
    if op == "tanh":
        return 1 - xp.tanh(x) ** 2
    if op == "elu":
        return xp.where(x > 0, 1, a * xp.exp(xp.minimum(x, 0))).astype(x.dtype)
    if op == "gelu":
        return _normal(kit, x) + x * xp.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)
    if op == "gelu_tanh":
        t = xp.tanh(_TANH * (x + _CUBIC * x * x * x))
        return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * _TANH * (1 + 3 * _CUBIC * x * x)
    if op == "swish":
        s = sigmoid(xp, a * x)
        return s * (1 + a * x * (1 - s))
    return sigmoid(xp, a * x)  # softplus


def sigmoid(xp: Any, x: Any) -> Any:
    """Return 1 / (1 + exp(-x)), which does not overflow."""
    return 0.5 * (1 + xp.tanh(0.5 * x))


def _normal(kit: Kit, x: Any) -> Any:
    """Return the normal distribution's integral up to each element."""
    return 0.5 * (1 + kit.erf(x * _ROOT))
