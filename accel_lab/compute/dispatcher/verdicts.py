"""Launches whose outcome a status on the device decides, and what depends on them meanwhile.

The status of a checked launch comes back with its completion. Until then a library's message that
names what such a launch makes or writes is launched too, and is not answered; nor is what names its
results, and so on. A bad verdict fails all of them, in their order. What leads out of the device,
and user code, waits behind the verdict: it must not see what may turn out to be wrong.

A part of a message to several devices is one more such launch: word that all parts are done decides
about it, or that they were aborted.
"""

import heapq
import itertools
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

from accel_lab.compute.dispatcher.claims import looks_around
from accel_lab.compute.dispatcher.completion import Completion
from accel_lab.compute.execution.context import Context
from accel_lab.compute.execution.launch import Launch
from accel_lab.compute.execution.status_memory import StatusMemory
from accel_lab.compute.execution.stream import Storage
from accel_lab.compute.groups.group import Groups
from accel_lab.display.buffer_number import short
from accel_lab.errors import AccelError, DependencyFailed

Memory = int | Storage
_UNKNOWN = AccelError("what became of the other parts is not known")


class Undecided:
    """A launch that is not answered before verdicts are known: its own, or what it depends on.

    Attributes:
        order: its place among all of them.
        awaits: the launches that must turn out well, beside itself.
        error: what its handler raised, maybe for what it depends on.
        root: what failed first of what it depends on, as in a `Refusal`; 0 while nothing has.
        had: what it has changed, with the memory that this had then.
        checks: how to read each status, and what judges it.
        has_come: whether its statuses can be read.
        is_watched: whether its completion tells that.
        is_deferred: whether its work is.
        is_ready: whether it was told that it is done, and waits for word of its group.
        judged: whether it failed by a verdict.
        decided: whether its outcome is known.
    """

    def __init__(
        self, order: int, launch: Launch, timeout_s: float | None, awaits: "Iterable[Undecided]"
    ) -> None:
        self.order = order
        self.launch = launch
        self.timeout_s = timeout_s
        self.awaits = set(awaits)
        self.error: Exception | None = None
        self.root = 0
        self.had: dict[Any, Storage | None] = {}
        self.checks = launch.checks
        self.has_come = self.is_watched = self.judged = self.decided = False
        self.is_deferred = self.is_ready = False
        self.finish = launch.finish
        self.followers: list[Undecided] = []
        self.memory: list[Memory] = []
        for one in self.awaits:
            one.followers.append(self)

    @property
    def is_watchable(self) -> bool:
        """Whether something is known only when its work is done: a status, or of its group."""
        return self.checks is not None or self.launch.group is not None

    def judge(self) -> Exception | None:
        """Return what is wrong by its statuses, if anything is."""
        found: Exception | None = None
        for readback, judge in self.checks or ():
            values = readback.take()
            try:
                verdict = found or judge(values)
            except Exception as error:  # noqa: BLE001 - it fails this request
                found = error
                continue
            if found is None and verdict is not None:
                self.judged = isinstance(verdict, AccelError)
                text = f"a judge answers None or an AccelError, and not {verdict!r}"
                found = verdict if self.judged else TypeError(text)
        self.checks = None
        return found


