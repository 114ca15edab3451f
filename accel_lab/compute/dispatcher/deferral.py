"""Run blocking work of a library, such as a compilation, beside the dispatcher.

While it runs, a message waits behind it that writes what the work's message names, or that names
what that one makes or writes; and so on behind a message that waits. Those that only read the same
memory pass. A function that is not pure may write all that it names. It waits behind another
function that waits, for they may share what they do not name, and so it does while something
unfinished names memory that functions have had: it may see that through a global. `Claims` decides.
A fence waits behind all of it, but for what only waits itself, and everything behind a fence.
"""

import os
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from accel_lab.compute.dispatcher.claims import Claims, claim_of, is_fence, waiting_claim_of
from accel_lab.compute.dispatcher.poller import Poller
from accel_lab.compute.dispatcher.task import Task
from accel_lab.compute.execution.launch import Later, Launch
from accel_lab.compute.execution.stream import Storage, Stream
from accel_lab.compute.execution.worker import Worker
from accel_lab.compute.groups.group import Group
from accel_lab.compute.message.builtin import Free

WORKERS = 4
"""How many compilations run at once, and how many calls that block on the device beside them."""


class Deferred:
    """A launch whose work runs on another thread, and the entry that asked for it.

    Attributes:
        event: fires when what the work has enqueued is done, if it had a stream.
        home: that stream.
    """

    __slots__ = ("claim", "entry", "event", "future", "home", "launch", "then")

    def __init__(self, entry: Any, launch: Launch) -> None:
        assert launch.deferred is not None
        self.then = launch.deferred.then
        self.event: Any = None
        self.home: Stream | None = None
        self.entry = entry
        self.launch = launch
        self.claim = claim_of(entry, launch.made_storages())
        self.future: Future[Any] | None = None

    @property
    def group(self) -> Group | None:
        """What it is a part of, as long as its work goes on; any thread."""
        future = self.future
        return None if future is None or future.done() else self.launch.group

    @property
    def only_waits(self) -> bool:
        """Whether it makes and writes nothing, and only waits for something to happen."""
        later = self.launch.deferred
        return later is not None and later.way == "poll" and not self.claim.exclusive

    def resume(self) -> None:
        """Finish the launch; raises what the work raised."""
        assert self.future is not None
        value, group = self.future.result(), self.launch.group
        if group is not None:
            group.require()
        self.then(value)


