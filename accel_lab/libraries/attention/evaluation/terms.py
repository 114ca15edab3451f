"""The scores of a part of all queries and keys, and which of them count."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from accel_lab.libraries.dnn.evaluation.kit import Kit


class Size(NamedTuple):
    """How much is computed at once.

    Attributes:
        rows: queries of a head.
        keys: of a head; of fewer queries there are more.
        scores: of all heads together, unless one group alone has more.
    """

    rows: int
    keys: int
    scores: int


class Dropout(NamedTuple):
    """Which weights are kept.

    Attributes:
        threshold: from which word on one is kept.
        factor: what it is multiplied with.
    """

    seed: int
    offset: int
    threshold: int
    factor: float


class Part(NamedTuple):
    """Some queries and keys of some groups."""

    groups: slice
    rows: slice
    keys: slice


class Terms(NamedTuple):
    """What scores depend on beside queries and keys; arrays have an extent for each group.

    Attributes:
        rows, keys: tokens of a head.
        scale: what scores are multiplied with.
        causal: whether a query sees no key behind the one beside it.
        shift: which key is beside query 0: an integer, or (groups, 1, 1, 1).
        window: how many keys a query sees; 0 for all.
        slopes: what a key behind another adds, (groups, heads, 1, 1), or None.
        sink: a score without a value, (groups, heads), or None.
        row_lengths, key_lengths: how many tokens count, (groups, 1, 1, 1), or None for all.
        dropout: None where all weights are kept.
    """

    rows: int
    keys: int
    scale: float
    causal: bool
    shift: Any
    window: int
    slopes: Any
    sink: Any
    row_lengths: Any
    key_lengths: Any
    dropout: Dropout | None


def tiles(terms: Terms, q: Any, size: Size) -> Iterator[tuple[slice, slice, list[slice]]]:
    """Yield groups and rows that are computed at once, and the keys that these see in parts."""
    groups, heads, _, _ = q.shape
    rows = max(1, min(terms.rows, size.rows))
    keys = max(1, min(terms.keys, size.rows * size.keys // rows))
    many = max(1, size.scores // (heads * rows * keys))
    for group in range(0, groups, many):
        for row in range(0, terms.rows, rows):
            some = slice(row, min(row + rows, terms.rows))
            every = (slice(j, min(j + keys, terms.keys)) for j in range(0, terms.keys, keys))
            seen = [one for one in every if _may_see(terms, some, one)]
            yield slice(group, min(group + many, groups)), some, seen


def _may_see(terms: Terms, rows: slice, keys: slice) -> bool:
    """Whether a query may see a key; which one does, only the device may know."""
    if not terms.causal or not isinstance(terms.shift, int):
        return True
    too_old = terms.window and keys.stop <= rows.start + terms.shift - terms.window + 1
    return keys.start < rows.stop + terms.shift and not too_old


def scores(kit: Kit, terms: Terms, q: Any, k: Any, part: Part) -> Any:
    """Return the scores of a part, (groups, heads, rows, keys); -inf of what is not seen.

    Parameters:
        q: (groups, heads, rows, features) of the part.
        k: (groups, keys, features) of the part.
    """
    xp = kit.xp
    s = kit.matmul(flat(q), k.swapaxes(-1, -2)).reshape(*q.shape[:3], k.shape[1])
    s *= s.dtype.type(terms.scale)
    i = xp.arange(part.rows.start, part.rows.stop)[:, None] + _of(terms.shift, part)
    j = xp.arange(part.keys.start, part.keys.stop)
    if terms.slopes is not None:
        s += terms.slopes[part.groups] * (j - i).astype(s.dtype)
    seen = _seen(xp, terms, part, i, j)
    return s if seen is None else xp.where(seen, s, s.dtype.type(-xp.inf))


def _seen(xp: Any, terms: Terms, part: Part, i: Any, j: Any) -> Any:
    """Return which keys a query sees; None if all see all.

    Parameters:
        i: the key that is beside each query.
        j: each key.
    """
    tests = []
    if terms.causal:
        tests.append(j <= i)
    if terms.window:
        tests.append(j > i - terms.window)
    if terms.row_lengths is not None:
        rows = xp.arange(part.rows.start, part.rows.stop)[:, None]
        tests.append(rows < terms.row_lengths[part.groups])
    if terms.key_lengths is not None:
        tests.append(j < terms.key_lengths[part.groups])
    seen = None
    for test in tests:
        seen = test if seen is None else seen & test
    return seen


def _of(value: Any, part: Part) -> Any:
    return value if isinstance(value, int) else value[part.groups]


def flat(x: Any) -> Any:
    """Return (groups, heads, rows, ...) as (groups, heads * rows, ...): they have one matrix."""
    return x.reshape(x.shape[0], x.shape[1] * x.shape[2], *x.shape[3:])
