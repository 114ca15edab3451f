"""Random numbers on a GPU: the host's twin bit for bit, with cuRAND as the oracle of both."""

from typing import Any

import numpy as np
import pytest

from accel_lab import array, rng
from accel_lab.backends.host.rng.library import HostRng
from accel_lab.compute.arrays.dtypes import numpy_dtype
from accel_lab.compute.device import Device
from accel_lab.libraries.rng.philox import words

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(300)]

WAIT_S = 120.0
MILLIONS = 10_000_001
PLACE: dict[str, Any] = {"seed": 2**63 + 12345, "stream": 70_000, "offset": 4 * 65536 * 3 - 5}
AT = (PLACE["seed"], PLACE["stream"], PLACE["offset"])


def value(device: Device, ref: Any) -> Any:
    return device.get(ref, timeout_s=WAIT_S).result(timeout_s=WAIT_S)


def same_bits(found: Any, expected: Any) -> bool:
    size = f"u{expected.itemsize}"
    return found.dtype == expected.dtype and bool((found.view(size) == expected.view(size)).all())


@pytest.mark.parametrize("offset", [0, 1])
def test_a_hundred_million_words_are_the_host_s(gpu: Device, offset: int) -> None:
    count = 100_000_000
    found = value(gpu, rng.words(gpu, count, seed=42, stream=3, offset=offset))
    step = 1 << 22
    for at in range(0, count, step):
        part = found[at : at + step]
        assert (part == words(42, 3, offset + at, len(part))).all(), at


@pytest.mark.parametrize(
    ("dtype", "low", "high"),
    [
        ("bool", 0, 2),
        ("uint8", 0, 256),
        ("uint8", 3, 10),
        ("int8", -128, 127),
        ("int16", -1000, 1000),
        ("uint16", 0, 2**16),
        ("int32", -(2**31), 2**31),
        ("uint32", 0, 2**32 - 1),
        ("int64", 0, 10),
        ("int64", -(2**63), 2**63 - 1),
        ("uint64", 0, 2**64),
        ("uint64", 5, 10**12),
    ],
)
def test_integers_are_the_host_s(gpu: Device, dtype: str, low: int, high: int) -> None:
    found = value(gpu, rng.integers(gpu, low, high, MILLIONS, dtype, **PLACE))
    expected = np.empty(MILLIONS, dtype)
    HostRng().integers(expected, AT, low=low, span=high - low)
    assert same_bits(found, expected)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize(("low", "high"), [(0, 1), (-1, 1), (0.1, 0.3), (-1e-39, 1e-38)])
def test_uniform_numbers_are_the_host_s(gpu: Device, dtype: str, low: float, high: float) -> None:
    found = value(gpu, rng.uniform(gpu, MILLIONS, dtype, low=low, high=high, **PLACE))
    expected = np.empty(MILLIONS, numpy_dtype(dtype))
    message = rng.Uniform((MILLIONS,), dtype, 0, low=low, high=high)
    a, b, c = message.scale()
    HostRng().uniform(expected, AT, dtype=dtype, low=a, span=b, high=c)
    assert same_bits(found, expected)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_normal_numbers_are_within_four_units_of_the_host_s(gpu: Device, dtype: str) -> None:
    found = value(gpu, rng.normal(gpu, MILLIONS, dtype, **PLACE))
    expected = np.empty(MILLIONS, dtype)
    HostRng().normal(expected, AT, dtype=dtype, mean=0.0, std=1.0)
    apart = np.abs(found - expected) / np.spacing(np.abs(expected))
    assert apart.max() <= 4


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_narrow_normal_numbers_are_the_host_s_or_beside_them(gpu: Device, dtype: str) -> None:
    found = value(gpu, rng.normal(gpu, MILLIONS, dtype, **PLACE))
    expected = np.empty(MILLIONS, numpy_dtype(dtype))
    HostRng().normal(expected, AT, dtype=dtype, mean=0.0, std=1.0)
    # The bits of floats of one sign are in order.
    apart = found.view(np.int16).astype(np.int32) - expected.view(np.int16).astype(np.int32)
    assert np.abs(apart[np.signbit(found) == np.signbit(expected)]).max() <= 1
    assert (np.abs(found.astype(np.float64)[np.signbit(found) != np.signbit(expected)]) == 0).all()


def test_more_elements_than_32_bits_count(gpu: Device) -> None:
    count = 2**32 + 1001
    drawn = rng.integers(gpu, 256, shape=count, dtype="uint8", seed=9, offset=1)
    for first in (0, 2**31 - 500, 2**32 - 500, count - 1000):
        part = value(gpu, array.copy(array.slice(drawn, np.s_[first : first + 1000])))
        assert (part == words(9, 0, 1 + first, 1000) >> np.uint32(24)).all()


