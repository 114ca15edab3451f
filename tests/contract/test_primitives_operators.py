"""The contract of `libraries.primitives` on operators of the user's own: one source for both."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_lab import primitives
from accel_lab.compute.device import Device
from accel_lab.errors import CompileError, DependencyFailed
from tests.contract.samples import assert_equal, place, reals, refused, seeds, small, value

SOURCE = """
namespace mine {
template <class T> __device__ T farther(T a, T b) { return a * a >= b * b ? a : b; }
}
__device__ float half_sum(float a, float b) { return (a + b) / 2; }
__device__ float square(float a) { return a * a; }
__device__ bool positive(float a) { return a > 0.f; }
__device__ bool below(float a) { return a < -1.f; }
__device__ bool by_size(int a, int b) { return abs(a) < abs(b); }
__device__ bool same_tens(int a, int b) { return a / 10 == b / 10; }
__device__ long long left(long long a, long long b) { return a; }
"""
FARTHER = "mine::farther<float>"

few = settings(max_examples=10)


def farther(x: Any) -> Any:
    """Return the running element that is farthest from 0."""
    made = x.copy()
    for i in range(1, x.size):
        made[i] = made[i - 1] if made[i - 1] ** 2 >= x[i] ** 2 else x[i]
    return made


@few
@given(seed=seeds, n=st.integers(1, 2000))
def test_an_operator_reduces_and_scans(device: Device, seed: int, n: int) -> None:
    x = reals(seed, (n,), "float32")
    ref, expected = place(device, x, "stepped"), farther(x)
    got = value(device, primitives.reduce(ref, FARTHER, source=SOURCE))
    assert_equal(got, np.asarray(expected[-1]))
    assert_equal(value(device, primitives.scan(ref, FARTHER, source=SOURCE)), expected)
    begun = farther(np.concatenate((np.array([1.5], "float32"), x)))
    options = {"source": SOURCE, "init": 1.5}
    assert_equal(value(device, primitives.scan(ref, FARTHER, **options)), begun[1:])  # type: ignore[arg-type]
    got = value(device, primitives.scan(ref, FARTHER, exclusive=True, **options))  # type: ignore[arg-type]
    assert_equal(got, begun[:-1])
    got = value(device, primitives.reduce(ref, FARTHER, **options))  # type: ignore[arg-type]
    assert_equal(got, np.asarray(begun[-1]))


@pytest.mark.parametrize("dtype", ["uint64", "float16"])
def test_a_template_serves_every_dtype(device: Device, dtype: str) -> None:
    x = np.array([1, 3, 2, 2, 0], dtype)
    source = "template <class T> __device__ T most(T a, T b) { return a > b ? a : b; }"
    assert value(device, primitives.reduce(device.put(x), "most", source=source)) == 3
    got = value(device, primitives.scan(device.put(x), "most", source=source))
    assert_equal(got, np.maximum.accumulate(x))


def test_an_operator_that_does_not_commute_keeps_the_order(device: Device) -> None:
    x = np.arange(5, 100_005)
    ref = device.put(x)
    assert value(device, primitives.reduce(ref, "left", source=SOURCE)) == 5
    assert (value(device, primitives.scan(ref, "left", source=SOURCE)) == 5).all()


@few
@given(seed=seeds, n=st.integers(0, 500))
def test_runs_and_segments_are_combined(device: Device, seed: int, n: int) -> None:
    keys, x = np.sort(small(seed, (n,), "int32")), reals(seed, (n,), "float32")
    got = value(
        device,
        primitives.scan_by_key(device.put(keys), device.put(x), FARTHER, source=SOURCE),
    )
    starts = np.flatnonzero(np.diff(keys, prepend=-9)) if n else np.empty(0, int)
    runs = [part for part in np.split(x, starts[1:]) if part.size]
    assert_equal(got, np.concatenate([x[:0], *map(farther, runs)]))
    offsets = np.array([0, *starts[1:], n, n])
    got = value(
        device,
        primitives.segmented_reduce(
            device.put(x), device.put(offsets), FARTHER, source=SOURCE, init=0
        ),
    )
    ends = [farther(part)[-1] if part.size else 0 for part in np.split(x, offsets[1:-1])]
    assert_equal(got, np.array(ends, "float32"))


def test_a_function_of_each_element_and_of_pairs(device: Device) -> None:
    x, y = reals(1, (1000,), "float32"), reals(2, (1000,), "float32")
    on, other = device.put(x), device.put(y)
    assert_equal(value(device, primitives.transform(on, "square", source=SOURCE)), x * x)
    got = value(device, primitives.transform(on, "half_sum", other, source=SOURCE))
    assert_equal(got, (x + y) / np.float32(2))
    got = value(device, primitives.adjacent_difference(on, "half_sum", source=SOURCE))
    assert_equal(got, np.concatenate((x[:1], (x[1:] + x[:-1]) / np.float32(2))))


@few
@given(seed=seeds, n=st.integers(0, 3000))
def test_predicates_choose(device: Device, seed: int, n: int) -> None:
    x = reals(seed, (n,), "float32")
    on = device.put(x)
    assert_equal(value(device, primitives.select(on, op="positive", source=SOURCE)), x[x > 0])
    two = primitives.partition(on, op="positive", source=SOURCE)
    assert_equal(value(device, two.first), x[x > 0])
    assert_equal(value(device, two.rest), x[~(x > 0)])
    three = primitives.partition(on, op="positive", second="below", source=SOURCE)
    assert three.second is not None
    assert_equal(value(device, three.first), x[x > 0])
    assert_equal(value(device, three.second), x[x < -1])
    assert_equal(value(device, three.rest), x[(x <= 0) & (x >= -1)])


@few
@given(seed=seeds, n=st.integers(0, 3000))
def test_an_order_sorts_and_is_stable(device: Device, seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    x, values = rng.integers(-20, 20, n).astype("int32"), np.arange(n)
    order = np.argsort(np.abs(x), kind="stable")
    on = device.put(x)
    assert_equal(value(device, primitives.sort(on, "by_size", source=SOURCE)), x[order])
    pairs = primitives.sort_pairs(on, device.put(values), "by_size", source=SOURCE)
    assert_equal(value(device, pairs.keys), x[order])
    assert_equal(value(device, pairs.values), values[order])


def test_an_equivalence_makes_runs(device: Device) -> None:
    x = np.array([1, 5, 9, 10, 12, 3, 4, 99], "int32")
    on = device.put(x)
    assert value(device, primitives.unique(on, "same_tens", source=SOURCE)).tolist() == [
        1,
        10,
        3,
        99,
    ]
    places = device.put(np.arange(8))
    found = primitives.unique_by_key(on, places, "same_tens", source=SOURCE)
    assert value(device, found.values).tolist() == [0, 3, 5, 7]


def test_what_does_not_compile_says_where(device: Device) -> None:
    on = device.put(np.ones(4, "float32"))
    wrong = "__device__ float wrong(float a, float b) {\n  return a + nothing;\n}"
    for made in (
        primitives.reduce(on, "wrong", source=wrong),
        primitives.select(on, op="wrong", source=wrong),
    ):
        with pytest.raises((CompileError, DependencyFailed)) as failed:
            value(device, made)
        error = failed.value
        cause = error if isinstance(error, CompileError) else error.__cause__
        assert isinstance(cause, CompileError)
        assert cause.name == "wrong"
        assert "nothing" in cause.log
        assert "operator.cu" in cause.log
    assert value(device, primitives.reduce(on)) == 4  # the actor is well


def test_what_is_no_operator_is_refused_at_the_call(device: Device) -> None:
    x = device.put(np.ones(3, "float32"))
    nothing, offsets = device.put(np.empty(0, "float32")), device.put(np.array([0, 3]))
    with refused(device, "Reduce", "nothing in source is called absent"):
        primitives.reduce(x, "absent", source=SOURCE)
    with refused(device, "Scan", "the name of a function", "a + b"):
        primitives.scan(x, "a + b", source=SOURCE)
    with refused(device, "Scan", "needs init"):
        primitives.scan(x, "half_sum", source=SOURCE, exclusive=True)
    with refused(device, "Reduce", "half_sum of nothing needs init"):
        primitives.reduce(nothing, "half_sum", source=SOURCE)
    with refused(device, "SegmentedReduce", "needs init"):
        primitives.segmented_reduce(x, offsets, "half_sum", source=SOURCE)
    with refused(device, "Transform", "without source"):
        primitives.transform(x, "square")
    with refused(device, "Transform", "y is int64[2]", "float32"):
        primitives.transform(x, "square", offsets, source=SOURCE)
    with refused(device, "Sort", "neither descending nor offsets"):
        primitives.sort(x, "half_sum", source=SOURCE, descending=True)
    with refused(device, "Select", "give one of the two"):
        primitives.select(x, x, "positive", source=SOURCE)
