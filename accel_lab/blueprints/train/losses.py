"""Losses, each PyTorch's of the same name, with its gradient."""

from typing import Any, Literal, TypeAlias

from accel_lab.blueprints.train.autograd.elementwise import multiply, subtract
from accel_lab.blueprints.train.autograd.reductions import mean
from accel_lab.blueprints.train.autograd.reductions import sum as total
from accel_lab.blueprints.train.autograd.variable import Variable, of, plain_ref
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.errors import InvalidArgument
from accel_lab.libraries import array, dnn

Reduction: TypeAlias = Literal["mean", "sum", "none"]
_LEAST_LOG = -100.0
"""What PyTorch takes for a logarithm that is less."""


def mse(x: Any, target: Any, *, reduction: Reduction = "mean") -> Variable:
    """Return the mean squared error."""
    _require_alike("mse", x, target)
    d = subtract(x, target)
    a = d.value
    return _reduced("mse", of(array.square(a), ((d, lambda dy: dy * (2 * a)),)), reduction)


def huber(x: Any, target: Any, *, delta: float = 1.0, reduction: Reduction = "mean") -> Variable:
    """Return Huber's loss: half the square up to `delta`, and behind it a line."""
    _require_alike("huber", x, target)
    if not delta > 0:
        raise InvalidArgument(f"huber: delta is {delta!r}; it is a number above 0")
    d = subtract(x, target)
    a = d.value
    size = abs(a)
    is_near = array.less_equal(size, delta)
    made = array.where(is_near, 0.5 * a * a, delta * (size - 0.5 * delta))
    each = of(made, ((d, lambda dy: dy * array.clip(a, -delta, delta)),))
    return _reduced("huber", each, reduction)


def cross_entropy(
    logits: Any,
    labels: Any,
    weight: AccelRef | None = None,
    *,
    smoothing: float = 0.0,
    ignored: int = -100,
    reduction: Reduction = "mean",
) -> Variable:
    """Return the cross-entropy of logits (..., classes) and integer labels (...).

    Parameters:
        weight: a factor for each class.
        smoothing: the share of the target that all classes have alike.
        ignored: the label of what does not count.
    """
    a, at = plain_ref(logits, "cross_entropy: logits"), plain_ref(labels, "cross_entropy: labels")
    options: Any = {"smoothing": smoothing, "ignored": ignored, "reduction": reduction}
    made = dnn.cross_entropy(a, at, weight, **options)
    return of(
        made,
        ((logits, lambda dy: dnn.cross_entropy_gradient(a, at, dy, weight, **options)),),
    )


def binary_cross_entropy(
    x: Any, target: Any, weight: Any = None, *, reduction: Reduction = "mean"
) -> Variable:
    """Return the cross-entropy of probabilities; a logarithm is -100 at least.

    Parameters:
        weight: a factor for each element; it broadcasts.
    """
    _require_alike("binary_cross_entropy", x, target)
    a, t = plain_ref(x, "x"), plain_ref(target, "target")
    log, log_not = array.log(a), array.log1p(-a)
    yes, no = array.maximum(log, _LEAST_LOG), array.maximum(log_not, _LEAST_LOG)

    def pull(dy: AccelRef) -> AccelRef:
        return dy * (a - t) / array.maximum(a * (1 - a), 1e-12)  # as PyTorch bounds it

    each = of((t - 1) * no - t * yes, ((x, pull), (target, lambda dy: dy * (log_not - log))))
    return _reduced("binary_cross_entropy", _weighted(each, weight), reduction)


def binary_cross_entropy_with_logits(
    x: Any,
    target: Any,
    weight: Any = None,
    *,
    positive_weight: AccelRef | float | None = None,
    reduction: Reduction = "mean",
) -> Variable:
    """Return the cross-entropy of `sigmoid(x)`, without the loss that taking it would cost.

    Parameters:
        weight: a factor for each element; it broadcasts.
        positive_weight: a factor for what is to be 1; it broadcasts, and is constant.
    """
    name = "binary_cross_entropy_with_logits"
    if isinstance(positive_weight, Variable):
        raise InvalidArgument(f"{name}: positive_weight is a variable; it is constant: its .value")
    _require_alike(name, x, target)
    a, t = plain_ref(x, "x"), plain_ref(target, "target")
    # log(1 + exp(-a)), and how much of it counts.
    softplus = dnn.softplus(-a)
    more: Any = 0 if positive_weight is None else positive_weight - 1
    share: Any = more * t + 1
    sigmoid = dnn.sigmoid(a)

    def pull(dy: AccelRef) -> AccelRef:
        slope: AccelRef = (1 - t) - share * (1 - sigmoid)
        return dy * slope

    by_target = (target, lambda dy: dy * (more * softplus - a))
    each = of((1 - t) * a + share * softplus, ((x, pull), by_target))
    return _reduced(name, _weighted(each, weight), reduction)


def _weighted(each: Variable, weight: Any) -> Variable:
    return each if weight is None else multiply(each, weight)


def _reduced(name: str, each: Variable, reduction: str) -> Variable:
    """Return the mean, the sum, or all of them.

    Raises:
        InvalidArgument: it is to be something else.
    """
    if reduction == "none":
        return each
    if reduction not in ("mean", "sum"):
        raise InvalidArgument(f"{name}: reduction is {reduction!r}; it may be mean, sum, none")
    return mean(each) if reduction == "mean" else total(each)


def _require_alike(name: str, x: Any, target: Any) -> None:
    """Refuse a target of another shape: it would broadcast, which nobody means.

    Raises:
        InvalidArgument: it has another.
    """
    a, t = plain_ref(x, f"{name}: x"), plain_ref(target, f"{name}: target")
    if a.shape != t.shape:
        text = f"x is {a.label}, and target {t.label}; they are to have one shape"
        raise InvalidArgument(f"{name}: {text}")
