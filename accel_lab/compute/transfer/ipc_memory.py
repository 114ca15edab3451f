"""Memory of the notebook's own CUDA that a device's context has opened.

CUDA leaves undefined what becomes of memory that is freed while another process has it open. So a
context keeps an allocation open for as long as an array on it lives here that was put, and what is
open stays allocated until the context has said that it is closed, or until its process is gone.
"""

import sys
import threading
import weakref
from collections import deque
from collections.abc import Callable, Hashable
from functools import partial
from typing import NamedTuple

from accel_lab.actor.event_loop import EventLoop
from accel_lab.compute.arrays.cuda_arrays import DeviceArray
from accel_lab.compute.message.builtin import Unmap
from accel_lab.compute.requests.answers import Settle

LIMIT = 8
"""How many allocations a context has open for later puts; the one that was put longest ago goes."""
RETRY_S = 0.05
LOOK_S = 0.002
"""How often to look whether a context has closed what it has told of by itself."""


class _Owner(NamedTuple):
    """An array that was put, if it lives, and what keeps its memory."""

    array: weakref.ref[object]
    memory: object


class _Opening:
    """One allocation that a context has open, or will open.

    Attributes:
        owners: the arrays on it that live and were put, by identity.
        loans: the copies that are not answered.
        ended: what must live until it is closed, beside the memory of the owners.
        is_open: whether the context that takes messages may have it open; not by copies that are
            not answered.
    """

    def __init__(self, handle: bytes) -> None:
        self.handle = handle
        self.owners: dict[int, _Owner] = {}
        self.loans: set[IpcCopy] = set()
        self.ended: list[object] = []
        self.is_open = False


class IpcCopy:
    """An array that the context copies, or is about to.

    It is over when it has been called and `keep` has been, in whichever order.

    Parameters:
        array: what has to live until then, and until the allocation is closed after it.
    """

    __slots__ = ("_first", "_ipc_memory", "_unanswered", "array", "lost", "opening")

    def __init__(self, ipc_memory: "IpcMemory", opening: _Opening, array: DeviceArray) -> None:
        self._ipc_memory = ipc_memory
        self._unanswered, self._first = [None], [None]
        self.opening = opening
        self.array: DeviceArray | None = array
        self.lost: Hashable | None = None

    def keep(self) -> None:
        """Have the allocation stay open for later puts, for as long as the user's array lives."""
        self._ipc_memory.keep(self)
        self._end()

    def __call__(self, lost: Hashable | None) -> None:
        """The context has copied, or never will; more than once does no harm."""
        try:
            self._unanswered.pop()
        except IndexError:
            return
        self.lost = lost
        if lost is None:
            self.opening.is_open = True
        self._end()

    def _end(self) -> None:
        try:
            self._first.pop()
        except IndexError:
            self._ipc_memory.end(self)


