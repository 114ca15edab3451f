"""JAX's arrays in the context of the host backend: cells and functions make buffers of them."""

import sys
from importlib import import_module
from typing import Any

import numpy as np
import pytest

from accel_lab import Device
from accel_lab.compute.arrays.dtypes import numpy_dtype
from tests.conftest import require

WAIT_S = 120.0  # the first function that uses it imports JAX
DTYPES = ["float32", "float16", "bfloat16", "float8_e5m2", "int32", "uint8", "bool", "complex64"]


@pytest.fixture(autouse=True)
def _jax() -> None:
    require("jax")


def made(dtype: str) -> Any:
    jax = import_module("jax")

    return jax.numpy.arange(6).reshape(2, 3).astype(dtype).T


@pytest.mark.parametrize("dtype", DTYPES)
def test_an_array_that_a_function_returns_is_a_buffer(cpu: Device, dtype: str) -> None:
    answer = cpu.run(made, dtype).result(WAIT_S)
    assert (answer.shape, answer.dtype) == ((3, 2), dtype)
    expected = np.ascontiguousarray(np.arange(6).reshape(2, 3).astype(numpy_dtype(dtype)).T)
    assert answer.get().tobytes() == expected.tobytes()
    assert "jax" not in sys.modules


def test_arrays_inside_an_answer_are_handles_and_need_no_jax_here(cpu: Device) -> None:
    def several() -> Any:
        jax = import_module("jax")

        x = jax.numpy.ones(3)
        return {"x": x, "two": [x + 1]}, jax.random.key(0) is not None

    (held, _) = cpu.run(several).result(WAIT_S)
    assert held["x"].get().tolist() == [1, 1, 1]
    assert held["two"][0].get().tolist() == [2, 2, 2]
    assert "jax" not in sys.modules


def test_what_is_written_to_the_buffer_does_not_change_jaxs_array(cpu: Device) -> None:
    def keep() -> Any:
        jax: Any = import_module("jax")

        jax.kept = jax.numpy.zeros(3)
        return jax.kept

    def kept() -> Any:
        return sys.modules["jax"].kept.tolist()

    def add(x: Any) -> None:
        x += 1

    x = cpu.run(keep).result(WAIT_S)
    cpu.run(add, x).result(WAIT_S)
    assert x.get().tolist() == [1, 1, 1]
    assert cpu.run(kept).result(WAIT_S) == [0, 0, 0]
