"""The kernels of random numbers, compiled for the CPU, against the host's twin."""

import ctypes
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accel_lab.backends.cuda.rng.kernels import MAX_NDIM, Form, drawing_source
from accel_lab.backends.host.rng.library import HostRng
from accel_lab.compute.arrays.dtypes import numpy_dtype
from accel_lab.libraries.rng.messages import words_each

Draw = Callable[..., None]
Build = Callable[[Form], Draw]
NUMBERS = {"u64": ctypes.c_uint64, "float": ctypes.c_float, "double": ctypes.c_double}
PLACES = [
    (1, 0, 0),
    (2**64 - 1, 2**48 - 1, 4 * 65536 - 7),
    (3, 65537, 2**50 - 2),
    (4, 5, 2**40 - 1),
]
# In float32 the last one begins above its low, so that it would end above its high.
RANGES = [(0.0, 1.0), (-1.0, 1.0), (-0.375, 1e-6), (0.0, 1e-7), (16777219, 16777222.9)]
FLOATS = ("float16", "bfloat16", "float32", "float64")


class Layout(ctypes.Structure):
    _fields_ = (
        ("ndim", ctypes.c_longlong),
        ("shape", ctypes.c_longlong * MAX_NDIM),
        ("strides", ctypes.c_longlong * MAX_NDIM),
    )


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """Compile a kernel as a function (out, place, a, b, c)."""
    compiler = shutil.which("c++")
    if compiler is None:
        pytest.skip("there is no C++ compiler")
    folder: Path = tmp_path_factory.mktemp("drawing")
    command = [compiler, "-O2", "-Wall", "-Werror", "-ffp-contract=off", "-shared", "-fPIC"]

    def make(form: Form) -> Draw:
        library = folder / f"{form.name}.so"
        if not library.exists():
            source = library.with_suffix(".cpp")
            source.write_text(drawing_source(form))
            subprocess.run([*command, source, "-o", library], check=True)
        kernel = getattr(ctypes.CDLL(str(library)), form.name)
        place = (ctypes.c_uint64,) * 3
        number = (NUMBERS[form.number],) * 3
        kernel.argtypes = (ctypes.c_void_p, ctypes.c_longlong, *place, *number, Layout)

        def draw(out: Any, place: tuple[int, int, int], *numbers: Any) -> None:
            layout = Layout(out.ndim)
            layout.shape[: out.ndim] = out.shape
            layout.strides[: out.ndim] = out.strides
            kernel(out.ctypes.data, out.size, *place, *numbers, layout)

        return draw

    return make


def bits(x: Any) -> Any:
    return np.ascontiguousarray(x).view(f"u{x.itemsize}")


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    ("dtype", "low", "span"),
    [
        ("uint32", 0, 2**32),
        ("uint64", 0, 2**64),
        ("bool", 0, 2),
        ("int8", -128, 256),
        ("int16", -5, 10),
        ("int32", -(2**31), 2**32 - 1),
        ("int64", -(2**63), 2**63),
        ("int64", -17, 2**32 + 5),
        ("uint64", 1, 2**64 - 1),
        ("uint8", 7, 1),
        ("uint8", 0, 3),
    ],
)
def test_integers_are_the_host_s(
    build: Build, dtype: str, low: int, span: int, place: tuple[int, int, int]
) -> None:
    width = 8 * np.dtype(dtype).itemsize
    draw = build(Form("integers", f"uint{width}", words_each(span), dense=True))
    for n in (0, 1, 2, 5, 1003):
        found, expected = np.zeros(n, dtype), np.zeros(n, dtype)
        draw(found, place, low % 2**64, span % 2**64, 0)
        HostRng().integers(expected, place, low=low, span=span)
        assert (bits(found) == bits(expected)).all()


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("low", "high"), RANGES)
def test_uniform_numbers_are_the_host_s(
    build: Build, dtype: str, low: float, high: float, place: tuple[int, int, int]
) -> None:
    real = np.float64 if dtype == "float64" else np.float32
    if dtype == "float16" and high > float(np.finfo(np.float16).max):
        pytest.skip("float16 has no such numbers, and the message refuses them")
    a, b, c = (float(real(number)) for number in (low, high - low, high))
    draw = build(Form("uniform", dtype, 2 if dtype == "float64" else 1, dense=True))
    found, expected = (np.zeros(2003, numpy_dtype(dtype)) for _ in range(2))
    draw(found, place, a, b, c)
    HostRng().uniform(expected, place, dtype=dtype, low=a, span=b, high=c)
    assert (bits(found) == bits(expected)).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [1, 2, 3, 1001])
def test_normal_numbers_are_nearly_the_host_s(build: Build, dtype: str, n: int) -> None:
    draw = build(Form("normal", dtype, 2 if dtype == "float64" else 1, dense=True))
    found, expected = np.zeros(n, dtype), np.zeros(n, dtype)
    draw(found, PLACES[1], 0.5, 2.0, 0.0)
    HostRng().normal(expected, PLACES[1], dtype=dtype, mean=0.5, std=2.0)
    np.testing.assert_allclose(found, expected, rtol=0, atol=40 * float(np.finfo(dtype).eps))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_narrow_normal_numbers_are_float32_s_rounded(build: Build, dtype: str) -> None:
    narrow, wide = np.zeros(999, numpy_dtype(dtype)), np.zeros(999, np.float32)
    build(Form("normal", dtype, 1, dense=True))(narrow, PLACES[0], 1.0, 3.0, 0.0)
    build(Form("normal", "float32", 1, dense=True))(wide, PLACES[0], 1.0, 3.0, 0.0)
    assert (bits(narrow) == bits(wide.astype(narrow.dtype))).all()


@pytest.mark.parametrize(
    "form",
    [
        Form("integers", "uint8", 1, dense=False),
        Form("integers", "uint64", 4, dense=False),
        Form("uniform", "float16", 1, dense=False),
        Form("normal", "float64", 2, dense=False),
    ],
)
def test_elements_at_any_strides_are_those_in_a_row(build: Build, form: Form) -> None:
    numbers: tuple[Any, ...] = (3, 100 if form.each == 1 else 10**12, 0)
    if form.kind != "integers":
        numbers = (0.25, 0.5, 0.75)
    around = np.zeros((5, 6, 7), form.dtype)
    for view in (around[1:4, ::2, ::-3], around.T, around[2, 3, 4:5], around[:, 1], around[0]):
        around[...] = 1
        row = np.zeros(view.size, form.dtype)
        build(form._replace(dense=True))(row, PLACES[1], *numbers)
        build(form)(view, PLACES[1], *numbers)
        assert (bits(view).reshape(-1) == bits(row)).all()
        view[...] = 1
        assert (around == 1).all()


def test_an_array_may_begin_at_any_element(build: Build) -> None:
    draw = build(Form("integers", "uint8", 1, dense=True))
    whole = np.zeros(64, np.uint8)
    draw(whole, PLACES[0], 0, 256, 0)
    for first in range(1, 18):
        around = np.zeros(100, np.uint8)
        draw(around[first : first + 64], PLACES[0], 0, 256, 0)
        assert (around[first : first + 64] == whole).all()
        assert not around[:first].any()
        assert not around[first + 64 :].any()
