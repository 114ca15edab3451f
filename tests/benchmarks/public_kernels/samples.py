"""Kernels of NVIDIA's `cuda-samples`."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from tests.benchmarks.public_kernels.case import Case, integers, uniform, zeros

_ROOT = "Samples/"
_INTRODUCTION = f"{_ROOT}0_Introduction/"
_CONCEPTS = f"{_ROOT}2_Concepts_and_Techniques/"
_FEATURES = f"{_ROOT}3_CUDA_Features/"
_GPU = ("-D__CUDA_ARCH__=900",)  # their text has nothing for others


def cases() -> Iterator[Case]:
    """Yield them all."""
    yield from _simple()
    yield from _warps()
    yield from _reductions()
    yield from _scans_and_sorts()
    yield from _groups()


def _simple() -> Iterator[Case]:
    n = 1000
    x, y = uniform(n), uniform(n, seed=1)
    yield Case(
        (f"{_INTRODUCTION}vectorAdd/vectorAdd.cu",),
        "vectorAdd",
        8,
        128,
        (x, y, zeros(n), n),
        {2: x + y},
    )
    numbers = integers(1024, below=100)
    yield Case(
        (f"{_INTRODUCTION}asyncAPI/asyncAPI.cu",),
        "increment_kernel",
        8,
        128,
        (numbers, 26),
        {0: numbers + 26},
    )
    yield Case(
        (f"{_INTRODUCTION}simpleStreams/simpleStreams.cu",),
        "init_array",
        8,
        128,
        (numbers, np.array([5], "i"), 3),
        {0: numbers + 15},
    )
    yield Case(
        (f"{_INTRODUCTION}simpleMultiCopy/simpleMultiCopy.cu",),
        "incKernel",
        8,
        128,
        (zeros(1024, dtype="int32"), numbers, 1000, 4),
        {0: np.where(np.arange(1024) < 1000, numbers + 1, 0)},
    )
    yield Case(
        (f"{_INTRODUCTION}template/template.cu",),
        "testKernel",
        1,
        64,
        (x[:64], zeros(64)),
        {1: 64 * x[:64]},
        256,
    )
    for kind, dtype in (("int", "int32"), ("float", "float32")):
        given = numbers[:64].astype(dtype)
        yield Case(
            (
                f"{_INTRODUCTION}simpleTemplates/sharedmem.cuh",
                f"{_INTRODUCTION}simpleTemplates/simpleTemplates.cu",
            ),
            f"testKernel<{kind}>",
            1,
            64,
            (given, np.zeros_like(given)),
            {1: 64 * given},
            256,
        )
    a, b = uniform(64, 96), uniform(96, 32, seed=1)
    yield Case(
        (f"{_INTRODUCTION}matrixMul/matrixMul.cu",),
        "MatrixMulCUDA<16>",
        (2, 4),
        (16, 16),
        (zeros(64, 32), a, b, 96, 32),
        {0: a.astype("d") @ b},
    )
    threads = 64
    left = np.zeros(11, "i")
    left[:] = [640, -640, threads - 1, threads - 1, 0, 64 % 18, 137 - 63, 63, 0, -1, 0]
    start = np.zeros(11, "i")
    start[8] = start[10] = 0xFF
    for tid in range(threads):
        start_and = 2 * tid + 7
        left[8] = (0xFF if tid == 0 else left[8]) & start_and
    xored = 0xFF
    for tid in range(threads):
        xored ^= tid
    left[10] = xored
    yield Case(
        (f"{_INTRODUCTION}simpleAtomicIntrinsics/simpleAtomicIntrinsics_kernel.cuh",),
        "testKernel",
        1,
        threads,
        (start,),
        {0: left},
    )
    halves = np.random.default_rng(0).integers(-2, 3, (2, 4096, 2)).astype(np.float16)
    first = np.arange(128)[None] + 128 + np.arange(4)[:, None]
    reached = np.stack([first + i * 512 for i in range(8)])
    inside = reached < 4096
    at = np.where(inside, reached, 0)
    products = (halves[0][at].astype("f") * halves[1][at].astype("f")).sum(-1) * inside
    for kind in ("intrinsics", "native"):
        yield Case(
            (f"{_INTRODUCTION}fp16ScalarProduct/fp16ScalarProduct.cu",),
            f"scalarProductKernel_{kind}",
            4,
            128,
            (*halves, zeros(4), 4096),
            {2: products.sum((0, 2))},
        )


def _warps() -> Iterator[Case]:
    files: tuple[str, ...] = (f"{_INTRODUCTION}simpleVoteIntrinsics/simpleVote_kernel.cuh",)
    flags = zeros(128, dtype="uint32")
    flags[40], flags[64:96] = 1, 1
    warps = flags.reshape(4, 32)
    for kernel, votes in (("VoteAnyKernel1", warps.any(1)), ("VoteAllKernel2", warps.all(1))):
        given = (flags, zeros(128, dtype="uint32"), 128)
        yield Case(files, kernel, 1, 128, given, {1: np.repeat(votes, 32).astype("uint32")})
    late = np.arange(96) >= 48
    told = np.stack([np.repeat([False, True, True], 32), late, np.repeat([False, False, True], 32)])
    yield Case(files, "VoteAnyKernel3", 1, 96, (zeros(96, 3, dtype="bool"), 32), {0: told.T})
    numbers = integers(512, below=10)
    sums = numbers.reshape(2, 256).cumsum(1).astype("int32")
    files = (f"{_CONCEPTS}shfl_scan/shfl_scan.cu",)
    yield Case(
        files,
        "shfl_scan_test",
        2,
        256,
        (numbers, 32, zeros(2, dtype="int32")),
        {0: sums, 2: sums[:, -1]},
        64,
    )
    yield Case(
        files,
        "uniform_add",
        2,
        256,
        (numbers, np.array([7, 9], "i"), 512),
        {0: np.r_[numbers[:256] + 7, numbers[256:] + 9]},
    )


def _reductions() -> Iterator[Case]:
    files: tuple[str, ...] = (f"{_CONCEPTS}reduction/reduction_kernel.cu",)
    for dtype, kind in (("int32", "int"), ("float32", "float")):
        x = integers(2048, below=100).astype(dtype)
        one, two = x.reshape(16, 128).sum(1), x.reshape(8, 256).sum(1)
        args = (x, zeros(16, dtype=dtype), x.size)
        for i in range(3):
            yield Case(files, f"reduce{i}<{kind}>", 16, 128, args, {1: one}, 512)
        args = (x, zeros(8, dtype=dtype), x.size)
        yield Case(files, f"reduce3<{kind}>", 8, 128, args, {1: two}, 512)
        for i in (4, 5):
            yield Case(files, f"reduce{i}<{kind}, 128>", 8, 128, args, {1: two}, 512)
        yield Case(files, f"reduce6<{kind}, 128, true>", 8, 128, args, {1: two}, 512)
        few = (x, zeros(4, dtype=dtype), x.size)
        strided = x.reshape(4, 4, 128).sum((0, 2))
        yield Case(files, f"cg_reduce<{kind}>", 4, 128, few, {1: strided}, 512)
        yield Case(files, f"multi_warp_cg_reduce<{kind}, 128, 64>", 8, 128, args, {1: two}, 512)
    x = integers(2048, below=100)
    two = x.reshape(8, 256).sum(1)
    yield Case(
        files,
        "reduce7<int, 128, true>",
        8,
        128,
        (x, zeros(8, dtype="int32"), x.size),
        {1: two},
        512,
        on_host=_GPU,
    )
    x = uniform(2000)
    files = (f"{_CONCEPTS}threadFenceReduction/threadFenceReduction_kernel.cuh",)
    strides = zeros(2, 4, 256)
    strides.reshape(-1)[:2000] = x
    yield Case(
        files,
        "reduceMultiPass<128, false>",
        4,
        128,
        (x, zeros(4), 2000),
        {1: strides.sum((0, 2))},
        512,
    )
    whole = np.sum(x, keepdims=True, dtype="d")
    yield Case(
        files,
        "reduceSinglePass<128, false>",
        4,
        128,
        (x, zeros(4), 2000),
        {1: np.r_[whole, strides.sum((0, 2))[1:]]},
        512,
        variables={"retirementCount": np.zeros(1, "uint32")},
    )
    a, b = uniform(6, 1500), uniform(6, 1500, seed=1)
    yield Case(
        (f"{_CONCEPTS}scalarProd/scalarProd_kernel.cuh",),
        "scalarProdGPU",
        3,
        64,
        (zeros(6), a, b, 6, 1500),
        {0: (a.astype("d") * b).sum(1)},
    )


def _scans_and_sorts() -> Iterator[Case]:
    files: tuple[str, ...] = (f"{_CONCEPTS}scan/scan_common.h", f"{_CONCEPTS}scan/scan.cu")
    x = integers(2048, below=100, dtype="uint32")
    rows = x.reshape(2, 1024)
    before = (rows.cumsum(1) - rows).astype("uint32")
    yield Case(files, "scanExclusiveShared", 2, 256, (np.zeros_like(x), x, 1024), {0: before})
    totals = rows.sum(1)
    given: tuple[Any, ...] = (zeros(2, dtype="uint32"), before, x, 2, 2)
    yield Case(
        files, "scanExclusiveShared2", 1, 256, given, {0: np.array([0, totals[0]], "uint32")}
    )
    more = np.array([5, 7], "uint32")
    yield Case(files, "uniformUpdate", 2, 256, (x, more), {0: rows + more[:, None]})
    names = ("sortingNetworks_common.cuh", "sortingNetworks_common.h")
    headers = tuple(f"{_CONCEPTS}sortingNetworks/{name}" for name in names)
    keys = np.random.default_rng(0).permutation(2048).astype("uint32").reshape(2, 1024)
    values = np.arange(2048, dtype="uint32").reshape(2, 1024)
    order = keys.argsort(1)
    up = np.take_along_axis(keys, order, 1), np.take_along_axis(values, order, 1)
    empty = np.zeros_like(keys)
    sort = (empty, empty, keys, values, 1024, 1)
    made = {0: up[0], 1: up[1]}
    bitonic = (*headers, f"{_CONCEPTS}sortingNetworks/bitonicSort.cu")
    yield Case(bitonic, "bitonicSortShared", 2, 512, sort, made)
    # Even blocks fall and odd ones rise, or the other way round: the text says which.
    turned = {i: np.stack([one[0][::-1], one[1]]) for i, one in enumerate(up)}
    yield Case(bitonic, "bitonicSortShared1", 2, 512, sort[:4], turned)
    merged = (*headers, f"{_CONCEPTS}sortingNetworks/oddEvenMergeSort.cu")
    yield Case(merged, "oddEvenMergeSortShared", 2, 512, sort, made)
    common = f"{_INTRODUCTION}mergeSort/mergeSort_common.h"
    yield Case(
        (common, f"{_INTRODUCTION}mergeSort/mergeSort.cu"),
        "mergeSortSharedKernel<1>",
        2,
        512,
        sort[:5],
        made,
    )
    x = np.random.default_rng(1).integers(0, 256, 6000).astype("uint8")
    words = x.view("uint32")
    common = f"{_CONCEPTS}histogram/histogram_common.h"
    counted = np.bincount(x, minlength=256).astype("uint32")
    files = (common, f"{_CONCEPTS}histogram/histogram256.cu")
    args: tuple[Any, ...] = (zeros(1, 256, dtype="uint32"), words, words.size)
    yield Case(files, "histogram256Kernel", 1, 192, args, {0: counted})
    parts = integers(5, 256, below=9, dtype="uint32")
    args = (zeros(256, dtype="uint32"), parts, 5)
    yield Case(files, "mergeHistogram256Kernel", 256, 256, args, {0: parts.sum(0, dtype="uint32")})


def _groups() -> Iterator[Case]:
    x = integers(1000, below=50)
    odd = x % 2 == 1
    yield Case(
        (f"{_FEATURES}binaryPartitionCG/binaryPartitionCG.cu",),
        "oddEvenCountAndSumCG",
        2,
        96,
        (x, zeros(1, dtype="int32"), zeros(2, dtype="int32"), 1000),
        {1: odd.sum(keepdims=True), 2: np.array([x[odd].sum(), x[~odd].sum()])},
    )
    x = uniform(4096, low=0)
    # Of the blocks' sums only the first is of all; the others keep their own.
    parts = x.reshape(8, 4, 128).sum((0, 2), dtype="d")
    yield Case(
        (f"{_CONCEPTS}reductionMultiBlockCG/reductionMultiBlockCG.cu",),
        "reduceSinglePassMultiBlockCG",
        4,
        128,
        (x, zeros(4), 4096),
        {1: np.r_[parts.sum(), parts[1:]]},
        1024,
        cooperative=True,
    )
    files: tuple[str, ...] = (f"{_FEATURES}warpAggregatedAtomicsCG/warpAggregatedAtomicsCG.cu",)
    numbers = integers(512, below=4)
    yield Case(
        files,
        "filter_arr",
        2,
        128,
        (zeros(512, dtype="int32"), zeros(1, dtype="int32"), numbers, 512),
        {1: np.count_nonzero(numbers, keepdims=True)},
    )
    values = integers(512, below=1000, seed=1)
    most = np.array([values[numbers == i].max() for i in range(4)])
    yield Case(
        files,
        "calculateMaxInEachBuckets",
        2,
        128,
        (numbers, values, zeros(4, dtype="int32"), 512, 4),
        {2: most},
        on_host=_GPU,
    )
    yield Case(
        files,
        "mapToBuckets",
        2,
        128,
        (numbers, zeros(4 * 512, dtype="int32"), (np.arange(4) * 512).astype("i"), 512, 4),
        {2: np.arange(4) * 512 + np.bincount(numbers)},
        on_host=_GPU,
    )
