"""Factorizations whose status decides, as a library brings them; for tests alone."""

from functools import partial
from typing import Any, ClassVar, NamedTuple, Protocol

from accel_lab.compute.execution.launch import Launch, LibraryActor, handles
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.operation import Operation, Spec
from accel_lab.errors import LibraryError
from accel_lab.libraries.authoring.dtype_sets import REAL_SINGLE_AND_DOUBLE
from accel_lab.libraries.authoring.function import function
from accel_lab.libraries.authoring.operand import output, require_out
from accel_lab.libraries.authoring.options import Options


class NotDefinite(LibraryError, fields=("order",)):
    """A matrix is not positive definite: its leading minor of this order is not."""

    order: int = 0


class Cholesky(Operation[AccelRef], frozen=True, array_like=True, eq=False, tag=900):
    """Return the lower triangle of a = l @ l.T."""

    library: ClassVar[str] = "judged"
    dtypes: ClassVar = REAL_SINGLE_AND_DOUBLE
    a: AccelRef
    _: Options
    out: AccelRef | None = None

    def infer(self) -> Spec:
        """Return the shape and dtype of `a`."""
        spec = Spec(self.a.shape, self.a.dtype)
        require_out(self, self.out, spec)
        return spec


class Factors(NamedTuple):
    """The lower triangle, and its diagonal."""

    lower: AccelRef
    diagonal: AccelRef


class Factor(Operation[Factors], frozen=True, array_like=True, eq=False, tag=901):
    """Return what Cholesky does, and the diagonal of it."""

    library: ClassVar[str] = "judged"
    dtypes: ClassVar = REAL_SINGLE_AND_DOUBLE
    a: AccelRef

    def infer(self) -> tuple[Spec, Spec]:
        """Return (n, n) and (n,)."""
        return Spec(self.a.shape, self.a.dtype), Spec(self.a.shape[:1], self.a.dtype)


class Late(Operation[None], frozen=True, array_like=True, eq=False, tag=902):
    """Have this device's streams get nowhere for so many seconds."""

    library: ClassVar[str] = "judged"
    dtypes: ClassVar = frozenset({""})
    seconds: float = 0.0


cholesky, factor = function(Cholesky), function(Factor)


class JudgedLibrary(Protocol):
    """What a backend provides."""

    def cholesky(self, a: Any, out: Any) -> Any:
        """Write the lower triangle; return an array of one number: 0 if that went well."""

    def late(self, seconds: float) -> None:
        """Have the streams get nowhere."""


class JudgedActor(LibraryActor):
    """Owns the stream of one context."""

    library = "judged"
    lib: JudgedLibrary

    @handles(Cholesky)
    def cholesky(self, m: Cholesky, launch: Launch) -> None:
        """Enqueue one."""
        out, a = output(launch, "a"), launch.read(m.a)
        launch.check(self.lib.cholesky(a, out), partial(judge, m))

    @handles(Factor)
    def factor(self, m: Factor, launch: Launch) -> None:
        """Enqueue one."""
        a = launch.read(m.a)
        lower, diagonal = launch.empties()
        launch.check(self.lib.cholesky(a, lower), partial(judge, m))
        diagonal[...] = lower.diagonal()

    @handles(Late)
    def late(self, m: Late, launch: Launch) -> None:
        """Hold up what follows."""
        del launch
        self.lib.late(m.seconds)


def judge(m: Cholesky | Factor, info: Any) -> NotDefinite | None:
    """Say what LAPACK's `info` means (potrf)."""
    order = int(info[0])
    if not order:
        return None
    kind = type(m).__name__
    return NotDefinite(f"{kind}: the minor of order {order} is not positive", order=order)
