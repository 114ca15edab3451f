"""The thread that drains the records of a system's devices, so that senders need not."""

import queue
import threading
from collections.abc import Callable
from operator import attrgetter

from accel_lab.compute.lineage.recorder import Recorder
from accel_lab.errors import InvalidArgument

PASS_S = 0.005
REST_AFTER_PASSES = 10
STOP_LIMIT_S = 5.0


class RecordThread:
    """Drains every few milliseconds while there is something to drain, else sleeps.

    Attributes:
        after: called after each pass, on this thread; it may block, sending is not delayed.
    """

    def __init__(self, name: str, failed: Callable[[BaseException], None]) -> None:
        self.after: list[Callable[[], None]] = []
        self._recorders: list[Recorder] = []
        self._failed = failed
        # The one queue whose `put` may interrupt itself: a finalizer's message rouses, too.
        self._roused: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._pass = threading.RLock()
        # What a Condition asks of its lock: there is no public way.
        self._is_mine: Callable[[], bool] = attrgetter("_is_owned")(self._pass)
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name=f"{name} record thread", daemon=True)

    def rouse(self) -> None:
        """Begin to drain again; any thread, never blocks."""
        self._roused.put(None)

    def follow(self, recorder: Recorder) -> None:
        """Drain this recorder too; before `start`."""
        self._recorders.append(recorder)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def flush(self) -> None:
        """Drain now and do what follows; blocks until that is done.

        Raises:
            InvalidArgument: a finalizer asks in the middle of that.
        """
        if self._is_mine() or any(one.is_drained_here() for one in self._recorders):
            raise InvalidArgument(
                "a finalizer (__del__) cannot read or flush the journal while its thread records a "
                "message; it may send, but read the journal elsewhere"
            )
        self._once()

    def stop(self) -> None:
        """Drain a last time and end the thread; blocks, 5 s at most."""
        self._stopping = True
        self._roused.put(None)
        if self._thread.is_alive():
            self._thread.join(STOP_LIMIT_S)
        self._once()

    def _run(self) -> None:
        idle = 0
        wait = threading.Event().wait
        while not self._stopping:
            idle = 0 if self._once() else idle + 1
            if idle < REST_AFTER_PASSES:
                wait(PASS_S)
                continue
            while not self._roused.empty():
                self._roused.get()
            for recorder in self._recorders:
                recorder.resting = True
            if not self._once():  # nothing came between the last pass and the flags
                self._roused.get()
            idle = 0

    def _once(self) -> int:
        with self._pass:
            drained = 0
            for recorder in self._recorders:
                try:
                    drained += recorder.drain()
                except Exception as error:  # noqa: BLE001 - one of them must not end the others
                    self._failed(error)
            for follow in self.after:
                try:
                    follow()
                except Exception as error:  # noqa: BLE001 - one follower must not end the record
                    self._failed(error)
            return drained
