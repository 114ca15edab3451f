"""As many numbers as there were: running reductions, differences, functions of each element."""

from typing import Any, ClassVar

from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.operation import Spec
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.authoring.operand import kind
from accel_lab.libraries.authoring.options import Factor, Options
from accel_lab.libraries.primitives.message import Primitive, require_vector
from accel_lab.libraries.primitives.operators import (
    ASSOCIATIVE,
    DIFFERENCES,
    Operator,
    require_operator,
)
from accel_lab.libraries.primitives.reduction import require_init


class Scan(Primitive[AccelRef], frozen=True, tag=543):
    """Combine for each element of a vector those up to it, or before it if `exclusive`.

    `op` and `source` are those of `Reduce`. The first result begins with `init`; without one an
    exclusive scan begins with the identity of `op`, and needs `init` for a function of `source`.
    """

    shapes: ClassVar = "(n)->(n)"
    x: AccelRef
    op: str = "sum"
    _: Options
    source: str = ""
    exclusive: bool = False
    init: Factor | None = None

    def check(self) -> None:
        """Refuse an operator that is none, or one that nothing can begin with."""
        require_operator(self, "op", ASSOCIATIVE, self.x.dtype)
        _require_begin(self)

    @property
    def operator(self) -> Operator:
        """The operator."""
        return Operator(self.op, self.source)


class ScanByKey(Primitive[AccelRef], frozen=True, tag=544):
    """Scan each run of equal neighbours in `keys` by itself; an exclusive one begins with `init`.

    `keys` are of any dtype that primitives have, one for each element of `x`. Else as `Scan`; an
    inclusive one takes no `init`. A NaN equals no other.
    """

    keys: AccelRef
    x: AccelRef
    op: str = "sum"
    _: Options
    source: str = ""
    exclusive: bool = False
    init: Factor | None = None

    def infer(self) -> Spec:
        """Return the shape of `x`."""
        require_vector(self, "keys")
        x = require_vector(self, "x", like="keys")
        require_operator(self, "op", ASSOCIATIVE, x.dtype)
        require_init(self, x.dtype)
        if not self.exclusive and self.init is not None:
            raise InvalidArgument(f"{kind(self)}: init is of an exclusive scan; set exclusive=True")
        _require_begin(self)
        return Spec(x.shape, x.dtype)

    @property
    def operator(self) -> Operator:
        """The operator."""
        return Operator(self.op, self.source)


class AdjacentDifference(Primitive[AccelRef], frozen=True, tag=545):
    """Return op(x[i], x[i - 1]) for each element but the first, which stays as it is.

    `op` is "sub" or one of `Reduce`, or the name of a function `T op(T, T)` of `source`.
    """

    shapes: ClassVar = "(n)->(n)"
    x: AccelRef
    op: str = "sub"
    _: Options
    source: str = ""

    def check(self) -> None:
        """Refuse an operator that is none."""
        require_operator(self, "op", DIFFERENCES, self.x.dtype)

    @property
    def operator(self) -> Operator:
        """The operator."""
        return Operator(self.op, self.source)


class Transform(Primitive[AccelRef], frozen=True, tag=546):
    """Return a function of each element of `x`, or of each pair of `x` and `y`.

    `op` is the name of a function `T op(T)` or `T op(T, T)` of the CUDA C++ `source`.
    """

    x: AccelRef
    op: str
    y: AccelRef | None = None
    _: Options
    source: str = ""

    def infer(self) -> Spec:
        """Return the shape of `x`."""
        x = require_vector(self, "x")
        if self.y is not None:
            require_vector(self, "y", like="x", dtypes=(x.dtype,))
        require_operator(self, "op", (), x.dtype)
        return Spec(x.shape, x.dtype)

    @property
    def operator(self) -> Operator:
        """The operator."""
        return Operator(self.op, self.source)


def _require_begin(message: Any) -> None:
    if message.exclusive and message.source and message.init is None:
        raise InvalidArgument(
            f"{kind(message)}: an exclusive scan by a function of source needs init"
        )
