"""Launches the kernels that read and write pages; no CUDA needed."""

from typing import Any

import numpy as np

from accel_lab.backends.cuda.attention.decoding import (
    APPEND_BLOCKS,
    NUMBERS,
    THREADS,
    AppendArgument,
    AttendArgument,
    AttendForm,
    append_source,
    attend_form,
    reach_of,
    write_places,
    write_sequences,
)
from accel_lab.backends.cuda.own_kernels.launches import Launch, Launches
from accel_lab.libraries.attention.evaluation.page_table import Places, Sequence
from accel_lab.libraries.attention.evaluation.paged import Pages
from accel_lab.libraries.attention.pages import CacheAttend
from accel_lab.libraries.dnn.message import computed_in


class PagedKernels:
    """Enqueues on the device's active stream; used by the dispatcher thread.

    A kernel is compiled at its first use, and kept on disk for every later process.
    """

    def __init__(self, launches: Launches) -> None:
        self._launches = launches
        self._attends: dict[AttendForm, tuple[Launch, Launch]] = {}
        self._appends: dict[int, Launch] = {}
        self._attended = AttendArgument(launches.address)
        self._appended = AppendArgument(launches.address)

    def attend(
        self, m: CacheAttend, pages: Pages, found: list[Sequence], q: Any, sink: Any, out: Any
    ) -> bool:
        """Enqueue what each query gets, and return whether there is a kernel for it."""
        form = attend_form(m, pages, self._launches.address)
        if form is None:
            return False
        if form not in self._attends:
            attend, merge = (self._launches.kernel(form.source(), name) for name in _ATTEND)
            self._attends[form] = attend, merge
        attend, merge = self._attends[form]
        given, reach = self._attended, reach_of(m, pages, found)
        far = parts = None
        if reach.numbers > NUMBERS:
            numbers = np.zeros(reach.numbers, np.int32)
            write_sequences(numbers, found, reach)
            far = self._launches.put(numbers)
        else:
            write_sequences(given.numbers, found, reach)
        queries = q.size // q.shape[3]
        if reach.splits > 1:
            room = queries, reach.splits, q.shape[3] + 2
            parts = self._launches.empty(room, computed_in(m.q.dtype))
        given.give(m, pages, reach, q, sink, out, parts, far)
        attend((queries, reach.splits), THREADS, given)
        if parts is not None:
            merge((queries, 1), THREADS, given)
        return True

    def append(self, pages: Pages, places: Places, k: Any, v: Any) -> None:
        """Enqueue the copy of tokens to their places."""
        if not k.size:
            return
        if k.itemsize not in self._appends:
            source = append_source(k.itemsize)
            self._appends[k.itemsize] = self._launches.kernel(source, "append")
        given, far, count = self._appended, None, 2 * places.pages.size
        if count > NUMBERS:
            numbers = np.empty(count, np.int32)
            write_places(numbers, places)
            far = self._launches.put(numbers)
        else:
            write_places(given.numbers, places)
        given.give(pages, places, k, v, far)
        blocks = min(-(-k.size // THREADS), APPEND_BLOCKS)
        self._appends[k.itemsize]((blocks, 2), THREADS, given)


_ATTEND = "attend", "merge"
