"""Numbers of a recorded block that its launches may change.

One goes into a message as it is. What Python computes with it would be the same in each launch, so
that is refused; `int(n)` and `float(n)` say that it is wanted.
"""

import operator
from collections.abc import Callable
from numbers import Number
from typing import Any, NoReturn, SupportsIndex

import msgspec
import numpy as np

from accel_lab.compute.graph.plan import Place
from accel_lab.errors import InvalidArgument

_UNARY = ("neg", "pos", "abs", "invert", "round", "trunc", "floor", "ceil")
_BINARY = (
    *("add", "sub", "mul", "truediv", "floordiv", "mod", "divmod", "pow"),
    *("and", "or", "xor", "lshift", "rshift"),
)
_QUESTIONS = {
    *(np.isfinite, np.isnan, np.isinf, np.signbit),
    *(np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal),
}


class Parameter:
    """What stands for a number while a block is recorded, and has its value.

    Attributes:
        number: which number of the launch.
        value: what it was recorded with.
    """

    number: int
    value: Any

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *given: Any, **options: Any) -> Any:
        if ufunc not in _QUESTIONS:
            refuse(self)
        plain = [one.value if isinstance(one, Parameter) else one for one in given]
        return getattr(ufunc, method)(*plain, **options)


class Integer(int, Parameter):
    """An integer."""


class Float(float, Parameter):
    """A floating-point number."""


class Complex(complex, Parameter):
    """A complex number."""


KINDS: dict[type, type[Any]] = {int: Integer, float: Float, complex: Complex}


def parameter(value: complex, number: int) -> Any:
    """Return what stands for a number in a recorded block."""
    made = KINDS[type(value)](value)
    made.number, made.value = number, value
    return made


def as_index(value: SupportsIndex) -> int:
    """Return an integer of any kind as Python's.

    Raises:
        InvalidArgument: a launch may change it, and where it stands it would stay.
        TypeError: it is none.
    """
    if isinstance(value, Parameter):
        refuse(value)
    return operator.index(value)


def without_parameters(message: Any) -> tuple[Any, tuple[Place, ...]]:
    """Return a message with plain numbers, and where those stood that launches may change.

    Raises:
        InvalidArgument: one stands where launches do not come to it.
    """
    places: list[Place] = []
    changed: dict[str, Any] = {}
    for name in message.__struct_fields__:
        value = getattr(message, name)
        if isinstance(value, Parameter):
            places.append(Place(value.number, name))
            changed[name] = value.value
        elif type(value) is tuple and any(isinstance(one, Parameter) for one in value):
            for at, one in enumerate(value):
                if isinstance(one, Parameter):
                    places.append(Place(one.number, name, at))
            plain = [one.value if isinstance(one, Parameter) else one for one in value]
            changed[name] = tuple(plain)
        if _holds_one(changed.get(name, value)):
            text = f"{type(message).__name__} has a number of the graph deep in its {name}"
            text = f"{text}, where launches do not change it"
            raise InvalidArgument(f"{text}: write int(…) or float(…) around it")
    if not changed:
        return message, ()
    return msgspec.structs.replace(message, **changed), tuple(places)


def _holds_one(value: Any) -> bool:
    if isinstance(value, tuple | list):
        return any(map(_holds_one, value))
    return isinstance(value, Parameter)


def refuse(value: Parameter) -> NoReturn:
    """Refuse what would not follow a number.

    Raises:
        InvalidArgument: always.
    """
    name = type(value.value).__name__
    raise InvalidArgument(
        f"a number of a graph, here the {name} {value.value!r}, is computed with, or names an "
        "extent, an axis or a place, and launches could not change that: give it to a message as "
        f"it is, or write {name}(…) around it for what it was recorded with"
    )


def _refusing() -> Callable[..., Any]:
    def operate(self: Any, *others: Any) -> Any:
        if all(isinstance(one, Number | np.generic | np.ndarray) for one in others):
            refuse(self)
        return NotImplemented  # a buffer sends a message

    return operate


for _kind in KINDS.values():
    for _name in (*_UNARY, *_BINARY, *(f"r{one}" for one in _BINARY)):
        if hasattr(_kind, f"__{_name}__"):
            setattr(_kind, f"__{_name}__", _refusing())
