"""The contract of `libraries.blas` with its operands: in place, in order, or refused."""

import gc
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from accel_lab import array, blas
from accel_lab.compute.arrays.dtypes import NAMES
from accel_lab.compute.device import Device
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.errors import DependencyFailed, InvalidArgument, UserCodeError
from tests.contract.products import (
    Support,
    offered,
    sum_of_products,
)
from tests.contract.samples import (
    Layout,
    assert_equal,
    extents,
    layouts,
    place,
    refused,
    seeds,
    small,
    unanswered,
    value,
)


def test_operands_are_as_they_were(device: Device) -> None:
    a, b, c = (small(i, (3, 3), "float64") for i in range(3))
    on = [device.put(x) for x in (a, b, c)]
    rows = [array.slice(x, 0) for x in on]
    results = [
        blas.gemm(*on, alpha=2, beta=3),
        blas.gemm_strided_batched(*on, beta=1),
        blas.gemv(on[0], rows[1], rows[2], beta=2),
    ]
    for result in results:
        result.result(timeout_s=30)
    assert len({result.id for result in results} | {x.id for x in on}) == 6
    for ref, x in zip(on, (a, b, c), strict=True):
        assert_equal(value(device, ref), x)


@pytest.mark.parametrize("dtype", NAMES)
def test_out_may_be_c(device: Device, support: Support, dtype: str) -> None:
    if not offered(device, support, "blas.Gemm", dtype):
        return
    a, b, c = (small(i, (2, 2), dtype) for i in range(3))
    on_c = device.put(c)
    got = blas.gemm(device.put(a), device.put(b), on_c, alpha=1, beta=1, out=on_c)
    assert got.id == on_c.id
    assert_equal(value(device, on_c), sum_of_products(a, b, dtype, c))


def test_out_may_be_y_or_x_where_blas_updates_in_place(device: Device) -> None:
    x, y = device.put(np.array([1.0, 2])), device.put(np.array([3.0, 4]))
    assert value(device, blas.axpy(x, y, alpha=2, out=y)).tolist() == [5, 8]
    assert value(device, blas.axpy(x, y, alpha=2, out=x)).tolist() == [7, 12]
    assert value(device, blas.scal(x, 2, out=x)).tolist() == [14, 24]
    a = device.put(np.array([[0.0, 1], [1, 0]]))
    assert value(device, blas.gemv(a, x, y, beta=1, out=y)).tolist() == [29, 22]
    assert value(device, x).tolist() == [14, 24]


@settings(max_examples=20)
@given(seed=seeds, m=extents, n=extents, layout=layouts)
def test_out_may_be_a_part_and_the_rest_stays(
    device: Device, seed: int, m: int, n: int, layout: Layout
) -> None:
    a, b = small(seed, (m, 3), "float64"), small(seed + 1, (3, n), "float64")
    around = np.full((m + 2, 2 * n + 1), 9.0)
    base = device.put(around)
    part = array.slice(base, np.s_[1 : m + 1, 1::2])
    blas.gemm(place(device, a, layout), place(device, b, layout), out=part)
    around[1 : m + 1, 1::2] = a @ b
    assert_equal(value(device, base), around)


def test_out_that_overlaps_an_operand_is_refused(device: Device) -> None:
    base = device.put(np.ones((4, 4)))
    top, middle = array.slice(base, np.s_[:3, :3]), array.slice(base, np.s_[1:, 1:])
    again = array.slice(base, np.s_[:3, :3])
    for send in (
        partial(blas.gemm, top, top, out=middle),
        partial(blas.gemm, top, top, out=again),
        partial(blas.gemm_strided_batched, top, top, out=middle),
    ):
        with pytest.raises(InvalidArgument, match="overlapping views of one buffer"):
            send().result(timeout_s=30)
    assert_equal(value(device, base), np.ones((4, 4)))
    apart = array.slice(base, np.s_[3:, 3:])
    assert value(device, blas.scal(apart, 5, out=array.slice(base, np.s_[:1, :1]))) == 5


def test_where_beta_is_zero_c_and_y_are_not_read(device: Device) -> None:
    a = device.put(np.ones((2, 2)))
    nans = array.full(device, (2, 2), float("nan"), "float64")
    assert value(device, blas.gemm(a, a, nans, beta=0)).tolist() == [[2, 2], [2, 2]]
    assert value(device, blas.gemm(a, a, nans, beta=0, out=nans)).tolist() == [[2, 2], [2, 2]]
    nan = array.full(device, 2, float("nan"), "float64")
    assert value(device, blas.gemv(a, array.slice(a, 0), nan, beta=0)).tolist() == [2, 2]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64"])
