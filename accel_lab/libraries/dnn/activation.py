"""Functions of each element, and their gradients."""

from typing import Any, ClassVar, Literal, TypeAlias, get_args

from accel_lab.compute.message.buffer import AccelRef
from accel_lab.libraries.authoring.function import function, named
from accel_lab.libraries.authoring.operand import Scalar
from accel_lab.libraries.authoring.options import Factor, Options
from accel_lab.libraries.dnn.message import Layer, require_choice

ActivationOp: TypeAlias = Literal[
    "relu", "clipped_relu", "sigmoid", "tanh", "elu", "gelu", "gelu_tanh", "swish", "softplus"
]
ACTIVATIONS: tuple[str, ...] = get_args(ActivationOp)
CONV_ACTIVATIONS = ("identity", *ACTIVATIONS)
ALPHA = {"clipped_relu": 6.0}
"""The number of a function where nobody says another; of all others it is 1."""


class Activate(Layer[AccelRef], frozen=True, tag=630):
    """Return a function of each element: relu, clipped_relu, sigmoid, tanh, elu, gelu, swish ...

    `alpha` is the upper limit of clipped_relu (6), what elu tends to (1), and the steepness of
    swish and softplus (1). "gelu" is exact, "gelu_tanh" its usual approximation.
    """

    shapes: ClassVar = "(...)->(...)"
    in_place: ClassVar = ("x",)
    x: AccelRef
    op: ActivationOp
    _: Options
    alpha: Factor | None = None
    out: AccelRef | None = None

    def check(self) -> None:
        """Refuse a function that there is not."""
        require_choice(self, "op", ACTIVATIONS)


class ActivateGradient(Layer[AccelRef], frozen=True, tag=631):
    """Return the gradient of a function of each element by `x`, of that by its result."""

    shapes: ClassVar = "(...),(...)->(...)"
    in_place: ClassVar = ("x", "dy")
    x: AccelRef
    dy: AccelRef
    op: ActivationOp
    _: Options
    alpha: Factor | None = None
    out: AccelRef | None = None

    def check(self) -> None:
        """Refuse a function that there is not."""
        require_choice(self, "op", ACTIVATIONS)


activate = function(Activate)
activate_gradient = function(ActivateGradient)


def _one(
    op: Any, x: AccelRef, *, alpha: Scalar | None = None, out: AccelRef | None = None
) -> AccelRef:
    return activate(x, op, alpha=alpha, out=out)


_named = named(_one, "{text}; sends `Activate` with op={name!r}.")
relu = _named("relu", "Return max(x, 0)")
clipped_relu = _named("clipped_relu", "Return max(x, 0), and alpha (6) where it is more")
sigmoid = _named("sigmoid", "Return 1 / (1 + exp(-x))")
tanh = _named("tanh", "Return the hyperbolic tangent")
elu = _named("elu", "Return x, and alpha (exp(x) - 1) where it is below 0")
gelu = _named("gelu", "Return x times the normal distribution's integral up to it")
gelu_tanh = _named("gelu_tanh", "Return gelu by a hyperbolic tangent")
swish = _named("swish", "Return x sigmoid(alpha x)")
softplus = _named("softplus", "Return log(1 + exp(alpha x)) / alpha")
