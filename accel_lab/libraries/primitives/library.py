"""Parallel primitives: CUB through `cuda.compute` on `cuda`, NumPy on `host`.

Operands are vectors of integers or floats. An operator is a word, as "sum", or a function of yours
in CUDA C++, which both backends compile: into CUB's kernels on `cuda`, by the C++ compiler on
`host`. What is compiled is kept on disk. bfloat16, bool and complex numbers are left out; cast
first.
"""

# ruff: noqa: PLC0414 - names of this module, wherever they are written

from collections.abc import Callable
from typing import Any, ClassVar

from accel_lab.compute.execution.launch import Launch, handles
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.libraries.authoring.default_actor import DefaultActor
from accel_lab.libraries.authoring.function import function
from accel_lab.libraries.authoring.operand import element
from accel_lab.libraries.primitives.counting import HistogramEven as HistogramEven
from accel_lab.libraries.primitives.counting import HistogramRange as HistogramRange
from accel_lab.libraries.primitives.counting import RunLengthEncode as RunLengthEncode
from accel_lab.libraries.primitives.counting import Runs as Runs
from accel_lab.libraries.primitives.ordering import Merge as Merge
from accel_lab.libraries.primitives.ordering import Sort as Sort
from accel_lab.libraries.primitives.ordering import SortedPairs as SortedPairs
from accel_lab.libraries.primitives.ordering import SortPairs as SortPairs
from accel_lab.libraries.primitives.ordering import Top as Top
from accel_lab.libraries.primitives.ordering import TopK as TopK
from accel_lab.libraries.primitives.reduction import ArgReduce as ArgReduce
from accel_lab.libraries.primitives.reduction import Extreme as Extreme
from accel_lab.libraries.primitives.reduction import Reduce as Reduce
from accel_lab.libraries.primitives.reduction import SegmentedReduce as SegmentedReduce
from accel_lab.libraries.primitives.scanning import AdjacentDifference as AdjacentDifference
from accel_lab.libraries.primitives.scanning import Scan as Scan
from accel_lab.libraries.primitives.scanning import ScanByKey as ScanByKey
from accel_lab.libraries.primitives.scanning import Transform as Transform
from accel_lab.libraries.primitives.selection import Partition as Partition
from accel_lab.libraries.primitives.selection import Parts as Parts
from accel_lab.libraries.primitives.selection import Select as Select
from accel_lab.libraries.primitives.selection import Unique as Unique
from accel_lab.libraries.primitives.selection import UniqueByKey as UniqueByKey
from accel_lab.libraries.primitives.selection import UniquePairs as UniquePairs

reduce, arg_reduce = function(Reduce), function(ArgReduce)
segmented_reduce = function(SegmentedReduce)
scan, scan_by_key = function(Scan), function(ScanByKey)
adjacent_difference, transform = function(AdjacentDifference), function(Transform)
sort, sort_pairs = function(Sort), function(SortPairs)
merge, top_k = function(Merge), function(TopK)
histogram_even, histogram_range = function(HistogramEven), function(HistogramRange)
run_length_encode = function(RunLengthEncode)
select, partition = function(Select), function(Partition)
unique, unique_by_key = function(Unique), function(UniqueByKey)


def argmin(x: AccelRef) -> Extreme:
    """Return where the first least element is, and what it is, as `ArgReduce` says.

    Raises:
        InvalidArgument: `x` is no vector, or has no element.
        UnsupportedDtype: the backend does not have it for this dtype; cast first.
    """
    return arg_reduce(x, "argmin")


def argmax(x: AccelRef) -> Extreme:
    """Return where the first greatest element is, and what it is, as `ArgReduce` says.

    Raises:
        InvalidArgument: `x` is no vector, or has no element.
        UnsupportedDtype: the backend does not have it for this dtype; cast first.
    """
    return arg_reduce(x, "argmax")