def test_where_alpha_is_zero_the_product_is_left_out(device: Device, dtype: str) -> None:
    nans, c = array.full(device, (2, 2), float("nan"), dtype), array.full(device, (2, 2), 2, dtype)
    nan, y = array.full(device, 2, float("nan"), dtype), array.full(device, 2, 2, dtype)
    batch = array.full(device, (3, 2, 2), float("nan"), dtype)
    assert (value(device, blas.gemm(nans, nans, alpha=0)) == 0).all()
    assert (value(device, blas.gemm_strided_batched(batch, nans, alpha=0)) == 0).all()
    assert (value(device, blas.gemm(nans, nans.T, c, alpha=0, beta=3, trans_a="t")) == 6).all()
    assert (value(device, blas.gemm(nans, nans, c, alpha=0, beta=1, out=c)) == 2).all()
    assert (value(device, blas.gemv(nans, nan, alpha=0)) == 0).all()
    assert (value(device, blas.gemv(nans, nan, y, alpha=0, beta=3)) == 6).all()


def test_a_chain_needs_no_answer_in_between(device: Device) -> None:
    x = device.put(np.array([[0.0, 1], [1, 1]]))
    power = x
    for _ in range(30):
        power = blas.gemm(power, x)
    gc.collect()
    assert value(device, power).tolist() == [[832040, 1346269], [1346269, 2178309]]


def test_what_only_the_context_can_see_is_refused_there(device: Device) -> None:
    """The shape of an answer of `run` is unknown when the next message is sent."""
    x, out = device.put(np.ones((2, 3))), device.put(np.zeros((2, 2)))
    with unanswered(device):
        turned = device.run(lambda a: a.T, x)
        assert isinstance(turned, AccelRef)
        fits, wrong = blas.gemm(x, turned), blas.gemm(turned, turned)
        wrong_out = blas.gemm(turned, x, out=out)
    with pytest.raises(InvalidArgument, match=r"inner extents differ; a is float64\[3, 2\]"):
        wrong.result(timeout_s=30)
    with pytest.raises(InvalidArgument, match=r"Gemm results in float64\[3, 3\], but out is"):
        wrong_out.result(timeout_s=30)
    assert value(device, fits.result(timeout_s=30)).tolist() == [[3, 3], [3, 3]]
    assert not value(device, out).any()


def test_a_message_whose_operand_failed_names_the_root(device: Device) -> None:
    x = array.zeros(device, (2, 2))
    with unanswered(device):
        never = device.run(lambda a: a.no_such_thing, x)
        assert isinstance(never, AccelRef)
        after = blas.gemm(never, never)
    with pytest.raises(DependencyFailed) as caught:
        after.result(timeout_s=30)
    assert isinstance(caught.value.__cause__, UserCodeError)
    with pytest.raises(UserCodeError):
        never.result(timeout_s=30)