class Deferral:
    """What has been deferred and what waits behind it; used by the dispatcher thread.

    Attributes:
        begun: the deferred launches whose work is not finished, by number.
        wakeup: a descriptor that is readable when some of it has finished.

    Parameters:
        parts_last: as of `Claims`.
    """

    def __init__(self, *, parts_last: bool = False) -> None:
        self.begun: dict[int, Deferred] = {}
        self.wakeup = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._finished: deque[Deferred] = deque()
        self._behind: list[Any] = []
        self._claims = Claims(parts_last=parts_last)
        self._failed: deque[tuple[Launch, Exception]] = deque()
        self._arrived: deque[Any] = deque()
        self._heard: deque[Any] = deque()
        self._compiling = ThreadPoolExecutor(WORKERS, thread_name_prefix="deferred")
        self._blocking = ThreadPoolExecutor(WORKERS, thread_name_prefix="blocking")
        self._poller = Poller()
        self._own = threading.local()  # the worker of each thread that blocks

    def begin(self, entry: Any, launch: Launch) -> None:
        """Start the work that a handler has asked for with `launch.defer` and its like."""
        deferred, later = Deferred(entry, launch), launch.deferred
        assert later is not None
        future: Future[Any]
        if later.way == "poll":
            future = self._poller.add(later.work)
        elif later.way == "blocking":
            after = launch.stream.native.record()
            future = self._blocking.submit(self._block, deferred, later, after)
        else:
            future = self._compiling.submit(later.work)
        deferred.future = future
        self.begun[launch.seq] = deferred
        self._claims.add(deferred.claim)
        future.add_done_callback(lambda _: self._finish(deferred))

    def _block(self, deferred: Deferred, later: Later, after: Any) -> Any:
        """Run work with this thread's worker, and note what its stream still has to do."""
        launch = deferred.launch
        worker: Worker | None = getattr(self._own, "worker", None)
        if worker is None:
            context = launch.context
            stream = context.backend.worker_stream()
            worker = self._own.worker = Worker(stream, context.scratch.for_worker())
        try:
            worker.enter(launch.message.library, later.life, after)
            return later.work(worker)
        finally:  # also where it fails: what it has enqueued uses memory that is freed then
            deferred.event, deferred.home = worker.stream.record(), worker.home

    def fail(self, launch: Launch, error: Exception) -> None:
        """Have the dispatcher fail a launch whose answer could not be worked out; any thread."""
        self._failed.append((launch, error))
        os.eventfd_write(self.wakeup, 1)

    def failed(self) -> Iterator[tuple[Launch, Exception]]:
        """Yield what was given to `fail`, each once."""
        while self._failed:
            yield self._failed.popleft()

    def arrive(self, undecided: Any) -> None:
        """Have the dispatcher look at a launch whose status can be read; any thread."""
        self._arrived.append(undecided)
        os.eventfd_write(self.wakeup, 1)

    def arrived(self) -> Iterator[Any]:
        """Yield what was given to `arrive`, each once."""
        while self._arrived:
            yield self._arrived.popleft()

    def hear(self, undecided: Any) -> None:
        """Have the dispatcher look at a launch whose group is decided; any thread."""
        self._heard.append(undecided)
        os.eventfd_write(self.wakeup, 1)

    def heard(self) -> Iterator[Any]:
        """Yield what was given to `hear`, each once."""
        while self._heard:
            yield self._heard.popleft()

    def hold_back(self, entry: Any) -> bool:
        """Whether an entry has to wait; it is kept then."""
        message = entry.message
        if type(message) is Free:
            held = [id_ for id_ in message.ids if id_ in self._claims]
            if not held:
                return False
            passing = [id_ for id_ in message.ids if id_ not in self._claims]
            message.ids[:] = passing
            self._behind.append(type(entry)(0, 0, None, Free(held), None))
            return False
        if not self._claims.forbid(entry) and not (is_fence(message) and self._is_unfinished()):
            return False
        self.keep(entry)
        return True

    def _is_unfinished(self) -> bool:
        """Whether something was sent that is not enqueued yet."""
        waits = any(type(entry.message) is not Free for entry in self._behind)
        return waits or any(not one.only_waits for one in self.begun.values())

    def keep(self, entry: Any) -> None:
        """Keep an entry that has to wait, and what comes behind it in its place."""
        self._claims.add(waiting_claim_of(entry))
        self._behind.append(entry)

    def finished(self) -> Iterator[Deferred]:
        """Yield what has finished, each once; its stream is in order behind the work."""
        while self._finished:
            deferred = self._finished.popleft()
            del self.begun[deferred.launch.seq]
            deferred.launch.rejoin(deferred.event, deferred.home)
            yield deferred

    def released(self) -> Iterable[Any]:
        """Return what has waited, in order, to be tried again."""
        released, self._behind = self._behind, []
        self._claims.clear()
        for deferred in self.begun.values():
            self._claims.add(deferred.claim)
        return released

    def tasks(self) -> list[Task]:
        """Return what is worked at; any thread."""
        return [
            Task(
                deferred,
                deferred.entry.seq,
                deferred.entry.message,
                deferred.launch.stream,
                deferred.entry.timeout_s,
                traced=deferred.launch.trace is not None,
                group=deferred.group,
            )
            for deferred in list(self.begun.values())
        ]

    def touches(self, storage: Storage) -> bool:
        """Whether work that is not finished, or what waits behind it, has this memory."""
        return storage in self._claims

    def ring(self) -> None:
        """Make `wakeup` readable; any thread."""
        os.eventfd_write(self.wakeup, 1)

    @property
    def ready(self) -> bool:
        """Whether something has finished, or failed afterwards, or can be judged."""
        return bool(self._finished or self._failed or self._arrived or self._heard)

    def acknowledge(self) -> None:
        """Make `wakeup` unreadable until the next one finishes; before `finished`."""
        try:
            os.eventfd_read(self.wakeup)
        except BlockingIOError:
            return

    def _finish(self, deferred: Deferred) -> None:
        self._finished.append(deferred)
        os.eventfd_write(self.wakeup, 1)
