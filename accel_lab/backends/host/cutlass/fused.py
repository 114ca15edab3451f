"""Products with an end of the user's on the host: NumPy's product, then a compiled loop."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from accel_lab.backends.host.primitives.functions import Functions
from accel_lab.compute.arrays.dtypes import numpy_dtype
from accel_lab.libraries.cutlass.fused import MOST_NUMBERS, FusedGemm, Visit
from accel_lab.libraries.jit.messages import Compile
from accel_lab.libraries.primitives.operators import TYPES

_LOOP = """
__global__ void accel_lab_visit(
    const $T* sums, const $T* cs, const $T* rows, const $T* columns, const $T* numbers, $T* out,
    $T* second, const long long* extents) {
  for (long long y = 0, at = 0; y < extents[0]; ++y) {
    for (long long x = 0; x < extents[1]; ++x, ++at) {
      const $T sum = sums[at];
$given      $T aux = 0;
      out[at] = static_cast<$T>($call);
$written    }
  }
}
"""
_GIVEN = {"c": "cs[at]", "row": "rows[x]", "column": "columns[y]"}


class VisitLoop(NamedTuple):
    """A loop over all elements of a product, of a dtype in which it is summed."""

    visit: Visit
    dtype: str

    @property
    def called(self) -> str:
        """What the function is called."""
        return self.visit.name

    def program(self) -> Compile:
        """Return what is to be compiled."""
        given = (f"      const $T {one} = {_GIVEN[one]};\n" for one in self.visit.takes)
        text = _LOOP.replace("$given", "".join(given)).replace("$call", self.visit.call)
        text = text.replace("$written", "      second[at] = aux;\n" if self.visit.writes else "")
        text = text.replace("$T", TYPES[self.dtype])
        source = f'#line 1 "epilogue.cu"\n{self.visit.source}\n#line 1 "the loop around it"\n{text}'
        return Compile(source, "accel_lab_visit")


class HostFused:
    """Products that a function of the user's ends."""

    def __init__(self) -> None:
        self._functions = Functions()

    def missing_fused(self, m: FusedGemm, a: Any, b: Any) -> Callable[[], None] | None:
        """Return what compiles the function, on any thread; None if it is there."""
        del a, b
        lacking = self._functions.lacking([VisitLoop(m.visit, m.summed_in)])
        return partial(self._functions.build, lacking) if lacking else None

    @np.errstate(all="ignore")
    def fused_gemm(self, m: FusedGemm, a: Any, b: Any, visited: tuple[Any, ...], out: Any) -> None:
        """Write the function of each sum, and of c, row and column, or None for one of these."""
        wide = numpy_dtype(m.summed_in)
        sums = np.matmul(a.astype(wide, copy=False), b.astype(wide, copy=False))
        none = np.zeros(1, wide)
        given = [none if x is None else np.ascontiguousarray(x, wide) for x in visited]
        numbers = np.zeros(MOST_NUMBERS, wide)
        numbers[: len(m.numbers)] = m.numbers
        made = np.empty_like(sums)
        second = np.empty_like(sums) if m.aux else none
        loop = VisitLoop(m.visit, m.summed_in)
        arrays = np.ascontiguousarray(sums), *given, numbers, made, second
        self._functions.call(loop, *arrays, numbers=sums.shape)
        out.product[...] = made
        if m.aux:
            out.aux[...] = second
