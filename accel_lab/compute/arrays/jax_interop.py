"""JAX's arrays as arrays of a device. What needs JAX has imported it already."""

import sys
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from accel_lab.compute.arrays.dtypes import NAMES

KIND = "jax"
"""What a cell's array of JAX's is to be again, as the kinds of `torch_interop` are."""


def platform_of(value: Any) -> str:
    """Return where an array of JAX's lies, as `cpu` or `gpu`; empty for all else.

    All else is what a buffer cannot be, too: what is traced, is spread over several devices, or
    has a dtype that no buffer has, as random keys.
    """
    jax = sys.modules.get("jax")
    if jax is None or not hasattr(jax, "Array") or not isinstance(value, jax.Array):
        return ""
    if isinstance(value, jax.core.Tracer) or str(value.dtype) not in NAMES or value.is_deleted():
        return ""
    devices = value.devices()
    return str(next(iter(devices)).platform) if len(devices) == 1 else ""


def as_array(value: Any) -> npt.NDArray[Any] | None:
    """Return a copy of an array of JAX's on the CPU, which never changes; None for all else."""
    return np.array(value) if platform_of(value) == "cpu" else None


def reduced(value: Any) -> Any:
    """Return how an array of JAX's is pickled for the notebook: as NumPy's; None for all else.

    JAX's own pickle would have JAX open the notebook's card.
    """
    return np.asarray(value).__reduce_ex__(4) if platform_of(value) else None


def kind_of(value: Any) -> str:
    """Return KIND for an array of JAX's; empty for all else."""
    return KIND if platform_of(value) else ""


def made(array: Any) -> Any:
    """Return an array of JAX's that is a copy of one of NumPy's or CuPy's."""
    jax: Any = import_module("jax")
    if isinstance(array, np.ndarray):
        return jax.numpy.array(array)
    return jax.numpy.array(jax.dlpack.from_dlpack(array))
