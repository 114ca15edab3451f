"""What NumPy does, and how near to it a device has to be.

On the host the values are NumPy's own, to the last bit; elsewhere floats may differ.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from accel_lab.compute.arrays.dtypes import NAMES, canonical, is_complex, is_float
from accel_lab.compute.device import Device
from accel_lab.errors import InvalidArgument
from tests.contract.samples import value
from tests.contract.tolerances import EPS

NARROW = frozenset({"bfloat16", "float8_e4m3fn", "float8_e5m2"})
DTYPES = st.sampled_from(NAMES)
shapes = npst.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5)


def near(device: Device, got: Any, expected: Any, steps: int = 4) -> None:
    """Compare shape, dtype and values: exactly on the host, within few roundings elsewhere."""
    expected = np.asarray(expected)
    assert (got.shape, got.dtype) == (expected.shape, expected.dtype)
    name = canonical(expected.dtype)
    if name in NARROW:
        got, expected = got.astype(np.float32), expected.astype(np.float32)
    if device.name.startswith("cpu") or not (is_float(name) or is_complex(name)):
        np.testing.assert_array_equal(got, expected)
    else:
        np.testing.assert_allclose(got, expected, rtol=steps * EPS[name], atol=steps * EPS[name])


def numpys(function: Callable[..., Any], *operands: Any, **options: Any) -> Any:
    """Return what NumPy does, or the type of its refusal."""
    with np.errstate(all="ignore"):
        try:
            result = np.asarray(function(*operands, **options))
        except (TypeError, ValueError, OverflowError) as error:
            return type(error)
    return result if str(result.dtype) in NAMES else TypeError


def compare(device: Device, function: Callable[..., Any], ours: Any, *operands: Any) -> None:
    """Compare a call with NumPy's of the same operands, refusals included."""
    expected = numpys(function, *operands)
    on = [device.put(x) if isinstance(x, np.ndarray) else x for x in operands]
    if isinstance(expected, type):
        with pytest.raises(InvalidArgument):
            ours(*on).result(timeout_s=30)
        return
    ref = ours(*on)
    got = value(device, ref)
    assert (ref.shape, ref.dtype) == (expected.shape, canonical(expected.dtype))
    near(device, got, expected)
