"""The operators: for each its function, and where it wants its inputs."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from accel_lab.onnx.node import Node

OLDEST = 7
"""The oldest version of the operator set: in those before it operands broadcast otherwise."""

Function = Callable[..., Any]
Check = Callable[[Node], str | None]


@dataclass(frozen=True, slots=True)
class Operator:
    """An operator.

    Attributes:
        function: takes the call and the inputs, and returns a value or a tuple of them.
        anywhere: whether it computes with NumPy where no input is on the device.
        host: the inputs that it wants as NumPy arrays: shapes, axes and the like.
        pure: whether it gives the same of the same, and so is computed once of constants.
        since: the oldest version of the operator set in which it means the same.
        refuses: what is missing for a node, told when the model is loaded.
    """

    function: Function
    anywhere: bool = False
    host: frozenset[int] = frozenset()
    pure: bool = True
    since: int = OLDEST
    refuses: Check | None = None


OPERATORS: dict[str, Operator] = {}
"""The operators of ONNX's own domain, by name."""


def operator(
    *names: str,
    anywhere: bool = False,
    host: Iterable[int] = (),
    pure: bool = True,
    since: int = OLDEST,
    refuses: Check | None = None,
) -> Callable[[Function], Function]:
    """Register a function for operators of these names."""

    def register(function: Function) -> Function:
        for name in names:
            OPERATORS[name] = Operator(function, anywhere, frozenset(host), pure, since, refuses)
        return function

    return register
