"""One product of two matrices."""

from typing import ClassVar

from accel_lab.compute.message.buffer import AccelRef
from accel_lab.libraries.authoring.dtype_sets import REAL_FLOATS
from accel_lab.libraries.authoring.function import function
from accel_lab.libraries.authoring.options import Factor, Options
from accel_lab.libraries.authoring.shaped import Shaped
from accel_lab.libraries.cutlass.message import (
    Epilogue,
    made_of,
    refusal,
    require_epilogue,
    require_extents,
)


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
        require_epilogue(self)
        if type(self.search) is not bool:
            raise refusal(self, f"search is True or False, not {self.search!r}")
        require_extents(self, self.a, self.b)


gemm = function(Gemm)
