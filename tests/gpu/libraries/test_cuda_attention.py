"""What only a GPU can show of attention: which messages cuDNN computes, and that they are right."""

from typing import Any

import numpy as np
import pytest

from accel_lab import attention
from accel_lab.compute.device import Device
from tests.contract import attentions
from tests.contract.samples import reals, value
from tests.contract.tolerances import EPS

pytestmark = pytest.mark.gpu
WAIT_S = 100.0
MASKS: tuple[dict[str, Any], ...] = (
    {},
    {"causal": "top_left"},
    {"causal": "bottom_right"},
    {"causal": "top_left", "window": 64},
    {"causal": "top_left", "alibi": True},
)


def counted(gpu: Device) -> Any:
    """Return how many messages each library has computed, and whether there is cuDNN."""

    def look() -> Any:
        import gc
        from importlib.util import find_spec

        from accel_lab.backends.cuda.attention.library import CudaAttention

        (lib,) = [one for one in gc.get_objects() if isinstance(one, CudaAttention)]
        return {**lib.statistics(), "cuDNN": find_spec("cudnn") is not None}

    return gpu.run(look).result(timeout_s=WAIT_S)


def by_cudnn(gpu: Device) -> int:
    """Return how many messages cuDNN has computed; skips where it is not installed."""
    found = counted(gpu)
    if not found["cuDNN"]:
        pytest.skip("nvidia-cudnn-frontend is not installed")
    return int(found["by cuDNN"])


@pytest.mark.parametrize("options", MASKS, ids=str)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_narrow_floats_are_attended_by_cudnn(
    gpu: Device, dtype: str, options: dict[str, Any]
) -> None:
    q, k, v = (
        reals(seed, shape, dtype)
        for seed, shape in enumerate([(2, 8, 256, 64), (2, 2, 256, 64), (2, 2, 256, 64)])
    )
    refs = gpu.put(q), gpu.put(k), gpu.put(v)
    attention.attend(*refs).y.result(WAIT_S)  # the library is there when something was sent to it
    before = by_cudnn(gpu)
    y, lse = attention.attend(*refs, lse=True, **options)
    assert lse is not None
    made = attention.attend_gradient(*refs, y, lse, y, **options)
    exact, logarithm = attentions.attention(q, k, v, **options)
    np.testing.assert_allclose(
        value(gpu, y).astype("float64"), exact, rtol=EPS[dtype], atol=4 * EPS[dtype]
    )
    np.testing.assert_allclose(value(gpu, lse), logarithm, rtol=1e-3, atol=1e-3)
    of_q, of_k, of_v, of_y = (gpu.put(np.asarray(x, "float64")) for x in (q, k, v, exact))
    of_lse = gpu.put(logarithm)
    wide = attention.attend_gradient(of_q, of_k, of_v, of_y, of_lse, of_y, **options)
    for got, expected in zip(made[:3], wide[:3], strict=True):
        largest = np.abs(value(gpu, expected)).max()
        off = np.abs(value(gpu, got).astype("float64") - value(gpu, expected)).max()
        assert off <= 8 * EPS[dtype] * largest
    assert by_cudnn(gpu) == before + 2


def test_what_cudnn_lacks_is_computed_by_products(gpu: Device) -> None:
    x = gpu.put(reals(0, (1, 2, 64, 64), "float16"))
    lengths = gpu.put(np.array([50]))
    attention.attend(x, x, x).y.result(WAIT_S)
    before = by_cudnn(gpu)
    attention.attend(x, x, x, lengths_k=lengths).y.result(WAIT_S)
    attention.attend(x, x, x, rate=0.5, seed=1).y.result(WAIT_S)
    assert by_cudnn(gpu) == before


