"""Ask whether what others do has happened, for all that wait on one thread."""

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

PAUSE_S, PAUSE_MOST_S = 1e-4, 2e-3


class Poller:
    """Asks in turns, at first often and then each 2 ms; `add` is for the dispatcher thread."""

    def __init__(self) -> None:
        self._added: queue.SimpleQueue[tuple[Callable[[], bool], Future[Any]]] = queue.SimpleQueue()
        self._started = False

    def add(self, ready: Callable[[], bool]) -> Future[Any]:
        """Return what is done once `ready` says so, or has what it raised."""
        if not self._started:
            threading.Thread(target=self._run, name="poller", daemon=True).start()
            self._started = True
        future: Future[Any] = Future()
        self._added.put((ready, future))
        return future

    def _run(self) -> None:
        waiting: list[tuple[Callable[[], bool], Future[Any]]] = []
        pause_s = PAUSE_S
        while True:
            try:
                waiting.append(self._added.get(timeout=pause_s if waiting else None))
                while not self._added.empty():
                    waiting.append(self._added.get())
                pause_s = PAUSE_S
            except queue.Empty:
                pause_s = min(2 * pause_s, PAUSE_MOST_S)
            waiting = [one for one in waiting if not _settled(*one)]


def _settled(ready: Callable[[], bool], future: Future[Any]) -> bool:
    try:
        if not ready():
            return False
    except BaseException as error:  # noqa: BLE001 - it is the failure of whoever waits for that
        future.set_exception(error)
    else:
        future.set_result(None)
    return True
