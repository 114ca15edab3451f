"""Messages with several results, as a library brings them; for tests alone."""

from typing import Any, ClassVar, NamedTuple, Protocol

from accel_lab.compute.execution.launch import Launch, LibraryActor, handles
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.operation import Operation, PartialSpec, Spec
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.authoring.dtype_sets import ALL, REAL_SINGLE_AND_DOUBLE
from accel_lab.libraries.authoring.function import function
from accel_lab.libraries.authoring.operand import describe
from accel_lab.libraries.authoring.options import Options


class SVDParts(NamedTuple):
    """A singular value decomposition: a = (u * s) @ vt."""

    u: AccelRef | None
    s: AccelRef
    vt: AccelRef | None


class SVD(Operation[SVDParts], frozen=True, array_like=True, eq=False, tag=900):
    """Return the singular values, and on request the vectors."""

    library: ClassVar[str] = "trial"
    dtypes: ClassVar = REAL_SINGLE_AND_DOUBLE
    asked_by: ClassVar = {"u": "vectors", "vt": "vectors"}
    a: AccelRef
    _: Options
    vectors: bool = True
    out: SVDParts | None = None

    def infer(self) -> tuple[Spec | None, Spec, Spec | None]:
        """Return (m, k), (k,) and (k, n) for k = min(m, n)."""
        if self.a.ndim != 2:
            raise InvalidArgument(f"SVD takes a matrix, and a {describe(self.a)} is none")
        (m, n), dtype = self.a.shape, self.a.dtype
        k, s = min(m, n), Spec((min(m, n),), dtype)
        if not self.vectors:
            return None, s, None
        return Spec((m, k), dtype), s, Spec((k, n), dtype)


class UniqueParts(NamedTuple):
    """Which values there are, and how often each."""

    values: AccelRef
    counts: AccelRef


class Unique(Operation[UniqueParts], frozen=True, array_like=True, eq=False, tag=901):
    """Return the sorted values of `x` and their counts; only the device knows how many."""

    library: ClassVar[str] = "trial"
    dtypes: ClassVar = ALL
    x: AccelRef

    def infer(self) -> tuple[PartialSpec, PartialSpec]:
        """Return two lists of one unknown length."""
        return PartialSpec((None,), self.x.dtype), PartialSpec((None,), "int64")


class Positive(Operation[AccelRef], frozen=True, array_like=True, eq=False, tag=902):
    """Return the elements above 0; only the device knows how many."""

    library: ClassVar[str] = "trial"
    dtypes: ClassVar = ALL
    x: AccelRef

    def infer(self) -> PartialSpec:
        """Return a list of unknown length."""
        return PartialSpec((None,), self.x.dtype)


class Count(Operation[AccelRef], frozen=True, array_like=True, eq=False, tag=903):
    """Return how many elements a matrix has: all of its partial spec is known, its work blocks."""

    library: ClassVar[str] = "trial"
    dtypes: ClassVar = ALL
    x: AccelRef

    def infer(self) -> PartialSpec:
        """Return no axes."""
        if self.x.ndim != 2:
            raise InvalidArgument(f"Count takes a matrix, and x {describe(self.x)} is none")
        return PartialSpec((), "int64")


svd, unique, positive = function(SVD), function(Unique), function(Positive)
count = function(Count)


class TrialLibrary(Protocol):
    """What a backend provides."""

    def svd(self, a: Any, out: SVDParts) -> None:
        """Write the parts; u and vt are None where nobody asks for them."""

    def unique(self, x: Any) -> tuple[Any, Any]:
        """Return values and counts."""


class TrialActor(LibraryActor):
    """Owns the stream of one context."""

    library = "trial"
    lib: TrialLibrary

    @handles(SVD)
    def svd(self, m: SVD, launch: Launch) -> None:
        """Enqueue one."""
        a = launch.read(m.a)
        self.lib.svd(a, launch.empties())

    @handles(Unique)
    def unique(self, m: Unique, launch: Launch) -> None:
        """Count."""
        launch.take_all(*self.lib.unique(launch.read(m.x)))

    @handles(Positive)
    def positive(self, m: Positive, launch: Launch) -> None:
        """Choose."""
        x = launch.read(m.x)
        chosen = x[x > 0]
        launch.empty(chosen.shape)[...] = chosen

    @handles(Count)
    def count(self, m: Count, launch: Launch) -> None:
        """Count."""
        x = launch.read(m.x)

        def work(_: Any) -> int:
            rows, columns = x.shape
            return int(rows * columns)

        def then(found: int) -> None:
            launch.empty()[...] = found

        launch.blocking(work, then)
