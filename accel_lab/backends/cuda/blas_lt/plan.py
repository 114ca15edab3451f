"""A product as cuBLASLt has it: its descriptors, and which algorithm does it."""

import contextlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from nvmath import CudaDataType
from nvmath.bindings import cublasLt
from nvmath.bindings.cublas import ComputeType

from accel_lab.backends.cuda.blas_lt.algorithms import BYTES, Algorithm
from accel_lab.backends.cuda.blas_lt.call import Call, Memory
from accel_lab.libraries.authoring.operand import Number

WORKSPACE_BYTES = 32 << 20  # what cuBLAS recommends on Hopper
UNSUPPORTED = frozenset({7, 15})
"""cublasStatus_t of what this card or version has not: INVALID_VALUE and NOT_SUPPORTED."""

TYPES = {
    "float8_e4m3fn": int(CudaDataType.CUDA_R_8F_E4M3),
    "float8_e5m2": int(CudaDataType.CUDA_R_8F_E5M2),
    "bfloat16": int(CudaDataType.CUDA_R_16BF),
    "float16": int(CudaDataType.CUDA_R_16F),
    "float32": int(CudaDataType.CUDA_R_32F),
    "float64": int(CudaDataType.CUDA_R_64F),
    "int8": int(CudaDataType.CUDA_R_8I),
    "int32": int(CudaDataType.CUDA_R_32I),
}


class Computed(NamedTuple):
    """In what a product is computed.

    Attributes:
        compute: cublasComputeType_t.
        scale: cudaDataType of alpha and beta.
        scalar: alpha and beta on the host.
    """

    compute: int
    scale: int
    scalar: Any


_IN_32 = Computed(int(ComputeType.COMPUTE_32F), TYPES["float32"], np.float32)
_TF32 = int(ComputeType.COMPUTE_32F_FAST_TF32)
_OTHERS = {
    "float64": Computed(int(ComputeType.COMPUTE_64F), TYPES["float64"], np.float64),
    "int32": Computed(int(ComputeType.COMPUTE_32I), TYPES["int32"], np.int32),
}
_DESC, _LAYOUT = cublasLt.MatmulDescAttribute, cublasLt.MatrixLayoutAttribute
_PREFERENCE = cublasLt.MatmulPreferenceAttribute
_EPILOGUES = {one.name: int(one) for one in cublasLt.Epilogue}
_OUTER_VECTORS = int(cublasLt.MatmulMatrixScale.OUTER_VEC_32F)
# Partial sums are not rounded to the dtype of the result.
_REDUCTIONS = int(cublasLt.ReductionScheme.INPLACE | cublasLt.ReductionScheme.COMPUTE_TYPE)
_SOMEWHERE = 256  # stands for one that is set before each call; with 0 nothing would be found


class Addresses(NamedTuple):
    """Where a call reads and writes; 0 for what it has not."""

    b: int
    a: int
    c: int
    d: int
    bias: int = 0
    aux: int = 0
    scale_b: int = 0
    scale_a: int = 0
    scale_d: int = 0
    amax: int = 0


