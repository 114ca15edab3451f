"""The way from a context to its notebook: its answers, and what else it has to say."""

import threading
import time
from collections.abc import Callable
from typing import Any

from accel_lab.compute.dispatcher.stream_waiter import Enqueued
from accel_lab.compute.wire.codec import Done, Report, Shaped, encode_reports
from accel_lab.compute.wire.transport import Transport

RETRY_S = 0.0002


class Reporter:
    """Sends reports over the wire; any thread.

    Parameters:
        failed: is given a launch whose answer cannot be worked out, and why; any thread.
    """

    def __init__(self, transport: Transport, failed: Callable[[Any, Exception], None]) -> None:
        self._transport = transport
        self._failed = failed
        self._sending = threading.Lock()
        self._held_up: set[int] = set()  # the threads that work out an answer, or cannot send it

    @property
    def is_held_up(self) -> bool:
        """Whether an answer is being worked out, or waits for the notebook to read."""
        return bool(self._held_up)

    def send(self, reports: list[Report]) -> None:
        """Send reports; blocks while the notebook does not read."""
        self.send_frame(encode_reports(reports))

    def send_frame(self, frame: bytes) -> None:
        """Send what is encoded; blocks as `send` does."""
        with self._sending:
            if self._transport.send(frame):
                return
            self._held_up.add(threading.get_ident())
            while not self._transport.send(frame):
                time.sleep(RETRY_S)
            self._held_up.discard(threading.get_ident())

    def offer(self, reports: list[Report]) -> bool:
        """Send reports if that need not wait; whether it did."""
        if not self._sending.acquire(blocking=False):
            return False
        try:
            return self._transport.offer(encode_reports(reports))
        finally:
            self._sending.release()

    def answer(self, launches: list[Enqueued]) -> None:
        """Answer completed launches in order; blocks as `send` does."""
        waiting: list[Enqueued] = []
        for launch in launches:
            if launch.finish is None:
                waiting.append(launch)
                continue
            if waiting:
                self.send_frame(answers(waiting))
                waiting = []
            self._held_up.add(threading.get_ident())
            try:
                frames = [encode_reports([report]) for report in launch.finish()]
            except Exception as error:  # noqa: BLE001 - it fails this request
                self._failed(launch, error)
                continue
            finally:
                self._held_up.discard(threading.get_ident())
            for frame in frames:  # each may be full
                self.send_frame(frame)
        if waiting:
            self.send_frame(answers(waiting))


def answers(launches: list[Enqueued]) -> bytes:
    """Encode the answers of launches that need no finishing."""
    done: list[int] = []
    reports: list[Report] = [Done(done)]
    for launch in launches:
        if launch.shaped is None:
            done.append(launch.seq)
        else:
            reports.append(Shaped(launch.seq, *launch.shaped))
    return encode_reports(reports)
