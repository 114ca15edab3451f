"""Kernels of `karpathy/llm.c`, its folder `dev/cuda`: the layers of GPT-2, forward and back."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from tests.benchmarks.public_kernels.case import Array, Case, integers, uniform, zeros

_FOLDER = "dev/cuda/"
B, T, C, NH, V = 2, 16, 64, 4, 96
N = B * T
HS = C // NH
EPS = 1e-5


def files_of(name: str) -> tuple[str, ...]:
    """Return what a kernel of a file is cut from."""
    return (f"{_FOLDER}common.h", f"{_FOLDER}{name}.cu")


def cases() -> Iterator[Case]:
    """Yield them all."""
    yield from _elementwise()
    yield from _embedding_and_loss()
    yield from _softmax()
    yield from _layernorm()
    yield from _fused_residual()
    yield from _products()
    yield from _layernorm_backward()


def _gelu(x: Array) -> Array:
    made: Array = 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
    return made


def _gelu_slope(x: Array) -> Array:
    scale = np.sqrt(2 / np.pi)
    t = np.tanh(scale * (x + 0.044715 * x**3))
    made: Array = 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * scale * (1 + 3 * 0.044715 * x * x)
    return made


def _elementwise() -> Iterator[Case]:
    n = 1000
    x, y = uniform(n), uniform(n, seed=1)
    wide = x.astype(np.float64)
    forward, backward = files_of("gelu_forward"), files_of("gelu_backward")
    yield Case(forward, "gelu_forward_kernel1", 8, 128, (zeros(n), x, n), {0: _gelu(wide)})
    yield Case(forward, "gelu_forward_kernel2", 2, 128, (zeros(n), x, n), {0: _gelu(wide)})
    slope = {0: _gelu_slope(wide) * y}
    yield Case(backward, "gelu_backward1", 8, 128, (zeros(n), x, y, n), slope)
    yield Case(backward, "gelu_backward2", 2, 128, (zeros(n), x, y, n), slope)
    files = files_of("residual_forward")
    yield Case(files, "residual_forward_kernel1", 8, 128, (zeros(n), x, y, n), {0: x + y})
    yield Case(files, "residual_forward_kernel2", 2, 128, (zeros(n), x, y, n), {0: x + y})
    p, g, m, v = (uniform(n, seed=i) for i in range(4))
    v = np.abs(v)
    rate, b1, b2, decay = 1e-2, 0.9, 0.999, 0.1
    m2, v2 = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g * g
    step = m2 / 0.1 / (np.sqrt(v2 / 0.001) + 1e-8) + decay * p
    numbers = (n, rate, b1, b2, 0.1, 0.001, 1e-8, decay)
    for i in (1, 2):
        made = {0: p - rate * step, 2: m2, 3: v2}
        yield Case(files_of("adamw"), f"adamw_kernel{i}", 8, 128, (p, g, m, v, *numbers), made)
    files = files_of("global_norm")
    total = {0: np.sum(wide * wide, keepdims=True)}
    for i in (1, 2, 3):
        yield Case(files, f"norm_kernel{i}<float>", 2, 128, (zeros(1), x, n), total)
    rows = zeros(1024)
    rows[:256] = x[:256]
    parts = x[:512].reshape(2, 256).astype(np.float64)
    yield Case(
        files, "norm_kernel4<float>", 2, 256, (zeros(2), x[:512], 512), {0: (parts**2).sum(1)}
    )
    yield Case(files, "global_norm_aggregate_kernel", 1, 1024, (rows[:1], 1), {0: rows[:1]})
    cube = uniform(4, 6, 5, 8)
    turned = cube.transpose(3, 2, 0, 1)
    yield Case(
        files_of("permute"), "permute_kernel", 8, 128, (cube, zeros(960), 4, 6, 5, 8), {1: turned}
    )


def _embedding_and_loss() -> Iterator[Case]:
    tokens, table, places = integers(B, T, below=V), uniform(V, C), uniform(T, C, seed=1)
    made = {0: table[tokens] + places}
    given: tuple[Any, ...] = (zeros(B, T, C), tokens, table, places, B, T, C)
    for i, blocks in ((1, 1), (2, 16), (3, 4)):
        yield Case(
            files_of("encoder_forward"), f"encoder_forward_kernel{i}", blocks, 128, given, made
        )
    slope = uniform(B, T, C, seed=2)
    of_table = zeros(V, C)
    np.add.at(of_table, tokens, slope)
    made = {0: of_table, 1: slope.sum(0)}
    given = (zeros(V, C), zeros(T, C), slope, tokens, B, T, C)
    for i, blocks in ((1, 16), (2, 1)):
        yield Case(
            files_of("encoder_backward"), f"encoder_backward_kernel{i}", blocks, 128, given, made
        )
    odds = softmaxed(uniform(N, V))
    right, weights = integers(N, below=V, seed=3), uniform(N, seed=4)
    losses = -np.log(odds[np.arange(N), right])
    one_hot = np.eye(V, dtype=np.float32)[right]
    yield Case(
        files_of("crossentropy_forward"),
        "crossentropy_forward_kernel1",
        1,
        128,
        (zeros(N), odds.astype("f"), right, B, T, V),
        {0: losses},
    )
    yield Case(
        files_of("crossentropy_softmax_backward"),
        "crossentropy_softmax_backward_kernel1",
        N * V // 128,
        128,
        (zeros(N, V), weights, odds.astype("f"), right, B, T, V),
        {0: (odds - one_hot) * weights[:, None]},
    )
    logits = uniform(N, V)
    slopes = (odds - one_hot) * weights[:, None]
    files = files_of("classifier_fused")
    yield Case(
        files,
        "fused_classifier_kernel1",
        N // 4,
        128,
        (zeros(N, V), zeros(N), logits, weights, right, B, T, V, V),
        {0: slopes, 1: losses},
    )
    for i in (2, 3):
        yield Case(
            files,
            f"fused_classifier_kernel{i}",
            N,
            128,
            (zeros(N, V), zeros(N), zeros(N, V), logits, weights, right, B, T, V, V),
            {0: slopes, 1: losses, 2: odds},
        )


def softmaxed(x: Array) -> Array:
    """Return the softmax of each row."""
    raised = np.exp(x.astype(np.float64) - x.max(-1, keepdims=True))
    made: Array = raised / raised.sum(-1, keepdims=True)
    return made


def _softmax() -> Iterator[Case]:
    x = uniform(N, V, low=-4, high=4)
    given: tuple[Any, ...]
    given, made = (zeros(N, V), x, N, V), {0: softmaxed(x)}
    files = files_of("softmax_forward")
    launches = (
        ("softmax_forward_kernel1", 1, 64, 0),
        ("softmax_forward_kernel2", N, 64, 256),
        ("softmax_forward_kernel3", N, 32, 128),
        ("softmax_forward_kernel4", N, 64, 8),
        ("softmax_forward_online_kernel1", 1, 64, 0),
        ("softmax_forward_online_kernel2", N // 2, 64, 0),
        ("softmax_forward_kernel7", N, 96, 24),
        ("softmax_forward_online_kernel8", N // 2, 64, 0),
    )
    for kernel, grid, block, shared in launches:
        yield Case(files, kernel, grid, block, given, made, shared)


def _normed(x: Array, weight: Array, bias: Array) -> tuple[Array, Array, Array]:
    wide = x.astype(np.float64)
    mean = wide.mean(-1)
    inverse = 1 / np.sqrt(wide.var(-1) + EPS)
    return (wide - mean[:, None]) * inverse[:, None] * weight + bias, mean, inverse


def _layernorm() -> Iterator[Case]:
    x, weight, bias = uniform(N, C), uniform(C, seed=1), uniform(C, seed=2)
    out, mean, inverse = _normed(x, weight, bias)
    given: tuple[Any, ...] = (zeros(N, C), zeros(N), zeros(N), x, weight, bias, N, C)
    made = {0: out, 1: mean, 2: inverse}
    files = files_of("layernorm_forward")
    single = mean.astype("f")
    yield Case(files, "layernorm_forward_kernel1", 1, 64, given, made)
    yield Case(files, "mean_kernel", N, 32, (zeros(N), x, N, C, 32), {0: mean}, 128)
    yield Case(files, "rstd_kernel", N, 32, (zeros(N), x, single, N, C, 32), {0: inverse}, 128)
    yield Case(
        files,
        "normalization_kernel",
        N * C // 128,
        128,
        (zeros(N, C), x, single, inverse.astype("f"), weight, bias, B, T, C),
        {0: out},
    )
    for i, grid, block, shared in (
        (3, N // 2, 64, 0),
        (4, N // 2, 64, 0),
        (5, N, 64, 0),
        (6, N // 2, (32, 2), 4 * C * 4),
    ):
        yield Case(
            files, f"layernorm_forward_kernel{i}", grid, block, given, made, shared, rtol=1e-5
        )


def _fused_residual() -> Iterator[Case]:
    x, y, weight, bias = (
        uniform(N, C),
        uniform(N, C, seed=1),
        uniform(C, seed=2),
        uniform(C, seed=3),
    )
    out, mean, inverse = _normed(x + y, weight, bias)
    files = files_of("fused_residual_forward")
    given: tuple[Any, ...] = (
        zeros(N, C),
        zeros(N, C),
        zeros(N),
        zeros(N),
        x,
        y,
        weight,
        bias,
        N,
        C,
    )
    made = {0: x + y, 1: out, 2: mean, 3: inverse}
    yield Case(files, "fused_residual_forward2", 1, N, given, made)
    for name, grid, block, shared in (
        ("fused_residual_forward3", N // 2, (32, 2), 0),
        ("fused_residual_forward_kernel4", N // 2, (32, 2), 0),
        ("fused_residual_forward_kernel5", N // 2, (32, 2), 4 * C * 4),
        ("fused_residual_forward_kernel6", 4, (32, 2, 2), 4 * C * 4 + 4 * 32 * 4),
    ):
        yield Case(files, name, grid, block, given, made, shared, rtol=1e-5)


def _products() -> Iterator[Case]:
    slope, before = uniform(N, C), uniform(C, seed=1)
    total = slope.sum(0, dtype=np.float64)
    files = files_of("matmul_backward")
    given: tuple[Any, ...] = (zeros(C), slope, B, T, C)
    yield Case(files, "matmul_backward_bias_kernel_naive", 1, C, given, {0: total})
    yield Case(files, "matmul_backward_bias_kernel_faster", C, 32, given, {0: total}, 128)
    files = files_of("matmul_backward_bias")
    given, made = (before, slope, B, T, C), {0: before + total}
    for i, grid, block, shared in (
        (1, C, 32, 128),
        (2, C // 2, 64, 0),
        (3, C, 64, 0),
        (4, C // 32, 64, 256),
        (5, (1, 4), C, 0),
    ):
        yield Case(files, f"matmul_backward_bias_kernel{i}", grid, block, given, made, shared)
    yield Case(files, "matmul_backward_bias_kernel7", (1, 2), (32, 8), (*given, 256), made, 128 * 4)
    of_template = (*given, b"\0")
    yield Case(
        files, "matmul_backward_bias_kernel8<float, false>", (2, 1), (4, 8, 4), of_template, made
    )
    yield Case(
        files, "matmul_backward_bias_kernel9<float, false>", (2, 1), (4, 8, 4), of_template, made
    )
    parts = uniform(3, C, seed=5)
    yield Case(files, "cast_and_add_kernel", 1, C, (before, parts[0], C), {0: before + parts[0]})
    yield Case(
        files, "reduce_add_sum_kernel", 1, 32, (before, parts, C, 3), {0: before + parts.sum(0)}
    )
    files = files_of("matmul_forward")
    x, weight, bias = uniform(128, C), uniform(128, C, seed=2), uniform(128, seed=3)
    product = x.astype(np.float64) @ weight.T + bias
    yield Case(
        files,
        "matmul_forward_kernel1",
        (8, 8),
        (16, 16),
        (zeros(128, 128), x, weight, bias, 128, C, 128),
        {0: product},
    )
    yield Case(files, "add_bias", 4, 64, (x, bias[:C], 2, 64, C), {0: x + bias[:C]})
    yield Case(
        files,
        "matmul_forward_kernel4",
        (1, 1),
        (16, 16),
        (zeros(128, 128), x, weight, bias, C, 128),
        {0: product},
    )
    yield Case(
        files_of("nccl_all_reduce"),
        "set_vector",
        8,
        128,
        (zeros(1000), 1000, 2.5),
        {0: np.full(1000, 2.5)},
    )


def _layernorm_backward() -> Iterator[Case]:
    files = files_of("layernorm_backward")
    x, slope, weight = uniform(N, C), uniform(N, C, seed=1), uniform(C, seed=2)
    _, mean, inverse = _normed(x, weight, weight)
    norm = (x - mean[:, None]) * inverse[:, None]
    through = weight * slope.astype(np.float64)
    back = through - through.mean(-1, keepdims=True)
    back = (back - norm * (through * norm).mean(-1, keepdims=True)) * inverse[:, None]
    of_weight, of_bias = (norm * slope).sum(0), slope.sum(0)
    made = {0: back, 1: of_weight, 2: of_bias}
    given: tuple[Any, ...] = (
        zeros(N, C),
        zeros(C),
        zeros(C),
        slope,
        x,
        weight,
        mean.astype("f"),
        inverse.astype("f"),
    )
    shape = (B, T, C)
    four = "<float, float, float, float>"
    yield Case(files, "layernorm_backward_kernel1", 1, 64, (*given, *shape), made, rtol=1e-5)
    yield Case(
        files,
        f"layernorm_backward_kernel2{four}",
        N // 2,
        64,
        (*given, *shape, zeros(C), zeros(C)),
        {0: back, 11: of_weight, 12: of_bias},
        2 * C * 4,
        rtol=1e-5,
    )
    yield Case(
        files,
        "copy_to_dweight_dbias<float>",
        1,
        64,
        (C, zeros(C), zeros(C), weight, slope[0].copy()),
        {1: weight, 2: slope[0]},
    )
    yield Case(
        files,
        f"layernorm_backward_kernel3{four}",
        4,
        64,
        (*given, *shape),
        made,
        2 * C * 4,
        rtol=1e-5,
    )
