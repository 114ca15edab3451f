"""Products of many shapes on cuda, in one kernel whose blocks take tiles of them all."""

from typing import Any

import cupy
import numpy as np

from accel_lab.backends.cuda.cutlass.kernels import Kernels
from accel_lab.backends.cuda.cutlass.operands import Matrix, added, lying, lying_alike, placed
from accel_lab.backends.cuda.cutlass.variant import Variant, default_tile, writes_wide
from accel_lab.libraries.authoring.operand import Number
from accel_lab.libraries.cutlass.grouped import GroupedGemm
from accel_lab.libraries.cutlass.library import Build
from accel_lab.libraries.cutlass.message import SUMS


class CudaGrouped:
    """Products of pairs of matrices."""

    _kernels: Kernels

    def missing_grouped(self, m: GroupedGemm, a: list[Any], b: list[Any]) -> Build:
        """Return what compiles the kernel for products, on any thread; None if it is there."""
        pairs = [pair for pair in zip(a, b, strict=True) if has_elements(*pair)]
        if not pairs:
            return None
        return self._kernels.missing(self._variant_of(m, pairs)[0])

    def grouped_gemm(
        self,
        m: GroupedGemm,
        a: list[Any],
        b: list[Any],
        bias: list[Any],
        out: list[Any],
        scale: Number,
    ) -> None:
        """Write epilogue(scale a[i] @ b[i] + bias[i]) to each part."""
        dtype, biases = m.a[0].dtype, bias or [None] * len(a)
        some = [one for one in zip(a, b, biases, out, strict=True) if has_elements(*one[:2])]
        if not some:
            return
        variant, how = self._variant_of(m, [one[:2] for one in some])
        kernel = self._kernels.loaded(variant)
        kept = [
            (placed(left, of_a), placed(right, of_b), added(vector, dtype), to)
            for (left, right, vector, to), (of_a, of_b) in zip(some, how, strict=True)
        ]
        shapes = [
            (*to.shape, of_a.step if of_a.is_copied else left.shape[1])
            for (left, _, _, to), (of_a, _) in zip(some, how, strict=True)
        ]
        words = [
            (*(0 if x is None else x.data.ptr for x in four), of_a.step, of_b.step, 0, n)
            for four, (of_a, of_b), (_, n, _) in zip(kept, how, shapes, strict=True)
        ]
        table = cupy.asarray(np.ascontiguousarray(np.array(words, np.int64).T))
        problems = cupy.asarray(np.array(shapes, np.int32))
        sums = np.dtype(SUMS.get(dtype, dtype)).type
        given = (
            problems.data.ptr,
            np.int32(len(some)),
            sums(scale),
            sums(bool(bias)),
            table.data.ptr,
        )
        rows, columns, _ = variant.block
        tiles = sum(-(-m // rows) * -(-n // columns) for m, n, _ in shapes)
        kernel.launch((min(tiles, kernel.blocks * self._kernels.processors), 1, 1), given)

    def _variant_of(
        self, m: GroupedGemm, pairs: list[tuple[Any, Any]]
    ) -> tuple[Variant, list[tuple[Matrix, Matrix]]]:
        """Return the kernel for products that have elements, and how their operands lie."""
        dtype = m.a[0].dtype
        how = [lying(dtype, *pair) for pair in pairs]
        if len({(of_a.layout, of_b.layout) for of_a, of_b in how}) > 1:  # a kernel has one of each
            how = [lying_alike(dtype, *pair) for pair in pairs]
        wide = all(writes_wide(dtype, right.shape[1]) for _, right in pairs)
        of_a, of_b = how[0]
        rows = sum(left.shape[0] for left, _ in pairs)
        columns = max(right.shape[1] for _, right in pairs)
        tile = default_tile(dtype, rows, columns, self._kernels.processors)
        variant = Variant(dtype, of_a.layout, of_b.layout, m.epilogue, wide, tile, "grouped.cu")
        return variant, how


def has_elements(a: Any, b: Any) -> bool:
    """Whether a product has elements."""
    return bool(a.shape[0] and b.shape[1])
