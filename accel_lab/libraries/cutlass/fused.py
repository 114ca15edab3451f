"""A product whose end is a function of the user's."""

from collections.abc import Sequence
from typing import ClassVar, NamedTuple

from accel_lab.compute.device import device_of
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.libraries.authoring.dtype_sets import REAL_FLOATS
from accel_lab.libraries.authoring.operand import Scalar, element, plain
from accel_lab.libraries.authoring.options import Options
from accel_lab.libraries.authoring.shaped import Shaped
from accel_lab.libraries.cutlass.message import SUMS, made_of, refusal, require_counted
from accel_lab.libraries.primitives.operators import require_operator

MOST_NUMBERS = 8
VISITED = ("c", "row", "column")
"""What a function may be given beside a sum, in its order."""


class Visit(NamedTuple):
    """A function that ends a product; equal ones are compiled once.

    Attributes:
        takes: those of `VISITED` that it is given.
        numbers: how many numbers it is given.
        writes: whether it writes a second result.
    """

    name: str
    source: str
    takes: tuple[str, ...]
    numbers: int
    writes: bool

    @property
    def call(self) -> str:
        """Its call in C++, of an element's variables."""
        numbers = (f"numbers[{at}]" for at in range(self.numbers))
        given = ("sum", *self.takes, *numbers, *(("aux",) if self.writes else ()))
        return f"::{self.name}({', '.join(given)})"


class Fused(NamedTuple):
    """A product with an end.

    Attributes:
        product: what the function returned.
        aux: what it wrote to its last parameter; None if that is not asked for.
    """

    product: AccelRef
    aux: AccelRef | None


class FusedGemm(Shaped[Fused], frozen=True, array_like=True, eq=False, tag=746):
    """Multiply, and finish each element by a function of CUDA C++ in the same pass.

    `op` is the name of a function of `source`. It is called with the sum, then with the element's
    own of `c` (m,n), `row` (n,) and `column` (m,), as far as these are given, then with the
    `numbers`, and returns the element. With `aux` its last parameter is a reference, whose value
    is a second result. All are float, or double of float64; what is returned is rounded once.
    """

    library: ClassVar[str] = "cutlass"
    dtypes: ClassVar = REAL_FLOATS
    shapes: ClassVar = "(m,k),(k,n),(m,n)?,(n)?,(m)?->(m,n),(m,n)"
    results: ClassVar = (made_of, made_of)
    asked_by: ClassVar = {"aux": "aux"}
    a: AccelRef
    b: AccelRef
    op: str
    c: AccelRef | None = None
    row: AccelRef | None = None
    column: AccelRef | None = None
    _: Options
    source: str = ""
    numbers: tuple[float, ...] = ()
    aux: bool = False

    def check(self) -> None:
        """Refuse what is no function, and what is no number."""
        require_operator(self, "op", (), self.a.dtype)
        require_counted(self, self.a, self.b)
        if type(self.aux) is not bool:
            raise refusal(self, f"aux is True or False, not {self.aux!r}")
        if type(self.numbers) is not tuple or {*map(type, self.numbers)} - {int, float}:
            raise refusal(self, f"numbers is a tuple of real numbers, not {self.numbers!r}")
        if len(self.numbers) > MOST_NUMBERS:
            text = f"numbers has {len(self.numbers)}; at most {MOST_NUMBERS}"
            raise refusal(self, f"{text}; what there is more of may be a row or a column")
        for one in self.numbers:
            element(self, "numbers", one, self.summed_in)

    @property
    def summed_in(self) -> str:
        """The dtype of sums, and of what the function takes."""
        return SUMS.get(self.a.dtype, self.a.dtype)

    @property
    def visit(self) -> Visit:
        """What is compiled."""
        takes = tuple(name for name in VISITED if getattr(self, name) is not None)
        return Visit(self.op, self.source, takes, len(self.numbers), self.aux)


def fused_gemm(
    a: AccelRef,
    b: AccelRef,
    op: str,
    c: AccelRef | None = None,
    row: AccelRef | None = None,
    column: AccelRef | None = None,
    *,
    source: str,
    numbers: Sequence[Scalar] = (),
    aux: bool = False,
) -> Fused:
    """Return `op` of each element of a @ b and what belongs to it, as `FusedGemm` says.

    It does not block.

    Raises:
        InvalidArgument: shapes do not fit, dtypes differ, or nothing in `source` is called `op`.
        UnsupportedDtype: the backend does not have it for this dtype; cast first.
    """
    given = tuple(map(plain, numbers))
    message = FusedGemm(a, b, op, c, row, column, source=source, numbers=given, aux=aux)
    return device_of(a).ask(message)
