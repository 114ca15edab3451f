"""A message with several results and a status, all of which it declares; for tests alone."""

from typing import Any, ClassVar, NamedTuple

from accel_lab.compute.message.buffer import AccelRef
from accel_lab.errors import AccelError
from accel_lab.libraries.authoring.dtype_sets import REAL_SINGLE_AND_DOUBLE
from accel_lab.libraries.authoring.function import function
from accel_lab.libraries.authoring.options import Options
from accel_lab.libraries.authoring.shaped import Shaped, same


class NoConvergence(AccelError, fields=("superdiagonals",)):
    """The decomposition has not converged."""

    superdiagonals: int


class Parts(NamedTuple):
    """A singular value decomposition: a = (u * s) @ vt."""

    u: AccelRef
    s: AccelRef
    vt: AccelRef | None


class SVD(Shaped[Parts], frozen=True, tag=903):
    """Return the singular values and the left vectors, and on request the right ones."""

    library: ClassVar[str] = "spectral"
    dtypes: ClassVar = REAL_SINGLE_AND_DOUBLE
    shapes: ClassVar = "(m,n)->(m,k),(k),(k,n); k=min(m,n)"
    results: ClassVar = (same, same, same)
    asked_by: ClassVar = {"vt": "right"}
    a: AccelRef
    _: Options
    right: bool = True

    def judge(self, info: Any) -> AccelError | None:
        """Refuse what has not converged."""
        return NoConvergence(f"{self}: info is {info}", superdiagonals=int(info)) if info else None


svd = function(SVD)
