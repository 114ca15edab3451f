"""The class that the context's `primitives` actor calls."""

from collections.abc import Callable, Mapping
from typing import Any

from accel_lab.backends.host.primitives.functions import Functions, Loop
from accel_lab.backends.host.primitives.ordering import Orders
from accel_lab.backends.host.primitives.reduction import Reductions
from accel_lab.backends.host.primitives.selection import Selections
from accel_lab.libraries.primitives.ordering import Sort, SortPairs
from accel_lab.libraries.primitives.reduction import Reduce, SegmentedReduce
from accel_lab.libraries.primitives.scanning import AdjacentDifference, Scan, ScanByKey, Transform
from accel_lab.libraries.primitives.selection import Partition, Select, Unique, UniqueByKey

_LOOPS: dict[type[Any], str] = {
    Reduce: "fold",
    SegmentedReduce: "fold",
    Scan: "scan",
    ScanByKey: "scan",
    AdjacentDifference: "binary",
    Sort: "order",
    SortPairs: "order",
    Unique: "binary",
    UniqueByKey: "binary",
    Select: "unary",
    Partition: "unary",
}
_OF_KEYS = SortPairs, UniqueByKey
_PREDICATES = Sort, SortPairs, Unique, UniqueByKey, Select, Partition


class HostPrimitives(Reductions, Orders, Selections):
    """Calls at once: on the host, what is enqueued is done."""

    def __init__(self) -> None:
        self._functions = Functions()

    def missing(self, m: Any) -> Callable[[], None] | None:
        """Return what compiles what a message needs, or None where that is there."""
        lacking = self._functions.lacking(_loops(m))
        return (lambda: self._functions.build(lacking)) if lacking else None

    def statistics(self) -> Mapping[str, int]:
        """Count loops, and how often the disk had one."""
        return self._functions.statistics()


def _loops(m: Any) -> list[Loop]:
    """Return the loops that a message needs: none without a function of the user's."""
    if not getattr(m, "source", ""):
        return []
    if isinstance(m, Transform):
        name = "unary" if m.y is None else "binary"
        return [Loop(name, m.operator, m.x.dtype)]
    dtype = (m.keys if isinstance(m, _OF_KEYS) else m.x).dtype
    operators = m.operators if isinstance(m, Select | Partition) else (m.operator,)
    result = "bool" if isinstance(m, _PREDICATES) else ""
    return [Loop(_LOOPS[type(m)], op, dtype, result) for op in operators]
