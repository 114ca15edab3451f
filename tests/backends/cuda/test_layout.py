"""How cuBLAS is asked for row-major products, against NumPy; no CUDA needed.

A column-major gemm is played in NumPy on the bare memory of the operands, by the very numbers
that cuBLAS would get.
"""

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.lib.stride_tricks import as_strided

from accel_lab.backends.cuda.blas.layout import Product, increment, matrices, product

Array = npt.NDArray[Any]
extents = st.integers(1, 4)


@st.composite
def views(draw: st.DrawFn, shape: tuple[int, ...], seed: int) -> tuple[Array, Array]:
    """Draw (memory, view): the view has this shape, and any axis order, gaps and directions."""
    order = draw(st.permutations(range(len(shape))))
    steps = [draw(st.sampled_from([1, 1, 1, 2, -1])) for _ in shape]
    gaps = [draw(st.integers(0, 2)) for _ in shape]
    held = [shape[axis] * abs(steps[axis]) + gaps[axis] for axis in order]
    rng = np.random.default_rng(seed)
    memory = rng.integers(-9, 9, math.prod(held)) + 1j * rng.integers(-9, 9, math.prod(held))
    whole = memory.reshape(held).transpose(np.argsort(order))
    part = whole[tuple(slice(0, n * abs(s)) for n, s in zip(shape, steps, strict=True))]
    return memory, part[tuple(slice(None, None, s) for s in steps)]


@st.composite
def products(draw: st.DrawFn) -> dict[str, Any]:
    """Draw the operands of one product or a batch of them."""
    m, n, k = draw(extents), draw(extents), draw(extents)
    batch = tuple(draw(st.lists(extents, max_size=2)))
    trans_a, trans_b = draw(st.sampled_from("ntc")), draw(st.sampled_from("ntc"))
    batch_a = draw(st.sampled_from([batch, ()]))
    batch_b = draw(st.sampled_from([batch, ()])) if batch_a else batch
    return {
        "a": draw(views((*batch_a, *((m, k) if trans_a == "n" else (k, m))), 1)),
        "b": draw(views((*batch_b, *((k, n) if trans_b == "n" else (n, k))), 2)),
        "out": draw(views((*batch, m, n), 3)),
        "trans_a": trans_a,
        "trans_b": trans_b,
    }


def place(memory: Array, view: Array) -> int:
    return int(view.__array_interface__["data"][0] - memory.__array_interface__["data"][0]) // 16


def turned(x: Array, trans: str) -> Array:
    x = x if trans == "n" else x.swapaxes(-1, -2)
    return x.conj() if trans == "c" else x


def column_major(memory: Array, start: int, rows: int, columns: int, leading: int) -> Array:
    assert leading >= max(1, rows), "cuBLAS would refuse this leading dimension"
    assert start >= 0
    assert start + (columns - 1) * leading + rows <= memory.size, "outside of the memory"
    return as_strided(memory[start:], (rows, columns), (16, 16 * leading))


def play(p: Product, operands: dict[str, Any]) -> None:
    """Do what cublasGemmStridedBatchedEx does."""
    (a, of_a), (b, of_b), (out, of_out) = (operands[name] for name in ("a", "b", "out"))
    at_a, at_b, at_out = place(a, of_a), place(b, of_b), place(out, of_out)
    words = "ntc"
    for i in range(p.batch):
        shape_b = (p.n, p.k) if p.op_b == 0 else (p.k, p.n)
        shape_a = (p.k, p.m) if p.op_a == 0 else (p.m, p.k)
        first = column_major(b, at_b + i * p.step_b, *shape_b, p.leading_b)
        second = column_major(a, at_a + i * p.step_a, *shape_a, p.leading_a)
        target = column_major(out, at_out + i * p.step_out, p.n, p.m, p.leading_out)
        target[...] = turned(first, words[p.op_b]) @ turned(second, words[p.op_a])


@given(operands=products())
def test_the_numbers_for_cublas_give_numpys_product(operands: dict[str, Any]) -> None:
    (_, a), (_, b), (memory, out) = (operands[name] for name in ("a", "b", "out"))
    expected = turned(a, operands["trans_a"]) @ turned(b, operands["trans_b"])
    around = memory.copy()
    start = place(memory, out)
    found = product(
        *((x.shape, x.strides) for x in (a, b, out)),
        itemsize=16,
        trans_a=operands["trans_a"],
        trans_b=operands["trans_b"],
    )
    if found is None:
        return
    play(found, operands)
    np.testing.assert_array_equal(out, expected)
    as_strided(around[start:], out.shape, out.strides)[...] = expected
    np.testing.assert_array_equal(memory, around)


@pytest.mark.parametrize("trans_b", ["n", "t", "c"])
@pytest.mark.parametrize("trans_a", ["n", "t", "c"])
def test_contiguous_operands_are_never_copied(trans_a: str, trans_b: str) -> None:
    a, b, out = np.zeros((5, 3, 3)), np.zeros((3, 3)), np.zeros((5, 3, 3))
    layouts = ((x.shape, x.strides) for x in (a, b, out))
    found = product(*layouts, itemsize=8, trans_a=trans_a, trans_b=trans_b)
    assert found is not None
    assert (found.batch, found.step_b, found.wide) == (5, 0, False)


def test_transposed_and_sliced_operands_are_not_copied() -> None:
    x = np.zeros((6, 8))
    for view in (x.T, x[1:4], x[:, 2:5], x[::2], x.T[:, 1:3]):
        assert matrices(view.shape, view.strides, 8) is not None
    assert matrices(x[:, ::2].shape, x[:, ::2].strides, 8) is None


def test_the_conjugate_of_a_transposed_view_has_to_be_copied() -> None:
    a = np.zeros((3, 3), complex)
    layouts = ((x.shape, x.strides) for x in (a.T, a, a))
    assert product(*layouts, itemsize=16, trans_a="c", trans_b="n") is None


def test_a_matrix_of_more_than_two_billion_rows_takes_the_wide_entry_point() -> None:
    rows = 2**31
    shapes = (((rows, 1), (4, 4)), ((1, 1), (4, 4)), ((rows, 1), (4, 4)))
    found = product(*shapes, itemsize=4, trans_a="n", trans_b="n")
    assert found is not None
    assert found.wide


@pytest.mark.parametrize(
    ("part", "expected"),
    [(np.s_[:], 1), (np.s_[::3], 3), (np.s_[::-1], None), (np.s_[:1], 1), (np.s_[5:5], 1)],
)
def test_a_vector_is_walked_forwards_or_copied(part: Any, expected: int | None) -> None:
    x = np.zeros(12)[part]
    assert increment(x.shape, x.strides, 8) == expected