class IpcMemory:
    """The allocations that one device's context has open.

    It may know of more than are open, never of fewer.

    Parameters:
        post: sends a message if a context takes messages now, and calls what it is given when that
            is answered or lost; whether it has sent it.
        event_loop: runs what finalizers and answers cannot do where they are.
    """

    def __init__(self, post: Callable[[Unmap, Settle], bool], event_loop: EventLoop) -> None:
        self._post = post
        self._event_loop = event_loop
        self._soon: Callable[..., object] = event_loop.call_soon
        self._lock = threading.RLock()  # a finalizer of the user's may put in the middle
        self._opened: dict[bytes, _Opening] = {}  # the last that was put is the last
        self._closing: set[_Opening] = set()
        self._dead: deque[tuple[bytes, int, weakref.ref[object]]] = deque()
        self._pinned: dict[Hashable, list[_Opening]] = {}
        self._reaped: set[Hashable] = set()
        self._watched: list[tuple[Callable[[], bool], Callable[[], object]]] = []
        self._waiting: dict[Hashable, list[Callable[[], object]]] = {}
        self._is_retrying = False

    def __len__(self) -> int:
        return len(self._opened)

    def is_open(self, handle: bytes) -> bool:
        """Whether the context that takes messages may have an allocation open; any thread."""
        opening = self._opened.get(handle)
        return opening is not None and opening.is_open

    def lend(self, handle: bytes, array: DeviceArray) -> IpcCopy:
        """Note that the context is about to copy an array, before it is told to; any thread."""
        fresh = _Opening(handle)
        with self._lock:
            self._opened[handle] = opening = self._opened.pop(handle, fresh)
            loan = IpcCopy(self, opening, array)
            opening.loans.add(loan)
        return loan

    def keep(self, loan: IpcCopy) -> None:
        """Do what `IpcCopy.keep` says; for it alone."""
        opening, array = loan.opening, loan.array
        with self._lock:
            if (
                array is not None
                and self._opened.get(opening.handle) is opening
                and self._is_kept_for(opening, array)
            ):
                loan.array = None
            is_crowded = len(self._opened) > LIMIT
        if is_crowded or self._dead:
            self._soon(self._tidy)

    def _is_kept_for(self, opening: _Opening, array: DeviceArray) -> bool:
        """Whether the array's owner will tell when the memory is not used any more."""
        tenure = array.tenure()
        if tenure is None:
            return False
        key = id(tenure.owner)
        known = opening.owners.get(key)
        if known is not None:
            if known.array() is tenure.owner:
                if known.memory is not tenure.memory:
                    opening.owners[key] = known._replace(memory=tenure.memory)
                return True
            opening.ended.append(known.memory)
        for other in list(self._opened.values()):
            before = other.owners.get(key)
            if before is not None and before.array() is tenure.owner:  # it has other memory now
                self._dead.append((other.handle, key, before.array))
        try:
            alive = weakref.ref(tenure.owner, partial(self._died, opening.handle, key))
        except TypeError:
            return False
        opening.owners[key] = _Owner(alive, tenure.memory)
        return True

    def _died(self, handle: bytes, key: int, array: weakref.ref[object]) -> None:
        """An array is gone; in whichever thread that was, under whichever locks."""
        if sys.is_finalizing():
            return  # contexts end with this process, and the system thread has stopped anywhere
        self._dead.append((handle, key, array))
        self._soon(self._tidy)

    def end(self, loan: IpcCopy) -> None:
        """A loan is over; the thread that reads the wire, perhaps under the requests' lock."""
        opening, array = loan.opening, loan.array
        opening.loans.discard(loan)
        if array is not None:
            opening.ended.append(array)
        if array is not None or loan.lost is not None or not opening.owners:
            self._soon(self._tidy)

    # The system thread's part.

    def _tidy(self) -> None:
        """Have closed what nobody can put again, and what is too much."""
        unused: list[object] = []  # goes when the lock is free
        with self._lock:
            while self._dead:
                handle, key, array = self._dead.popleft()
                opening = self._opened.get(handle)
                known = None if opening is None else opening.owners.get(key)
                if opening is not None and known is not None and known.array is array:
                    opening.ended.append(opening.owners.pop(key).memory)
            idle = [one for one in list(self._opened.values()) if not one.loans]
            unused += [self._opened.pop(one.handle) for one in idle if not one.is_open]
            closable = [one for one in idle if one.is_open]
            for one in closable:
                if one.owners:  # their memory keeps the allocation
                    unused.append(one.ended)
                    one.ended = []
            excess = len(self._opened) - LIMIT
            doomed = [one for one in closable if not one.owners]
            doomed += [one for one in closable if one.owners][: max(0, excess - len(doomed))]
            is_sent = all([self._close(one) for one in doomed])  # noqa: C419 - each is tried
        if not is_sent and not self._is_retrying:
            self._is_retrying = True
            self._event_loop.call_later(RETRY_S, self._retry)

    def _retry(self) -> None:
        self._is_retrying = False
        self._tidy()

    def _close(self, opening: _Opening) -> bool:
        """Have the context close one; False while it takes no messages. The lock is held."""
        self._closing.add(opening)
        if not self._post(Unmap(opening.handle), lambda _: self._closing.discard(opening)):
            self._closing.discard(opening)
            return False
        del self._opened[opening.handle]
        return True

    def left(self, context: Hashable) -> None:
        """A context is lost or given back, and with its process goes what it has open; any thread.

        Until that is reaped the memory stays.
        """
        self._soon(self._left, context)

    def _left(self, context: Hashable) -> None:
        with self._lock:
            pinned = [*self._opened.values(), *self._closing]
            # What is not answered may be for the next context.
            self._opened = {key: one for key, one in self._opened.items() if one.loans}
            self._closing.clear()
            for one in self._opened.values():
                one.is_open = False
        calls, self._watched = [call for _, call in self._watched], []
        if context in self._reaped:
            self._reaped.discard(context)
            for call in calls:
                call()
        else:
            self._pinned[context] = pinned
            self._waiting[context] = calls

    def reaped(self, context: Hashable) -> None:
        """A context's process is gone; system thread."""
        if self._pinned.pop(context, None) is None:
            self._reaped.add(context)  # its loss is still to be noticed
        for call in self._waiting.pop(context, ()):
            call()

    def after(self, context: Hashable, call: Callable[[], object]) -> None:
        """Have something called once a context's process is gone, which was lost; any thread."""
        self._soon(self._after, context, call)

    def _after(self, context: Hashable, call: Callable[[], object]) -> None:
        if context in self._pinned:
            self._waiting.setdefault(context, []).append(call)
        else:
            call()

    def until_closed(self, is_open: Callable[[], bool], call: Callable[[], object]) -> None:
        """Have something called once a thing is closed, or the context that has it open is gone.

        Any thread; the thing is one of the context that takes messages now.
        """
        self._soon(self._watch, is_open, call)

    def _watch(self, is_open: Callable[[], bool], call: Callable[[], object]) -> None:
        self._watched.append((is_open, call))
        if len(self._watched) == 1:
            self._look()

    def _look(self) -> None:
        watched, self._watched = self._watched, []
        for is_open, call in watched:
            if is_open():
                self._watched.append((is_open, call))
            else:
                call()
        if self._watched:
            self._event_loop.call_later(LOOK_S, self._look)

    def orphan(self) -> None:
        """Do nothing from now on: this process is a fork, and memory and contexts the parent's."""
        self._lock = threading.RLock()
        self._soon = lambda *_: None

    def forget(self) -> None:
        """Let go of all memory: no context is left, and none comes."""
        with self._lock:
            everything = [*self._opened.values(), *self._closing, *self._pinned.values()]
            self._opened, self._pinned, self._waiting, self._watched = {}, {}, {}, []
            self._closing.clear()
        del everything
