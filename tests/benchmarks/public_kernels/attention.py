"""Attention in `karpathy/llm.c`, its folder `dev/cuda`."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from tests.benchmarks.public_kernels.case import Case, uniform, zeros
from tests.benchmarks.public_kernels.llmc import HS, NH, B, C, N, T, V, files_of, softmaxed


def cases() -> Iterator[Case]:
    """Yield them all."""
    yield from _attention()
    yield from _attention_backward()


def _attention() -> Iterator[Case]:
    files = files_of("attention_forward")
    inp = uniform(B, T, 3, NH, HS)
    q, k, v = inp.transpose(2, 0, 3, 1, 4)
    scale = 1 / np.sqrt(HS)
    scores = (q.astype(np.float64) @ k.transpose(0, 1, 3, 2)) * scale
    causal = np.tril(np.ones((T, T), bool))
    masked = np.where(causal, scores, -np.inf)
    odds = softmaxed(masked)
    out = (odds @ v).transpose(0, 2, 1, 3).reshape(B, T, C)
    square = (B, NH, T, T)
    heads = (B, NH, T, HS)
    shape, sizes = (B, T, C, NH), (B, T, NH)
    given: tuple[Any, ...] = (zeros(*square), inp, *shape)
    yield Case(files, "attention_query_key_kernel1", 16, 128, given, {0: masked})
    before = masked.astype("f")
    yield Case(
        files, "attention_softmax_kernel1", 1, 128, (zeros(*square), before, *sizes), {0: odds}
    )
    x = uniform(N, V)
    given = (zeros(N, V), x, N, V)
    yield Case(files, "softmax_forward_kernel4", N, 64, given, {0: softmaxed(x)}, 16)
    given = (zeros(*square), float(scale), (scores / scale).astype("f"), B * NH, T)
    yield Case(files, "softmax_forward_kernel5", 64, 64, given, {0: odds})
    given = (zeros(B, T, C), odds.astype("f"), inp, *shape)
    yield Case(files, "attention_value_kernel1", 1, 128, given, {0: out})
    given = (zeros(*heads), zeros(*heads), zeros(*heads), inp, B, T, NH, HS)
    yield Case(files, "permute_kernel", 16, 128, given, {0: q, 1: k, 2: v})
    yield Case(
        files,
        "unpermute_kernel",
        16,
        128,
        (np.ascontiguousarray(q), zeros(B, T, C), B, T, NH, HS),
        {1: q.transpose(0, 2, 1, 3)},
    )
    lower = np.where(causal, scores, -np.inf)
    yield Case(files, "scale_kernel", 16, 128, (scores.astype("f"), 2.0, B, NH, T), {0: lower * 2})
    yield Case(
        files,
        "attention_forward_fused1",
        (T // 2, NH, B),
        64,
        (zeros(B, T, C), zeros(*square), zeros(*square), inp, *shape),
        {0: out, 2: odds},
    )


def _attention_backward() -> Iterator[Case]:
    files = files_of("attention_backward")
    odds = softmaxed(np.where(np.tril(np.ones((T, T), bool)), uniform(B, NH, T, T), -np.inf))
    slope = uniform(B, NH, T, T, seed=1)
    scale = 1 / np.sqrt(HS)
    inner = np.tril(odds * slope).sum(-1, keepdims=True)
    made = {0: scale * odds * (slope - inner) * np.tril(np.ones((T, T)))}
    given: tuple[Any, ...] = (zeros(B, NH, T, T), slope, odds.astype("f"), B, T, C, NH)
    scaled = (*given[:-1], float(scale))
    for name, grid, block, args in (
        ("kernel1", 1, 32, given),
        ("kernel2", (1, B * NH), 32, given),
        ("kernel3", (T // 2, B * NH), 64, given),
        ("kernel4", (1, B * NH), 64, given),
        ("kernel5", (1, B * NH), 64, given),
        ("kernel7<64>", (T, B * NH), 64, scaled),
        ("kernel8<64>", (T // 4, B * NH), 64, scaled),
    ):
        yield Case(files, f"softmax_autoregressive_backward_{name}", grid, block, args, made)
    heads, flat = uniform(B, NH, T, HS, seed=2), uniform(B, T, 3, NH, HS, seed=3)
    three = [uniform(B, NH, T, HS, seed=i) for i in (4, 5, 6)]
    added = flat + np.stack(three).transpose(1, 3, 0, 2, 4)
    yield Case(files, "permute_kernel_backward", 16, 128, (flat, *three, B, T, NH, HS), {0: added})
    other = uniform(B, T, NH, HS, seed=7)
    yield Case(
        files,
        "unpermute_kernel_backward",
        16,
        128,
        (heads, other, B, T, NH, HS),
        {0: heads + other.transpose(0, 2, 1, 3)},
    )
