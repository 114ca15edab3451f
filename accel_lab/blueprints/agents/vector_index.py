"""Finds the nearest of many vectors on a device: by one product with all, or with some lists.

The vectors stay on the host, too, so that a lost context costs a new upload and no answer.
"""

import threading
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from accel_lab.blueprints.agents.embedding_cache import Vectors
from accel_lab.compute.device import Device
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.errors import InvalidArgument
from accel_lab.libraries import primitives
from accel_lab.pipeline.faults import is_fault
from accel_lab.pipeline.stage import RETRIES, require_count

ROUNDS = 10
"""So often are the centres of the lists moved."""
SAMPLE = 256
"""So many vectors for each list are looked at to find its centre."""
BLOCK = 16_384
"""So many vectors are compared with all centres at once."""


class Nearest(NamedTuple):
    """What was found, for each query the best first: (queries, k).

    Attributes:
        indices: int64, in the order in which vectors were added; -1 where there are fewer.
        scores: float32, the products; -inf where there are fewer.
    """

    indices: npt.NDArray[np.int64]
    scores: Vectors


class Lists(NamedTuple):
    """The vectors of an index as they lie on its device; one list of all has no centres."""

    size: int
    members: list[npt.NDArray[np.int64]]
    vectors: list[AccelRef]
    centres: AccelRef | None
    lengths: Vectors


