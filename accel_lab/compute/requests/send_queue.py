"""What one device is to be sent: numbers, messages queued for a context, freed buffers."""

import itertools
from collections import deque
from collections.abc import Iterable, Mapping

from accel_lab.compute.lineage.recorded_message import WITHHOLD, decode, encode
from accel_lab.compute.lineage.recorder import Recorder
from accel_lab.compute.lineage.senders import Senders
from accel_lab.compute.message.builtin import CellBegan, Free
from accel_lab.compute.wire.codec import encode_entry
from accel_lab.compute.wire.link import Link

FREES_PER_BATCH = 4096


class SendQueue:
    """Numbers messages and keeps those that wait; the device's lock is held for every call.

    Attributes:
        last: the number of the message that was sent or queued last.
        ids: the numbers of the next buffers; nothing can come between taking two.
        waiting: the encoded messages that wait for a context, by number and in order.
        freed: the buffers of which no context knows yet that they are freed. Finalizers append to
            it, in any thread at any moment.
        cells: says which cell has sent a message, where contexts are told that.
    """

    def __init__(self, recorder: Recorder | None) -> None:
        self.last = 0
        self.ids = itertools.count(1)
        self.waiting: dict[int, bytes] = {}
        self.freed: deque[int] = deque()
        self.cells: Senders | None = None
        self._told_cell: int | None = None
        self._recorder = recorder

    def number(self) -> int:
        """Take the next number."""
        self.last += 1
        return self.last

    def send_to(self, link: Link) -> None:
        """Send what has waited, in order."""
        waiting, self.waiting = self.waiting, {}
        self._told_cell = None
        for seq, data in waiting.items():
            if self.cells is not None:
                self.tell_cell(link, seq)
            link.send(data, idle=False)
        link.flush()

    def tell_cell(self, link: Link, seq: int) -> None:
        """Tell a context which cell has sent a message, ahead of it, where that is another one."""
        assert self.cells is not None
        cell = self.cells.cell_of(seq) or 0
        if cell != self._told_cell:
            self._told_cell = cell
            link.send(encode_entry(0, 0, None, CellBegan(cell)), idle=False)

    def free(self) -> bytes:
        """Encode what has been freed, and record it."""
        freed = self.freed
        ids: list[int] = []
        while freed and len(ids) < FREES_PER_BATCH:
            ids.append(freed.popleft())
        data = encode_entry(0, 0, None, Free(ids))
        if self._recorder is not None:
            self._recorder.append(data)
        return data

    def widen(self, sharing: Mapping[int, Iterable[int]]) -> None:
        """Have what waits refuse what shares the memory of a buffer that will not be there."""
        for seq, data in list(self.waiting.items()):
            _, result, timeout_s, (tag, *fields), spec, *_ = decode(data)
            if tag == WITHHOLD:
                [id_, *_], *rest = fields
                ids = [id_, *sharing.get(id_, ())]
                self.waiting[seq] = encode([seq, result, timeout_s, [tag, ids, *rest], spec])
