"""A product with all that cuBLASLt does in the same pass: epilogues, scales, the largest value."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias, TypeVar

from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.operation import Operation, Spec
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.authoring.compute import Compute, require_compute
from accel_lab.libraries.authoring.operand import (
    Number,
    coefficient,
    describe,
    element,
    kind,
    require_scaled,
    result,
)
from accel_lab.libraries.authoring.options import DType, Factor, Options
from accel_lab.libraries.blas_lt.epilogue import Activation, Gradient, epilogue_of, mask_bytes

R = TypeVar("R")
Trans: TypeAlias = Literal["n", "t", "c"]
Made: TypeAlias = tuple[Spec, Spec | None, Spec | None, Spec | None]

FLOAT8 = frozenset({"float8_e4m3fn", "float8_e5m2"})
SCALED = FLOAT8 | {"int8"}
"""Operands that come with scales: their dtypes hold too few values without."""
RESULTS: dict[str, tuple[str, ...]] = {
    "float16": ("float16", "float32"),
    "bfloat16": ("bfloat16", "float32"),
    "float32": ("float32",),
    "float64": ("float64",),
    "int8": ("int32", "float32", "float16", "bfloat16"),
    **dict.fromkeys(
        sorted(FLOAT8), ("float32", "bfloat16", "float16", "float8_e4m3fn", "float8_e5m2")
    ),
}
"""The dtypes that a product of each may have; the first is what it has if nobody says."""
_WORDS = {
    "trans_a": ("n", "t", "c"),
    "trans_b": ("n", "t", "c"),
    "activation": ("none", "relu", "gelu"),
    "bias_gradient": ("", "a", "b", "d"),
}
MATRIX = 2  # axes


class FusedProduct(NamedTuple):
    """A product, and what was asked for beside.

    Attributes:
        aux: what the backward pass needs of the values before activation.
        bias_gradient: the sum of the gradients of a bias.
        amax: the largest magnitude of `d`, before `scale_d`; a number, float32.
    """

    d: AccelRef
    aux: AccelRef | None
    bias_gradient: AccelRef | None
    amax: AccelRef | None


class Fused(Operation[R], frozen=True, array_like=True, eq=False):
    """The fields of `FusedMatmul` and `Tune`."""

    library: ClassVar[str] = "blas_lt"
    dtypes: ClassVar = frozenset(RESULTS)
    a: AccelRef
    b: AccelRef
    c: AccelRef | None = None
    bias: AccelRef | None = None
    aux: AccelRef | None = None
    scale_a: AccelRef | None = None
    scale_b: AccelRef | None = None
    scale_d: AccelRef | None = None
    _: Options
    alpha: Factor = 1.0
    beta: Factor | None = None
    trans_a: Trans = "n"
    trans_b: Trans = "n"
    activation: Activation = "none"
    keep_aux: bool = False
    bias_gradient: Gradient = ""
    amax: bool = False
    dtype: DType | None = None
    compute: Compute = ""

    @property
    def epilogue(self) -> str:
        """What cuBLASLt calls it."""
        return epilogue_of(
            self.activation,
            bias=self.bias is not None,
            keeps_aux=self.keep_aux,
            backward=self.aux is not None,
            gradient=self.bias_gradient,
        )

    @property
    def extents(self) -> tuple[int, int, int]:
        """The rows and columns of the product, and how many products each of its elements sums.

        Raises:
            InvalidArgument: they are no two matrices that fit.
        """
        a, b = self.a, self.b
        if a.ndim != MATRIX or b.ndim != MATRIX:
            raise self._refused(f"a {describe(a)} and b {describe(b)} are to be matrices")
        rows, inner = a.shape if self.trans_a == "n" else a.shape[::-1]
        other, columns = b.shape if self.trans_b == "n" else b.shape[::-1]
        if inner != other:
            raise self._refused(
                f"k is {inner} in a {describe(a)} with trans_a={self.trans_a!r} and {other} in "
                f"b {describe(b)} with trans_b={self.trans_b!r}"
            )
        return rows, columns, inner

    @property
    def made_dtype(self) -> str:
        """The dtype of the product.

        Raises:
            InvalidArgument: the operands' dtypes do not go together, or have no such product.
        """
        a, b = self.a.dtype, self.b.dtype
        if a != b and not {a, b} <= FLOAT8:
            text = f"a is {describe(self.a)} and b is {describe(self.b)}; convert with array.cast"
            raise self._refused(f"operands have one dtype, or are both float8, but {text}")
        may_be = RESULTS.get(a, ())
        made = self.dtype or next(iter(may_be), a)
        if may_be and made not in may_be:
            raise self._refused(f"a product of {a} is {' or '.join(may_be)}, not {made}")
        return made

    def factors(self) -> tuple[Number, Number]:
        """Return alpha and beta, 0 where there is no `c`."""
        held = "int32" if self.made_dtype == "int32" else "float64"
        alpha = element(self, "alpha", self.alpha, held)
        return alpha, 0 if self.beta is None else element(self, "beta", self.beta, held)

    def require_fit(self) -> tuple[int, int, str]:
        """Return the rows, the columns and the dtype of the product.

        Raises:
            InvalidArgument: an operand or an option does not fit.
        """
        require_words(self, *_WORDS)
        require_compute(self)
        (rows, columns, _), made = self.extents, self.made_dtype
        beside = companion(made)
        held = "int32" if made == "int32" else "float64"
        coefficient(self, "alpha", self.alpha, held)
        require_scaled(self, "c", self.c, "beta", held)
        self._require_epilogue(made)
        self._require("c", self.c, (rows, columns), beside)
        self._require("bias", self.bias, (columns,), beside)
        aux_shape, aux_dtype = self._aux(rows, columns, made)
        self._require("aux", self.aux, aux_shape, aux_dtype)
        self._require_scales(rows, columns, made)
        return rows, columns, made

    def makes(self) -> Made:
        """Return the product, and what was asked for beside.

        Raises:
            InvalidArgument: an operand or an option does not fit.
        """
        rows, columns, made = self.require_fit()
        summed = Spec((rows if self.bias_gradient == "a" else columns,), companion(made))
        return (
            result(self, (rows, columns), made),
            self._aux(rows, columns, made) if self.keep_aux else None,
            summed if self.bias_gradient else None,
            Spec((), "float32") if self.amax else None,
        )

    def _aux(self, rows: int, columns: int, made: str) -> Spec:
        if self.activation == "gelu":
            return Spec((rows, columns), companion(made))
        return Spec((rows, mask_bytes(columns)), "uint8")

    def _require_epilogue(self, made: str) -> None:
        """Refuse what is none of cuBLASLt's sixteen."""
        reasons = {
            "keep_aux and aux need an activation, relu or gelu": self.activation == "none"
            and (self.keep_aux or self.aux is not None),
            "aux is for the backward pass, which keeps no aux and has no bias": self.aux is not None
            and (self.keep_aux or self.bias is not None),
            "bias_gradient 'd' is of the backward pass, which has an aux": self.aux is None
            and self.bias_gradient == "d",
            "bias_gradient 'a' or 'b' goes with no activation, no bias and no aux": (
                self.bias_gradient in ("a", "b")
                and (self.activation != "none" or self.bias is not None)
            ),
            "int32 has no gelu and no amax; ask for a product of a float dtype": made == "int32"
            and (self.activation == "gelu" or self.amax),
        }
        for reason, applies in reasons.items():
            if applies:
                raise self._refused(reason)

    def _require_scales(self, rows: int, columns: int, made: str) -> None:
        for name, extent in (("scale_a", rows), ("scale_b", columns)):
            scale = getattr(self, name)
            if scale is None:
                continue
            if self.a.dtype not in SCALED or made == "int32":
                text = f"{name} scales float8, or int8 on the way to floats"
                raise self._refused(f"{text}, not {self.a.dtype} to {made}; alpha scales others")
            if scale.ndim:
                self._require(name, scale, (extent,), "float32")
            else:
                self._require(name, scale, (), "float32")
        if self.scale_d is not None and made not in FLOAT8:
            raise self._refused(f"scale_d scales a float8 product, not one of {made}")
        self._require("scale_d", self.scale_d, (), "float32")

    def _require(self, name: str, ref: AccelRef | None, shape: tuple[int, ...], dtype: str) -> None:
        if ref is not None and (ref.shape != shape or ref.dtype != dtype):
            raise self._refused(f"{name} is {describe(ref)}, and is to be {dtype}{list(shape)}")

    def _refused(self, why: str) -> InvalidArgument:
        return InvalidArgument(f"{kind(self)}: {why}")