class Verdicts:
    """What is not decided; for the dispatcher thread.

    Parameters:
        fail: answers a launch that has failed, and returns what failed first.
        answer: answers a launch of which all is done.
        arrived: is told, by any thread, of a launch whose statuses can be read.
        heard: is told, by any thread, of a launch whose group is decided.
        ready: tells that a launch waits only for word of its group.

    Attributes:
        tainted: what may be wrong, by buffers' ids and by memory, and what decides about it.
    """

    def __init__(
        self,
        context: Context,
        completion: Completion,
        fail: Callable[[Launch, Exception, Undecided], int],
        answer: Callable[[list[Any]], None],
        arrived: Callable[[Undecided], None],
        heard: Callable[[Undecided], None],
        ready: Callable[[Launch], None],
    ) -> None:
        self.tainted: dict[Memory, set[Undecided]] = {}
        self._context = context
        self._completion = completion
        self._fail, self._answer, self._arrived = fail, answer, arrived
        self._heard, self._ready = heard, ready
        self._groups = context.service(Groups)
        self._orders = itertools.count()
        self._deferred: dict[int, Undecided] = {}

    def awaited(self, operands: Iterable[Any]) -> set[Undecided]:
        """Return the launches on which a message with these operands depends."""
        found: set[Undecided] = set()
        for ref in operands:
            for memory in (ref.id, ref.storage):
                found.update(self.tainted.get(memory, ()))
        return found

    def hold_back(self, entry: Any) -> bool:
        """Whether an entry has to wait for a verdict."""
        message = entry.message
        route = self._context.routes.get(type(message))
        if route is None:
            return False
        awaited = self.awaited(route.operands(message))
        if awaited and (route.actor.leads_out or message.runs_user_code):
            return True
        if entry.place is not None and any(one.checks is not None for one in awaited):
            return True  # other devices would see it
        if any(one.error is not None for one in awaited):
            return True  # there may be no such buffer
        return looks_around(message) and any(
            type(one) is Storage and one.seen for one in self.tainted
        )

    def read_back(self, launch: Launch) -> None:
        """Begin to copy what a launch is to be judged by, behind its work."""
        memory = self._context.service(StatusMemory)
        launch.checks = [(memory.copy(status), judge) for status, judge in launch.checks or ()]

    def add(self, launch: Launch, timeout_s: float | None, awaits: Iterable[Undecided]) -> None:
        """Have a launch answered when it is decided: at once, if all is known."""
        one = self._enter(launch, timeout_s, awaits)
        stream = launch.stream
        if launch.group is not None:
            launch.group.expect(partial(self._heard, one))
        elif one.checks is None:
            return
        if not one.awaits and stream.native.done():  # as on the host
            one.has_come = True
            self._settle([one])
            return
        one.is_watched = True
        launch.finish = partial(self._come, one)
        # Its mark stands right behind it, not behind what is enqueued meanwhile.
        self._completion.add(launch, stream, timeout_s, alone=True)

    def add_failed(
        self, launch: Launch, timeout_s: float | None, awaits: Iterable[Undecided], error: Exception
    ) -> None:
        """Have a launch fail when it is decided with what: its error, or what it depends on."""
        launch.checks = None
        self._enter(launch, timeout_s, awaits, error).has_come = True

    def defer(self, launch: Launch, awaits: Iterable[Undecided]) -> None:
        """Note what a launch depends on whose work is deferred."""
        one = Undecided(next(self._orders), launch, None, awaits)
        one.is_deferred, one.checks = True, None
        self._deferred[launch.seq] = one

    def resume(self, launch: Launch) -> Undecided | None:
        """Return what is known of a deferred launch: what it still awaits, or why it fails."""
        one = self._deferred.pop(launch.seq, None)
        if one is not None:
            one.decided = True
        return one

    def settle(self, come: Iterable[Undecided]) -> None:
        """Decide what can be decided now that the statuses of these can be read."""
        found = list(come)
        for one in found:
            one.has_come = True
            one.launch.finish = one.finish
        self._settle(found)

    def settle_groups(self, heard: Iterable[Undecided]) -> None:
        """Decide what can be decided now that these are told what became of their groups."""
        self._settle(list(heard))

    def came_of(self, one: Undecided) -> DependencyFailed:
        """Say that a launch has failed for what it depends on."""
        operands = one.launch.message.operands()
        text = f"what it names came of message {-one.root}, which failed"
        if one.root > 0:
            text = f"what it names came of the message for buffer {short(one.root)}, which failed"
        return self._context.table.failure_of(operands) or DependencyFailed(text)

    def _come(self, one: Undecided) -> list[Any]:
        """Note that a launch's work is done; its answer comes later. Any thread."""
        self._arrived(one)
        return []

    def _enter(
        self,
        launch: Launch,
        timeout_s: float | None,
        awaits: Iterable[Undecided],
        error: Exception | None = None,
    ) -> Undecided:
        one = Undecided(next(self._orders), launch, timeout_s, awaits)
        one.error = error
        table, message = self._context.table, launch.message
        changed: Any = dict.fromkeys((*message.changes(), *message.overwrites()))
        one.had = {ref: ref.storage for ref in changed}
        given = {ref.storage for ref in message.operands()}
        memory: set[Memory] = {
            storage for storage in launch.made_storages() if storage not in given
        }
        memory.update(launch.ids, filter(None, one.had.values()))
        for id_ in launch.ids:
            table.mention(id_)  # from now on it is not here only if it was freed
        # What depends on a checked launch depends by it on what that one does.
        by = {one} if one.is_watchable or error is not None else one.awaits
        for decider in by:
            decider.memory += memory
        for part in memory:
            self.tainted.setdefault(part, set()).update(by)
        return one

    def _settle(self, found: list[Undecided]) -> None:
        waiting = [(one.order, one) for one in found]
        heapq.heapify(waiting)
        while waiting:
            _, one = heapq.heappop(waiting)
            for other in self._decide(one):
                heapq.heappush(waiting, (other.order, other))

    def _decide(self, one: Undecided) -> Iterator[Undecided]:
        """Decide one if that can be; yield those that may be decided then."""
        if one.decided:
            if one.has_come and one.checks:
                for readback, _ in one.checks:
                    readback.drop()
                one.checks = None
            return
        if one.is_deferred:  # it is not before its work is done
            return
        error: Exception | None
        if one.root:
            error = self.came_of(one)
        elif one.awaits or (one.is_watchable and not one.has_come):
            return
        else:
            error = one.error or one.judge() or self._of_group(one)
            if error is _UNKNOWN:
                return
        one.decided = True
        root = 0
        if error is None:
            self._complete(one)
        else:
            root = self._fail(one.launch, error, one)
        self._clear(one)
        for follower in one.followers:
            follower.awaits.discard(one)
            follower.root = follower.root or root
            yield follower
        one.followers = []

    def _of_group(self, one: Undecided) -> AccelError | None:
        """Return why the other parts are not done; where that is not known, tell that this one is.

        It is `_UNKNOWN` then.
        """
        group = one.launch.group
        if group is None:
            return None
        if group.has_word:
            self._groups.leave(group)
            return group.error() if group.aborted else None
        if not one.is_ready:
            one.is_ready = True
            self._ready(one.launch)
        return _UNKNOWN

    def _complete(self, one: Undecided) -> None:
        launch = one.launch
        if one.is_watched and one.finish is None:
            self._answer([launch])
        else:
            self._completion.add(launch, launch.stream, one.timeout_s)

    def _clear(self, one: Undecided) -> None:
        for memory in one.memory:
            deciders = self.tainted.get(memory)
            if deciders is not None:
                deciders.discard(one)
                if not deciders:
                    del self.tainted[memory]
        one.memory = []
