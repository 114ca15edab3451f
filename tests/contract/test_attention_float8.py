"""The contract of attention of float8: that of the scaled operands, rounded once; refusals."""

from typing import Any

import numpy as np
import pytest

from accel_lab import array, attention
from accel_lab.compute.device import Device
from accel_lab.errors import UnsupportedDtype
from tests.contract import attentions
from tests.contract.samples import reals, refused, value
from tests.contract.tolerances import EPS, SMALLEST


def scale(device: Device, number: float) -> Any:
    return device.put(np.array(number, "float32"))


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2"])
@pytest.mark.parametrize("options", [{}, {"causal": "bottom_right", "window": 5, "alibi": True}])
def test_it_is_the_attention_of_what_the_scales_make(
    device: Device, dtype: str, options: dict[str, Any]
) -> None:
    q, k, v = (
        reals(seed, shape, dtype)
        for seed, shape in enumerate([(2, 4, 9, 16), (2, 2, 12, 16), (2, 2, 12, 8)])
    )
    scales = (0.5, 2.0, 0.25)
    exact, logarithm = attentions.attention(
        *(x.astype("float64") * s for x, s in zip((q, k, v), scales, strict=True)), **options
    )
    y, amax, lse = attention.attend_float8(
        device.put(q),
        device.put(k),
        device.put(v),
        scale(device, scales[0]),
        scale(device, scales[1]),
        scale(device, scales[2]),
        scale(device, 8.0),
        lse=True,
        **options,
    )
    assert lse is not None
    got = value(device, y)
    assert str(got.dtype) == dtype
    np.testing.assert_allclose(
        got.astype("float64"), 8 * exact, rtol=EPS[dtype] * 0.51, atol=SMALLEST[dtype]
    )
    np.testing.assert_allclose(value(device, amax), np.abs(exact).max(), rtol=1e-5)
    np.testing.assert_allclose(value(device, lse), logarithm, rtol=1e-5, atol=1e-5)


def test_what_is_too_large_is_the_largest_number(device: Device) -> None:
    x = device.put(np.full((1, 1, 3, 4), 16, "float32")).astype("float8_e4m3fn")
    one = scale(device, 1.0)
    y, amax, lse = attention.attend_float8(x, x, x, one, one, one, scale(device, 1e4))
    assert lse is None
    assert (value(device, y).astype("float32") == 448).all()
    assert float(value(device, amax)) == 16


def test_mistakes_are_refused_with_what_and_what_was_expected(device: Device) -> None:
    x = array.zeros(device, (1, 1, 3, 4), "float8_e4m3fn")
    other = array.zeros(device, (1, 1, 3, 4), "float8_e5m2")
    wide, one = array.zeros(device, (1, 1, 3, 4)), scale(device, 1.0)
    several, double = array.zeros(device, (3,)), array.zeros(device, (), "float64")
    with refused(device, "one dtype", "v is float8_e5m2"):
        attention.attend_float8(x, x, other, one, one, one)
    with refused(device, "scale_k is float32[3]", "[]"):
        attention.attend_float8(x, x, x, one, several, one)
    with refused(device, "scale_q is float64[]", "float32[]"):
        attention.attend_float8(x, x, x, double, one, one)
    with refused(device, "float32", error=UnsupportedDtype):
        attention.attend_float8(wide, wide, wide, one, one, one)
