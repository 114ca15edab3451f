"""The contract of `libraries.tensor`: Einstein's sums in long double, loops over indices, refusals.

How far a sum may be off is Higham's bound for any order of its terms.
"""

import itertools
import math
import os
import signal
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_lab import System, array, tensor
from accel_lab.compute.device import Device
from accel_lab.compute.events.lifecycle import BuffersRebuilt
from accel_lab.libraries.tensor.message import BINARY, DTYPES, UNARY
from accel_lab.libraries.tensor.path import steps_of
from tests.contract.samples import (
    Layout,
    assert_equal,
    assert_same,
    layouts,
    place,
    reals,
    refused,
    seeds,
    small,
    value,
)
from tests.contract.tolerances import assert_near, wide

NAMES = "abcd"
HOW: tuple[tensor.Optimize, ...] = ("auto", "greedy", "optimal", "dp")
loose: Any = tensor
"""For calls that a type checker would refuse, too."""
dtypes = st.sampled_from(sorted(DTYPES))


@st.composite
def contractions(draw: st.DrawFn) -> tuple[str, list[tuple[int, ...]]]:
    """Draw a text of up to four operands, diagonals and lone names included, and their shapes."""
    extents = dict(zip(NAMES, draw(st.tuples(*[st.integers(0, 4)] * 4)), strict=True))
    term = st.text(NAMES, max_size=3)
    terms = draw(st.lists(term, min_size=1, max_size=4))
    there = sorted(set("".join(terms)))
    made = "".join(draw(st.permutations(there))[: draw(st.integers(0, len(there)))])
    return f"{','.join(terms)}->{made}", [tuple(extents[name] for name in one) for one in terms]


@settings(max_examples=80)
@given(case=contractions(), seed=seeds, dtype=dtypes, layout=layouts)
def test_a_contraction_is_the_sum_over_what_its_result_lacks(
    device: Device,
    case: tuple[str, list[tuple[int, ...]]],
    seed: int,
    dtype: str,
    layout: Layout,
) -> None:
    text, shapes = case
    tensors = [reals(seed + at, shape, dtype) for at, shape in enumerate(shapes)]
    placed = [place(device, x, layout) for x in tensors]
    exact = np.einsum(text, *map(wide, tensors))
    size = np.einsum(text, *(np.abs(wide(x)) for x in tensors))
    names = text.partition("->")[0].replace(",", "")
    extents = dict(zip(names, itertools.chain(*shapes), strict=True))
    operations = math.prod(extents.values()) + 4 * len(tensors)
    got = value(device, tensor.contract(text, *placed))
    assert_near(got, exact, dtype, magnitude=size, operations=operations)
    out = array.full(device, exact.shape, float("nan"), dtype)
    assert tensor.contract(text, *placed, alpha=2, out=out).id == out.id
    assert_near(value(device, out), 2 * exact, dtype, magnitude=2 * size, operations=operations)


@pytest.mark.parametrize(
    ("text", "shapes"),
    [
        ("...ij,...jk->...ik", [(2, 3, 4, 5), (3, 5, 6)]),
        ("...ij,...jk", [(2, 1, 4, 5), (1, 3, 5, 6)]),
        ("i...,i...->...", [(4, 1, 3), (4, 2, 1)]),
        ("...,...,...->...", [(2, 3), (3,), ()]),
        ("ij,jk", [(2, 3), (3, 4)]),
        ("ba", [(2, 3)]),
        ("ii", [(3, 3)]),
        ("...ii->...i", [(2, 3, 3)]),
        ("ij,jk,kl,lm->mi", [(2, 9), (9, 3), (3, 8), (8, 2)]),
        ("Ab,bA->A", [(3, 2), (2, 3)]),
    ],
)
def test_a_text_means_what_it_means_to_numpy(
    device: Device, text: str, shapes: list[tuple[int, ...]]
) -> None:
    tensors = [small(at, shape, "float64") for at, shape in enumerate(shapes)]
    expected = np.einsum(text, *tensors)
    for how in HOW:
        got = tensor.contract(text, *map(device.put, tensors), optimize=how)
        assert got.shape == expected.shape
        assert_equal(value(device, got), np.asarray(expected))


def test_what_is_small_is_multiplied_first() -> None:
    shapes = ((1000, 2), (2, 1000), (1000, 3))
    first, second = steps_of("ij,jk,kl->il", shapes, "auto")
    assert first.operands == (2, 1), "(1000, 2) @ (2, 1000) would be a million elements"
    assert set(first.makes) == {"j", "l"}
    assert second.makes == "il"


def test_sums_are_formed_in_the_precision_that_is_asked_for(device: Device) -> None:
    x = device.put(np.array([1e8, 1, -1e8], np.float32))
    one = device.put(np.ones(3, np.float32))
    got = tensor.contract("i,i->", x, one, compute="float64")
    assert value(device, got) == 1
    for dtype, compute in (("float64", "float32"), ("float32", "tf32"), ("complex128", "float32")):
        a, b = (reals(seed, (5, 5), dtype) for seed in (0, 1))
        got = tensor.contract("ij,jk->ik", device.put(a), device.put(b), compute=compute)  # type: ignore[arg-type]
        # tf32 has the 10 bits of float16 (NVIDIA A100 white paper).
        size = np.abs(a) @ np.abs(b)
        assert (np.abs(value(device, got) - a @ b) <= 2.0**-9 * size).all()


