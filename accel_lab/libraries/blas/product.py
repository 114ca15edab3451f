"""What the products of BLAS levels 2 and 3 have in common: operands, shapes, factors."""

from typing import Any, ClassVar, Literal, TypeAlias

from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.operation import Operation, Spec
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.authoring.dtype_sets import ALL
from accel_lab.libraries.authoring.operand import (
    Number,
    coefficient,
    describe,
    element,
    kind,
    one_dtype,
    require_out,
    result,
)
from accel_lab.libraries.authoring.options import Factor, Options
from accel_lab.libraries.authoring.shaped import Shaped

Trans: TypeAlias = Literal["n", "t", "c"]
UpdateName: TypeAlias = Literal["axpy", "scal"]

MATRIX = 2  # axes


class BlasMessage(Shaped[AccelRef], frozen=True, array_like=True, eq=False):
    """A message of `blas`: it answers with a buffer, and every dtype has it on some backend."""

    library: ClassVar[str] = "blas"
    dtypes: ClassVar = ALL


class Product(BlasMessage, frozen=True):
    """The fields of `Gemm` and `GemmStridedBatched`."""

    a: AccelRef
    b: AccelRef
    c: AccelRef | None = None
    _: Options
    alpha: Factor = 1.0
    beta: Factor | None = None
    trans_a: Trans = "n"
    trans_b: Trans = "n"
    out: AccelRef | None = None


def product_spec(m: Product, *, batched: bool) -> Spec:
    """Return the result's description.

    Raises:
        InvalidArgument: the shapes, dtypes, factors or `out` do not fit.
    """
    a, b = m.a, m.b
    batch = _batch(m) if batched else ()
    if not batched and not len(a.shape) == len(b.shape) == MATRIX:
        raise InvalidArgument(
            f"{kind(m)} multiplies matrices, but a is {describe(a)} and b is {describe(b)}; "
            "Gemv takes vectors, GemmStridedBatched stacks of matrices"
        )
    dtype = one_dtype(m, a, b, m.c)
    rows, inner = turned(m, "trans_a", m.trans_a, a)
    inner_b, columns = turned(m, "trans_b", m.trans_b, b)
    if inner != inner_b:
        raise InvalidArgument(
            f"{kind(m)}: op(a) is ({rows}, {inner}) and op(b) is ({inner_b}, {columns}), whose "
            f"inner extents differ; a is {describe(a)} with trans_a={m.trans_a!r}, b is "
            f"{describe(b)} with trans_b={m.trans_b!r}"
        )
    coefficient(m, "alpha", m.alpha, dtype)
    spec = result(m, (*batch, rows, columns), dtype)
    require_update(m, "c", m.c, m.beta, spec, (rows, columns))
    require_out(m, m.out, spec, a, b)
    return spec


def turned(
    message: Operation[AccelRef], option: str, trans: Trans, ref: AccelRef
) -> tuple[int, int]:
    """Return the last two extents of op(ref).

    Raises:
        InvalidArgument: `trans` is no such word.
    """
    rows, columns = ref.shape[-2:]
    if trans == "n":
        return rows, columns
    if trans in {"t", "c"}:
        return columns, rows
    raise InvalidArgument(f"{kind(message)}: {option} is {trans!r}; it may be 'n', 't' or 'c'")


def require_update(
    m: Operation[AccelRef],
    name: str,
    ref: AccelRef | None,
    beta: Any,
    spec: Spec,
    *shapes: tuple[int, ...],
) -> None:
    """Refuse what cannot be added as `beta` times an operand.

    Its shape is that of the result, or one of `shapes`.

    Raises:
        InvalidArgument: a factor is none of the dtype's values, `beta` or its operand is given
            without the other, or the operand has another shape.
    """
    scale = 0 if beta is None else coefficient(m, "beta", beta, spec.dtype)
    if ref is None:
        if scale:
            raise InvalidArgument(f"{kind(m)}: beta is {beta}, but there is no {name} to scale")
        return
    if beta is None:
        raise InvalidArgument(
            f"{kind(m)}: {name} is {describe(ref)}, but without beta it would not be read"
        )
    if ref.shape not in (spec.shape, *shapes):
        raise InvalidArgument(
            f"{kind(m)} results in {ref.dtype}{list(spec.shape)}, but {name} is {describe(ref)}"
        )


def factors(
    m: Operation[AccelRef],
    alpha: Any,
    beta: Any,
    ref: AccelRef | None,
    dtype: str,
) -> tuple[Number, Number, AccelRef | None]:
    """Return alpha, beta and the operand that beta scales, None where it is not to be read."""
    first = element(m, "alpha", alpha, dtype)
    second = 0 if ref is None else element(m, "beta", beta, dtype)
    return (first, second, ref) if second else (first, 0, None)


def _batch(m: Product) -> tuple[int, ...]:
    """Return the batch axes of the result."""
    a, b = m.a.shape, m.b.shape
    if min(len(a), len(b)) < MATRIX or (a[:-2] and b[:-2] and a[:-2] != b[:-2]):
        raise InvalidArgument(
            f"{kind(m)} multiplies (..., m, k) by (..., k, n) with equal batch axes or none, but "
            f"a is {describe(m.a)} and b is {describe(m.b)}"
        )
    return a[:-2] or b[:-2]
