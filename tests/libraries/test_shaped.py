"""What a message's `shapes` say is what its `infer` gives, or refuses in their words."""

from typing import Any, ClassVar

import pytest

from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.operation import Operation, Spec
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.authoring.options import Factor
from accel_lab.libraries.authoring.shaped import Shaped, complex_of, real_of, same
from accel_lab.libraries.authoring.signature import parse


class Solve(Shaped[AccelRef], frozen=True):
    shapes: ClassVar = "(n,n),(n,r)->(n,r)"
    in_place: ClassVar = ("b",)
    a: AccelRef
    b: AccelRef
    scale: Factor = 1.0
    out: AccelRef | None = None


class Inner(Shaped[AccelRef], frozen=True):
    shapes: ClassVar = "(...,m,k),(...,k,n)->(...,m,n)"
    broadcasts: ClassVar = True
    a: AccelRef
    b: AccelRef


class Together(Shaped[AccelRef], frozen=True):
    shapes: ClassVar = "(...),(...)->(...)"
    broadcasts: ClassVar = True
    x: AccelRef
    y: AccelRef


class Batches(Shaped[AccelRef], frozen=True):
    shapes: ClassVar = "(...,m,k),(...,k)->(...,m)"
    a: AccelRef
    x: AccelRef


class Svd(Shaped[Any], frozen=True):
    shapes: ClassVar = "(m,n) -> (m,k), (k), (k,n); k = min(m, n)"
    results: ClassVar = (same, real_of, "int32")
    a: AccelRef


class Cross(Shaped[AccelRef], frozen=True):
    shapes: ClassVar = "(...,3),(...,3)->(...,3)"
    x: AccelRef
    y: AccelRef


class Along(Shaped[AccelRef], frozen=True):
    shapes: ClassVar = "(...)->(...)"
    x: AccelRef
    axis: int = -1

    def check(self) -> None:
        if self.axis >= self.x.ndim:
            raise InvalidArgument("there is no such axis")


class Turn(Shaped[AccelRef], frozen=True):
    shapes: ClassVar = "turn_a(...?,m,k),turn_b(...?,k,n),(...?,m,n)?->(...,m,n)"
    scaled_by: ClassVar = {"c": "beta"}
    in_place: ClassVar = ("c",)
    a: AccelRef
    b: AccelRef
    c: AccelRef | None = None
    beta: Factor | None = None
    turn_a: str = "n"
    turn_b: str = "n"
    out: AccelRef | None = None


class Solid(Shaped[AccelRef], frozen=True):
    shapes: ClassVar = "turn(n,n),(...,n),(...)?->(...)"
    instead: ClassVar = "send Along"
    a: AccelRef
    x: AccelRef
    y: AccelRef | None = None
    turn: str = "c"


class Own(Shaped[AccelRef], frozen=True):
    shapes: ClassVar = "(n)->()"
    x: AccelRef

    def infer(self) -> Spec:
        return Spec((7,), "bool")


class Fit(Shaped[AccelRef], frozen=True):
    shapes: ClassVar = "(n),(n)->?"
    x: AccelRef
    y: AccelRef
    degree: int

    def check(self) -> None:
        if self.degree < 0:
            raise InvalidArgument("the degree is below 0")

    def makes(self) -> Spec:
        return Spec((self.degree + 1,), complex_of(self.x.dtype))


def ref(*shape: int, dtype: str = "float32") -> AccelRef:
    made = AccelRef.__new__(AccelRef)
    made.id = id(made)
    made.learn(shape, dtype)
    return made