@settings(max_examples=40)
@given(
    seed=seeds,
    shape=st.tuples(*[st.integers(1, 4)] * 3),
    text=st.sampled_from(("ijk->ki", "ijk->", "ijk->j", "i...->...", "ijk->kji")),
    op=st.sampled_from(BINARY),
    dtype=st.sampled_from(("float16", "bfloat16", "float32", "float64")),
    layout=layouts,
)
def test_a_reduction_is_numpys_over_the_axes_that_are_not_named(
    device: Device,
    seed: int,
    shape: tuple[int, ...],
    text: str,
    op: tensor.BinaryOp,
    dtype: str,
    layout: Layout,
) -> None:
    x = reals(seed, shape, dtype)
    got = value(device, tensor.reduce(text, place(device, x, layout), op, alpha=2))
    named = text.partition("->")[2].replace("...", "jk")
    axes = tuple(at for at, name in enumerate("ijk") if name not in named)
    left = "".join(name for name in "ijk" if name in named)
    of = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}[op]

    def reduced(values: Any) -> Any:
        kept = of.reduce(values, axes) if axes else values
        return np.transpose(kept, [left.index(name) for name in named])

    exact, size = reduced(wide(x)), reduced(np.abs(wide(x)))
    assert_near(got, 2 * exact, dtype, magnitude=2 * size, operations=x.size + 2)


def test_a_sum_of_none_is_zero_a_product_one_and_an_extreme_refused(device: Device) -> None:
    x = array.zeros(device, (3, 0), "float32")
    assert_equal(value(device, tensor.reduce("ij->i", x)), np.zeros(3, np.float32))
    assert_equal(value(device, tensor.reduce("ij->i", x, "mul")), np.ones(3, np.float32))
    assert tensor.reduce("ij->j", x, "max").shape == (0,)
    with refused(device, "float32[3, 0] has no max"):
        tensor.reduce("ij->i", x, "max")


FUNCTIONS: dict[str, Any] = {
    "identity": lambda x: x, "sqrt": np.sqrt, "relu": lambda x: np.where(x > 0, x, 0),
    "conj": np.conj, "rcp": lambda x: 1 / x, "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "tanh": np.tanh, "exp": np.exp, "log": np.log, "abs": np.abs, "neg": lambda x: -x,
    "sin": np.sin, "cos": np.cos, "tan": np.tan, "sinh": np.sinh, "cosh": np.cosh,
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "asinh": np.arcsinh,
    "acosh": np.arccosh, "atanh": np.arctanh, "ceil": np.ceil, "floor": np.floor,
    "swish": lambda x: x / (1 + np.exp(-x)), "soft_plus": lambda x: np.log1p(np.exp(x)),
    "soft_sign": lambda x: x / (1 + np.abs(x)),
}  # fmt: skip
"""cuTENSOR's functions, as its manual defines them."""


@pytest.mark.parametrize("op", UNARY)
def test_a_permutation_takes_a_function_of_each_element(device: Device, op: tensor.UnaryOp) -> None:
    low = {"sqrt": 0.1, "log": 0.1, "acosh": 1.1}.get(op, -0.9)
    for dtype in ("float16", "bfloat16", "float32", "float64"):
        drawn = np.random.default_rng(0).uniform(low, low + 1.8, (3, 4, 2))
        x = drawn.astype(reals(0, (), dtype).dtype)
        got = value(device, tensor.permute("ijk->kij", device.put(x), op, alpha=-3))
        exact = -3 * FUNCTIONS[op](wide(x)).transpose(2, 0, 1)
        assert_near(got, exact, dtype, magnitude=3 + np.abs(exact), operations=16)
    # Of what is large, too, as far as it is defined there.
    large = np.array([-1e4, 1e4], np.float32) if low < 0 else np.array([1.5, 1e4], np.float32)
    if op not in ("asin", "acos", "atanh", "exp", "sinh", "cosh", "sin", "cos", "tan"):
        with np.errstate(over="ignore"):
            exact = FUNCTIONS[op](wide(large))
        got = value(device, tensor.permute("i->i", device.put(large), op))
        assert_near(got, exact, "float32", magnitude=np.abs(exact), operations=16)


def test_complex_numbers_are_permuted_conjugated_and_joined(device: Device) -> None:
    x, y = small(0, (2, 3), "complex64"), small(1, (3,), "complex64")
    on, other = device.put(x), device.put(y)
    assert_equal(value(device, tensor.permute("ij->ji", on, "conj", alpha=1j)), 1j * x.conj().T)
    got = tensor.binary("ij,j->ij", on, other, "mul", op_c="conj", gamma=2)
    assert_equal(value(device, got), x * (2 * y.conj()))
    assert_equal(value(device, tensor.contract("ij,j->i", on, other)), x @ y)


