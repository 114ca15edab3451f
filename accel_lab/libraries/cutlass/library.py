"""Products of matrices with an end of their own: CUTLASS's templates on `cuda`, NumPy on `host`.

A product is summed in float32 of float16 and bfloat16, in int32 of int8, else in its own dtype; its
end is computed there, too, and the result rounded once. Operands may be views of any strides. The
bits repeat on one card as long as the same tile is used, which `search` may change.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, Literal, Protocol, TypeAlias

from accel_lab.compute.execution.launch import Launch, handles
from accel_lab.compute.execution.worker import Worker
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.authoring.default_actor import DefaultActor
from accel_lab.libraries.authoring.dtype_sets import REAL_FLOATS
from accel_lab.libraries.authoring.function import function
from accel_lab.libraries.authoring.operand import Number, array_of, describe, element, output
from accel_lab.libraries.authoring.options import Factor, Options
from accel_lab.libraries.authoring.shaped import Shaped

Epilogue: TypeAlias = Literal["identity", "relu", "gelu"]

EPILOGUES: tuple[Epilogue, ...] = ("identity", "relu", "gelu")
MOST = 1 << 25
"""So many rows, columns or terms of a sum a product has at most."""
MOST_OF_INT8 = 131_071
"""So many terms of int8, and a bias, fit into int32, whatever they are."""
SUMS = {"float16": "float32", "bfloat16": "float32", "int8": "int32"}
"""The dtype in which a product of another is summed and finished."""


def made_of(dtype: str) -> str:
    """Return the dtype of a product."""
    return "int32" if dtype == "int8" else dtype


class Gemm(Shaped[AccelRef], frozen=True, array_like=True, eq=False, tag=740):
    """Multiply, scale, add a bias and finish in one pass: epilogue(scale a @ b + bias).

    `bias` (n,) is added to every row; `epilogue` is "identity", "relu", or "gelu" in its tanh form.
    A product of int8 is int32, exactly, and has no gelu. With `search` each tile
    that there is for such a product is compiled and timed once, and the fastest kept on disk.
    """

    library: ClassVar[str] = "cutlass"
    dtypes: ClassVar = REAL_FLOATS | {"int8"}
    shapes: ClassVar = "(m,k),(k,n),(n)?->(m,n)"
    results: ClassVar = (made_of,)
    a: AccelRef
    b: AccelRef
    bias: AccelRef | None = None
    _: Options
    scale: Factor = 1
    epilogue: Epilogue = "identity"
    search: bool = False
    out: AccelRef | None = None

    def check(self) -> None:
        """Refuse an end that there is not, and extents that no tile counts."""
        if type(self.epilogue) is not str or self.epilogue not in EPILOGUES:
            raise _refused(f"epilogue is {self.epilogue!r}; it may be {', '.join(EPILOGUES)}")
        if type(self.search) is not bool:
            raise _refused(f"search is True or False, not {self.search!r}")
        if max(*self.a.shape, *self.b.shape) > MOST:
            raise _refused(f"a is {describe(self.a)}, b {describe(self.b)}; at most {MOST} each")
        if self.a.dtype == "int8":
            self._check_int8()

    def _check_int8(self) -> None:
        if self.epilogue == "gelu":
            raise _refused("int8 has no gelu; convert with array.cast")
        scale = element(self, "scale", self.scale, "int8")
        most = MOST_OF_INT8 // max(abs(int(scale.real)), 1)
        if self.a.shape[1] > most:
            text = f"a is {describe(self.a)}, and int32 holds sums of {most} scaled products"
            raise _refused(f"{text}; cut it along k")


gemm = function(Gemm)


class CutlassLibrary(Protocol):
    """What a backend provides."""

    def missing(self, m: Gemm, a: Any, b: Any) -> Callable[[], None] | None:
        """Return what compiles the kernel for a product, on any thread; None if it is there."""

    def has_searched(self, m: Gemm, a: Any, b: Any) -> bool:
        """Whether the tiles for such a product have been timed, or there are none."""

    def search(self, m: Gemm, a: Any, b: Any, bias: Any, worker: Worker) -> None:
        """Time the tiles for a product and keep the fastest; it may block the worker."""

    def gemm(self, m: Gemm, a: Any, b: Any, bias: Any, out: Any, scale: Number) -> None:
        """Write epilogue(scale a @ b + bias)."""


class CutlassActor(DefaultActor):
    """Owns the kernels that were compiled in one context."""

    library: ClassVar = "cutlass"
    lib: CutlassLibrary

    @handles(Gemm)
    def gemm(self, m: Gemm, launch: Launch) -> None:
        """Enqueue a product; what has to be compiled or timed for it is, beside the dispatcher."""

        def read() -> tuple[Any, Any, Any]:
            bias = None if m.bias is None else launch.read(m.bias)
            return launch.read(m.a), launch.read(m.b), bias

        def enqueue(_: None = None) -> None:
            out, operands = output(launch, "a", "b", "bias"), read()
            self.lib.gemm(m, *operands, out, element(m, "scale", m.scale, m.a.dtype))

        a, b = array_of(m.a), array_of(m.b)
        if m.search and not self.lib.has_searched(m, a, b):
            launch.blocking(partial(self.lib.search, m, *read()), enqueue)
        elif (build := self.lib.missing(m, a, b)) is not None:
            launch.defer(build, enqueue)
        else:
            enqueue()


def _refused(why: str) -> InvalidArgument:
    return InvalidArgument(f"Gemm: {why}")
