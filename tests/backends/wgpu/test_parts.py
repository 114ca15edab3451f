"""Buffers larger than a binding on wgpu, which is made small for it, against NumPy's."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_lab import System, array, fft, jit
from accel_lab.backends import wgpu
from accel_lab.backends.wgpu.adapters import BINDING_BYTES, most_bound
from accel_lab.backends.wgpu.kernels.parts import fits, in_parts, window
from accel_lab.compute.device import Device
from accel_lab.errors import InvalidArgument
from tests.conftest import require

WAIT_S = 60.0
BOUND = 1024
"""How many bytes a binding has here; arrays of more elements are in several parts."""


@pytest.fixture(scope="module")
def device() -> Iterator[Device]:
    """Open a device with small bindings."""
    require("wgpu")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(BINDING_BYTES, str(BOUND))
        with System("wgpu", devices=1) as lab:
            yield lab.devices[0]
            lab.check()


def _values(*shape: int, dtype: str = "float32") -> Any:
    return (np.random.default_rng(3).standard_normal(shape) * 5).astype(dtype)


@pytest.fixture(scope="session")
def small() -> Any:
    """Open the first adapter with small bindings."""
    require("wgpu")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(BINDING_BYTES, str(BOUND))
        return wgpu.open_backend(0)


slices = st.builds(slice, st.integers(0, 11), st.integers(12, 30), st.sampled_from([1, 2, 3, -1]))


@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_the_parts_are_all_elements_once_and_each_has_a_binding(small: Any, data: Any) -> None:
    shape = data.draw(st.tuples(*[st.integers(1, 30)] * 3))
    dtype = data.draw(st.sampled_from(["float32", "int8", "complex128"]))
    whole = small.empty(shape, dtype)
    x = whole.transpose(data.draw(st.permutations(range(3))))[data.draw(slices)]
    seen: list[int] = []
    for (part,) in in_parts(small, (x,)):
        (_, start, nbytes), begin = window(small, part)
        assert start % 256 == 0
        assert nbytes <= BOUND or whole.block.nbytes <= BOUND
        assert start + nbytes <= whole.block.nbytes
        assert part.size == 0 or begin <= part.offset
        steps = [s // part.dtype.itemsize for s in part.strides]
        places = [
            part.offset + sum(s * i for s, i in zip(steps, at, strict=True))
            for at in np.ndindex(part.shape)
        ]
        size = {"float32": 4, "int8": 4, "complex128": 16}[dtype]
        assert all(start <= place * size < start + nbytes for place in places)
        seen += places
    assert len(seen) == len(set(seen)) == x.size
    assert set(seen) <= set(range(whole.size))


@pytest.mark.parametrize("dtype", ["float32", "int8", "complex128", "float16"])
def test_large_buffers_come_back_as_they_went_and_are_copied_and_filled(
    device: Device, dtype: str
) -> None:
    x = _values(40, 50, dtype="float64").astype(dtype)
    on = device.put(x)
    assert on.get().tobytes() == x.tobytes()
    assert on.copy().get().tobytes() == x.tobytes()
    assert on.T.copy().get().tobytes() == np.ascontiguousarray(x.T).tobytes()
    assert on[::-2, 3:].get().tobytes() == np.ascontiguousarray(x[::-2, 3:]).tobytes()
    assert (
        array.full(device, (2000,), 3, dtype).get().tobytes() == np.full(2000, 3, dtype).tobytes()
    )
    assert not array.zeros(device, (2000,), dtype).get().any()
    on[1:39:2, ::3] = device.put(x)[2:40:2, ::3]
    x[1:39:2, ::3] = x[2:40:2, ::3]
    assert on.get().tobytes() == x.tobytes()


def test_functions_of_elements_are_numpys(device: Device) -> None:
    x, y, row = _values(40, 50), _values(50, 40), _values(50)
    a, b, c = device.put(x), device.put(y), device.put(row)
    np.testing.assert_array_equal((a + b.T).get(), x + y.T)
    np.testing.assert_array_equal((a * c).get(), x * row)
    np.testing.assert_array_equal((a[::-1] - a).get(), x[::-1] - x)
    np.testing.assert_array_equal(array.where(a > 0, a, b.T).get(), np.where(x > 0, x, y.T))
    np.testing.assert_array_equal(a.astype("int32").get(), x.astype("int32"))
    np.testing.assert_allclose(
        (array.sqrt(abs(a)) * 2 + c).get(), np.sqrt(abs(x)) * 2 + row, 1e-6, 2e-6
    )
    a += 1
    np.testing.assert_array_equal(a.get(), x + 1)


@pytest.mark.parametrize("op", ["sum", "max", "min", "mean", "any", "all", "std", "var", "prod"])
@pytest.mark.parametrize("axis", [None, 0, 1, 2, (0, 2), (1, 2)])
def test_reductions_are_numpys(device: Device, op: Any, axis: Any) -> None:
    x = _values(14, 5, 30)
    x = 1 + x / 100 if op == "prod" else x
    axes = (axis,) if isinstance(axis, int) else axis
    got = array.reduce(op, device.put(x), axes).get()
    exact = getattr(np, op)(x.astype("bool" if op in ("any", "all") else "float64"), axis=axis)
    np.testing.assert_allclose(got, exact, rtol=1e-5, atol=1e-4)
    turned = array.reduce(op, device.put(x).transpose((2, 0, 1))[::-1], axes).get()
    other = x.transpose(2, 0, 1)[::-1]
    exact = getattr(np, op)(other.astype("bool" if op in ("any", "all") else "float64"), axis=axis)
    np.testing.assert_allclose(turned, exact, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("op", ["sum", "max", "mean", "std"])
def test_results_may_be_larger_than_a_binding_too(device: Device, op: Any) -> None:
    x = _values(30, 700)
    for on, values in ((device.put(x), x), (device.put(x.T).T, x)):
        got = array.reduce(op, on, (0,)).get()
        exact = getattr(np, op)(values.astype("float64"), axis=0)
        np.testing.assert_allclose(got, exact, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("bad", ["many", "100", "-5"])
def test_a_limit_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch, bad: str) -> None:
    monkeypatch.setenv(BINDING_BYTES, bad)
    limits = {"max-storage-buffer-binding-size": 1 << 27, "max-buffer-size": 1 << 31}
    with pytest.raises(InvalidArgument, match=BINDING_BYTES):
        most_bound(limits)


def test_a_small_view_of_a_large_buffer_goes_anywhere(device: Device) -> None:
    x = _values(300, 10)
    on = device.put(x)
    np.testing.assert_allclose((on[250:260] @ on[7:17]).get(), x[250:260] @ x[7:17], rtol=1e-4)
    np.testing.assert_array_equal(array.sort(on[290, ::-1]).get(), np.sort(x[290]))
    assert array.argmax(on[200:220, 3]).get() == x[200:220, 3].argmax()


@pytest.mark.parametrize(
    "refused",
    [
        lambda x: x @ x.T,
        array.sort,
        lambda x: array.cumsum(x, 0),
        fft.fft,
        lambda x: array.take(x, x.astype("int32")[:, 0], 0),
    ],
)
def test_what_does_not_go_in_parts_is_refused_with_the_limit(device: Device, refused: Any) -> None:
    x = _values(40, 40)
    on = device.put(x)
    with pytest.raises(InvalidArgument, match="a binding of this adapter has at most 1 KiB"):
        refused(on)
    np.testing.assert_array_equal(on.get(), x)


def test_a_reduction_that_tells_places_is_refused_with_the_limit(device: Device) -> None:
    on = device.put(_values(40, 40))
    with pytest.raises(InvalidArgument, match="a binding of this adapter has at most 1 KiB"):
        array.argmax(on).result(WAIT_S)


def test_a_kernel_of_the_users_is_refused_a_buffer_beyond_a_binding(device: Device) -> None:
    source = (
        "@group(0) @binding(0) var<storage, read_write> x: array<f32>;\n"
        "@compute @workgroup_size(1) fn f() { x[0] = 7.0; }"
    )
    kernel = jit.compile(device, source, "f", language="wgsl")
    x = device.put(_values(300))
    with pytest.raises(InvalidArgument, match="a binding of this adapter has at most 1024"):
        kernel(1, 1, (x,)).result(WAIT_S)
    kernel(1, 1, (x[:200],)).result(WAIT_S)
    assert x.get()[0] == 7


def test_what_fits_is_told_by_the_span_and_not_by_the_size(small: Any) -> None:
    whole = small.empty((100, 100), "float32")
    assert not fits(small, whole)
    assert not fits(small, whole[:, 0])
    assert fits(small, whole[3])
    assert fits(small, small.empty((1,), "float32").broadcast_to((1000, 1000)))