class LtPlan:
    """Descriptors of one call, and its algorithm.

    Attributes:
        algorithm: None where cuBLASLt has none.
        held_bytes: what it holds on the device: nothing.
    """

    held_bytes = 0

    def __init__(self, handle: int, call: Call) -> None:
        self._handle = handle
        self._call = call
        computed = _OTHERS.get(call.dtypes[3], _IN_32)
        self._computed = computed._replace(compute=_TF32) if call.compute else computed
        self._layouts: list[int] = []
        self.algorithm: Algorithm | None = None
        self._described = False
        self._algorithm: Any = np.zeros(BYTES // 8, np.uint64)
        self._desc: int = cublasLt.matmul_desc_create(self._computed.compute, self._computed.scale)
        try:
            self._describe(call)
            self._described = True
        except cublasLt.cuBLASLtError as error:
            if status_of(error) not in UNSUPPORTED:  # an older version lacks some of it
                self.destroy()
                raise

    def _describe(self, call: Call) -> None:
        self._set(_DESC.TRANSA, call.operations[0])
        self._set(_DESC.TRANSB, call.operations[1])
        self._set(_DESC.EPILOGUE, _EPILOGUES[call.epilogue])
        if call.bias_dtype:
            self._set(_DESC.BIAS_POINTER, _SOMEWHERE)
            self._set(_DESC.BIAS_BATCH_STRIDE, call.bias_step)
            if call.bias_dtype != call.dtypes[3]:
                self._set(_DESC.BIAS_DATA_TYPE, TYPES[call.bias_dtype])
        if call.aux_leading:
            self._set(_DESC.EPILOGUE_AUX_POINTER, _SOMEWHERE)
            self._set(_DESC.EPILOGUE_AUX_LD, call.aux_leading)
        for mark, attribute in _POINTERS.items():
            if mark in call.marks:
                self._set(attribute, _SOMEWHERE)
        if call.vectors:
            self._set(_DESC.A_SCALE_MODE, _OUTER_VECTORS)
            self._set(_DESC.B_SCALE_MODE, _OUTER_VECTORS)
        for dtype, one in zip(call.dtypes, (call.b, call.a, call.c, call.d), strict=True):
            self._layouts.append(_layout(dtype, one, call.batch))

    def candidates(self, most: int) -> list[Algorithm]:
        """Return the algorithms that the library thinks best, the best first.

        Raises:
            cuBLASLtError: it failed; where it has none, the list is empty.
        """
        if not self._described:
            return []
        preference = cublasLt.matmul_preference_create()
        found = np.zeros(most, cublasLt.matmul_heuristic_result_dtype)
        count = np.zeros(1, np.int32)
        try:
            for attribute, value in self._wishes():
                kind = cublasLt.get_matmul_preference_attribute_dtype(attribute)
                held = np.array([value], kind)
                cublasLt.matmul_preference_set_attribute(
                    preference, int(attribute), held.ctypes.data, held.nbytes
                )
            cublasLt.matmul_algo_get_heuristic(
                self._handle,
                self._desc,
                *self._layouts,
                preference,
                most,
                found.ctypes.data,
                count.ctypes.data,
            )
        except cublasLt.cuBLASLtError as error:
            if status_of(error) not in UNSUPPORTED:
                raise
            return []
        finally:
            cublasLt.matmul_preference_destroy(preference)
        return [
            Algorithm(one["algo"].tobytes(), int(one["workspace_size"]))
            for one in found[: count[0]]
            if one["state"] == 0
        ]

    def _wishes(self) -> Iterator[tuple[Any, int]]:
        yield _PREFERENCE.MAX_WORKSPACE_BYTES, WORKSPACE_BYTES
        yield _PREFERENCE.REDUCTION_SCHEME_MASK, _REDUCTIONS
        names = ("A", "B", "C", "D")
        for name, nbytes in zip(names, self._call.aligned, strict=True):
            yield _PREFERENCE[f"MIN_ALIGNMENT_{name}_BYTES"], nbytes

    def takes(self, algorithm: Algorithm) -> bool:
        """Whether the library takes one that was read from disk."""
        if not self._described:
            return False
        held = np.frombuffer(algorithm.data, np.uint64).copy()
        result = np.zeros(1, cublasLt.matmul_heuristic_result_dtype)
        try:
            cublasLt.matmul_algo_check(
                self._handle, self._desc, *self._layouts, held.ctypes.data, result.ctypes.data
            )
        except cublasLt.cuBLASLtError as error:
            if status_of(error) not in UNSUPPORTED:
                raise
            return False
        return bool(result["state"][0] == 0) and int(result["workspace_size"][0]) <= WORKSPACE_BYTES

    def choose(self, algorithm: Algorithm | None) -> None:
        """Have an algorithm do it from now on."""
        self.algorithm = algorithm
        if algorithm is not None:
            self._algorithm = np.frombuffer(algorithm.data, np.uint64).copy()

    def run(
        self, at: Addresses, factors: tuple[Number, Number], workspace: int, stream: int
    ) -> None:
        """Enqueue it (cublasLtMatmul)."""
        call = self._call
        if call.bias_dtype:
            self._set(_DESC.BIAS_POINTER, at.bias)
        if call.aux_leading:
            self._set(_DESC.EPILOGUE_AUX_POINTER, at.aux)
        for mark, attribute in _POINTERS.items():
            if mark in call.marks:
                self._set(attribute, getattr(at, _MARKS[mark]))
        with np.errstate(all="ignore"):
            alpha, beta = (np.array([factor]).astype(self._computed.scalar) for factor in factors)
        of_b, of_a, of_c, of_d = self._layouts
        cublasLt.matmul(
            self._handle,
            self._desc,
            alpha.ctypes.data,
            at.b,
            of_b,
            at.a,
            of_a,
            beta.ctypes.data,
            at.c,
            of_c,
            at.d,
            of_d,
            self._algorithm.ctypes.data,
            workspace,
            WORKSPACE_BYTES,
            stream,
        )

    def destroy(self) -> None:
        """Give the descriptors back."""
        # What cannot be destroyed belongs to a lost context, which the next call tells.
        with contextlib.suppress(cublasLt.cuBLASLtError):
            while self._layouts:
                cublasLt.matrix_layout_destroy(self._layouts.pop())
            cublasLt.matmul_desc_destroy(self._desc)

    def _set(self, attribute: Any, value: int) -> None:
        held = np.array([value], cublasLt.get_matmul_desc_attribute_dtype(attribute))
        cublasLt.matmul_desc_set_attribute(
            self._desc, int(attribute), held.ctypes.data, held.nbytes
        )


_MARKS = {"a": "scale_a", "b": "scale_b", "d": "scale_d", "m": "amax"}
_POINTERS = {
    # cuBLASLt's first operand is our `b`.
    "b": _DESC.A_SCALE_POINTER,
    "a": _DESC.B_SCALE_POINTER,
    "d": _DESC.D_SCALE_POINTER,
    "m": _DESC.AMAX_D_POINTER,
}
"""The letters of `Call.marks`."""


def status_of(error: Exception) -> int:
    """Return the cublasStatus_t that an error of the bindings has."""
    status: int = getattr(error, "status", 0)
    return status


def _layout(dtype: str, one: Memory, batch: int) -> int:
    made: int = cublasLt.matrix_layout_create(TYPES[dtype], one.rows, one.columns, one.leading)
    if batch > 1:
        for attribute, value in (
            (_LAYOUT.BATCH_COUNT, batch),
            (_LAYOUT.STRIDED_BATCH_OFFSET, one.step),
        ):
            held = np.array([value], cublasLt.get_matrix_layout_attribute_dtype(attribute))
            cublasLt.matrix_layout_set_attribute(
                made, int(attribute), held.ctypes.data, held.nbytes
            )
    return made