class VectorIndex:
    """Vectors on a device, by whose inner product with a query they are ranked; any thread.

    After vectors were added the next search brings all of them to the device, and sorts them anew.

    Parameters:
        device: where the products are computed.
        lists: into how many lists the vectors are sorted, by their nearest centre (IVF). A search
            then looks only into some of them. None compares with all vectors, and is exact.
        probes: into how many lists a search looks; with all of them it is exact.
        cosine: whether vectors and queries are scaled to length 1 first.

    Raises:
        InvalidArgument: an option does not fit.
    """

    def __init__(
        self, device: Device, *, lists: int | None = None, probes: int = 8, cosine: bool = True
    ) -> None:
        if lists is not None:
            require_count(lists, "lists", 1)
        require_count(probes, "probes", 1)
        self.device, self.lists, self.probes, self.cosine = device, lists, probes, cosine
        self._vectors: Vectors | None = None
        self._built: Lists | None = None
        self._lock = threading.RLock()

    def __len__(self) -> int:
        return 0 if self._vectors is None else len(self._vectors)

    def add(self, vectors: npt.ArrayLike) -> None:
        """Add vectors (n, dimension); the first ones give the dimension.

        Raises:
            InvalidArgument: they have another dimension, or are not finite. None is added.
        """
        with self._lock:
            found = self._rows(vectors, "vectors")
            known = [] if self._vectors is None else [self._vectors]
            self._vectors = np.concatenate([*known, found])

    def search(self, queries: npt.ArrayLike, k: int, *, probes: int | None = None) -> Nearest:
        """Return the `k` nearest of each query (q, dimension); of equal ones the first comes first.

        It blocks. What a lost context takes is uploaded again, and the search is repeated.

        Raises:
            InvalidArgument: queries or an option do not fit.
            ContextLost: three contexts in turn were lost.
        """
        require_count(k, "k", 1)
        require_count(self.probes if probes is None else probes, "probes", 1)
        found = self._rows(queries, "queries")
        for attempt in range(RETRIES + 1):
            try:
                lists = self._lists()
                return self._search(lists, found, k, self.probes if probes is None else probes)
            except Exception as error:
                if attempt == RETRIES or not is_fault(error, has_another=False):
                    raise
        raise AssertionError("a loop ends with its last attempt")

    def _rows(self, vectors: npt.ArrayLike, what: str) -> Vectors:
        rows = np.array(vectors, np.float32)
        known = None if self._vectors is None else self._vectors.shape[1]
        fits = len(rows.shape[1:]) == 1 and rows.shape[1] > 0
        if not fits or known not in (None, rows.shape[1]):
            text = f"{what} are of shape (n, {known or 'dimension'}), and not {rows.shape}"
            raise InvalidArgument(text)
        if not np.isfinite(rows).all():
            raise InvalidArgument(f"{what} have NaN or infinity; they are finite numbers")
        if self.cosine:
            length = np.linalg.norm(rows, axis=1, keepdims=True)
            rows /= np.where(length > 0, length, 1)
        return rows

    # --- on the device ---

    def _lists(self) -> Lists | None:
        """Return the vectors on the device, and bring them there if they are not."""
        with self._lock:
            vectors, built = self._vectors, self._built
            if vectors is None or not len(vectors):
                return None
            if built is not None and built.size == len(vectors):
                here = [*built.vectors, *([] if built.centres is None else [built.centres])]
                if all(self.device.holds(one) for one in here):
                    return built
            self._built = None  # what it holds is freed before there is more
            if self.lists is None:
                members = [np.arange(len(vectors))]
                centres, lengths = None, np.zeros(1, np.float32)
            else:
                places = self._centres(vectors, min(self.lists, len(vectors)))
                nearest = self._nearest_centre(vectors, places)
                members = [np.flatnonzero(nearest == number) for number in range(len(places))]
                centres, lengths = self.device.put(_columns(places)), _half_squares(places)
            refs = [self.device.put(_columns(vectors[one])) for one in members]
            self._built = Lists(len(vectors), members, refs, centres, lengths)
            return self._built

    def _centres(self, vectors: Vectors, count: int) -> Vectors:
        """Return the centres of lists (k-means, after Lloyd), from a sample with a fixed seed."""
        rng = np.random.default_rng(0)
        sample = vectors
        if len(vectors) > SAMPLE * count:
            sample = vectors[rng.choice(len(vectors), SAMPLE * count, replace=False)]
        centres = sample[rng.choice(len(sample), count, replace=False)].copy()
        for _ in range(ROUNDS):
            nearest = self._nearest_centre(sample, centres)
            sums, sizes = np.zeros_like(centres), np.bincount(nearest, minlength=count)
            np.add.at(sums, nearest, sample)
            moved = sizes > 0  # an empty list keeps its centre
            centres[moved] = sums[moved] / sizes[moved, None]
        return centres

    def _nearest_centre(self, vectors: Vectors, centres: Vectors) -> npt.NDArray[np.int64]:
        """Return the number of each vector's nearest centre: the greatest x·c - |c|²/2."""
        columns, half = self.device.put(_columns(centres)), self.device.put(_half_squares(centres))
        blocks = (vectors[first : first + BLOCK] for first in range(0, len(vectors), BLOCK))
        found = [(self.device.put(one) @ columns - half).argmax(axis=1).get() for one in blocks]
        return np.concatenate(found)

    def _search(self, lists: Lists | None, queries: Vectors, k: int, probes: int) -> Nearest:
        indices = np.full((len(queries), k), -1, np.int64)
        scores = np.full((len(queries), k), -np.inf, np.float32)
        if lists is None or not len(queries):
            return Nearest(indices, scores)
        asked: list[tuple[int, int, Any]] = []
        for number, rows in enumerate(self._probed(lists, queries, probes)):
            members = lists.members[number]
            if len(rows) and len(members):
                products = self.device.put(queries[rows]) @ lists.vectors[number]
                best = min(k, len(members))
                asked += [
                    (row, number, primitives.top_k(products[place], k=best))
                    for place, row in enumerate(rows)
                ]
        found: dict[int, list[tuple[Any, Any]]] = {}
        for row, number, top in asked:  # all are sent before the first is waited for
            pair = lists.members[number][top.indices.get()], top.values.get()
            found.setdefault(row, []).append(pair)
        for row, pairs in found.items():
            ids, values = (np.concatenate(one) for one in zip(*pairs, strict=True))
            order = np.lexsort((ids, -values))[:k]
            indices[row, : len(order)], scores[row, : len(order)] = ids[order], values[order]
        return Nearest(indices, scores)

    def _probed(self, lists: Lists, queries: Vectors, probes: int) -> list[list[int]]:
        """Return for each list the queries that look into it."""
        count = len(lists.members)
        if lists.centres is None or probes >= count:
            return [list(range(len(queries)))] * count
        near = self.device.put(queries) @ lists.centres - self.device.put(lists.lengths)
        tops = [primitives.top_k(near[row], k=probes) for row in range(len(queries))]
        rows: list[list[int]] = [[] for _ in range(count)]
        for row, top in enumerate(tops):
            for number in top.indices.get():
                rows[number].append(row)
        return rows


def _columns(vectors: Vectors) -> Vectors:
    return np.ascontiguousarray(vectors.T)


def _half_squares(centres: Vectors) -> Vectors:
    return np.asarray((centres**2).sum(axis=1) / 2, np.float32)
