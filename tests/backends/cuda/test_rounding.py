"""Narrow floats of the cuda kernels, compiled for the CPU, against ml_dtypes and NumPy."""

import ctypes
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from accel_lab.backends.cuda.device.narrow_floats import FORMATS, HALF, SOURCE
from accel_lab.compute.arrays.dtypes import numpy_dtype

Array = npt.NDArray[Any]
Convert = Callable[[str, Array, Any], Array]
ALL = {**FORMATS, "float16": HALF}


@pytest.fixture(scope="module")
def convert(tmp_path_factory: pytest.TempPathFactory) -> Convert:
    """Compile the kernels' source as a library; `convert(function, array, result dtype)`."""
    compiler = shutil.which("c++")
    if compiler is None:
        pytest.skip("there is no C++ compiler")
    folder: Path = tmp_path_factory.mktemp("rounding")
    code = [SOURCE]
    for name, form in ALL.items():
        bits = {"uint8": "unsigned char", "uint16": "unsigned short"}[form.storage]
        code.append(loop(f"encode_{name}", "float", bits, form.encode("x[i]")))
        code.append(loop(f"decode_{name}", bits, "float", form.decode("x[i]")))
    code.append(loop("halve", "double", "unsigned short", HALF.encode("narrow::cut(x[i])")))
    (folder / "rounding.cpp").write_text("\n".join(code))
    command = [
        compiler,
        "-O2",
        "-Wall",
        "-Werror",
        "-shared",
        "-fPIC",
        "rounding.cpp",
        "-o",
        "x.so",
    ]
    subprocess.run(command, cwd=folder, check=True)
    library = ctypes.CDLL(str(folder / "x.so"))

    def call(function: str, x: Array, dtype: Any) -> Array:
        y = np.empty(x.shape, dtype)
        getattr(library, function)(
            ctypes.c_void_p(x.ctypes.data), ctypes.c_void_p(y.ctypes.data), ctypes.c_long(x.size)
        )
        return y

    return call


def loop(name: str, source: str, target: str, value: str) -> str:
    head = f'extern "C" void {name}(const {source}* x, {target}* y, long n)'
    return f"{head} {{ for (long i = 0; i < n; i++) y[i] = {value}; }}"


def every(name: str) -> Array:
    """Return all values of a format, in order of their bits."""
    storage = np.dtype(ALL[name].storage)
    return np.arange(2 ** (8 * storage.itemsize), dtype=np.uint32).astype(storage)


def awkward(name: str) -> Array:
    """Return float32 values at, and one bit beside, each value of a format and each tie."""
    with np.errstate(all="ignore"):
        values = np.unique(every(name).view(numpy_dtype(name)).astype(np.float64))
        values = values[np.isfinite(values)]
        ties = (values[1:] + values[:-1]) / 2
        top = values[-1] + (values[-1] - values[-2]) * np.array([0.5, 0.75, 1.0, 4.0])
        exact = np.concatenate([values, ties, top, -top]).astype(np.float32)
    bits = exact.view(np.uint32)
    sweep = np.arange(0, 2**32, 12_347, dtype=np.uint32)
    return np.concatenate([bits, bits + 1, bits - 1, sweep]).view(np.float32)


@pytest.mark.parametrize("name", ALL)
def test_every_narrow_float_widens_as_in_ml_dtypes(name: str, convert: Convert) -> None:
    x = every(name)
    with np.errstate(all="ignore"):
        expected = x.view(numpy_dtype(name)).astype(np.float32)
    np.testing.assert_array_equal(convert(f"decode_{name}", x, np.float32), expected)


@pytest.mark.parametrize("name", ALL)
def test_floats_round_to_the_same_bits_as_in_ml_dtypes(name: str, convert: Convert) -> None:
    x = awkward(name)
    dtype = numpy_dtype(name)
    storage = np.dtype(ALL[name].storage)
    with np.errstate(all="ignore"):
        expected = x.astype(dtype)
    found = convert(f"encode_{name}", x, storage)
    number = ~np.isnan(x)
    np.testing.assert_array_equal(found[number], expected.view(storage)[number])
    assert np.isnan(found.view(dtype)[~number].astype(np.float32)).all()


def test_float64_rounds_once_on_its_way_to_float16(convert: Convert) -> None:
    with np.errstate(all="ignore"):
        halves = np.unique(every("float16").view(np.float16).astype(np.float64))
        halves = halves[np.isfinite(halves)]
        ties = (halves[1:] + halves[:-1]) / 2
        beyond = np.array([65519.999999, 65520.0, 1e308, 1e-320, 2.0**-25, np.inf, -np.inf, -0.0])
        x = np.concatenate([halves, ties, ties * (1 + 2.0**-40), ties * (1 - 2.0**-40), beyond])
        expected = x.astype(np.float16)
        assert (x.astype(np.float32).astype(np.float16) != expected).any()
    found = convert("halve", x, np.uint16)
    np.testing.assert_array_equal(found, expected.view(np.uint16))
