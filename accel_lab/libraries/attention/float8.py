"""Attention of float8, whose operands and result come with scales."""

from typing import ClassVar, NamedTuple

from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.operation import Spec
from accel_lab.libraries.attention.message import (
    Attention,
    Causal,
    heads_of,
    require_mask,
)
from accel_lab.libraries.authoring.function import function
from accel_lab.libraries.authoring.operand import named, result
from accel_lab.libraries.authoring.options import Factor, Options
from accel_lab.libraries.blas_lt.fused import FLOAT8
from accel_lab.libraries.dnn.message import refusal, require_shape


class AttendedFloat8(NamedTuple):
    """What attention of float8 makes.

    Attributes:
        y: times `scale_y`, and what is too large as the largest number there is.
        amax: the largest magnitude of `y` before `scale_y`: a number, float32.
        lse: on request the logarithm of each softmax's denominator, (batch, heads, queries).
    """

    y: AccelRef
    amax: AccelRef
    lse: AccelRef | None


class AttendFloat8(Attention[AttendedFloat8], frozen=True, tag=720):
    """Return the attention of float8 queries, keys and values, in their dtype.

    `scale_q`, `scale_k` and `scale_v` are numbers, float32, by which operands are multiplied;
    `scale_y` is that of the result, of which `amax` says what it may be. Else as `Attend`.
    """

    dtypes: ClassVar = FLOAT8
    asked_by: ClassVar = {"lse": "lse"}
    q: AccelRef
    k: AccelRef
    v: AccelRef
    scale_q: AccelRef
    scale_k: AccelRef
    scale_v: AccelRef
    scale_y: AccelRef | None = None
    _: Options
    scale: Factor | None = None
    causal: Causal = "none"
    window: int = 0
    alibi: bool = False
    lse: bool = False

    def infer(self) -> tuple[Spec, Spec, Spec | None]:
        """Return a value for each query, the largest, and on request the logarithm."""
        heads = heads_of(self)
        require_mask(self)
        for ref in (self.scale_q, self.scale_k, self.scale_v, self.scale_y):
            require_shape(self, ref, ())
            if ref is not None and ref.dtype != "float32":
                raise refusal(self, f"{named(self, ref)}, and is to be float32[]")
        shape = heads.batch, heads.heads, heads.queries
        y = result(self, (*shape, heads.value_width), self.q.dtype)
        return y, Spec((), "float32"), Spec(shape, "float32") if self.lse else None


attend_float8 = function(AttendFloat8)
