"""What the kernels that read and write pages are made of, and what they are given; no CUDA needed.

Few queries of each sequence are attended by one launch, or by two where many keys are seen. Where
a query does not see a token, that is not read.
"""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from struct import Struct
from typing import Any, NamedTuple, TypeAlias

from accel_lab.backends.cuda.own_kernels.element import FLOATS, element_source
from accel_lab.backends.cuda.own_kernels.packed import Packed
from accel_lab.libraries.attention.evaluation.page_table import Places, Sequence
from accel_lab.libraries.attention.evaluation.paged import Pages
from accel_lab.libraries.attention.message import MOST_FEATURES, scale_of
from accel_lab.libraries.attention.pages import CacheAttend

THREADS = 256
SPAN = 512  # keys of a query that one block sees
MOST_QUERIES = 8  # of a sequence; of more, products are faster
NUMBERS = 960  # of 32 bits: an argument has 4096 bytes on every card
APPEND_BLOCKS = 1 << 16  # each thread goes on to the elements that are left

_MOST = 2**31 - 1  # tokens; a window of as many sees all
_WARP = 32
_VECTOR = 4
_ATTEND = Struct("=8Q5qd10i")
_APPEND = Struct("=5Q9q6i")
_BITS = {2: "unsigned short", 4: "unsigned", 8: "unsigned long long"}

assert THREADS >= MOST_FEATURES

Address: TypeAlias = Callable[[Any], int]
"""Returns where an array begins on its device; 0 for None."""


class AttendForm(NamedTuple):
    """What a kernel is compiled for.

    Attributes:
        lane_features: of the values, that each lane of a warp sums.
        vector: how many elements of a key are read at once.
    """

    dtype: str
    lane_features: int
    vector: int

    def source(self) -> str:
        """Return the C++ of `attend` and `merge`."""
        told = {
            "THREADS": THREADS,
            "SPAN": SPAN,
            "NUMBERS": NUMBERS,
            "LANE_FEATURES": self.lane_features,
            "VECTOR": self.vector,
        }
        return element_source(self.dtype) + _defined(told) + _text("attend.cu")


def attend_form(m: CacheAttend, pages: Pages, address: Address) -> AttendForm | None:
    """Return the kernel for a message; None where it is left to products."""
    _, _, queries, width = m.q.shape
    if m.q.dtype not in FLOATS or queries > MOST_QUERIES or not m.q.size:
        return None
    aligned = _VECTOR * pages.keys.itemsize
    whole = width % _VECTOR == 0 and address(pages.keys) % aligned == 0
    return AttendForm(m.q.dtype, -(-width // _WARP), _VECTOR if whole else 1)


class Reach(NamedTuple):
    """How far queries see.

    Attributes:
        columns: pages of the longest sequence.
        splits: how many blocks share the keys of a query.
        numbers: how many tell lengths and pages.
    """

    columns: int
    splits: int
    numbers: int


def reach_of(m: CacheAttend, pages: Pages, found: list[Sequence]) -> Reach:
    """Return how far the queries of a message see."""
    longest = max(one.stored for one in found)
    columns = -(-longest // pages.table.page_size)
    seen = min(longest, m.window or longest)
    return Reach(columns, max(1, -(-seen // SPAN)), len(found) * (1 + columns))


def write_sequences(to: Any, found: list[Sequence], reach: Reach) -> None:
    """Write lengths and pages of sequences into as many integers."""
    count = len(found)
    to[:count] = [one.stored for one in found]
    rows = to[count : reach.numbers].reshape(count, reach.columns)
    for row, one in zip(rows, found, strict=True):
        row[: len(one.pages)] = one.row


class AttendArgument(Packed):
    """The argument of `attend` and `merge`."""

    def __init__(self, address: Address) -> None:
        super().__init__(_ATTEND, NUMBERS)
        self._address = address

    def give(
        self,
        m: CacheAttend,
        pages: Pages,
        reach: Reach,
        q: Any,
        sink: Any,
        out: Any,
        parts: Any,
        far: Any,
    ) -> None:
        """Fill it, but for the numbers.

        Parameters:
            parts: room for what blocks find of a query; None if there is one block.
            far: the numbers on the device; None if they are here.
        """
        (batch, heads, rows, width), shared = m.q.shape, pages.keys.shape[1]
        arrays = (q, pages.keys, pages.values, sink, out.y, out.lse, parts, far)
        step_of_sink = 0 if sink is None else sink.strides[0] // sink.itemsize
        self.fill(
            *map(self._address, arrays),
            *_steps(q),
            step_of_sink,
            scale_of(m, width),
            heads,
            shared,
            rows,
            width,
            pages.table.page_size,
            reach.columns,
            min(m.window, _MOST),
            reach.splits,
            batch,
            m.alibi,
        )


def append_source(itemsize: int) -> str:
    """Return the C++ of `append` for elements of so many bytes."""
    told = {"NUMBERS": NUMBERS}
    return f"typedef {_BITS[itemsize]} Element;\n{_defined(told)}{_text('append.cu')}"


def write_places(to: Any, places: Places) -> None:
    """Write the pages and offsets of tokens into twice as many integers."""
    count = places.pages.size
    to[:count] = places.pages.reshape(-1)
    to[count : 2 * count] = places.offsets.reshape(-1)


class AppendArgument(Packed):
    """The argument of `append`."""

    def __init__(self, address: Address) -> None:
        super().__init__(_APPEND, NUMBERS)
        self._address = address

    def give(self, pages: Pages, places: Places, k: Any, v: Any, far: Any) -> None:
        """Fill it, but for the numbers; `far` has them on the device, or is None."""
        _, heads, tokens, width = k.shape
        arrays = (k, v, pages.keys, pages.values, far)
        self.fill(
            *map(self._address, arrays),
            *_steps(k),
            *_steps(v),
            k.size,
            heads,
            tokens,
            width,
            pages.table.page_size,
            places.pages.size,
            0,
        )


def _steps(x: Any) -> list[int]:
    return [step // x.itemsize for step in x.strides]


def _defined(told: dict[str, int]) -> str:
    return "".join(f"#define {name} {value}\n" for name, value in told.items())


@cache
def _text(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")
