"""A product of float8 matrices, which come with scales."""

from typing import ClassVar

from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.operation import Operation, Spec
from accel_lab.libraries.authoring.function import function
from accel_lab.libraries.authoring.operand import describe, element, require_out, result
from accel_lab.libraries.authoring.options import DType, Factor, Options
from accel_lab.libraries.blas_lt.fused import FLOAT8
from accel_lab.libraries.cutlass.message import (
    Epilogue,
    refusal,
    require_epilogue,
    require_extents,
)

MADE_OF_FLOAT8 = ("float32", "bfloat16", "float16")


class ScaledGemm(Operation[AccelRef], frozen=True, array_like=True, eq=False, tag=745):
    """Multiply float8 matrices: epilogue(scale scale_a scale_b a @ b + bias).

    `scale_a` and `scale_b` are float32 numbers on the device, or None. Sums are float32; the result
    is of `dtype`, as is `bias` (n,). Ends are those of `Gemm`. On `cuda` it takes a card of compute
    capability 9.0, and sums 128 products at a time as coarsely as its tensor cores do.
    """

    library: ClassVar[str] = "cutlass"
    dtypes: ClassVar = FLOAT8
    a: AccelRef
    b: AccelRef
    bias: AccelRef | None = None
    scale_a: AccelRef | None = None
    scale_b: AccelRef | None = None
    _: Options
    dtype: DType = "float32"
    scale: Factor = 1
    epilogue: Epilogue = "identity"
    search: bool = False
    out: AccelRef | None = None

    def infer(self) -> Spec:
        """Return the shape and the dtype of the product."""
        a, b = self.a, self.b
        if {a.dtype, b.dtype} - FLOAT8:
            raise refusal(self, f"a is {describe(a)}, b {describe(b)}; both are to be float8")
        if a.dtype != b.dtype:
            text = f"a is {describe(a)}, b {describe(b)}; both are to be of one float8"
            raise refusal(self, f"{text}, or go to blas_lt.fused_matmul")
        if a.ndim != len("mk") or b.ndim != len("kn") or a.shape[1] != b.shape[0]:
            raise refusal(self, f"a is {describe(a)}, b {describe(b)}; it takes (m,k),(k,n)")
        if self.dtype not in MADE_OF_FLOAT8:
            text = f"dtype is {self.dtype!r}; it may be {', '.join(MADE_OF_FLOAT8)}"
            raise refusal(self, text)
        require_epilogue(self)
        require_extents(self, a, b)
        element(self, "scale", self.scale, "float32")
        if type(self.search) is not bool:
            raise refusal(self, f"search is True or False, not {self.search!r}")
        self._require("bias", self.bias, b.shape[1:], self.dtype)
        self._require("scale_a", self.scale_a, (), "float32")
        self._require("scale_b", self.scale_b, (), "float32")
        spec = result(self, (a.shape[0], b.shape[1]), self.dtype)
        require_out(self, self.out, spec, a, b, self.bias, self.scale_a, self.scale_b)
        return spec

    def _require(self, name: str, ref: AccelRef | None, shape: tuple[int, ...], dtype: str) -> None:
        if ref is not None and (ref.shape != shape or ref.dtype != dtype):
            raise refusal(self, f"{name} is {describe(ref)}, and is to be {dtype}{list(shape)}")


scaled_gemm = function(ScaledGemm)