class PrimitivesActor(DefaultActor):
    """Has what is not compiled yet compiled beside the dispatcher, and waits there for extents."""

    library: ClassVar = "primitives"

    @handles(Reduce)
    def reduce(self, m: Reduce, launch: Launch) -> None:
        """Combine all elements."""
        self._at_once(m, launch, self.lib.reduce, (m.x,), _init(m, m.x))

    @handles(ArgReduce)
    def arg_reduce(self, m: ArgReduce, launch: Launch) -> None:
        """Find an extreme element."""
        self._at_once(m, launch, self.lib.arg_reduce, (m.x,))

    @handles(SegmentedReduce)
    def segmented_reduce(self, m: SegmentedReduce, launch: Launch) -> None:
        """Combine the elements of each segment."""
        self._at_once(m, launch, self.lib.segmented_reduce, (m.x, m.offsets), _init(m, m.x))

    @handles(Scan)
    def scan(self, m: Scan, launch: Launch) -> None:
        """Combine those up to each element."""
        self._at_once(m, launch, self.lib.scan, (m.x,), _init(m, m.x))

    @handles(ScanByKey)
    def scan_by_key(self, m: ScanByKey, launch: Launch) -> None:
        """Combine those up to each element in its run."""
        self._at_once(m, launch, self.lib.scan_by_key, (m.keys, m.x), _init(m, m.x))

    @handles(AdjacentDifference)
    def adjacent_difference(self, m: AdjacentDifference, launch: Launch) -> None:
        """Combine neighbours."""
        self._at_once(m, launch, self.lib.adjacent_difference, (m.x,))

    @handles(Transform)
    def transform(self, m: Transform, launch: Launch) -> None:
        """Call a function for each element."""
        self._at_once(m, launch, self.lib.transform, (m.x, m.y))

    @handles(Sort)
    def sort(self, m: Sort, launch: Launch) -> None:
        """Sort a vector."""
        self._at_once(m, launch, self.lib.sort, (m.x, m.offsets))

    @handles(SortPairs)
    def sort_pairs(self, m: SortPairs, launch: Launch) -> None:
        """Sort keys and values."""
        self._at_once(m, launch, self.lib.sort_pairs, (m.keys, m.values, m.offsets))

    @handles(TopK)
    def top_k(self, m: TopK, launch: Launch) -> None:
        """Find the largest elements."""
        self._at_once(m, launch, self.lib.top_k, (m.x,))

    @handles(Merge)
    def merge(self, m: Merge, launch: Launch) -> None:
        """Merge two vectors."""
        self._at_once(m, launch, self.lib.merge, (m.a, m.b))

    @handles(HistogramEven)
    def histogram_even(self, m: HistogramEven, launch: Launch) -> None:
        """Count elements in bins."""
        self._at_once(m, launch, self.lib.histogram_even, (m.x,))

    @handles(HistogramRange)
    def histogram_range(self, m: HistogramRange, launch: Launch) -> None:
        """Count elements between edges."""
        self._at_once(m, launch, self.lib.histogram_range, (m.x, m.edges))

    # Of these the device says how much there is, which is waited for.

    @handles(RunLengthEncode)
    def run_length_encode(self, m: RunLengthEncode, launch: Launch) -> None:
        """Have runs found."""
        self._beside(m, launch, self.lib.run_length_encode, m.x)

    @handles(Select)
    def select(self, m: Select, launch: Launch) -> None:
        """Have elements chosen."""
        self._beside(m, launch, self.lib.select, m.x, m.flags)

    @handles(Partition)
    def partition(self, m: Partition, launch: Launch) -> None:
        """Have a vector parted."""
        self._beside(m, launch, self.lib.partition, m.x, m.flags)

    @handles(Unique)
    def unique(self, m: Unique, launch: Launch) -> None:
        """Have runs found."""
        self._beside(m, launch, self.lib.unique, m.x)

    @handles(UniqueByKey)
    def unique_by_key(self, m: UniqueByKey, launch: Launch) -> None:
        """Have runs found."""
        self._beside(m, launch, self.lib.unique_by_key, m.keys, m.values)

    def _at_once(
        self,
        m: Any,
        launch: Launch,
        call: Callable[..., Any],
        refs: tuple[AccelRef | None, ...],
        *numbers: Any,
    ) -> None:
        """Enqueue what makes extents that are known, once it is compiled."""

        def finish(_: Any = None) -> None:
            several = isinstance(specs := m.infer(), tuple) and not hasattr(specs, "dtype")
            arrays = [None if ref is None else launch.read(ref) for ref in refs]
            out = launch.empties() if several else launch.empty()
            status = call(m, *arrays, out, *numbers)
            if status is not None:
                launch.check(status, m.judge)

        build = self.lib.missing(m)
        if build is None:
            finish()
        else:
            launch.defer(build, finish)

    def _beside(
        self, m: Any, launch: Launch, call: Callable[..., Any], *refs: AccelRef | None
    ) -> None:
        """Have done on another thread what makes extents that only the device knows."""
        arrays = [None if ref is None else launch.read(ref) for ref in refs]

        def work(_: Any) -> Any:
            if (build := self.lib.missing(m)) is not None:
                build()
            return call(m, *arrays)

        several = isinstance(m, RunLengthEncode | Partition | UniqueByKey)
        launch.blocking(work, lambda made: launch.take_all(*made) if several else launch.take(made))


def _init(m: Any, x: AccelRef) -> Any:
    return None if m.init is None else element(m, "init", m.init, x.dtype)
