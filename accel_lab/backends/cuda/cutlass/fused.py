"""Products with an end of the user's on cuda: their function, compiled into the kernel."""

import ctypes
import struct
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import cupy

from accel_lab.backends.cuda.cutlass.hopper import Factors, HopperVariant, run_hopper
from accel_lab.backends.cuda.cutlass.operands import Matrix, is_direct, placed
from accel_lab.backends.cuda.cutlass.product import CudaProducts, problem_like
from accel_lab.backends.cuda.cutlass.variant import Variant
from accel_lab.errors import CompileError
from accel_lab.libraries.cutlass.fused import MOST_NUMBERS, VISITED, FusedGemm, Visit

_ENDED = "identity"
"""The end by whose name a tile was searched for: what follows the sums changes little."""


class FusedVariant(NamedTuple):
    """One kernel: that of a product, with the user's function in place of its end."""

    base: Variant | HopperVariant
    visit: Visit

    @property
    def ahead(self) -> str:
        """The user's source, and behind it macros, which it does not see."""
        visit = self.visit
        named = {
            "CALL": visit.call,
            **{f"TAKES_{name.upper()}": int(name in visit.takes) for name in VISITED},
            "WRITES_AUX": int(visit.writes),
        }
        given = (one.removeprefix("-D").split("=", 1) for one in self.base.options() if _fills(one))
        lines = (f"#define {name} {value}\n" for name, value in (*given, *named.items()))
        source = f'#line 1 "epilogue.cu"\n{visit.source}\n#line 1 "the kernel around it"\n'
        return source + "".join(lines)

    @property
    def sources(self) -> tuple[str, ...]:
        """The files, one behind the other."""
        ends, *kernel = self.base.sources
        return (ends, "visitor.cuh", *kernel)

    def options(self) -> tuple[str, ...]:
        """Return the compiler's options; what fills the template is in `ahead`."""
        return tuple(one for one in self.base.options() if not _fills(one))


class CudaFused(CudaProducts):
    """Products that a function of the user's ends."""

    def missing_fused(self, m: FusedGemm, a: Any, b: Any) -> Callable[[], None] | None:
        """Return what compiles the kernel, on any thread; None if it is there."""
        variant, _ = self._fused(m, a, b)
        if not (a.shape[0] and b.shape[1]) or self._kernels.missing(variant) is None:
            return None
        return partial(self._compile, variant)

    def _compile(self, variant: FusedVariant) -> None:
        """Compile a kernel; any thread.

        Raises:
            BackendUnavailable: CUTLASS's headers are not installed.
            CompileError: the function does not compile.
        """
        try:
            self._kernels.compile(variant)
        except CompileError as error:
            name = variant.visit.name
            text = f"{name} does not compile:\n{error.log or error}"
            raise CompileError(text, log=error.log, name=name) from None

    def fused_gemm(self, m: FusedGemm, a: Any, b: Any, visited: tuple[Any, ...], out: Any) -> None:
        """Write the function of each sum, and of c, row and column, or None for one of these."""
        if not out.product.size:
            return
        variant, how = self._fused(m, a, b)
        base, kernel = variant.base, self._kernels.loaded(variant)
        matrices = placed(a, how[0]), placed(b, how[1])
        read = [x if x is None or is_direct(x) else cupy.array(x, order="C") for x in visited]
        made = [x if x is None or is_direct(x) else cupy.ndarray(x.shape, x.dtype) for x in out]
        visitor = visitor_of(m, [*read, made[1]])
        if isinstance(base, HopperVariant):
            processors, factors = self._kernels.processors, Factors(1)
            of = kernel, base, matrices, how, None, made[0], factors, processors
            run_hopper(*of, more=(visitor,))
        else:
            rows, columns = out.product.shape
            inner = how[0].step if how[0].is_copied else a.shape[1]
            given = (
                *map(ctypes.c_int, (rows, columns, inner)),
                *(ctypes.c_uint64(x.data.ptr) for x in matrices),
                *(ctypes.c_int64(one.step) for one in how),
                visitor,
                ctypes.c_uint64(made[0].data.ptr),
            )
            kernel.launch_packed(base.grid(rows, columns), given)
        for target, written in zip(out, made, strict=True):
            if written is not target:
                cupy.copyto(target, written)

    def _fused(self, m: FusedGemm, a: Any, b: Any) -> tuple[FusedVariant, tuple[Matrix, Matrix]]:
        """Return the kernel for a product, and how its operands lie."""
        dtype = m.a.dtype
        problem, how = problem_like(dtype, dtype, _ENDED, (a, b), self._kernels.architecture)
        return FusedVariant(_fusing(self._variant(problem)), m.visit), how


def visitor_of(m: FusedGemm, arrays: list[Any]) -> ctypes.Array[ctypes.c_char]:
    """Return what a kernel is given beside the matrices, as the template's `Visitor`."""
    addresses = (0 if x is None else x.data.ptr for x in arrays)
    letter = "d" if m.summed_in == "float64" else "f"
    numbers = (*m.numbers, *[0.0] * (MOST_NUMBERS - len(m.numbers)))
    packed = struct.pack(f"=4Q{MOST_NUMBERS}{letter}", *addresses, *numbers)
    return (ctypes.c_char * len(packed)).from_buffer_copy(packed)


def _fusing(base: Variant | HopperVariant) -> Variant | HopperVariant:
    """Return the kernel whose file has a place for a function."""
    return base if isinstance(base, HopperVariant) else base._replace(template="fused.cu")


def _fills(option: str) -> bool:
    """Whether an option fills a template."""
    return option.startswith("-D") and "=" in option