class FusedMatmul(Fused[FusedProduct], frozen=True, tag=421):
    """Multiply matrices as `Matmul`, and have any of cuBLASLt's epilogues, with scales for float8.

    With `keep_aux` it also answers with what the backward pass needs, which is given to that as
    `aux`: then the product is a gradient, times the activation's slope. `bias_gradient` "d" sums it
    over its rows; without activation "a" and "b" sum op(a) and op(b) over k. `scale_a` is a number,
    or one for each row of op(a), `scale_b` likewise for the columns of op(b), and `scale_d` a
    number, all float32. `dtype` is that of the product: int8 makes int32, float8 float32, others
    their own. What comes beside a float8 product is bfloat16. `compute` may be "tf32" of float32.
    """

    asked_by: ClassVar = {"aux": "keep_aux", "bias_gradient": "bias_gradient", "amax": "amax"}

    def infer(self) -> Made:
        """Return the product, and what was asked for beside."""
        return self.makes()


@dataclass(frozen=True)
class Tuned:
    """What was measured for a product.

    Attributes:
        algorithms: how many there were to choose from; 0 where there is nothing to choose.
        first_us: the time of the one that would have been taken, in microseconds.
        best_us: the time of the one that will be.
    """

    algorithms: int
    first_us: float
    best_us: float


class Tune(Fused[Tuned], frozen=True, tag=422):
    """Run the algorithms that there are for a product, and keep the fastest for this card.

    The fields are those of `FusedMatmul`, and what it would write goes nowhere. It does not hold up
    other messages. What is found serves later processes, too. `host` has nothing to choose.
    """

    def infer(self) -> None:
        """Refuse what does not fit; the answer is no buffer."""
        self.makes()


def companion(dtype: str) -> str:
    """Return the dtype of what comes beside a product of one: c, a bias, what is kept of GELU."""
    return "bfloat16" if dtype in FLOAT8 else dtype


def require_words(message: Any, *names: str) -> None:
    """Refuse an option that is none of its words.

    Raises:
        InvalidArgument: one is not.
    """
    for name in names:
        said, known = getattr(message, name), _WORDS[name]
        if type(said) is not str or said not in known:
            *first, last = map(repr, known)
            text = f"{name} is {said!r}; it may be {', '.join(first)} or {last}"
            raise InvalidArgument(f"{kind(message)}: {text}")
