"""Kernels of other generators, points and weights, compiled for the CPU: the host's bits."""

import ctypes
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accel_lab.backends.cuda.rng.engine_source import (
    POWERS,
    chosen_source,
    leapt_source,
    points_source,
    twisted_source,
)
from accel_lab.backends.host.rng.library import HostRng
from accel_lab.libraries import rng
from accel_lab.libraries.rng.engines import ENGINES
from accel_lab.libraries.rng.selection import Discrete

Build = Callable[[str, str], Any]
INT, WORD, AT = ctypes.c_longlong, ctypes.c_uint64, ctypes.c_void_p
DTYPES = ("uint32", "uint64", "float32", "float64")


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """Compile a kernel."""
    compiler = shutil.which("c++")
    if compiler is None:
        pytest.skip("there is no C++ compiler")
    folder: Path = tmp_path_factory.mktemp("engines")
    command = [compiler, "-O1", "-Wall", "-Werror", "-Wno-unused-function", "-ffp-contract=off"]

    def make(name: str, text: str) -> Any:
        library = folder / f"{len([*folder.iterdir()])}.so"
        source = library.with_suffix(".cpp")
        source.write_text(text)
        subprocess.run([*command, "-shared", "-fPIC", source, "-o", library], check=True)
        return getattr(ctypes.CDLL(str(library)), name)

    return make


@pytest.mark.parametrize("dtype", ["uint32", "float64"])
@pytest.mark.parametrize("generator", ["xorwow", "mrg32k3a", "mt19937"])
def test_words_are_the_host_s(build: Build, generator: Any, dtype: str) -> None:
    twisted = generator == "mt19937"
    source = twisted_source(dtype) if twisted else leapt_source(generator, dtype)
    kernel = build("accel_lab_twisted" if twisted else "accel_lab_leapt", source)
    kernel.argtypes = (AT, INT, AT, WORD) if twisted else (AT, INT, AT, *(ctypes.c_uint32,) * 6)
    far = (77, 0, 3333) if twisted else (2**64 - 5, 2**48 - 1, 2**64 - 2001)
    for n, place in ((1, (0, 0, 0)), (1000, (1, 0, 1)), (1000, far), (400, (3, 0, 623))):
        message = rng.Generate((n,), dtype, *place, generator=generator)
        message.infer()
        found, expected = np.zeros(n, dtype), np.zeros(n, dtype)
        start = message.start
        if twisted:
            kernel(found.ctypes.data, n, start.ctypes.data, message.offset)
        else:
            table = ENGINES[generator].table(POWERS)
            kernel(found.ctypes.data, n, table.ctypes.data, *map(int, start))
        HostRng().generate(message, expected)
        assert found.tobytes() == expected.tobytes()


@pytest.mark.parametrize("dtype", DTYPES)
def test_points_are_the_host_s(build: Build, dtype: str) -> None:
    kernel = build("accel_lab_points", points_source(dtype))
    kernel.argtypes = (AT, INT, INT, AT, AT, WORD)
    last = 2**32 - 100 if "32" in dtype else 2**64 - 100
    for scrambled in (False, True):
        for first in (0, 12345, last):
            message = rng.Sobol((100, 7), dtype, 3, 4, first, scrambled=scrambled)
            message.infer()
            found, expected = np.zeros((100, 7), dtype), np.zeros((100, 7), dtype)
            directions, shifts = message.numbers
            kernel(found.ctypes.data, 700, 7, directions.ctypes.data, shifts.ctypes.data, first)
            HostRng().sobol(message, expected)
            assert found.tobytes() == expected.tobytes()


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_indices_are_the_host_s(build: Build, dtype: str) -> None:
    kernel = build("accel_lab_chosen", chosen_source(dtype))
    kernel.argtypes = (AT, INT, WORD, WORD, WORD, AT, INT)
    draw = np.random.default_rng(5)
    for count in (1, 2, 1000):
        weights = draw.random(count)
        weights[draw.random(count) < 0.3] = 0
        weights[-1] = 1e-3
        # A device's table stands for the buffer of the message.
        ref: Any = weights
        message = Discrete((999,), dtype, 1, 2, 3, weights=ref)
        found, expected = np.zeros(999, dtype), np.zeros(999, dtype)
        assert HostRng().discrete(message, weights, expected)[0] == -1
        units = np.floor(weights / weights.max() * message.scale).astype(np.uint64)
        sums = np.cumsum(units, dtype=np.uint64)
        kernel(found.ctypes.data, 999, 1, 2, 3, sums.ctypes.data, count)
        assert found.tobytes() == expected.tobytes()
        assert (weights[found] > 0).all()
