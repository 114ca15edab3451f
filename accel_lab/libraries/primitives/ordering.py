"""Vectors in order: sorted alone, with values, by segments; merged; and the largest of them."""

from typing import Any, ClassVar, NamedTuple

from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.operation import Spec
from accel_lab.errors import AccelError, InvalidArgument
from accel_lab.libraries.authoring.operand import kind, result
from accel_lab.libraries.authoring.options import Options
from accel_lab.libraries.primitives.message import (
    Primitive,
    judge_offsets,
    require_count,
    require_offsets,
    require_vector,
)
from accel_lab.libraries.primitives.operators import Operator, require_operator


class Sort(Primitive[AccelRef], frozen=True, tag=547):
    """Sort a vector, or each of its segments by itself.

    NaN is greater than every number: the last, or the first if `descending`. With `source`, `op`
    is the name of a function `bool op(T, T)` that says whether the first belongs before the second,
    a strict weak order; equal elements stay in order. `offsets` are those of `SegmentedReduce`, and
    take no `source`.
    """

    judged_with: ClassVar = "offsets"
    x: AccelRef
    op: str = "less"
    _: Options
    descending: bool = False
    offsets: AccelRef | None = None
    source: str = ""

    def infer(self) -> Spec:
        """Return the shape of `x`."""
        x = require_vector(self, "x")
        _require_order(self, x.dtype)
        return Spec(x.shape, x.dtype)

    def judge(self, wrong: Any) -> AccelError | None:
        """Refuse offsets that are none of `x`."""
        return judge_offsets(self, wrong, self.x.shape[0])

    @property
    def operator(self) -> Operator:
        """The order."""
        return Operator(self.op, self.source)


class SortedPairs(NamedTuple):
    """Keys in order, and the values that belong to them."""

    keys: AccelRef
    values: AccelRef


class SortPairs(Primitive[SortedPairs], frozen=True, tag=548):
    """Sort `keys` as `Sort` does, and `values` with them; values of equal keys stay in order."""

    judged_with: ClassVar = "offsets"
    keys: AccelRef
    values: AccelRef
    op: str = "less"
    _: Options
    descending: bool = False
    offsets: AccelRef | None = None
    source: str = ""

    def infer(self) -> tuple[Spec, Spec]:
        """Return the shapes of both."""
        keys = require_vector(self, "keys")
        values = require_vector(self, "values", like="keys")
        _require_order(self, keys.dtype)
        return Spec(keys.shape, keys.dtype), Spec(values.shape, values.dtype)

    def judge(self, wrong: Any) -> AccelError | None:
        """Refuse offsets that are none of `keys`."""
        return judge_offsets(self, wrong, self.keys.shape[0])

    @property
    def operator(self) -> Operator:
        """The order."""
        return Operator(self.op, self.source)


class Merge(Primitive[AccelRef], frozen=True, tag=549):
    """Merge two vectors in ascending order into one; the result is in order whatever they are."""

    shapes: ClassVar = "(n),(m)->?"
    a: AccelRef
    b: AccelRef

    def makes(self) -> Spec:
        """Return a vector of both lengths."""
        return result(self, (self.a.size + self.b.size,), self.a.dtype)


class Top(NamedTuple):
    """The largest elements, and where they are, int64."""

    values: AccelRef
    indices: AccelRef


class TopK(Primitive[Top], frozen=True, tag=550):
    """Return the `k` largest elements in descending order, or the smallest in ascending order.

    Of equal ones the first comes first. NaN is greater than every number.
    """

    shapes: ClassVar = "(n)->?"
    x: AccelRef
    k: int
    _: Options
    largest: bool = True

    def makes(self) -> tuple[Spec, Spec]:
        """Return `k` of both."""
        require_count(self, "k", 0, self.x.size)
        return Spec((self.k,), self.x.dtype), Spec((self.k,), "int64")


def _require_order(message: Any, dtype: str) -> None:
    require_operator(message, "op", ("less",), dtype)
    if message.offsets is not None:
        require_offsets(message, message.offsets)
    if message.source and (message.descending or message.offsets is not None):
        text = "source says the order, and takes neither descending nor offsets"
        raise InvalidArgument(f"{kind(message)}: {text}")
