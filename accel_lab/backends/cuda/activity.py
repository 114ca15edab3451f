"""What the card did, by CUPTI's activity records, joined to messages by external correlation ids.

CUPTI is a profiler's: one process has one, and it slows every call of the driver. So it is opened
where a system is told `trace="cupti"`, and nowhere else. Its records come when its buffers are full
or are flushed, on a thread of CUPTI's or the one that flushes.

Runs in a context's process.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from accel_lab.compute.events.device_work import DeviceKind, DeviceWork

BUFFER_BYTES = 8 << 20
KEPT = 200_000
"""So many records wait to be taken; older ones are dropped and counted."""
IDS = 1 << 17
"""So many calls of the driver are remembered, each with the message that made it."""
FORCED = 1  # CUPTI_ACTIVITY_FLAG_FLUSH_FORCED


class _Work(NamedTuple):
    """A record, and what is looked up when it is taken: its message, and a function's name."""

    correlation: int
    record: DeviceWork
    function: tuple[int, int] | None

    def work(self, seq: int, name_of: Callable[[int, int], str]) -> DeviceWork:
        """Return the record with its message."""
        if self.function is None:
            return msgspec.structs.replace(self.record, seq=seq)
        return msgspec.structs.replace(self.record, seq=seq, name=name_of(*self.function))


class CuptiActivity:
    """Records what the device does, from now on; raises what CUPTI raises where it cannot.

    Parameters:
        calls: tell also of each call of the driver and the runtime, and of CUPTI's overhead.
    """

    def __init__(self, *, calls: bool = False) -> None:
        from cupti import cupti

        self._cupti = cupti
        self._lock = threading.Lock()
        self._works: deque[_Work] = deque()
        self._messages: dict[int, int] = {}  # by correlation id
        self._dropped = 0
        kinds = cupti.ActivityKind
        self._kinds: dict[int, DeviceKind] = {
            int(kinds.CONCURRENT_KERNEL): "kernel",
            int(kinds.MEMCPY): "copy",
            int(kinds.MEMSET): "fill",
        }
        domains = cupti.CallbackDomain
        self._calls: dict[int, tuple[DeviceKind, int]] = {}
        self._overhead = -1
        if calls:
            self._calls[int(kinds.DRIVER)] = "driver", int(domains.DRIVER_API)
            self._calls[int(kinds.RUNTIME)] = "runtime", int(domains.RUNTIME_API)
            self._overhead = int(kinds.OVERHEAD)
        self._external = int(kinds.EXTERNAL_CORRELATION)
        self._own = int(cupti.ExternalCorrelationKind.CUSTOM0)
        self._offset_ns = 0  # from CUPTI's clock to the wall's
        self._set_clock()
        cupti.activity_register_callbacks(self._requested, self._completed)
        # Without records of the calls there are none that correlate them.
        for kind in (*self._kinds, self._external, int(kinds.DRIVER), int(kinds.RUNTIME)):
            cupti.activity_enable(kind)
        if calls:
            cupti.activity_enable(self._overhead)

    # The threads that enqueue.

    def begin(self, library: str, name: str, seq: int, cell: int) -> None:
        """Have what this thread enqueues be this message's."""
        del library, name, cell
        self._cupti.activity_push_external_correlation_id(self._own, seq)

    def end(self) -> None:
        """Have it be the one's before that."""
        self._cupti.activity_pop_external_correlation_id(self._own)

    # The control thread.

    def take(self) -> tuple[list[DeviceWork], int]:
        """Return what is recorded of work that has ended, and how many records were dropped.

        May take milliseconds; each record is returned once.
        """
        self._set_clock()
        self._cupti.activity_flush_all(FORCED)
        with self._lock:
            works, self._works = self._works, deque()
            dropped, self._dropped = self._dropped, 0
            messages = self._messages
            found = [one.work(messages.get(one.correlation, 0), self._name) for one in works]
        return found, dropped

    # CUPTI's.

    @staticmethod
    def _requested() -> tuple[int, int]:
        return BUFFER_BYTES, 0

    def _completed(self, activities: Iterable[Any]) -> None:
        """Copy what is wanted of the records of a buffer, which is gone afterwards."""
        with self._lock:
            for one in activities:
                kind = int(one.kind)
                if kind == self._external:
                    if int(one.external_kind) == self._own:
                        self._messages[int(one.correlation_id)] = int(one.external_id)
                elif not getattr(one, "end", 0):  # of another kind, or flushed before its end
                    continue
                elif kind in self._kinds:
                    self._keep(one, self._work(self._kinds[kind], one))
                elif kind in self._calls:
                    of, domain = self._calls[kind]
                    call = self._timed(of, one, stream=int(one.thread_id))
                    self._keep(one, call, (domain, int(one.cbid)))
                elif kind == self._overhead:
                    self._keep(one, self._timed("overhead", one, name=self._reason(one)))
            while len(self._works) > KEPT:
                self._works.popleft()
                self._dropped += 1
            while len(self._messages) > IDS:
                del self._messages[next(iter(self._messages))]

    def _keep(self, one: Any, work: DeviceWork, function: tuple[int, int] | None = None) -> None:
        correlation = int(getattr(one, "correlation_id", 0))  # not all overhead has one
        self._works.append(_Work(correlation, work, function))

    def _reason(self, one: Any) -> str:
        try:
            return str(self._cupti.ActivityOverheadKind(one.overhead_kind).name)
        except ValueError:  # one that a later driver has
            return f"overhead {int(one.overhead_kind)}"

    @lru_cache(maxsize=4096)  # noqa: B019 - one a process
    def _name(self, domain: int, function: int) -> str:
        """Return the name of a function of CUDA."""
        try:
            return str(self._cupti.get_callback_name(domain, function))
        except self._cupti.cuptiError:  # one that this CUPTI does not know
            return f"function {function}"

    def _timed(self, kind: DeviceKind, one: Any, *, name: str = "", stream: int = 0) -> DeviceWork:
        start, end = int(one.start), int(one.end)
        return DeviceWork(
            seq=0,
            name=name,
            kind=kind,
            stream=stream,
            start=(start + self._offset_ns) / 1e9,
            end=(end + self._offset_ns) / 1e9,
            duration_ns=end - start,
        )

    def _work(self, kind: DeviceKind, one: Any) -> DeviceWork:
        is_kernel = kind == "kernel"
        if is_kernel:
            name = str(one.name)
        elif kind == "copy":
            name = self._cupti.ActivityMemcpyKind(one.copy_kind).name
        else:
            name = "memset"
        return msgspec.structs.replace(
            self._timed(kind, one, name=name, stream=int(one.stream_id)),
            nbytes=None if is_kernel else int(one.bytes),
            grid=(one.grid_x, one.grid_y, one.grid_z) if is_kernel else (),
            block=(one.block_x, one.block_y, one.block_z) if is_kernel else (),
        )

    def _set_clock(self) -> None:
        """Compare the clocks; they may drift apart."""
        self._offset_ns = time.time_ns() - int(self._cupti.get_timestamp())
