"""Some of the elements, in their order: selected, parted, and those that differ from the last."""

from typing import Any, ClassVar, NamedTuple

from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.operation import PartialSpec
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.authoring.dtype_sets import INTEGERS
from accel_lab.libraries.authoring.operand import kind
from accel_lab.libraries.authoring.options import Options
from accel_lab.libraries.primitives.message import Primitive, require_vector
from accel_lab.libraries.primitives.operators import Operator, require_operator


class Select(Primitive[AccelRef], frozen=True, tag=554):
    """Return the elements whose flag is not 0, or for which a function of `source` is true.

    `flags` are bool or integers, one for each element. Or `op` is the name of a function
    `bool op(T)` of the CUDA C++ `source`. Only the device knows how many there are.
    """

    x: AccelRef
    flags: AccelRef | None = None
    op: str = ""
    _: Options
    source: str = ""

    def infer(self) -> PartialSpec:
        """Return a vector of unknown length."""
        x = require_vector(self, "x")
        _require_choice(self)
        return PartialSpec((None,), x.dtype)

    @property
    def operators(self) -> tuple[Operator, ...]:
        """The predicates."""
        return (Operator(self.op, self.source),) if self.source else ()


class Parts(NamedTuple):
    """The parts of a vector, each in order.

    Attributes:
        first: what was chosen.
        second: of the rest, what `second` chose; None if there is none.
        rest: all others.
    """

    first: AccelRef
    second: AccelRef | None
    rest: AccelRef


class Partition(Primitive[Parts], frozen=True, tag=555):
    """Part a vector in two, as `Select` chooses, or in three.

    `second` is the name of another function `bool second(T)` of `source`, which chooses among what
    `op` did not. Only the device knows how long the parts are.
    """

    asked_by: ClassVar = {"second": "second"}
    x: AccelRef
    flags: AccelRef | None = None
    op: str = ""
    second: str = ""
    _: Options
    source: str = ""

    def infer(self) -> tuple[PartialSpec, PartialSpec | None, PartialSpec]:
        """Return vectors of unknown lengths."""
        x = require_vector(self, "x")
        _require_choice(self)
        part = PartialSpec((None,), x.dtype)
        if self.second == "":
            return part, None, part
        if not self.source:
            raise InvalidArgument(f"{kind(self)}: second is a function of source; there is none")
        require_operator(self, "second", (), x.dtype)
        return part, part, part

    @property
    def operators(self) -> tuple[Operator, ...]:
        """The predicates."""
        names = (self.op, self.second) if self.second else (self.op,)
        return tuple([Operator(name, self.source) for name in names]) if self.source else ()


class Unique(Primitive[AccelRef], frozen=True, tag=556):
    """Return the first element of each run of equal neighbours; sort before for each value once.

    `op` is "equal", for which a NaN equals no other, or the name of a function `bool op(T, T)` of
    `source`, an equivalence. Only the device knows how many there are.
    """

    shapes: ClassVar = "(n)->?"
    x: AccelRef
    op: str = "equal"
    _: Options
    source: str = ""

    def check(self) -> None:
        """Refuse an operator that is none."""
        require_operator(self, "op", ("equal",), self.x.dtype)

    def makes(self) -> PartialSpec:
        """Return a vector of unknown length."""
        return PartialSpec((None,), self.x.dtype)

    @property
    def operator(self) -> Operator:
        """What is equal."""
        return Operator(self.op, self.source)


class UniquePairs(NamedTuple):
    """The first key of each run, and the value that belongs to it."""

    keys: AccelRef
    values: AccelRef


class UniqueByKey(Primitive[UniquePairs], frozen=True, tag=557):
    """Return the first key of each run of equal neighbours in `keys`, and its value.

    `op` and `source` are those of `Unique`.
    """

    keys: AccelRef
    values: AccelRef
    op: str = "equal"
    _: Options
    source: str = ""

    def infer(self) -> tuple[PartialSpec, PartialSpec]:
        """Return vectors of one unknown length."""
        keys = require_vector(self, "keys")
        values = require_vector(self, "values", like="keys")
        require_operator(self, "op", ("equal",), keys.dtype)
        return PartialSpec((None,), keys.dtype), PartialSpec((None,), values.dtype)

    @property
    def operator(self) -> Operator:
        """What is equal."""
        return Operator(self.op, self.source)


def _require_choice(message: Any) -> None:
    """Refuse both ways to choose, and neither."""
    if (message.flags is None) == (message.source == ""):
        text = "choose by flags, or by op and source, a function of CUDA C++; give one of the two"
        raise InvalidArgument(f"{kind(message)}: {text}")
    if message.flags is None:
        require_operator(message, "op", (), message.x.dtype)
        return
    require_vector(message, "flags", like="x", dtypes=INTEGERS)
    if message.op != "":
        raise InvalidArgument(f"{kind(message)}: op is {message.op!r}, and flags choose already")