@pytest.mark.parametrize("index", [np.s_[:, ::2], np.s_[::-1], np.s_[1:-1, 1:-1], np.s_[:, 5]])
def test_a_large_view_is_drawn_into(gpu: Device, index: Any) -> None:
    base = array.zeros(gpu, (3001, 1003), "float64")
    part = array.slice(base, index)
    rng.uniform(gpu, out=part, **PLACE)
    expected = np.zeros((3001, 1003))
    drawn = np.empty(expected[index].shape)
    HostRng().uniform(drawn, AT, dtype="float64", low=0.0, span=1.0, high=1.0)
    expected[index] = drawn
    assert (value(gpu, base) == expected).all()


# cuRAND.


def curand(kind: str, dtype: str, seed: int, count: int, offset: int) -> Any:
    """Return what cuRAND's Philox generates; called in the context."""
    import cupy
    from nvmath.bindings import curand

    out = cupy.empty(count, dtype)
    generator = curand.create_generator(curand.RngType.PSEUDO_PHILOX4_32_10)
    try:
        curand.set_stream(generator, cupy.cuda.get_current_stream().ptr)
        curand.set_pseudo_random_generator_seed(generator, seed)
        curand.set_generator_offset(generator, offset)
        moments = (0.0, 1.0) if "normal" in kind else ()
        getattr(curand, kind)(generator, out.data.ptr, count, *moments)
        cupy.cuda.get_current_stream().synchronize()
    finally:
        curand.destroy_generator(generator)
    return out


def oracle(gpu: Device, kind: str, dtype: str, seed: int, offset: int = 0) -> Any:
    return value(gpu, gpu.run(curand, kind, dtype, seed, 3_000_000, offset).result(WAIT_S))


@pytest.mark.parametrize("seed", [0, 1234, 2**63 + 5])
@pytest.mark.parametrize("offset", [0, 7, 262_144])
def test_words_are_curand_s(gpu: Device, seed: int, offset: int) -> None:
    expected = oracle(gpu, "generate", "uint32", seed, offset)
    found = value(gpu, rng.words(gpu, len(expected), seed=seed, offset=offset))
    assert (found == expected).all()


@pytest.mark.parametrize("seed", [0, 1234])
def test_uniform_float32_numbers_are_curand_s(gpu: Device, seed: int) -> None:
    expected = oracle(gpu, "generate_uniform", "float32", seed)
    assert same_bits(value(gpu, rng.uniform(gpu, len(expected), seed=seed)), expected)


def test_uniform_float64_numbers_are_curand_s_in_the_words_order(gpu: Device) -> None:
    expected = oracle(gpu, "generate_uniform_double", "float64", 1234)[:8]
    # cuRAND interleaves blocks that are 65536 apart.
    ours = rng.uniform(gpu, 4 * 65536, "float64", seed=1234)
    order = [0, 1, 131072, 131073, 2, 3, 131074, 131075]
    assert (value(gpu, ours)[order] == expected).all()


def test_normal_float32_numbers_are_about_curand_s(gpu: Device) -> None:
    expected = oracle(gpu, "generate_normal", "float32", 1234)
    found = value(gpu, rng.normal(gpu, len(expected), seed=1234))
    assert np.abs(found - expected).max() < 1e-5


# Graphs.


def replayed(count: int) -> Any:
    """Return two replays of a captured draw; called in the context."""
    import cupy

    from accel_lab.backends.cuda.rng.kernels import Form
    from accel_lab.backends.cuda.rng.library import Drawing

    drawing = Drawing(Form("uniform", "float32", 1, dense=True))
    out = cupy.empty(count, "float32")
    stream = cupy.cuda.Stream(non_blocking=True)
    stream.begin_capture()
    drawing(out, (77, 0, 0), 0.0, 1.0, 1.0, stream.ptr)
    graph = stream.end_capture()
    rows = []
    for _ in range(2):
        graph.launch(stream)
        stream.synchronize()
        rows.append(out.copy())
        out.fill(0)
        cupy.cuda.get_current_stream().synchronize()
    return cupy.stack(rows)


def test_a_replayed_graph_draws_the_same_again(gpu: Device) -> None:
    rows = value(gpu, gpu.run(replayed, 12_345).result(WAIT_S))
    eager = value(gpu, rng.uniform(gpu, 12_345, seed=77))
    assert (rows == eager).all()
