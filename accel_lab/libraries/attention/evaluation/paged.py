"""The messages of a cache of keys and values."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from accel_lab.libraries.attention.evaluation.dense import Dense
from accel_lab.libraries.attention.evaluation.kit import CacheKit
from accel_lab.libraries.attention.evaluation.page_table import PageTable, Places, rows_of
from accel_lab.libraries.attention.evaluation.softmax import forward
from accel_lab.libraries.attention.evaluation.terms import Terms
from accel_lab.libraries.attention.message import scale_of
from accel_lab.libraries.attention.pages import CacheAppend, CacheAttend, MakeCache, require_stored
from accel_lab.libraries.dnn.message import of_ints


@dataclass(frozen=True, eq=False)
class Pages:
    """A cache, as the device keeps it.

    Attributes:
        dtype: of keys and values.
        keys, values: (pages, heads, tokens of a page, features).
        table: whose they are.
        xp: NumPy, or CuPy.
    """

    dtype: str
    keys: Any
    values: Any
    table: PageTable
    xp: Any

    @property
    def nbytes(self) -> int:
        """How much memory all pages take."""
        return int(self.keys.nbytes + self.values.nbytes)

    def checkpoint(self) -> dict[str, Any]:
        """Return what makes it again."""
        of = np.frombuffer(self.dtype.encode(), np.uint8)
        table = self.xp.asarray(self.table.encoded())
        made = {"keys": self.keys, "values": self.values, "table": table}
        return {**made, "dtype": self.xp.asarray(of)}


class Paged(Dense):
    """Attention to what lies in pages."""

    kit: CacheKit

    def make_cache(self, m: MakeCache) -> Pages:
        """Return an empty one."""
        xp, shape = self.kit.xp, (m.pages, m.heads, m.page_size, m.width)
        keys, values = (xp.zeros(shape, self.kit.storage(m.dtype)) for _ in range(2))
        return Pages(m.dtype, keys, values, PageTable(m.pages, m.page_size), xp)

    def restore(self, kind: str, made_of: Any) -> Pages:  # noqa: ARG002 - there is one kind
        """Return one that is as it was."""
        fetched = self.kit.fetched
        table = PageTable.decoded(fetched(made_of["table"]))
        dtype = fetched(made_of["dtype"]).tobytes().decode()
        return Pages(dtype, made_of["keys"], made_of["values"], table, self.kit.xp)

    def places(self, m: CacheAppend, pages: Pages) -> Places:
        """Return where tokens go, behind those of their sequences.

        Raises:
            CacheFull: there is no room.
            InvalidArgument: the arrays are not of what the cache stores.
        """
        _, heads, _, width = pages.keys.shape
        for ref in (m.k, m.v):
            require_stored(m, ref, heads, width, pages.dtype)
        return pages.table.places(of_ints(m, "sequences"), m.k.shape[2])

    def cache_append(self, pages: Pages, places: Places, k: Any, v: Any) -> None:
        """Write tokens to their places, and then let them count."""
        xp = self.kit.xp
        self.copy_pages(pages, places)
        at, offsets = xp.asarray(places.pages), xp.asarray(places.offsets)
        for to, x in ((pages.keys, k), (pages.values, v)):
            if x.size:
                to.transpose(0, 2, 1, 3)[at, offsets] = x.transpose(0, 2, 1, 3)
        pages.table.append(places)

    def copy_pages(self, pages: Pages, places: Places) -> None:
        """Write the copies that sequences get of pages they share, of which there are few."""
        if places.copied:
            source, target = self.kit.xp.asarray(np.array(places.copied).T)
            for to in (pages.keys, pages.values):
                to[target] = to[source]

    def require_stored(self, m: CacheAttend, pages: Pages) -> None:
        """Refuse queries that the cache cannot answer.

        Raises:
            InvalidArgument: they are not of what it stores, or a sequence is not there.
        """
        _, heads, _, width = pages.keys.shape
        require_stored(m, m.q, heads, width, pages.dtype, several=True)
        for number in of_ints(m, "sequences"):
            pages.table.sequence(number)

    @np.errstate(all="ignore")
    def cache_attend(self, m: CacheAttend, pages: Pages, q: Any, sink: Any, out: Any) -> None:
        """Write what each query gets."""
        shared, page_size = pages.keys.shape[1:3]
        found = [pages.table.sequence(number) for number in of_ints(m, "sequences")]
        lengths = np.array([one.stored for one in found], np.int64)
        most = int(lengths.max(initial=0))
        at = self.kit.xp.asarray(rows_of(found, -(-most // page_size)))
        k, v = (self._gathered(x, at, most) for x in (pages.keys, pages.values))
        q, k, v = self.grouped([q, k, v], m.q.dtype)
        terms = self._terms(m, shared, most, lengths, sink)
        y, lse = forward(self.kit, terms, q, k, self.cleared(v, terms.key_lengths), self.size)
        self.store(y, out.y, m.q.dtype)
        if out.lse is not None:
            out.lse[...] = lse.reshape(out.lse.shape)

    def cache_statistics(self, pages: Pages, out: Any) -> None:
        """Write the counts."""
        out[...] = self.kit.xp.asarray(np.array(pages.table.statistics(), np.int64))

    def _gathered(self, x: Any, table: Any, most: int) -> Any:
        """Return what pages have, (sequences, heads, tokens, features)."""
        found = x[table].transpose(0, 2, 1, 3, 4)
        count, heads, pages, page_size, width = found.shape
        return found.reshape(count, heads, pages * page_size, width)[:, :, :most]

    def _terms(self, m: CacheAttend, shared: int, most: int, lengths: Any, sink: Any) -> Terms:
        """Return what scores depend on; lengths are of use where they differ."""
        rows = m.q.shape[2]
        of_keys: Any = None
        shift: Any = most - rows
        if (lengths != most).any():
            of_keys = self.of_groups(self.kit.xp.asarray(lengths), shared)
            shift = of_keys - rows
        return Terms(
            rows,
            most,
            scale_of(m, m.q.shape[3]),
            causal=True,
            shift=shift,
            window=m.window,
            slopes=self.slopes(m, shared),
            sink=self.sinks(sink, m.q.dtype, m.q.shape[0], shared),
            row_lengths=None,
            key_lengths=of_keys,
            dropout=None,
        )
