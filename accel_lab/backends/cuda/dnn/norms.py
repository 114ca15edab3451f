"""What the kernel of layer and RMS norms is made of, and what it is given; no CUDA needed."""

from functools import cache
from pathlib import Path
from struct import Struct
from typing import NamedTuple

from accel_lab.backends.cuda.own_kernels.element import element_source

HEAD = Struct("=4Qqd")
"""x, scale, bias and y; the elements of a row; epsilon."""

_WARP, _THREADS = 32, 256


class NormForm(NamedTuple):
    """What the kernel is compiled for.

    Attributes:
        centered: whether the mean is subtracted.
    """

    dtype: str
    centered: bool

    def source(self) -> str:
        """Return the C++ of `normalize`."""
        told = f"#define CENTERED {int(self.centered)}\n"
        return element_source(self.dtype) + told + _text()


def threads_of(width: int) -> int:
    """Return how many threads share a row."""
    return _WARP if width <= 4 * _WARP else _THREADS


@cache
def _text() -> str:
    return Path(__file__).with_name("norm.cu").read_text(encoding="utf-8")
