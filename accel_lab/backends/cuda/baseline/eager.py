"""Expressions of fresh results."""

from types import SimpleNamespace
from typing import Any

import cupy

from accel_lab.backends.cuda.baseline import Call
from accel_lab.backends.eager import EXPRESSIONS


def expression(name: str, size: int) -> Call:
    """Prepare an expression of two square matrices."""
    functions: Any = SimpleNamespace(
        exp=cupy.exp, maximum=cupy.maximum, where=cupy.where, rfft=cupy.fft.rfft
    )
    a, b = (cupy.random.standard_normal((size, size), dtype="float32") for _ in "ab")
    evaluate = EXPRESSIONS[name]
    wait = cupy.cuda.get_current_stream().synchronize
    return "CuPy", lambda: evaluate(functions, a, b), wait
