"""The contract of load and store callbacks: what NumPy makes of the same functions."""

import numpy as np
import pytest
import scipy.fft

from accel_lab import array, fft
from accel_lab.compute.device import Device
from accel_lab.errors import CompileError, DependencyFailed, InvalidArgument
from tests.contract.samples import assert_same, reals, refused, value
from tests.contract.tolerances import assert_transformed, wide

pytestmark = pytest.mark.usefixtures("compiling")

SOURCE = """
#include <cufftXt.h>

// As cuFFT's samples have them.
__device__ cufftComplex windowed(void* in, unsigned long long at, void* info, void* shared) {
  float weight = ((const float*)info)[at % 32];
  return {((const short*)in)[at] * weight, 0};
}

// Or with the types that they read.
__device__ double real(const double* in, unsigned long long at, const double* shift, const void*) {
  return in[at] + (shift ? shift[0] : 0);
}

template <class T>
__device__ void power(float* out, unsigned long long at, T value, const float* info, void*) {
  out[2 * at] = value.x * value.x + value.y * value.y;
}

__device__ void clipped(double* out, unsigned long long at, double value, void*, void*) {
  out[at] = value < 0 ? 0 : value;
}
"""


def test_samples_are_converted_and_windowed_as_they_are_read(device: Device) -> None:
    samples = np.random.default_rng(0).integers(-9, 9, (5, 32)).astype(np.int16)
    window = reals(1, (32,), "float32")
    spectrum = fft.Callbacks(device, SOURCE, load="windowed", store="power")
    out = array.full(device, (5, 64), 7.0)
    got = spectrum(device.put(samples), device.put(window), axes=-1, out=out)
    assert got.id == out.id
    made = value(device, got)
    exact = scipy.fft.fft(wide(samples * window))
    assert_transformed(made[:, ::2], np.abs(exact) ** 2, "complex64", points=2**8)
    assert (made[:, 1::2] == 7).all()


@pytest.mark.parametrize("shape", [(6, 8), (3, 700), (0, 4)])
def test_real_numbers_go_there_and_back(device: Device, shape: tuple[int, ...]) -> None:
    x = reals(0, shape, "float64")
    there = fft.Callbacks(device, SOURCE, load="real", form="r2c", dtype="float64")
    back = fft.Callbacks(device, SOURCE, store="clipped", form="c2r", dtype="float64")
    half = there(device.put(x), device.put(np.array([2.0])), axes=-1, norm="ortho")
    assert_transformed(
        value(device, half), scipy.fft.rfft(wide(x + 2), norm="ortho"), "complex128", points=700
    )
    plain = there(device.put(x), shape=(x.size,) if x.size else (1, 0, 2), axes=-1)
    flat = x.ravel() if x.size else x.reshape(1, 0, 2)
    assert_transformed(value(device, plain), scipy.fft.rfft(wide(flat)), "complex128", points=2**12)
    got = value(device, back(half, s=shape[-1], axes=-1, norm="ortho"))
    assert_transformed(got, np.maximum(x + 2, 0), "complex128", points=2**12)


def test_a_callback_alone_takes_and_gives_what_the_transform_has(device: Device) -> None:
    x = reals(0, (4, 16), "complex64")
    store = fft.Callbacks(device, SOURCE, store="power<float2>")
    on = device.put(x)
    out = array.zeros(device, 128)
    made = value(device, store(on, axes=-1, inverse=True, norm="forward", out=out))
    exact = np.abs(scipy.fft.ifft(wide(x), norm="forward")).ravel() ** 2
    assert_transformed(made[::2], exact, "complex64", points=2**8)
    assert_same(value(device, on), x)


def test_what_does_not_compile_fails_the_result(device: Device) -> None:
    wrong = fft.Callbacks(device, "__device__ float2 f(int i) { return {0, 0}; }", load="f")
    with pytest.raises(DependencyFailed) as failed:
        value(device, wrong(array.zeros(device, 4)))
    assert isinstance(failed.value.__cause__, CompileError)
    assert "accel_lab_load does not compile" in str(failed.value.__cause__)


def test_a_mistake_is_refused(device: Device) -> None:
    with refused(device, "form is 'r2r'", "'c2c', 'r2c' or 'c2r'"):
        fft.Callbacks(device, SOURCE, load="real", form="r2r")  # type: ignore[arg-type]
    with refused(device, "dtype is float16", "float32 or float64"):
        fft.Callbacks(device, SOURCE, load="real", dtype="float16")
    with refused(device, "load, store or both"):
        fft.Callbacks(device, SOURCE)
    with refused(device, "load is a function's name, not 'a b'"):
        fft.Callbacks(device, SOURCE, load="a b")
    half = fft.Callbacks(device, SOURCE, load="real", form="r2c", dtype="float64")
    store = fft.Callbacks(device, SOURCE, store="power")
    x = array.zeros(device, (4, 4), "float64")
    with refused(device, 'inverse is of "c2c"', '"r2c"'):
        half(x, inverse=True)
    with refused(device, "shape is that of what load makes"):
        store(x, shape=4)
    with pytest.raises((InvalidArgument, DependencyFailed)) as caught:
        value(device, half(x[:, ::2]))
    assert "a view of float64[4, 2] with gaps" in str(caught.value)
