"""A message with several results that declares their shapes; for tests alone."""

from typing import Any, ClassVar, NamedTuple, Protocol

from accel_lab.compute.execution.launch import Launch, LibraryActor, handles
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.libraries.authoring.dtype_sets import REAL_SINGLE_AND_DOUBLE
from accel_lab.libraries.authoring.function import function
from accel_lab.libraries.authoring.options import Options
from accel_lab.libraries.authoring.shaped import Shaped, same


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


svd = function(SVD)


class SpectralLibrary(Protocol):
    """What a backend provides."""

    def svd(self, a: Any, out: Parts) -> None:
        """Write the parts; vt is None where nobody asks for it."""


class SpectralActor(LibraryActor):
    """Owns the stream of one context."""

    library = "spectral"
    lib: SpectralLibrary

    @handles(SVD)
    def svd(self, m: SVD, launch: Launch) -> None:
        """Enqueue one."""
        self.lib.svd(launch.read(m.a), launch.empties())
