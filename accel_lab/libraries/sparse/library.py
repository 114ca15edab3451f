"""Sparse matrices: cuSPARSE and CuPy on `cuda`, SciPy on `host`.

A `SparseRef` is three buffers and a shape. Matrices are canonical: stored places are in order and
none is stored twice. What is stored depends on what the operands store, never on values: a sum that
is zero is stored. Narrow floats (float16, bfloat16) are computed in float32 and rounded once.
"""

# ruff: noqa: PLC0414 - names of this module, wherever they are written

import sys
from typing import Any, ClassVar

from accel_lab.compute.execution.launch import Launch, handles
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.authoring.default_actor import DefaultActor
from accel_lab.libraries.sparse.conversion import Convert as Convert
from accel_lab.libraries.sparse.conversion import Densify as Densify
from accel_lab.libraries.sparse.conversion import Sparsify as Sparsify
from accel_lab.libraries.sparse.conversion import Structure as Structure
from accel_lab.libraries.sparse.conversion import Verify as Verify
from accel_lab.libraries.sparse.conversion import bsr as bsr
from accel_lab.libraries.sparse.conversion import convert as convert
from accel_lab.libraries.sparse.conversion import coo as coo
from accel_lab.libraries.sparse.conversion import csc as csc
from accel_lab.libraries.sparse.conversion import csr as csr
from accel_lab.libraries.sparse.conversion import densify as densify
from accel_lab.libraries.sparse.conversion import from_dense as from_dense
from accel_lab.libraries.sparse.conversion import from_scipy as from_scipy
from accel_lab.libraries.sparse.conversion import sparsify as sparsify
from accel_lab.libraries.sparse.conversion import to_scipy as to_scipy
from accel_lab.libraries.sparse.conversion import transpose as transpose
from accel_lab.libraries.sparse.conversion import verify as verify
from accel_lab.libraries.sparse.matrix import Parts as Parts
from accel_lab.libraries.sparse.matrix import SparseRef as SparseRef
from accel_lab.libraries.sparse.matrix import require_sparse
from accel_lab.libraries.sparse.products import Sddmm as Sddmm
from accel_lab.libraries.sparse.products import Spmm as Spmm
from accel_lab.libraries.sparse.products import Spmv as Spmv
from accel_lab.libraries.sparse.products import sddmm as sddmm
from accel_lab.libraries.sparse.products import spmm as spmm
from accel_lab.libraries.sparse.products import spmv as spmv


def matmul(a: SparseRef, b: SparseRef | AccelRef) -> Any:
    """Return a @ b: a sparse matrix of a sparse one, else a dense buffer; does not block.

    Raises:
        InvalidArgument: the operands do not fit.
    """
    require_sparse("matmul", "a", a)
    if not isinstance(b, AccelRef):
        text = f"matmul: b is {type(b).__name__}, and is to be a buffer or a SparseRef"
        raise InvalidArgument(f"{text}; put() the array on the device first")
    return spmv(a, b) if b.ndim == 1 else spmm(a, b)


class SparseActor(DefaultActor):
    """Owns what computes with sparse matrices in one context."""

    library: ClassVar = "sparse"

    @handles(Convert)
    def convert(self, m: Convert, launch: Launch) -> None:
        """Have a matrix stored in another format; of blocks it is waited how many there are."""
        m.infer()  # the notebook could not, where it did not know how much is stored
        parts = _read(m, launch)
        if m.to == "bsr":
            launch.blocking(lambda _: self.lib.convert(m, *parts), _all_of(launch))
        else:
            _all_of(launch)(self.lib.convert(m, *parts))

    @handles(Sparsify)
    def sparsify(self, m: Sparsify, launch: Launch) -> None:
        """Have found what is not zero."""
        x = launch.read(m.x)
        launch.blocking(lambda _: self.lib.sparsify(m, x), _all_of(launch))


def _read(m: Any, launch: Launch) -> tuple[Any, Any, Any]:
    """Return the arrays of a message's matrix."""
    return launch.read(m.values), launch.read(m.indices), launch.read(m.pointers)


def _all_of(launch: Launch) -> Any:
    return lambda made: launch.take_all(*made)


SparseRef.functions = sys.modules[__name__]