INFERRED: list[tuple[Operation[Any], object]] = [
    (Solve(ref(3, 3), ref(3, 2)), Spec((3, 2), "float32")),
    (Solve(ref(0, 0), ref(0, 2)), Spec((0, 2), "float32")),
    (Inner(ref(2, 1, 4, 5), ref(3, 5, 6)), Spec((2, 3, 4, 6), "float32")),
    (Inner(ref(4, 5), ref(5, 6)), Spec((4, 6), "float32")),
    (Together(ref(2, 1), ref(3)), Spec((2, 3), "float32")),
    (Together(ref(3), ref(3)), Spec((3,), "float32")),
    (Batches(ref(2, 4, 5), ref(2, 5)), Spec((2, 4), "float32")),
    (Cross(ref(2, 3), ref(2, 3)), Spec((2, 3), "float32")),
    (Along(ref(2, 3), 1), Spec((2, 3), "float32")),
    (Own(ref(2, 3)), Spec((7,), "bool")),
    (Fit(ref(5), ref(5), 2), Spec((3,), "complex64")),
    (Turn(ref(4, 5), ref(5, 6)), Spec((4, 6), "float32")),
    (Turn(ref(5, 4), ref(6, 5), turn_a="t", turn_b="c"), Spec((4, 6), "float32")),
    (Turn(ref(2, 4, 5), ref(5, 6)), Spec((2, 4, 6), "float32")),
    (Turn(ref(4, 5), ref(2, 5, 6), ref(4, 6), 2.0), Spec((2, 4, 6), "float32")),
    (Turn(ref(4, 5), ref(2, 5, 6), ref(2, 4, 6), 0), Spec((2, 4, 6), "float32")),
    (Turn(ref(4, 5), ref(5, 6), beta=0), Spec((4, 6), "float32")),
    (Solid(ref(3, 3), ref(2, 3)), Spec((2,), "float32")),
    (Solid(ref(3, 3), ref(2, 3), ref(2)), Spec((2,), "float32")),
    (
        Svd(ref(4, 2, dtype="complex64")),
        (Spec((4, 2), "complex64"), Spec((2,), "float32"), Spec((2, 2), "int32")),
    ),
]


@pytest.mark.parametrize(("message", "expected"), INFERRED, ids=lambda one: type(one).__name__)
def test_results_have_the_shapes_and_dtypes_that_the_text_says(
    message: Operation[Any], expected: object
) -> None:
    made: object = message.infer()
    assert made == expected
    specs = made if isinstance(made, tuple) and not isinstance(made, Spec) else (made,)
    assert all(type(spec) is Spec for spec in specs)


X = ref(3, 3)
REFUSED: list[tuple[Operation[Any], str]] = [
    (
        Solve(ref(3, 3), ref(4, 2)),
        r"^Solve: n is 3 in a float32\[3, 3\] and 4 in b float32\[4, 2\]; it takes \(n,n\),",
    ),
    (Solve(ref(3, 2), ref(3, 2)), r"^Solve: n is 3 and 2 in a float32\[3, 2\]; it takes"),
    (Solve(ref(3, 3), ref(3)), r"^Solve: b is float32\[3\], not \(n,r\); it takes"),
    (
        Solve(ref(3, 3), ref(3, 2, dtype="float64")),
        r"Solve takes operands of one dtype, but a is float32\[3, 3\] and b is float64\[3, 2\]",
    ),
    (Solve(ref(3, 3), ref(3, 2), 1j), "scale is 1j, and float32 has no complex values"),
    (
        Solve(ref(3, 3), ref(3, 2), out=ref(2, 3)),
        r"Solve results in float32\[3, 2\], but out is float32\[2, 3\]",
    ),
    (Solve(X, ref(3, 3), out=X), "a is float32.* and out is the same buffer"),
    (
        Inner(ref(2, 4, 5), ref(3, 5, 6)),
        r"a is float32\[2, 4, 5\] and b is float32\[3, 5, 6\], whose axes at \.\.\. do not broad",
    ),
    (
        Batches(ref(2, 4, 5), ref(1, 5)),
        r"a is float32\[2, 4, 5\] and x is float32\[1, 5\], whose axes at \.\.\. differ",
    ),
    (Together(ref(2), ref(3)), r"x is float32\[2\] and y is float32\[3\], .* do not broadcast"),
    (Batches(ref(4, 5), ref()), r"x is float32\[\], not \(\.\.\.,k\)"),
    (Cross(ref(2, 3), ref(2, 4)), r"y is float32\[2, 4\], with 4 in place of 3"),
    (Along(ref(2, 3), 2), "there is no such axis"),
    (
        Turn(ref(4, 5), ref(6, 5)),
        r"k is 5 in a float32\[4, 5\] with turn_a='n' and 6 in b float32\[6, 5\] with turn_b='n'",
    ),
    (Turn(ref(4, 5), ref(5, 6), turn_b="T"), "Turn: turn_b is 'T'; it may be 'n', 't' or 'c'"),
    (Turn(ref(3, 4, 5), ref(2, 5, 6)), r"whose axes at \.\.\. differ; it takes turn_a\(\.\.\.\?"),
    (Turn(ref(4, 5), ref(5, 6), ref(2, 4, 6), 1), r"c is float32\[2, 4, 6\], whose axes at"),
    (Turn(ref(4, 5), ref(5, 6), ref(4, 7), 1), r"n is 6 in b .* and 7 in c float32\[4, 7\]"),
    (Turn(ref(4, 5), ref(5, 6), ref(6), 1), r"c is float32\[6\], not \(\.\.\.,m,n\)"),
    (
        Turn(ref(4, 5), ref(5, 6), ref(4, 6, dtype="int8"), 1),
        r"a is float32\[4, 5\] and c is int8\[4, 6\]; convert",
    ),
    (Turn(ref(4, 5), ref(5, 6), ref(4, 6)), "but without beta it would not be read"),
    (Turn(ref(4, 5), ref(5, 6), beta=1), "beta is 1, but there is no c to scale"),
    (Turn(ref(4, 5), ref(5, 6), ref(4, 6), 1j), "beta is 1j, and float32 has no complex values"),
    (Solid(ref(3), ref(2, 3)), r"a is float32\[3\], not \(n,n\); send Along; it takes turn\("),
    (Solid(ref(3, 2), ref(2, 3)), r"n is 2 and 3 in a float32\[3, 2\] with turn='c'"),
    (Solid(ref(3, 3), ref(2, 3), ref(3)), r"y is float32\[3\], whose axes at \.\.\. differ"),
    (Turn(ref(2**30, 1), ref(1, 2**30)), "Turn would make float32"),
    (Inner(ref(2**30, 1), ref(1, 2**30)), "whose extents above 0 multiply to more than"),
]


