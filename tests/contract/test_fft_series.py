"""The contract of cosine and sine transforms: the definition, laws, then SciPy in long double."""

from typing import Any

import numpy as np
import pytest
import scipy.fft
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_lab import array, fft
from accel_lab.compute.device import Device
from accel_lab.libraries.fft.real_to_real import TYPES
from tests.contract.samples import place, reals, refused, value
from tests.contract.tolerances import assert_transformed, wide
from tests.contract.transforms import Case, cases, computed_in, dtypes

SERIES = [(op, variant) for op in ("dct", "dst") for variant in TYPES]
of_each = pytest.mark.parametrize(("op", "variant"), SERIES)
PI = np.arccos(np.longdouble(-1))


def matrix(op: str, variant: int, n: int) -> Any:
    """Return the sums as SciPy's manual writes them, in long double."""
    j, k = np.arange(n)[None, :], np.arange(n)[:, None]
    if op == "dct":
        whole = np.longdouble(n - 1 if variant == 1 else n)
        angles = {
            1: j * k,
            2: (j + 0.5) * k,
            3: j * (k + 0.5),
            4: (j + 0.5) * (k + 0.5),
        }
        made = 2 * np.cos(PI * angles[variant] / whole)
        ends = {1: (0, n - 1), 3: (0,)}
    else:
        whole = np.longdouble(n + 1 if variant == 1 else n)
        angles = {
            1: (j + 1) * (k + 1),
            2: (j + 0.5) * (k + 1),
            3: (j + 1) * (k + 0.5),
            4: (j + 0.5) * (k + 0.5),
        }
        made = 2 * np.sin(PI * angles[variant] / whole)
        ends = {3: (n - 1,)}
    for end in ends.get(variant, ()):
        made[:, end] /= 2
    return made


@of_each
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8, 13, 31, 100, 257])
def test_it_is_the_definition(device: Device, op: str, variant: int, n: int) -> None:
    if (op, variant, n) == ("dct", 1, 1):
        pytest.skip("it has no definition")
    x = reals(n, (3, n), "float64")
    got = getattr(fft, op)(device.put(x), variant)
    assert_transformed(
        value(device, got), wide(x) @ matrix(op, variant, n).T, "float64", points=2 * n
    )


@of_each
@settings(max_examples=12)
@given(case=cases(), dtype=dtypes, orthogonalize=st.sampled_from([None, True, False]))
def test_along_any_axes_it_is_scipys_and_undone(
    device: Device, op: str, variant: int, case: Case, dtype: str, orthogonalize: Any
) -> None:
    x = reals(case.seed, case.shape, dtype)
    s = case.s or [x.shape[axis] for axis in case.axes]
    if (op, variant) == ("dct", 1):
        s = [max(n, 2) for n in s]
    on = place(device, x, case.layout)
    options: dict[str, Any] = {"s": s, "axes": case.axes, "norm": case.norm}
    options["orthogonalize"] = orthogonalize
    for name in (f"{op}n", f"i{op}n"):
        parts = [wide(x).real, wide(x).imag]
        exact, more = (getattr(scipy.fft, name)(part, variant, **options) for part in parts)
        if np.iscomplexobj(x):
            exact = exact + 1j * more
        got = getattr(fft, name)(on, variant, **options)
        assert got.dtype == dtype
        assert_transformed(value(device, got), exact, computed_in(dtype), points=8 * case.points)
    there = getattr(fft, f"{op}n")(on, variant, **options)
    back = value(device, getattr(fft, f"i{op}n")(there, variant, **options))
    kept = tuple(slice(min(n, m)) for n, m in zip(x.shape, back.shape, strict=True))
    assert_transformed(back[kept], wide(x[kept]), computed_in(dtype), points=2**20 * case.points)


@of_each
def test_it_is_orthogonal_with_norm_ortho(device: Device, op: str, variant: int) -> None:
    unit = np.eye(24)
    made = value(device, getattr(fft, op)(device.put(unit), variant, norm="ortho"))
    assert_transformed(made @ made.T, wide(unit), "float64", points=2**8)


def test_along_one_axis_n_points_are_scipys(device: Device) -> None:
    x = reals(0, (5, 6), "float64")
    for name in ("dct", "idct", "dst", "idst"):
        for options in ({"n": 9, "axis": 0}, {"n": 4, "norm": "ortho"}, {"type": 3, "axis": -2}):
            exact = getattr(scipy.fft, name)(wide(x), **options)
            got = value(device, getattr(fft, name)(device.put(x), **options))
            assert_transformed(got, exact, "float64", points=24)


def test_a_mistake_is_refused(device: Device) -> None:
    x = array.zeros(device, (3, 1))
    with refused(device, "R2R: variant is 5", "1, 2, 3 or 4"):
        fft.dct(x, 5)
    with refused(device, "R2R: op is 'fht'", "'dct' or 'dst'"):
        fft.r2r(x, op="fht")  # type: ignore[arg-type]
    with refused(device, "type 1 needs at least two points", "[3, 1]", "x is float32[3, 1]"):
        fft.dctn(x, 1)
    message = fft.R2R(x, orthogonalize=2)  # type: ignore[arg-type]
    with refused(device, "R2R: orthogonalize is 2", "True, False or None"):
        device.ask(message)
    with refused(device, "n is 0"):
        fft.idst(x, n=0)
