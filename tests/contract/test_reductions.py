"""The reductions of buffers, against NumPy."""

from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from accel_lab import array
from accel_lab.compute.arrays.dtypes import canonical, is_float, numpy_dtype
from accel_lab.compute.device import Device
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.libraries.array.reduction import PLACES, REDUCE, SPREADS, ReduceOp
from tests.contract.numpys import DTYPES, NARROW, near, numpys, shapes
from tests.contract.samples import reals, refused, seeds, small, value
from tests.contract.tolerances import EPS


def reduced(op: str, x: Any, **options: Any) -> Any:
    """Return NumPy's reduction; of the floats it lacks in float32, rounded once."""
    if str(x.dtype) not in NARROW:
        return numpys(getattr(np, op), x, **options)
    result = numpys(getattr(np, op), x.astype(np.float32), **options)
    keeps = isinstance(result, type) or op in PLACES | {"any", "all"}
    return result if keeps else result.astype(x.dtype)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's of empty means
@settings(max_examples=300)
@given(
    data=st.data(),
    shape=shapes,
    seed=seeds,
    dtype=DTYPES,
    op=st.sampled_from(get_args(ReduceOp)),
    keepdims=st.booleans(),
)
def test_reductions_along_any_axes_are_numpys(
    device: Device,
    data: st.DataObject,
    shape: tuple[int, ...],
    seed: int,
    dtype: str,
    op: ReduceOp,
    keepdims: bool,  # noqa: FBT001 - hypothesis gives it
) -> None:
    x = reals(seed, shape, dtype) if is_float(dtype) else small(seed, shape, dtype)
    ndim = len(shape)
    one = st.integers(-ndim, ndim - 1) if ndim else st.none()
    several = npst.valid_tuple_axes(ndim, min_size=1) if ndim else st.none()
    axis: Any = data.draw(one | st.none() if op in PLACES else one | several | st.none())
    expected = reduced(op, x, axis=axis, keepdims=keepdims)
    on = device.put(x)
    if isinstance(expected, type):
        with refused(device, "Reduce", op):
            getattr(on, op)(axis, keepdims=keepdims)
        return
    got = getattr(on, op)(axis, keepdims=keepdims)
    assert (got.shape, got.dtype) == (expected.shape, canonical(expected.dtype))
    near(device, value(device, got), expected, steps=64)


@pytest.mark.parametrize("op", sorted(REDUCE))
def test_numpys_own_function_of_a_buffer_stays_on_the_device(device: Device, op: str) -> None:
    x = small(0, (3, 4), "float32")
    got = getattr(np, op)(device.put(x), axis=1)
    assert isinstance(got, AccelRef)
    near(device, value(device, got), getattr(np, op)(x, axis=1), steps=64)


def test_reductions_take_a_dtype_and_degrees_of_freedom(device: Device) -> None:
    x = reals(0, (4, 5), "float32")
    on = device.put(x)
    for op in ("sum", "prod", "mean"):
        near(
            device,
            value(device, getattr(on, op)(axis=0, dtype="float64")),
            getattr(np, op)(x, axis=0, dtype="float64"),
        )
    for op in SPREADS:
        near(
            device,
            value(device, getattr(on, op)(0, ddof=1)),
            getattr(np, op)(x, 0, ddof=1),
            steps=64,
        )
    with refused(device, "max takes no dtype"):
        array.reduce("max", on, dtype="float64")
    of_complex = array.zeros(device, 2, "complex64")
    with refused(device, "complex64"):
        array.sum(of_complex, dtype="float32")


PLAIN: dict[str, Any] = {
    "nansum": np.sum,
    "nanprod": np.prod,
    "nanmax": lambda x: x.max() if x.size else np.nan,
    "nanmin": lambda x: x.min() if x.size else np.nan,
    "nanmean": np.mean,
    "nanvar": np.var,
    "nanstd": np.std,
    "count_nonzero": np.count_nonzero,
}
"""What is computed of the elements that are left."""


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's of empty means
@pytest.mark.parametrize("dtype", ["int16", "bfloat16", "float16", "float32", "complex128"])
def test_reductions_without_nan_are_those_of_what_is_left(device: Device, dtype: str) -> None:
    x = small(0, (6, 5), "int16" if dtype == "int16" else "float32").astype(numpy_dtype(dtype))
    if dtype != "int16":
        x[::2, 1], x[:, 3], x[4, 0] = np.nan, np.nan, np.nan
    on, wide = device.put(x), x.astype(np.complex128 if dtype == "complex128" else np.float64)
    for name, plain in PLAIN.items():
        if name in ("nanmax", "nanmin") and dtype == "complex128":
            with refused(device, f"{name}: x complex128[6, 5] has no order"):
                getattr(array, name)(on)
            continue
        counts = name == "count_nonzero"
        for axis, lanes in ((None, wide.reshape(1, -1)), (0, wide.T), (-1, wide)):
            left = [lane if counts else lane[~np.isnan(lane)] for lane in lanes]
            got = value(device, getattr(array, name)(on, axis, keepdims=True)).reshape(-1)
            expected = np.array([plain(lane) for lane in left])
            assert got.dtype == np.int64 if counts else got.dtype == reduced_as(name, x)
            near = 2 * EPS[dtype if dtype in EPS else "float64"]
            np.testing.assert_allclose(got.astype(expected.dtype), expected, rtol=near, atol=1e-9)
    ddof = value(device, array.nanvar(on, 0, ddof=5))
    at = [lane[~np.isnan(lane)] for lane in wide.T]
    expected = np.array([np.var(lane, ddof=5) if lane.size > 5 else np.nan for lane in at])
    np.testing.assert_allclose(
        ddof.astype(float), expected, rtol=2 * EPS.get(dtype, EPS["float64"])
    )
    filled = value(device, array.nan_to_num(on, 7.0))
    np.testing.assert_array_equal(filled, np.where(np.isnan(wide), 7.0, wide).astype(x.dtype))


def reduced_as(name: str, x: Any) -> Any:
    """Return the dtype of NumPy's function; that of `x` where NumPy lacks it."""
    if str(x.dtype) in NARROW:
        return x.dtype
    return getattr(np, name)(np.zeros(1, x.dtype)).dtype
