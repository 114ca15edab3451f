"""Transposes, filters and whole domains in NVIDIA's `cuda-samples`."""

from collections.abc import Iterator

import numpy as np
from scipy.linalg import hadamard
from scipy.ndimage import correlate1d
from scipy.special import ndtr

from tests.benchmarks.public_kernels.case import Array, Case, integers, uniform, zeros

_ROOT = "Samples/"
_CONCEPTS = f"{_ROOT}2_Concepts_and_Techniques/"
_LIBRARIES = f"{_ROOT}4_CUDA_Libraries/"
_DOMAINS = f"{_ROOT}5_Domain_Specific/"
_PERFORMANCE = f"{_ROOT}6_Performance/"


def cases() -> Iterator[Case]:
    """Yield them all."""
    yield from _transposes()
    yield from _filters()
    yield from _domains()


def _transposes() -> Iterator[Case]:
    files: tuple[str, ...] = (f"{_PERFORMANCE}transpose/transpose.cu",)
    x = uniform(64, 64)
    tiles = x.reshape(2, 32, 2, 32)
    fine = tiles.transpose(0, 3, 2, 1).reshape(64, 64)
    coarse = tiles.transpose(2, 1, 0, 3).reshape(64, 64)
    for kernel, made in (
        ("copy", x),
        ("copySharedMem", x),
        ("transposeNaive", x.T),
        ("transposeCoalesced", x.T),
        ("transposeNoBankConflicts", x.T),
        ("transposeDiagonal", x.T),
        ("transposeFineGrained", fine),
        ("transposeCoarseGrained", coarse),
    ):
        yield Case(files, kernel, (2, 2), (32, 16), (zeros(64, 64), x, 64, 64), {0: made})
    x = uniform(512)
    yield Case(
        (f"{_PERFORMANCE}alignedTypes/alignedTypes.cu",),
        "testKernel<RGBA32>",
        2,
        32,
        (zeros(512), x, 128),
        {0: x},
    )
    numbers = integers(48, 32, below=1000, dtype="uint32")
    yield Case(
        (f"{_DOMAINS}recursiveGaussian/recursiveGaussian_kernel.cuh",),
        "d_transpose",
        (2, 3),
        (16, 16),
        (zeros(32, 48, dtype="uint32"), numbers, 32, 48),
        {0: numbers.T},
        options=("-DBLOCK_DIM=16",),
    )


def _filters() -> Iterator[Case]:
    folder = f"{_CONCEPTS}convolutionSeparable/convolutionSeparable"
    files: tuple[str, ...] = (f"{folder}_common.h", f"{folder}.cu")
    image, weights = uniform(64, 128), uniform(17, seed=1)
    for kernel, axis, grid, block in (
        ("convolutionRowsKernel", 1, (1, 16), (16, 4)),
        ("convolutionColumnsKernel", 0, (8, 1), (16, 8)),
    ):
        made = correlate1d(image.astype("d"), weights[::-1], axis, mode="constant")
        args = (zeros(64, 128), image, 128, 64, 128)
        yield Case(files, kernel, grid, block, args, {0: made}, variables={"c_Kernel": weights})
    image = uniform(32, 32)
    files = (f"{_CONCEPTS}boxFilter/boxFilter_kernel.cu",)
    for name, axis in (("x", 1), ("y", 0)):
        made = correlate1d(image.astype("d"), np.full(7, 1 / 7), axis, mode="nearest")
        args = (image, zeros(32, 32), 32, 32, 3)
        yield Case(files, f"d_boxfilter_{name}_global", 1, 32, args, {1: made}, rtol=1e-5)
    files = (f"{_DOMAINS}fastWalshTransform/fastWalshTransform_kernel.cuh",)
    x = uniform(2, 256)
    walsh = hadamard(256).astype("d")
    yield Case(files, "fwtBatch1Kernel", 2, 64, (zeros(2, 256), x, 8), {0: x @ walsh}, 1024)
    four = np.array([[1, 1, 1, 1], [1, -1, 1, -1], [1, 1, -1, -1], [1, -1, -1, 1]])
    step = np.einsum("ij,bjk->bik", four, x.reshape(2, 4, 64)).reshape(2, 256)
    yield Case(files, "fwtBatch2Kernel", (1, 2), 64, (zeros(2, 256), x, 64), {0: step})
    a, b = uniform(256), uniform(256, seed=1)
    yield Case(files, "modulateKernel", 2, 64, (a, b, 256), {0: a * b / 256})


