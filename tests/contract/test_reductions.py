"""The reductions of buffers, against NumPy."""

from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from accel_lab import array
from accel_lab.compute.arrays.dtypes import canonical, is_float
from accel_lab.compute.device import Device
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.libraries.array.reduction import PLACES, REDUCE, SPREADS, ReduceOp
from tests.contract.numpys import DTYPES, NARROW, near, numpys, shapes
from tests.contract.samples import reals, refused, seeds, small, value


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
