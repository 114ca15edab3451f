"""What a backend has beside the functions that NumPy and CuPy share."""

from typing import Any, Protocol


class Kit(Protocol):
    """A backend's arrays; the arrays that it makes are on the device."""

    @property
    def xp(self) -> Any:
        """NumPy, or CuPy."""

    def widened(self, x: Any, dtype: str) -> Any:
        """Return an operand of this dtype in the one that is computed in; None stays."""

    def store(self, value: Any, out: Any, dtype: str) -> None:
        """Write a result, rounded to this dtype once."""

    def matmul(self, a: Any, b: Any) -> Any:
        """Return the products of two stacks of as many matrices."""

    def erf(self, x: Any) -> Any:
        """Return the error function of each element."""

    def kept(self, seed: int, offset: int, count: int, threshold: int) -> Any:
        """Return which of so many words of Philox, from `offset`, are at least a threshold."""

    def summed(self, x: Any, places: Any, rows: int) -> Any:
        """Return rows that are sums of those of `x` at their places, one after the other."""