@pytest.mark.parametrize(("message", "text"), REFUSED, ids=[text[:30] for _, text in REFUSED])
def test_what_does_not_fit_is_refused_with_what_is_taken(
    message: Operation[Any], text: str
) -> None:
    with pytest.raises(InvalidArgument, match=text):
        message.infer()


def test_an_operand_that_may_be_out_is_taken() -> None:
    b = ref(3, 3)
    assert Solve(X, b, out=b).infer() == Spec((3, 3), "float32")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("(n)", "is no signature"),
        ("n->n", "is no signature"),
        ("(n)->(m)", "no operand has m"),
        ("(n)->(...)", r"no operand has \.\.\."),
        ("(n,...)->(n)", "is no name of an axis"),
        ("(n)->(k); k=min(m,n)", "is made of what no operand has"),
        ("(n),(m)?->(n)", "no operand has m"),
        ("turn(n)->(n)", "turn turns two axes"),
        ("(n)->(n)?", "is no signature"),
    ],
)
def test_a_text_that_says_nothing_is_refused(text: str, why: str) -> None:
    with pytest.raises(TypeError, match=why):
        parse(text)


def test_a_message_is_refused_whose_text_is_of_other_operands() -> None:
    with pytest.raises(TypeError, match=r"Short has the operands x, .* \(n\),\(n\)->\(\)"):

        class Short(Shaped[AccelRef], frozen=True):
            shapes: ClassVar = "(n),(n)->()"
            x: AccelRef

    with pytest.raises(TypeError, match=r"Unsaid has the operands x, y, .* \(n\),\(n\)->\(\)"):

        class Unsaid(Shaped[AccelRef], frozen=True):
            shapes: ClassVar = "(n),(n)->()"
            x: AccelRef
            y: AccelRef | None = None

    with pytest.raises(TypeError, match=r"Many has 1 results"):

        class Many(Shaped[AccelRef], frozen=True):
            shapes: ClassVar = "(n)->(),()"
            x: AccelRef

    with pytest.raises(TypeError, match=r"shapes of Silent do not say .* method `makes`"):

        class Silent(Shaped[AccelRef], frozen=True):
            shapes: ClassVar = "(n)->?"
            x: AccelRef


def test_what_an_infer_of_its_own_would_leave_out_is_refused() -> None:
    with pytest.raises(TypeError, match=r"nobody calls its `check`: .* write `makes`"):

        class Unchecked(Own, frozen=True):
            def check(self) -> None:
                raise InvalidArgument("nobody hears of this")

            def infer(self) -> Spec:
                return Spec((), "bool")

    with pytest.raises(TypeError, match=r"nobody calls its `makes`: .* write `makes`"):

        class Unmade(Own, frozen=True):
            def makes(self) -> Spec:
                return Spec((), "bool")

            def infer(self) -> Spec:
                return Spec((), "bool")
