"""Functions of each element that are computed together, as a backend is asked to do it."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

from accel_lab.compute.message.buffer import AccelRef

STEP = 1 << 16
"""The number of the first step, among operands."""


class Step(NamedTuple):
    """One function of each element.

    Attributes:
        op: NumPy's name of it.
        operands: arrays by their numbers from 0, numbers from -1 downwards, and the results of
            earlier steps from `STEP` on.
        dtype: of the result.
    """

    op: str
    operands: tuple[int, ...]
    dtype: str


class Program:
    """Steps whose results have one shape, to which all operands broadcast; equal only to itself.

    Attributes:
        arrays: the dtypes of the arrays that are read.
        numbers: the Python types of the numbers, by name.
        kept: the steps whose results are written; nobody asks for the others.
    """

    __slots__ = ("arrays", "kept", "numbers", "steps")

    def __init__(
        self,
        arrays: tuple[str, ...],
        numbers: tuple[str, ...],
        steps: tuple[Step, ...],
        kept: tuple[int, ...],
    ) -> None:
        self.arrays = arrays
        self.numbers = numbers
        self.steps = steps
        self.kept = kept


Parts: TypeAlias = tuple[str, tuple[AccelRef | complex, ...]]
"""What a message is computed by: NumPy's name of the function, and its operands."""
Enqueue: TypeAlias = Callable[[Sequence[Any], Sequence[Any]], None]
"""Enqueues a program: is given the numbers, and the arrays to write."""


class Fuser(Protocol):
    """A backend's part of a library of which messages are computed together: its `fused`."""

    least: int
    """How many functions at least are worth it."""

    def __call__(
        self, program: Program, shape: tuple[int, ...], arrays: Sequence[Any]
    ) -> Enqueue | None:
        """Return what enqueues a program over these arrays; None where each is to go alone."""