@pytest.mark.parametrize(("op_ab", "op_abc"), [*itertools.product(BINARY, BINARY)])
def test_several_are_joined_element_by_element(
    device: Device, op_ab: tensor.BinaryOp, op_abc: tensor.BinaryOp
) -> None:
    """By loops over the indices, of integers, which are exact."""
    a, b, c = (small(s, shape, "float32") for s, shape in ((0, (2,)), (1, (3, 2)), (2, (2, 4, 3))))
    of: dict[str, Any] = {"add": lambda x, y: x + y, "mul": lambda x, y: x * y}
    of |= {"max": max, "min": min}
    pair, whole = np.zeros((3, 2), np.float32), np.zeros((4, 3, 2), np.float32)
    for i, j in np.ndindex(2, 3):
        pair[j, i] = of[op_ab](2 * a[i], -3 * abs(b[j, i]))
        for k in range(4):
            whole[k, j, i] = of[op_abc](pair[j, i], 0.5 * -c[i, k, j])
    on_a, on_b, on_c = (device.put(x) for x in (a, b, c))
    got = tensor.binary("i,ji->ji", on_a, on_b, op_ab, alpha=2, gamma=-3, op_c="abs")
    assert_equal(value(device, got), pair)
    every = tensor.trinary(
        "i,ji,ikj->kji",
        on_a,
        on_b,
        on_c,
        op_ab,
        op_abc,
        alpha=2,
        beta=-3,
        gamma=0.5,
        op_b="abs",
        op_c="neg",
    )
    assert_equal(value(device, every), whole)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x: loose.contract("ij,jk->ik", x), ("has 2 operands, and 1 are given",)),
        (lambda x: loose.contract("ij,ij->ik", x, x), ("no operand", "has k")),
        (
            lambda x: loose.contract("ij,jk->ik", x, x),
            ("j is 3 and 2", "tensors[1] is"),
        ),
        (lambda x: loose.contract("ij->ii", x), ("has i twice",)),
        (lambda x: loose.contract("i->i", x), ("'i' names 1 axes of an operand with 2",)),
        (lambda x: loose.contract("i1->i", x), ("names are letters", "'1' is none")),
        (lambda x: loose.contract("...i...->", x), ("at most one '...'",)),
        (lambda x: loose.contract("ij->i", x, compute="float16"), ("compute is 'float16'",)),
        (lambda x: loose.contract("ij->i", x, optimize="best"), ("optimize is 'best'",)),
        (lambda x: loose.contract("ij->ij", x, out=x), ("read while out is written",)),
        (lambda _: loose.contract("->"), ("no tensor",)),
        (lambda x: loose.permute("ij->i", x), ("j of 'ij->i'", "reduce or contract")),
        (lambda x: loose.permute("ij->ji", x, "cube"), ("op is 'cube'", "sigmoid")),
        (lambda x: loose.binary("ij,jk->ik", x, x), ("j is 3 and 2",)),
        (lambda x: loose.binary("ij,ij->i", x, x), ("j of 'ij,ij->i'",)),
        (lambda x: loose.reduce(3, x), ("subscripts is of type str",)),
        (lambda x: loose.reduce("ij->i", x.astype("complex64"), "max"), ("complex64 has not",)),
    ],
    ids=itertools.count(),
)
def test_what_does_not_fit_is_refused_by_name(
    device: Device, call: Any, words: tuple[str, ...]
) -> None:
    x = array.zeros(device, (2, 3), "float32")
    x.result(30)
    if "complex64" in words[0]:
        with pytest.raises(ValueError, match=words[0]):
            call(x)
        return
    with refused(device, *words):
        call(x)


def test_out_may_not_overlap_what_is_read(device: Device) -> None:
    base = array.zeros(device, (4, 3), "float32")
    with pytest.raises(ValueError, match="overlapping views of one buffer"):
        tensor.contract("ij->ij", base[:3], out=base[1:]).result(timeout_s=30)


@pytest.fixture
def lab(backend: Any) -> Iterator[System]:
    with System(backend.__name__.rpartition(".")[2], devices=1, recover="replay") as system:
        yield system


def test_a_contraction_is_there_again_after_a_kill(lab: System) -> None:
    (device,) = lab.devices
    a, b, c = (device.put(reals(s, (4, 4), "float32")) for s in range(3))
    made = [tensor.contract("ij,jk,kl->li", a, b, c), tensor.reduce("ij->j", a, "max")]
    before = [value(device, ref) for ref in made]
    mark = lab.events.published
    os.kill(device.run(os.getpid).result(timeout_s=30), signal.SIGKILL)
    fact = lab.events.wait_for(BuffersRebuilt, 60, since=mark)
    assert isinstance(fact, BuffersRebuilt)
    assert fact.lost == 0
    for ref, one in zip(made, before, strict=True):
        assert_same(value(device, ref), one)
