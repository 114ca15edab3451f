"""What only a GPU can show of its Fourier transforms: plans, work areas, and sizes beyond 32 bits.

Functions given to `run` make another instance of the library in the context, to look inside it.
"""

from typing import Any

import numpy as np
import pytest

from accel_lab import array, fft
from accel_lab.compute.device import Device
from accel_lab.errors import OutOfMemory
from tests.contract.samples import reals
from tests.contract.tolerances import assert_transformed, wide
from tests.contract.transforms import scipy_s

pytestmark = pytest.mark.gpu
WAIT_S = 100.0


def value(device: Device, ref: Any) -> Any:
    return device.get(ref).result(timeout_s=WAIT_S)


def inside(device: Device, function: Any) -> Any:
    return device.run(function).result(timeout_s=WAIT_S)


def test_a_plan_is_shared_by_both_directions_and_all_norms(gpu: Device) -> None:
    def count() -> Any:
        import gc

        import cupy

        from accel_lab.backends.cuda.device.device import CudaDevice
        from accel_lab.backends.cuda.fft.library import CudaFft

        device = next(thing for thing in gc.get_objects() if isinstance(thing, CudaDevice))
        lib = CudaFft(device)
        x = cupy.ones((4, 64), "F")
        for norm in ("backward", "ortho", "forward"):
            for inverse in (False, True, False):
                lib.c2c(fft.C2C(x, axes=(1,), norm=norm, inverse=inverse), x, cupy.empty_like(x))
        before = dict(lib.statistics())
        lib.close()
        return before, dict(lib.statistics())

    before, after = inside(gpu, count)
    assert before == {"plans": 1, "hits": 8, "misses": 1, "work bytes": 0}
    assert after == {"plans": 0, "hits": 8, "misses": 1, "work bytes": 0}


def test_plans_that_are_evicted_under_way_finish_their_work(gpu: Device) -> None:
    """Two plans are kept of twenty that are enqueued without a stop, all with work areas."""

    def churn() -> Any:
        import gc

        import cupy

        from accel_lab.backends.cuda.device.device import CudaDevice
        from accel_lab.backends.cuda.fft.library import CudaFft

        device = next(thing for thing in gc.get_objects() if isinstance(thing, CudaDevice))
        lib = CudaFft(device)
        lib._plans._most = 2
        generator = cupy.random.default_rng(0)
        arrays = [
            generator.standard_normal((200, n)) + 1j * generator.standard_normal((200, n))
            for n in range(30_011, 30_031)
        ]
        results = [cupy.empty_like(x) for x in arrays]
        for _ in range(3):
            for x, out in zip(arrays, results, strict=True):
                lib.c2c(fft.C2C(x, axes=(1,), norm="backward", inverse=False), x, out)
        counted = dict(lib.statistics())
        worst = 0.0
        for x, out in zip(arrays, results, strict=True):
            exact = cupy.fft.fft(x)
            error = cupy.linalg.norm(out - exact) / cupy.linalg.norm(exact)
            worst = max(worst, float(error))
        lib.close()
        return counted, worst

    counted, worst = inside(gpu, churn)
    assert (counted["plans"], counted["misses"]) == (2, 60)
    assert worst < 1e-13


def test_a_large_work_area_is_borrowed_and_not_kept(gpu: Device) -> None:
    def borrow() -> Any:
        import gc

        import cupy

        from accel_lab.backends.cuda.device.device import CudaDevice
        from accel_lab.backends.cuda.fft import library

        device = next(thing for thing in gc.get_objects() if isinstance(thing, CudaDevice))
        lib = library.CudaFft(device)
        x = cupy.ones(67_108_859, "F")  # a prime
        out = cupy.empty_like(x)
        for _ in range(2):
            lib.c2c(fft.C2C(x, axes=(0,), norm="backward", inverse=False), x, out)
        plan = next(iter(lib._plans._plans.values()))
        counted = dict(lib.statistics())
        largest = float(abs(out[1:]).max() / abs(out[0]))
        lib.close()
        return counted, plan.work_bytes > library.WORK_LIMIT, largest

    counted, is_large, largest = inside(gpu, borrow)
    assert is_large
    assert (counted["plans"], counted["work bytes"]) == (1, 0)
    assert largest < 1e-5


