"""A message that comes again does what it did the first time, whatever has happened in between."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_lab import array, blas, jit
from accel_lab.compute.device import Device
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.errors import InvalidArgument, StaleRef
from accel_lab.libraries.jit.kernel import Kernel

pytestmark = pytest.mark.usefixtures("compiling")

WAIT_S = 60.0
SHAPE = (3, 5)
BUFFERS = 3
TIMES = 600
"""After much that did not come again it takes so many until a message is known."""

MIX = """
__global__ void mix(const float* x, float* y, int n, float factor) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = factor * x[i] - y[i];
}
"""
SIGN = """
__global__ void sign(int* integer, float* real, int n, float f) {
  *integer = n;
  *real = copysignf(1.0f, f);
}
"""

indices = st.integers(0, BUFFERS - 1)
powers = st.sampled_from([1.0, -1.0, 0.5, 2])
"""Factors that round nothing: what comes of them is the same on every device, to the last bit."""
actions = st.one_of(
    st.tuples(st.just("axpy"), indices, indices, powers),
    st.tuples(st.just("scal"), indices, indices, powers),
    st.tuples(st.just("mix"), indices, indices, powers),
    st.tuples(st.just("new"), indices, indices, powers),
    st.tuples(st.just("view"), indices, indices, powers),
)


@pytest.fixture(scope="module")
def mix(device: Device) -> Kernel:
    return jit.compile(device, MIX, "mix").result(WAIT_S)


def fresh(number: int) -> Any:
    return np.random.default_rng(number).standard_normal(SHAPE).astype(np.float32)


class Pair:
    """Buffers, and what NumPy says that they hold."""

    def __init__(self, device: Device, mix: Kernel) -> None:
        self.device, self.mix = device, mix
        self.made = 0
        self.refs: list[AccelRef] = []
        self.values: list[Any] = []
        for _ in range(BUFFERS):
            x = fresh(self.made)
            self.made += 1
            self.refs.append(device.put(x))
            self.values.append(x)

    def act(self, what: str, i: int, j: int, factor: float) -> None:
        refs, values = self.refs, self.values
        x, y = refs[i], refs[j]
        if what == "axpy":
            blas.axpy(x, y, alpha=factor, out=y)
            values[j] = np.float32(factor) * values[i] + values[j]
        elif what == "scal":
            blas.scal(x, factor, out=y)
            values[j] = np.float32(factor) * values[i]
        elif what == "mix" and i != j:
            self.mix(1, 32, (x, y, x.size, factor))
            values[j] = np.float32(factor) * values[i] - values[j]
        elif what == "new":
            values[j] = fresh(self.made)
            refs[j] = self.device.put(values[j])
            self.made += 1
        elif what == "view":  # another handle, and later messages through it
            refs[j] = array.copy(array.reshape(x, SHAPE))
            values[j] = values[i].copy()


@settings(max_examples=40, deadline=None)
@given(st.lists(actions, min_size=1, max_size=8), st.sampled_from([2, 5, 80]))
def test_a_program_that_repeats_itself_does_as_numpy(
    device: Device, mix: Kernel, program: list[tuple[str, int, int, float]], times: int
) -> None:
    pair = Pair(device, mix)
    with np.errstate(all="ignore"):
        for _ in range(times):
            for action in program:
                pair.act(*action)
    for ref, value in zip(pair.refs, pair.values, strict=True):
        np.testing.assert_array_equal(device.get(ref).result(WAIT_S), value)


def test_the_type_and_the_sign_of_a_number_matter(device: Device) -> None:
    """Though numbers of two types are equal, and so are both zeros."""
    kernel = jit.compile(device, SIGN, "sign")
    integer, real = device.put(np.zeros(1, np.int32)), device.put(np.zeros(1, np.float32))
    for zero in (0.0, -0.0, 0):
        for _ in range(TIMES):
            kernel(1, 1, (integer, real, 2, zero))
        assert device.get(real).result(WAIT_S)[0] == np.copysign(1.0, zero)
    for _ in range(TIMES):
        with pytest.raises(InvalidArgument, match=r"float 2\.0"):
            kernel(1, 1, (integer, real, 2.0, 0.0)).result(WAIT_S)
        kernel(1, 1, (integer, real, 2, 0.0)).result(WAIT_S)


def test_a_freed_buffer_is_refused_however_often_it_was_sent(device: Device, mix: Kernel) -> None:
    x, y = device.put(fresh(0)), device.put(fresh(1))
    for _ in range(TIMES):
        blas.axpy(x, y, out=y)
        mix(1, 32, (x, y, x.size, 1.0))
    x.free()
    with pytest.raises(StaleRef):
        blas.axpy(x, y, out=y)
    with pytest.raises(StaleRef):
        mix(1, 32, (x, y, 15, 1.0))
    assert device.get(y).result(WAIT_S).shape == SHAPE


def test_one_argument_of_many_that_changes_is_seen(device: Device, mix: Kernel) -> None:
    """As the step of a loop; the buffers stay what they are."""
    x, y = device.put(fresh(0)), device.put(fresh(1))
    value = fresh(1)
    for step in range(2 * TIMES):
        factor = 1.0 if step % 4 else 2.0 ** (step % 5 - 2)  # a new number each time
        mix(1, 32, (x, y, x.size, factor))
        value = np.float32(factor) * fresh(0) - value
    np.testing.assert_array_equal(device.get(y).result(WAIT_S), value)


def test_a_kernel_alternates_between_two_buffers(device: Device, mix: Kernel) -> None:
    refs, values = [device.put(fresh(n)) for n in range(2)], [fresh(n) for n in range(2)]
    for step in range(2 * TIMES):
        i, j = step % 2, 1 - step % 2
        mix(1, 32, (refs[i], refs[j], 15, 0.5))
        values[j] = np.float32(0.5) * values[i] - values[j]
    for ref, value in zip(refs, values, strict=True):
        np.testing.assert_array_equal(device.get(ref).result(WAIT_S), value)
