"""Products of pairs of matrices of any shapes, on every backend, against NumPy one by one."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_lab import array, blas
from accel_lab.compute.device import Device
from accel_lab.errors import InvalidArgument
from tests.contract.declared import Support
from tests.contract.samples import LAYOUTS, Layout, place, refused, small, value


def turned(x: Any, trans: str) -> Any:
    return x if trans == "n" else x.T if trans == "t" else x.conj().T


@settings(max_examples=40)
@given(
    shapes=st.lists(st.tuples(*[st.integers(0, 9)] * 3), min_size=1, max_size=5),
    trans_a=st.sampled_from("ntc"),
    trans_b=st.sampled_from("ntc"),
    layout=st.sampled_from(LAYOUTS),
    dtype=st.sampled_from(sorted({"float16", "bfloat16", "float32", "float64", "complex64"})),
    alpha=st.sampled_from([1, 2, 0]),
)
def test_each_is_the_product_of_its_pair(
    device: Device,
    support: Support,
    shapes: list[tuple[int, int, int]],
    trans_a: Any,
    trans_b: Any,
    layout: Layout,
    dtype: str,
    alpha: int,
) -> None:
    """Of small integers, so that every order of summing is exact."""
    assert dtype in support["blas.GemmGrouped"]
    pairs = [
        (
            small(3 * at, (m, k) if trans_a == "n" else (k, m), dtype),
            small(3 * at + 1, (k, n) if trans_b == "n" else (n, k), dtype),
        )
        for at, (m, k, n) in enumerate(shapes)
    ]
    left, right = ([place(device, pair[side], layout) for pair in pairs] for side in (0, 1))
    made = blas.gemm_grouped(left, right, alpha=alpha, trans_a=trans_a, trans_b=trans_b)
    for ref, (a, b), (m, _, n) in zip(made, pairs, shapes, strict=True):
        wide = "complex128" if dtype.startswith("complex") else "float64"
        expected = alpha * (turned(a, trans_a).astype(wide) @ turned(b, trans_b).astype(wide))
        assert (ref.shape, ref.dtype) == ((m, n), dtype)
        np.testing.assert_array_equal(value(device, ref).astype(wide), expected)


def test_pairs_that_do_not_fit_are_refused_by_their_number(device: Device) -> None:
    a, b = array.zeros(device, (2, 3)), array.zeros(device, (3, 4))
    with refused(device, "GemmGrouped: a[1] is float32[2, 3] and b[1] is float32[2, 3]"):
        blas.gemm_grouped([a, a], [b, a])
    with refused(device, "GemmGrouped: a has 2 matrices and b has 1", "in pairs"):
        blas.gemm_grouped([a, a], [b])
    with pytest.raises(InvalidArgument, match="a has 0 matrices"):
        blas.gemm_grouped([], [])
    row = a[0]
    with refused(device, "GemmGrouped", "a[0] is float32[3]"):
        blas.gemm_grouped([row], [b])
    other = array.cast(b, "float64")
    with refused(device, "GemmGrouped takes operands of one dtype", "array.cast"):
        blas.gemm_grouped([a], [other])
    with refused(device, "GemmGrouped: trans_b is 'T'"):
        wrong: Any = "T"
        blas.gemm_grouped([a], [b], trans_b=wrong)
    with refused(device, "GemmGrouped", "alpha", "has no complex values"):
        blas.gemm_grouped([a], [b], alpha=1j)