def test_a_transform_to_real_numbers_leaves_a_large_operand_as_it_is(gpu: Device) -> None:
    shape = (3, 64, 128, 65)
    x = reals(0, shape, "complex64")
    on = gpu.put(x)
    for axes in ((3,), (2, 3), (1, 2, 3), (0, 1, 2, 3), (3, 1)):
        got = value(gpu, fft.irfftn(on, axes=axes))
        assert_transformed(got, scipy_s("irfftn", x, axes=axes), "complex64", points=1 << 20)
        assert value(gpu, on).tobytes() == x.tobytes()


def test_strides_may_reach_beyond_32_bits(gpu: Device) -> None:
    """Nine elements that lie 2 GiB apart, and three rows that lie 8 GiB apart."""
    base = array.zeros(gpu, (1 << 31) + 64, "complex64")
    for step, count, row in ((1 << 28, 9, 1), (1 << 30, 3, 64)):
        x = reals(count, (count, row), "complex64")

        def fill(memory: Any, part: Any, step: int = step) -> None:
            import cupy

            for i, values in enumerate(part):
                memory[i * step : i * step + len(values)] = cupy.asarray(values)

        gpu.run(fill, base, x).result(timeout_s=WAIT_S)

        def view(memory: Any, step: int = step, count: int = count, row: int = row) -> Any:
            from cupy.lib.stride_tricks import as_strided

            return as_strided(memory, (count, row), (8 * step, 8))

        rows = gpu.run(view, base)
        for axes in ((0,), (1,), (0, 1)):
            got = value(gpu, fft.fftn(rows, axes=axes))
            assert_transformed(got, scipy_s("fftn", x, axes=axes), "complex64", points=576)


def test_a_batch_may_have_more_points_than_32_bits_count(gpu: Device) -> None:
    rows = (1 << 25) + 3
    x = reals(0, (64,), "complex64")

    def make(row: Any) -> Any:
        import cupy

        made = cupy.empty((rows, 64), "F")
        made[...] = cupy.asarray(row)
        made *= (cupy.arange(rows) % 7).astype("f")[:, None]
        return made

    on = gpu.run(make, x)
    fft.c2c(on, axes=1, out=on)
    for i in (0, 1, rows // 2, (1 << 25) - 1, 1 << 25, rows - 1):
        got = value(gpu, array.slice(on, i))
        assert_transformed(got, scipy_s("fft", x * np.float32(i % 7)), "complex64", points=64)


def test_what_does_not_fit_is_refused_and_the_next_one_runs(gpu: Device) -> None:
    x = reals(0, (64,), "complex64")
    on = gpu.put(x)
    with pytest.raises(OutOfMemory):
        fft.fft(on, 1 << 36).result(timeout_s=WAIT_S)
    got = value(gpu, fft.ifft(fft.fft(on)))
    assert_transformed(got, wide(x), "complex64", points=64)


def test_complex_numbers_at_odd_addresses_are_transformed(gpu: Device) -> None:
    """A user's view may be aligned as single real numbers only, which cuFFT cannot read."""
    x = reals(0, (8,), "complex64")

    def odd(values: Any) -> Any:
        import cupy

        memory = cupy.zeros(17, "f")
        memory[1:] = cupy.asarray(values).view("f")
        return memory[1:].view("F")

    on = gpu.run(odd, x)
    assert_transformed(value(gpu, fft.fft(on)), scipy_s("fft", x), "complex64", points=8)
    assert_transformed(value(gpu, fft.irfft(on)), scipy_s("irfft", x), "complex64", points=14)
