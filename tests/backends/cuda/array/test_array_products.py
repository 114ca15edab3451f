"""How stacks are given to cuBLAS, with NumPy in its place."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel_lab.backends.cuda.array.products import CudaMatmul

DTYPES = ("bool", "int8", "uint32", "int64", "float16", "float32", "float64", "complex64")


class Products:
    """Multiplies two stacks of as many matrices of one dtype, and nothing else."""

    made = closed = 0

    def __init__(self) -> None:
        Products.made += 1

    def matmul(self, a: Any, b: Any, out: Any) -> None:
        assert a.dtype == b.dtype == out.dtype
        assert a.shape[:-2] == b.shape[:-2] == out.shape[:-2]
        for x in (a, b):  # else it would be copied as often as it is repeated
            steps = {step for n, step in zip(x.shape[:-2], x.strides[:-2], strict=True) if n > 1}
            assert steps == {0} or 0 not in steps
        out[...] = np.matmul(a, b)

    def close(self) -> None:
        Products.closed += 1


@pytest.fixture(scope="module")
def multiplies() -> CudaMatmul:
    device: Any = SimpleNamespace(arrays=np, libraries={"blas": Products})
    return CudaMatmul(device)


@given(
    shapes=st.sampled_from(
        [
            ((3,), (3,)),
            ((2, 3), (3,)),
            ((3,), (5, 3, 4)),
            ((6, 1, 2, 3), (5, 3, 4)),
            ((2, 1, 4, 2, 3), (3, 1, 3, 4)),
            ((1, 2, 3), (5, 3, 4)),
            ((2, 3), (4, 0, 3, 1)),
            ((2, 0), (0, 3)),
        ]
    ),
    dtypes=st.tuples(st.sampled_from(DTYPES), st.sampled_from(DTYPES)),
)
def test_they_are_numpys(multiplies: CudaMatmul, shapes: Any, dtypes: Any) -> None:
    draw = np.random.default_rng(0)
    a, b = (draw.integers(0, 2, s).astype(t) for s, t in zip(shapes, dtypes, strict=True))
    got, expected = multiplies.matmul(a, b), np.matmul(a, b)
    assert (got.shape, got.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_array_equal(got, expected)


def test_a_handle_is_made_once_and_closed() -> None:
    device: Any = SimpleNamespace(arrays=np, libraries={"blas": Products})
    made, before = CudaMatmul(device), (Products.made, Products.closed)
    made.close()
    assert (Products.made, Products.closed) == before
    for _ in range(2):
        made.matmul(np.ones((2, 2), "int32"), np.ones((2, 2), "float32"))
    made.close()
    assert (Products.made, Products.closed) == (before[0] + 1, before[1] + 1)