@pytest.mark.parametrize("page_size", [16, 64])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_a_token_is_decoded_by_cudnn_from_pages_in_any_order(
    gpu: Device, dtype: str, page_size: int
) -> None:
    lengths = (300, 1, 130)
    cache = attention.KVCache(gpu, heads=2, width=64, pages=64, page_size=page_size, dtype=dtype)
    stored: dict[int, list[Any]] = {number: [] for number in range(3)}
    for first in range(0, 300, 50):  # by turns, so that no sequence has its pages in a row
        for number, length in enumerate(lengths):
            count = min(50, length - first)
            if count > 0:
                k, v = (reals(first + number + at, (1, 2, count, 64), dtype) for at in (0, 7))
                cache.append(gpu.put(k), gpu.put(v), number)
                stored[number].append((k, v))
    q = reals(9, (3, 8, 1, 64), dtype)
    order = (2, 0, 1)
    cache.attend(gpu.put(q), order).y.result(WAIT_S)
    before = by_cudnn(gpu)
    y, lse = cache.attend(gpu.put(q), order, lse=True, scale=0.2)
    assert lse is not None
    for at, number in enumerate(order):
        k, v = (np.concatenate(parts, axis=2) for parts in zip(*stored[number], strict=True))
        exact, logarithm = attentions.attention(q[at : at + 1], k, v, scale=0.2)
        np.testing.assert_allclose(
            value(gpu, y)[at : at + 1].astype("float64"),
            exact,
            rtol=EPS[dtype],
            atol=4 * EPS[dtype],
        )
        np.testing.assert_allclose(value(gpu, lse)[at : at + 1], logarithm, rtol=1e-3, atol=1e-3)
    assert by_cudnn(gpu) == before + 1
    cache.attend(gpu.put(q), order, window=40).y.result(WAIT_S)
    assert by_cudnn(gpu) == before + 1


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_a_chunk_of_a_prompt_is_attended_by_cudnn_from_pages(gpu: Device, dtype: str) -> None:
    cache = attention.KVCache(gpu, heads=2, width=64, pages=64, page_size=16, dtype=dtype)
    before, stored = {0: 70, 1: 5}, {}
    for number, tokens in before.items():
        k, v = (reals(number + at, (1, 2, tokens + 128, 64), dtype) for at in (0, 7))
        cache.append(gpu.put(k), gpu.put(v), number)
        stored[number] = k, v
    q = reals(9, (2, 8, 128, 64), dtype)
    cache.attend(gpu.put(q), (0, 1)).y.result(WAIT_S)
    count = by_cudnn(gpu)
    y, lse = cache.attend(gpu.put(q), (0, 1), lse=True)
    assert lse is not None
    assert by_cudnn(gpu) == count + 1
    for at, (k, v) in stored.items():
        exact, logarithm = attentions.attention(q[at : at + 1], k, v, causal="bottom_right")
        got = value(gpu, y)[at : at + 1].astype("float64")
        np.testing.assert_allclose(got, exact, rtol=EPS[dtype], atol=4 * EPS[dtype])
        np.testing.assert_allclose(value(gpu, lse)[at : at + 1], logarithm, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(
    ("dtype", "page_size", "options"),
    [("float32", 16, {}), ("float64", 3, {"window": 40}), ("bfloat16", 16, {"alibi": True})],
    ids=["float32", "float64", "bfloat16"],
)
def test_few_queries_that_cudnn_lacks_are_one_kernel(
    gpu: Device, dtype: str, page_size: int, options: dict[str, Any]
) -> None:
    cache = attention.KVCache(gpu, heads=3, width=64, pages=300, page_size=page_size, dtype=dtype)
    k, v = (reals(at, (1, 3, 700, 64), dtype) for at in (0, 7))
    cache.append(gpu.put(k), gpu.put(v))
    q = reals(9, (1, 9, 9, 64), dtype)
    cache.attend(gpu.put(q)).y.result(WAIT_S)
    before = counted(gpu)
    for tokens in (1, 8, 9):
        y = cache.attend(gpu.put(q[:, :, :tokens]), **options).y
        part = q[:, :, :tokens]
        exact, _ = attentions.attention(part, k, v, causal="bottom_right", **options)
        got = value(gpu, y).astype("float64")
        np.testing.assert_allclose(got, exact, rtol=EPS[dtype], atol=100 * EPS["float32"])
    after = counted(gpu)
    assert after["by own kernels"] == before["by own kernels"] + 2
    assert after["by cuBLAS"] == before["by cuBLAS"] + 1
