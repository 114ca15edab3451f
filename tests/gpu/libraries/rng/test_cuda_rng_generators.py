"""Distributions and generators on a GPU: the host's bits, with cuRAND as the oracle of both."""

from typing import Any

import numpy as np
import pytest

from accel_lab import array, rng
from accel_lab.backends.host.rng.library import HostRng
from accel_lab.compute.arrays.dtypes import numpy_dtype
from accel_lab.compute.device import Device
from accel_lab.libraries.authoring.registration import function_name

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(300)]

WAIT_S = 120.0
COUNT = 1_000_003
PLACE: dict[str, Any] = {"seed": 2**63 + 12345, "stream": 70_000, "offset": 4 * 65536 * 3 - 5}
THREADS = 4096
"""How many sequences cuRAND's host functions interleave."""


def value(device: Device, ref: Any) -> Any:
    return device.get(ref, timeout_s=WAIT_S).result(timeout_s=WAIT_S)


def assert_the_host_s(gpu: Device, message: Any) -> None:
    found = value(gpu, gpu.ask(message))
    expected = np.empty(message.shape, numpy_dtype(message.dtype))
    getattr(HostRng(), function_name(type(message)))(message, expected)
    assert found.dtype == expected.dtype
    assert found.tobytes() == expected.tobytes()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (rng.LogNormal, {"mean": 0.3, "std": 0.7}),
        (rng.Exponential, {"scale": 3.0}),
        (rng.Cauchy, {"median": 1.0, "scale": 2.0}),
        *[(rng.Gamma, {"alpha": alpha}) for alpha in (1e-300, 0.3, 2.5, 1e6)],
        *[(rng.Beta, {"a": a, "b": b}) for a, b in ((1e-300, 1e-300), (0.2, 0.3), (2.0, 500.0))],
    ],
    ids=str,
)
def test_real_numbers_are_the_host_s(gpu: Device, kind: Any, options: Any, dtype: str) -> None:
    assert_the_host_s(gpu, kind((COUNT,), dtype, **PLACE, **options))


@pytest.mark.parametrize("dtype", ["int32", "uint64"])
@pytest.mark.parametrize(
    ("kind", "options"),
    [
        *[(rng.Poisson, {"mean": mean}) for mean in (0.0, 3.0, 10.0, 50.0, 1e9)],
        *[
            (rng.Binomial, {"n": n, "p": p})
            for n, p in ((0, 0.5), (10, 0.5), (20, 0.5), (1000, 0.999), (2**31 - 1, 0.3))
        ],
    ],
    ids=str,
)
def test_counts_are_the_host_s(gpu: Device, kind: Any, options: Any, dtype: str) -> None:
    assert_the_host_s(gpu, kind((COUNT,), dtype, **PLACE, **options))


@pytest.mark.parametrize("dtype", ["uint32", "uint64", "float32", "float64"])
def test_generators_and_points_are_the_host_s(gpu: Device, dtype: str) -> None:
    for generator in ("xorwow", "mrg32k3a"):
        assert_the_host_s(gpu, rng.Generate((COUNT,), dtype, **PLACE, generator=generator))
    twister = rng.Generate((COUNT,), dtype, 5489, 0, 1001, generator="mt19937")
    assert_the_host_s(gpu, twister)
    for scrambled in (False, True):
        assert_the_host_s(gpu, rng.Sobol((9999, 37), dtype, 3, 4, 321, scrambled=scrambled))


def test_a_permutation_and_a_view_are_the_host_s(gpu: Device) -> None:
    assert_the_host_s(gpu, rng.Permutation((COUNT,), "int32", **PLACE))
    base = array.zeros(gpu, (301, 103), "float64")
    part = array.slice(base, np.s_[:, ::2])
    rng.gamma(gpu, 0.5, out=part, **PLACE)
    row = value(gpu, rng.gamma(gpu, 0.5, part.shape, "float64", **PLACE))
    expected = np.zeros((301, 103))
    expected[:, ::2] = row
    assert (value(gpu, base) == expected).all()


# cuRAND.


def curand(kind: str, count: int, dimensions: int) -> Any:
    """Return the words of one of cuRAND's generators; called in the context."""
    import cupy
    from nvmath.bindings import curand

    out = cupy.empty(count, "uint64" if kind.endswith("64") else "uint32")
    generator = curand.create_generator(getattr(curand.RngType, kind))
    try:
        curand.set_stream(generator, cupy.cuda.get_current_stream().ptr)
        if kind.startswith("PSEUDO"):
            # Else it is the card that says how many sequences there are.
            curand.set_generator_ordering(generator, curand.Ordering.PSEUDO_LEGACY)
            curand.set_pseudo_random_generator_seed(generator, 1234)
        else:
            curand.set_quasi_random_generator_dimensions(generator, dimensions)
        draw = curand.generate_long_long if kind.endswith("64") else curand.generate
        draw(generator, out.data.ptr, count)
        cupy.cuda.get_current_stream().synchronize()
    finally:
        curand.destroy_generator(generator)
    return out


@pytest.mark.parametrize("bits", [32, 64])
def test_points_are_curand_s_turned(gpu: Device, bits: int) -> None:
    drawn = value(gpu, gpu.run(curand, f"QUASI_SOBOL{bits}", 37 * 1000, 37).result(WAIT_S))
    points = value(gpu, rng.sobol(gpu, 1000, 37, f"uint{bits}"))
    assert (points == drawn.reshape(37, 1000).T).all()


@pytest.mark.parametrize("generator", ["xorwow", "mrg32k3a"])
def test_streams_are_those_that_curand_interleaves(gpu: Device, generator: Any) -> None:
    """Its manual: result i is word i // 4096 of sequence i mod 4096."""
    kind = f"PSEUDO_{generator.upper()}"
    drawn = value(gpu, gpu.run(curand, kind, 8 * THREADS, 1).result(WAIT_S)).reshape(8, THREADS)
    for stream in (0, 1, 77, THREADS - 1):
        words = value(gpu, rng.generate(gpu, generator, 8, seed=1234, stream=stream))
        assert (words == drawn[:, stream]).all()
