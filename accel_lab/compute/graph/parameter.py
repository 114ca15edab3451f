"""Numbers of a recorded block that its launches may change."""

from typing import Any


class Parameter:
    """What stands for a number while a block is recorded, and has its value.

    Attributes:
        number: which number of the launch.
        value: what it was recorded with.
    """

    number: int
    value: Any


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
