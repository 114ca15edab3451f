"""Products of matrices that finish in one pass: cuBLASLt on `cuda`, NumPy on `host`.

Operands are row-major as NumPy's, and may be views of any strides. A bias has one number for each
column. Narrow operands are multiplied in float32, int8 exactly, and each result is rounded once.
float8 results are clipped to what the dtype has. The bits of a product repeat on one card and
version, until `Tune` has another algorithm do it: none adds up in an order that differs.
"""

# ruff: noqa: PLC0414 - names of this module, wherever they are written

import pickle
from functools import partial
from typing import Any, ClassVar, Protocol

from accel_lab.compute.execution.launch import Launch, handles
from accel_lab.compute.execution.worker import Worker
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.wire.codec import Answer
from accel_lab.libraries.authoring.compute import Compute, require_compute
from accel_lab.libraries.authoring.default_actor import DefaultActor
from accel_lab.libraries.authoring.dtype_sets import REAL_FLOATS
from accel_lab.libraries.authoring.function import function
from accel_lab.libraries.authoring.operand import Number
from accel_lab.libraries.authoring.options import Factor, Options
from accel_lab.libraries.authoring.shaped import Shaped
from accel_lab.libraries.blas_lt.epilogue import Activation as Activation
from accel_lab.libraries.blas_lt.epilogue import Gradient as Gradient
from accel_lab.libraries.blas_lt.epilogue import epilogue_of
from accel_lab.libraries.blas_lt.evaluation import FusedOperands, Parts
from accel_lab.libraries.blas_lt.fused import Fused, require_words
from accel_lab.libraries.blas_lt.fused import FusedMatmul as FusedMatmul
from accel_lab.libraries.blas_lt.fused import FusedProduct as FusedProduct
from accel_lab.libraries.blas_lt.fused import Trans as Trans
from accel_lab.libraries.blas_lt.fused import Tune as Tune
from accel_lab.libraries.blas_lt.fused import Tuned as Tuned


class Matmul(Shaped[AccelRef], frozen=True, array_like=True, eq=False, tag=420):
    """Multiply, add a bias and activate: activation(alpha op(a) @ op(b) + beta c + bias).

    `bias` (n,) is added to every row, and `activation` is "none", "relu" or "gelu", in its tanh
    form. `c` and `beta` come together; `out` may be `c`. There may be stacks with equal batch axes;
    an operand that has none serves the whole stack. With an alpha of 0 the product is left out.
    `compute` may be "tf32" of float32, as of `blas.Gemm`.
    """

    library: ClassVar[str] = "blas_lt"
    dtypes: ClassVar = REAL_FLOATS
    shapes: ClassVar = "trans_a(...?,m,k),trans_b(...?,k,n),(...?,m,n)?,(...?,n)?->(...,m,n)"
    scaled_by: ClassVar = {"c": "beta"}
    in_place: ClassVar = ("c",)
    a: AccelRef
    b: AccelRef
    c: AccelRef | None = None
    bias: AccelRef | None = None
    _: Options
    alpha: Factor = 1.0
    beta: Factor | None = None
    trans_a: Trans = "n"
    trans_b: Trans = "n"
    activation: Activation = "none"
    out: AccelRef | None = None
    compute: Compute = ""

    def check(self) -> None:
        """Refuse a word that is no activation, and a precision that there is not."""
        require_words(self, "activation")
        if self.compute != "":
            require_compute(self)

    @property
    def epilogue(self) -> str:
        """What cuBLASLt calls it."""
        return epilogue_of(self.activation, bias=self.bias is not None)


matmul, fused_matmul, tune = function(Matmul), function(FusedMatmul), function(Tune)


class BlasLtLibrary(Protocol):
    """What a backend provides beside the methods of default handlers."""

    def fused_matmul(
        self,
        m: FusedMatmul,
        x: FusedOperands,
        out: Parts,
        factors: tuple[Number, Number],
    ) -> None:
        """Write what the message asks for."""

    def measure(
        self, m: Tune, x: FusedOperands, factors: tuple[Number, Number], worker: Worker
    ) -> tuple[Any, Any, Tuned]:
        """Return what `keep` takes, and what was measured; it may block."""

    def keep(self, call: Any, algorithm: Any) -> None:
        """Have an algorithm do a product from now on; on the dispatcher thread."""


class BlasLtActor(DefaultActor):
    """Owns the handle of cuBLASLt in one context, and the algorithms that it found."""

    library: ClassVar = "blas_lt"
    lib: BlasLtLibrary

    @handles(FusedMatmul)
    def fused_matmul(self, m: FusedMatmul, launch: Launch) -> None:
        """Enqueue a product with what is asked for beside."""
        out = launch.empties()
        self.lib.fused_matmul(m, _read(m, launch), out, m.factors())

    @handles(Tune)
    def tune(self, m: Tune, launch: Launch) -> None:
        """Measure beside the dispatcher, and keep what was the fastest."""
        m.infer()  # the notebook could not, where a shape was unknown to it

        def answer(found: tuple[Any, Any, Tuned]) -> None:
            call, algorithm, tuned = found
            self.lib.keep(call, algorithm)
            data = pickle.dumps(tuned)
            launch.finish = lambda: [Answer(launch.seq, data, True, [])]  # noqa: FBT003

        launch.blocking(partial(self.lib.measure, m, _read(m, launch), m.factors()), answer)


def _read(m: Fused[Any], launch: Launch) -> FusedOperands:
    refs = [getattr(m, name) for name in FusedOperands._fields]
    return FusedOperands(*(None if ref is None else launch.read(ref) for ref in refs))
