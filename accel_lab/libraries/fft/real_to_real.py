"""Cosine and sine transforms, which FFTW calls real to real: types 1 to 4 and their inverses."""

from typing import Any, ClassVar, Literal, TypeAlias, get_args

from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.operation import Spec
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.authoring.function import function, named
from accel_lab.libraries.authoring.operand import describe
from accel_lab.libraries.authoring.options import Options
from accel_lab.libraries.authoring.shape import Integers
from accel_lab.libraries.authoring.shaped import same
from accel_lab.libraries.fft.transform import (
    Kind,
    Norm,
    Transform,
    one_integer,
    points,
    require_word,
)

__all__ = [
    "R2R",
    "dct",
    "dctn",
    "dst",
    "dstn",
    "idct",
    "idctn",
    "idst",
    "idstn",
    "r2r",
]

RealOp: TypeAlias = Literal["dct", "dst"]
TYPES = (1, 2, 3, 4)


class R2R(Transform, frozen=True, tag=183):
    """Take the cosine transform "dct" or the sine transform "dst", of the type `variant`, 1 to 4.

    The parts of complex numbers are transformed each by itself. With `orthogonalize`, which is the
    default of norm "ortho", the first and last terms are scaled so that the matrix is orthogonal.
    """

    kind: ClassVar[Kind] = "C2C"
    results: ClassVar = (same,)
    in_place: ClassVar = ("x",)
    _: Options
    op: RealOp = "dct"
    variant: int = 2
    inverse: bool = False
    orthogonalize: bool | None = None

    def infer(self) -> Spec:
        """Return the shape with the axes' new extents, in the operand's dtype.

        Raises:
            InvalidArgument: the operand or the options do not fit.
        """
        require_word(self, "op", self.op, get_args(RealOp))
        require_word(self, "variant", self.variant, TYPES)
        if self.orthogonalize is not None and not isinstance(self.orthogonalize, bool):
            text = f"{self.orthogonalize!r}; it may be True, False or None"
            raise InvalidArgument(f"R2R: orthogonalize is {text}")
        spec = super().infer()
        lengths = self.frame().lengths
        if self.op == "dct" and self.variant == 1 and 1 in lengths:
            text = f"along each axis, not {[*lengths]}; x is {describe(self.x)}"
            raise InvalidArgument(f"R2R: a dct of type 1 needs at least two points {text}")
        return spec


r2r = function(R2R)


def _along_one(
    name: str,
    x: AccelRef,
    type: int = 2,  # noqa: A002 - SciPy's word
    n: int | None = None,
    axis: int = -1,
    norm: Norm | None = None,
    *,
    orthogonalize: bool | None = None,
) -> AccelRef:
    s, axes = points(n), (one_integer("axis", axis),)
    return _along_several(f"{name}n", x, type, s, axes, norm, orthogonalize=orthogonalize)


def _along_several(
    name: str,
    x: AccelRef,
    type: int = 2,  # noqa: A002 - SciPy's word
    s: Integers | None = None,
    axes: Integers | None = None,
    norm: Norm | None = None,
    *,
    orthogonalize: bool | None = None,
) -> AccelRef:
    op: Any = name.removeprefix("i").removesuffix("n")
    inverse = name.startswith("i")
    options: Any = {"op": op, "variant": type, "inverse": inverse, "orthogonalize": orthogonalize}
    return r2r(x, s=s, axes=axes, norm=norm, **options)


_HELP = """{{text}} along {}, as scipy.fft.{{name}}; does not block.

Raises:
    InvalidArgument, UnsupportedDtype: as `r2r`.
"""
_one = named(_along_one, _HELP.format("one axis of `n` points"))
_several = named(_along_several, _HELP.format("several axes, all by default"))

dct = _one("dct", "Take the cosine transform")
idct = _one("idct", "Undo the cosine transform")
dst = _one("dst", "Take the sine transform")
idst = _one("idst", "Undo the sine transform")
dctn = _several("dctn", "Take the cosine transform")
idctn = _several("idctn", "Undo the cosine transform")
dstn = _several("dstn", "Take the sine transform")
idstn = _several("idstn", "Undo the sine transform")
