"""Batch, layer, RMS and group norm, and their gradients: one message each, and one back."""

from collections.abc import Callable
from typing import Any, NamedTuple

from accel_lab.blueprints.train.autograd.variable import Pull, Variable, of, plain_ref
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.libraries import dnn


class BatchNormed(NamedTuple):
    """What training makes of a batch.

    Attributes:
        y: the result.
        mean: the running means, moved towards those of the batch; without gradient.
        variance: the running variances, likewise.
    """

    y: Variable
    mean: AccelRef
    variance: AccelRef


def batch_norm(
    x: Any,
    scale: Any,
    bias: Any,
    mean: AccelRef,
    variance: AccelRef,
    *,
    momentum: float = 0.1,
    epsilon: float = 1e-5,
) -> BatchNormed:
    """Normalize each channel over a batch, to train, and move the running statistics."""
    a, s = plain_ref(x, "batch_norm: x"), plain_ref(scale, "batch_norm: scale")
    b = plain_ref(bias, "batch_norm: bias")
    statistics = plain_ref(mean, "batch_norm: mean"), plain_ref(variance, "batch_norm: variance")
    made = dnn.batch_norm(a, s, b, *statistics, momentum=momentum, epsilon=epsilon)
    back = _Once(lambda dy: dnn.batch_norm_gradient(a, dy, s, epsilon=epsilon))
    y = of(made.y, ((x, back["x"]), (scale, back["scale"]), (bias, back["bias"])))
    return BatchNormed(y, made.mean, made.variance)


def batch_norm_inference(
    x: Any, scale: Any, bias: Any, mean: AccelRef, variance: AccelRef, *, epsilon: float = 1e-5
) -> Variable:
    """Normalize each channel by the running statistics."""
    name = "batch_norm_inference"
    a, s = plain_ref(x, f"{name}: x"), plain_ref(scale, f"{name}: scale")
    b = plain_ref(bias, f"{name}: bias")
    of_mean, of_variance = (
        plain_ref(mean, f"{name}: mean"),
        plain_ref(variance, f"{name}: variance"),
    )
    back = _Once(
        lambda dy: dnn.batch_norm_gradient(a, dy, s, of_mean, of_variance, epsilon=epsilon)
    )
    return of(
        dnn.batch_norm_inference(a, s, b, of_mean, of_variance, epsilon=epsilon),
        ((x, back["x"]), (scale, back["scale"]), (bias, back["bias"])),
    )


def layer_norm(
    x: Any, scale: Any = None, bias: Any = None, *, axes: int = 1, epsilon: float = 1e-5
) -> Variable:
    """Normalize over the last `axes` axes."""
    a = plain_ref(x, "layer_norm: x")
    s, b = _maybe(scale, "layer_norm: scale"), _maybe(bias, "layer_norm: bias")
    back = _Once(lambda dy: dnn.layer_norm_gradient(a, dy, s, axes=axes, epsilon=epsilon))
    return of(
        dnn.layer_norm(a, s, b, axes=axes, epsilon=epsilon),
        ((x, back["x"]), (scale, back["scale"]), (bias, back["bias"])),
    )


def rms_norm(x: Any, scale: Any = None, *, axes: int = 1, epsilon: float = 1e-5) -> Variable:
    """Divide by the root of the mean square over the last `axes` axes."""
    a, s = plain_ref(x, "rms_norm: x"), _maybe(scale, "rms_norm: scale")
    back = _Once(lambda dy: dnn.rms_norm_gradient(a, dy, s, axes=axes, epsilon=epsilon))
    return of(
        dnn.rms_norm(a, s, axes=axes, epsilon=epsilon),
        ((x, back["x"]), (scale, back["scale"])),
    )


def group_norm(
    x: Any, scale: Any = None, bias: Any = None, *, groups: int = 0, epsilon: float = 1e-5
) -> Variable:
    """Normalize each image over the channels of each group; without groups it is instance norm."""
    a = plain_ref(x, "group_norm: x")
    s, b = _maybe(scale, "group_norm: scale"), _maybe(bias, "group_norm: bias")
    back = _Once(lambda dy: dnn.group_norm_gradient(a, dy, s, groups=groups, epsilon=epsilon))
    return of(
        dnn.group_norm(a, s, b, groups=groups, epsilon=epsilon),
        ((x, back["x"]), (scale, back["scale"]), (bias, back["bias"])),
    )


class _Once:
    """One message that has all gradients, sent when the first of them is asked for."""

    def __init__(self, send: Callable[[AccelRef], Any]) -> None:
        self._send = send
        self._sent: tuple[AccelRef, Any] | None = None

    def __getitem__(self, name: str) -> Pull:
        def pull(dy: AccelRef) -> AccelRef:
            if self._sent is None or self._sent[0] is not dy:
                self._sent = dy, self._send(dy)
            gradient: AccelRef = getattr(self._sent[1], name)
            return gradient

        return pull


def _maybe(operand: Any, name: str) -> AccelRef | None:
    return None if operand is None else plain_ref(operand, name)