REFUSED: dict[str, tuple[Callable[[Any], object], tuple[str, ...]]] = {
    "inner extents": (
        lambda b: blas.gemm(b.a, b.a),
        ("Gemm", "(2, 3)", "a is float32[2, 3]", "b is float32[2, 3]", "inner extents"),
    ),
    "inner extents when turned": (
        lambda b: blas.gemm(b.a, b.a, trans_a="t", trans_b="t"),
        ("(3, 2)", "trans_a='t'", "trans_b='t'"),
    ),
    "vector for a matrix": (
        lambda b: blas.gemm(b.a, b.x),
        ("Gemm multiplies matrices", "b is float32[3]", "Gemv"),
    ),
    "stack for a matrix": (
        lambda b: blas.gemm(b.stack, b.a),
        ("a is float32[4, 2, 3]", "GemmStridedBatched"),
    ),
    "another dtype": (
        lambda b: blas.gemm(b.a, b.double),
        ("one dtype", "a is float32[2, 3]", "b is float64[3, 2]", "array.cast"),
    ),
    "c of another dtype": (
        lambda b: blas.gemm(b.double, b.double, b.square, beta=1, trans_b="t"),
        ("one dtype", "a is float64[3, 2]", "c is float32[2, 2]"),
    ),
    "c of another shape": (
        lambda b: blas.gemm(b.a, b.a, b.a, beta=1, trans_b="t"),
        ("Gemm results in float32[2, 2]", "c is float32[2, 3]"),
    ),
    "c without beta": (
        lambda b: blas.gemm(b.a, b.a, b.square, trans_b="t"),
        ("c is float32[2, 2]", "without beta", "not be read"),
    ),
    "beta without c": (
        lambda b: blas.gemm(b.a, b.a, beta=0.5, trans_b="t"),
        ("beta is 0.5", "no c"),
    ),
    "complex factor": (
        lambda b: blas.gemm(b.a, b.a, alpha=1j, trans_b="t"),
        ("alpha is 1j", "float32", "complex"),
    ),
    "complex beta": (
        lambda b: blas.gemm(b.a, b.a, b.square, beta=1j, trans_b="t"),
        ("beta is 1j", "float32", "complex"),
    ),
    "factor that is no number": (
        lambda b: blas.scal(b.a, b.text),
        ("alpha must be a number, not str",),
    ),
    "broken factor of integers": (
        lambda b: blas.scal(b.bytes, 0.5),
        ("Scal", "alpha is 0.5", "uint8", "from 0 to 255"),
    ),
    "negative factor of unsigned": (
        lambda b: blas.axpy(b.bytes, b.bytes, alpha=-1),
        ("Axpy", "alpha is -1", "uint8", "from 0 to 255"),
    ),
    "factor that no double holds": (
        lambda b: blas.scal(b.longs, 2**53 + 1),
        ("9007199254740993", "double"),
    ),
    "unknown word": (
        lambda b: blas.gemm(b.a, b.a, trans_b=b.text),
        ("trans_b is '2'", "'n', 't' or 'c'"),
    ),
    "out of another shape": (
        lambda b: blas.gemm(b.a, b.a, trans_b="t", out=b.a),
        ("results in float32[2, 2]", "out is float32[2, 3]"),
    ),
    "out of another dtype": (
        lambda b: blas.gemm(b.square, b.square, out=b.double_square),
        ("results in float32[2, 2]", "out is float64[2, 2]"),
    ),
    "out that is a": (
        lambda b: blas.gemm(b.square, b.other, out=b.square),
        ("reads", "a is float32[2, 2]", "out"),
    ),
    "out that is b": (
        lambda b: blas.gemm(b.other, b.square, out=b.square),
        ("reads", "b is float32[2, 2]", "out"),
    ),
    "out that is b of a batch": (
        lambda b: blas.gemm_strided_batched(b.other, b.square, out=b.square),
        ("GemmStridedBatched", "b is float32[2, 2]"),
    ),
    "out that is x": (
        lambda b: blas.gemv(b.square, b.pair, out=b.pair),
        ("Gemv", "x is float32[2]", "out"),
    ),
    "larger than can be": (
        lambda b: blas.gemm(b.wide, b.wide, trans_a="t"),
        ("Gemm would make float32[1073741824, 1073741824]",),
    ),
    "batches that differ": (
        lambda b: blas.gemm_strided_batched(b.stack, b.two),
        ("equal batch axes", "a is float32[4, 2, 3]", "b is float32[2, 3, 2]"),
    ),
    "batch of vectors": (
        lambda b: blas.gemm_strided_batched(b.stack, b.x),
        ("(..., k, n)", "b is float32[3]"),
    ),
    "matrix for a vector": (
        lambda b: blas.gemv(b.a, b.a),
        ("Gemv", "vector (n,)", "x is float32[2, 3]"),
    ),
    "vector of another length": (
        lambda b: blas.gemv(b.a, b.pair),
        ("op(a) has 3 columns and x 2 elements", "float32[2, 3]"),
    ),
    "no buffer": (lambda b: blas.gemm(b.a, b.numbers), ("Gemm.b", "ndarray", "put()")),
    "no buffer first": (
        lambda b: blas.gemm(b.numbers, b.a),
        ("AccelRef", "ndarray", "put()"),
    ),
}


@pytest.mark.parametrize("mistake", REFUSED)
def test_a_mistake_is_refused_with_what_and_what_was_expected(device: Device, mistake: str) -> None:
    send, words = REFUSED[mistake]
    buffers = SimpleNamespace(
        a=array.zeros(device, (2, 3)),
        x=array.zeros(device, 3),
        pair=array.zeros(device, 2),
        stack=array.zeros(device, (4, 2, 3)),
        two=array.zeros(device, (2, 3, 2)),
        square=array.zeros(device, (2, 2)),
        other=array.zeros(device, (2, 2)),
        wide=array.zeros(device, (0, 2**30)),
        double=array.zeros(device, (3, 2), "float64"),
        double_square=array.zeros(device, (2, 2), "float64"),
        bytes=array.zeros(device, 2, "uint8"),
        longs=array.zeros(device, 2, "int64"),
        numbers=np.ones((3, 2), np.float32),
        text="2",
    )
    with refused(device, *words):
        send(buffers)