def _domains() -> Iterator[Case]:
    n = 512
    price, strike, years = (
        uniform(n, low=5, high=30),
        uniform(n, low=1, high=100, seed=1),
        uniform(n, low=0.25, high=10, seed=2),
    )
    call, put = _black_scholes(price.astype("d"), strike.astype("d"), years.astype("d"))
    yield Case(
        (f"{_DOMAINS}BlackScholes/BlackScholes_kernel.cuh",),
        "BlackScholesGPU",
        2,
        128,
        (zeros(n), zeros(n), price, strike, years, 0.02, 0.30, n),
        {0: call, 1: put},
        rtol=1e-5,
    )
    folder = f"{_DOMAINS}quasirandomGenerator/quasirandomGenerator"
    table = integers(3, 31, below=2**31, dtype="uint32")
    count = 300
    drawn = np.zeros((3, count), "uint32")
    for bit in range(31):
        drawn ^= np.where(np.arange(count) >> bit & 1, table[:, bit : bit + 1], 0).astype("uint32")
    made = (drawn + 1).astype("f") * np.float32(1 / 0x80000001)
    yield Case(
        (f"{folder}_common.h", f"{folder}_kernel.cu"),
        "quasirandomGeneratorKernel",
        2,
        (64, 3),
        (zeros(3, count), 0, count),
        {0: made},
        variables={"c_Table": table},
    )
    spectrum = uniform(16, 16, 2).view("complex64")[..., 0]
    sign = (-1.0) ** np.add.outer(np.arange(16), np.arange(16))
    files: tuple[str, ...] = (f"{_LIBRARIES}oceanFFT/oceanFFT_kernel.cu",)
    for name, part in (("", spectrum.real), ("_y", spectrum.imag)):
        yield Case(
            files,
            f"updateHeightmapKernel{name}",
            (2, 2),
            (8, 8),
            (zeros(16, 16), spectrum, 16),
            {0: part * sign},
        )
    height = uniform(16, 16)
    slopes = zeros(16, 16, 2)
    slopes[1:-1, 1:-1, 0] = height[1:-1, 2:] - height[1:-1, :-2]
    slopes[1:-1, 1:-1, 1] = height[2:, 1:-1] - height[:-2, 1:-1]
    yield Case(
        files,
        "calculateSlopeKernel",
        (2, 2),
        (8, 8),
        (height, zeros(16, 16, 2), 16, 16),
        {1: slopes},
    )
    a, b = (uniform(200, 2, seed=i).view("complex64")[:, 0] for i in (0, 1))
    yield Case(
        (f"{_LIBRARIES}simpleCUFFT/simpleCUFFT.cu",),
        "ComplexPointwiseMulAndScale",
        2,
        64,
        (a.view("f"), b.view("f"), 200, 0.5),
        {0: (a * b / 2).view("f")},
    )


def _black_scholes(price: Array, strike: Array, years: Array) -> tuple[Array, Array]:
    rate, spread = 0.02, 0.30
    root = np.sqrt(years)
    d1 = (np.log(price / strike) + (rate + spread**2 / 2) * years) / (spread * root)
    d2 = d1 - spread * root
    now = strike * np.exp(-rate * years)
    call = price * ndtr(d1) - now * ndtr(d2)
    return call, call + now - price
