"""Wake the dispatcher when a stream gets to an event, while it sleeps."""

import queue
import threading
from collections.abc import Callable, Iterable
from typing import Any

from accel_lab.compute.execution.stream import Stream


class StreamBell:
    """Waits on one thread for each stream, begun when it is first needed.

    Parameters:
        ring: wakes the dispatcher.
        failed: called when a wait fails: the device is in error.

    Attributes:
        rang: whether it has rung since this was last set to False.
    """

    def __init__(
        self, ring: Callable[[], object], failed: Callable[[BaseException], object]
    ) -> None:
        self.rang = False
        self._ring = ring
        self._failed = failed
        self._waiters: dict[Stream, _Waiter] = {}

    def watch(self, marks: Iterable[tuple[Stream, Any]]) -> None:
        """Ring when a stream gets to its event; one at a time for each. Does not block."""
        for stream, event in marks:
            waiter = self._waiters.get(stream)
            if waiter is None:
                waiter = self._waiters[stream] = _Waiter(stream, self._reached, self._failed)
            if waiter.is_idle:
                waiter.submit(event)

    def _reached(self) -> None:
        self.rang = True  # first: whoever is woken and finds nothing takes the ring away
        self._ring()


class _Waiter:
    """Waits for one stream."""

    def __init__(
        self,
        stream: Stream,
        reached: Callable[[], object],
        failed: Callable[[BaseException], object],
    ) -> None:
        self.is_idle = True
        self._stream = stream
        self._reached = reached
        self._failed = failed
        self._events: queue.SimpleQueue[Any] = queue.SimpleQueue()
        threading.Thread(target=self._run, name="stream bell", daemon=True).start()

    def submit(self, event: Any) -> None:
        """Wait for this event."""
        self.is_idle = False
        self._events.put(event)

    def _run(self) -> None:
        try:
            while True:
                self._stream.native.synchronize(self._events.get())
                self.is_idle = True
                self._reached()
        except BaseException as error:  # noqa: BLE001 - whatever it is ends the context, with its reason
            self._failed(error)
