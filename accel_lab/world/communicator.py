"""The communicator of a world: made, lost, and made again.

A world's epoch is the number of its communicator. One is lost when the context of a rank is, or
when an operation of it is aborted, for what some ranks have sent others may never take. A thread
makes the next one at once; whoever calls meanwhile waits for it.
"""

import itertools
import threading
import time
from collections.abc import Sequence
from typing import Literal, TypeAlias

from accel_lab.actor.events import EventStream
from accel_lab.compute.device import Device
from accel_lab.compute.events.collectives import WorldBroken, WorldFormed, WorldGivenUp
from accel_lab.compute.events.lifecycle import ContextLost
from accel_lab.compute.world.group_sender import GroupSender
from accel_lab.errors import AccelError, BackendUnavailable, GroupAborted, SystemClosed
from accel_lab.libraries import collective

OnLoss: TypeAlias = Literal["rebuild", "shrink"]
State: TypeAlias = Literal["forming", "whole", "given up", "closed"]
ATTEMPTS = 8
PATIENCE_S = 60.0
"""So long a context may take until it makes a key, or joins: it may have to be started."""
_PAUSE_S = (0.05, 2.0)
_numbers = itertools.count(1)


class Communicator:
    """What the ranks of one world have in common; any thread may call.

    Attributes:
        devices: the ranks, in their order; a world that shrinks has fewer later.
        epoch: how many communicators there were, the present one counted.
        state: whether there is one.
    """

    def __init__(
        self,
        name: str,
        devices: Sequence[Device],
        groups: GroupSender,
        events: EventStream,
        on_loss: OnLoss,
    ) -> None:
        self.name = name
        self.devices = tuple(devices)
        self.epoch = 0
        self.state: State = "forming"
        self._groups, self._events = groups, events
        self._on_loss = on_loss
        self._comm = 0
        self._generations: tuple[int, ...] = ()
        self._failure: AccelError | None = None
        self._changed = threading.Condition(threading.RLock())
        self._lost_at = time.monotonic()
        self._start()

    @property
    def members(self) -> frozenset[str]:
        """The names of the ranks' devices."""
        return frozenset(device.name for device in self.devices)

    def require(self, timeout_s: float = PATIENCE_S) -> tuple[int, int]:
        """Return the number of the communicator and the epoch; blocks while the world heals.

        Raises:
            AccelError: none can be made, and why.
            TimeoutError: it took longer than `timeout_s`.
        """
        if self.state == "whole" and self._generations != self._now():
            self.lose("a device has another context", self._comm)
        with self._changed:
            if self.state == "given up":
                self._begin()
            if not self._changed.wait_for(lambda: self.state != "forming", timeout_s):
                raise TimeoutError(f"{self.name} has no communicator after {timeout_s:g} s")
            if self.state != "whole":
                raise self._failure.take() if self._failure else SystemClosed(f"{self.name} closed")
            return self._comm, self.epoch

    def lose(self, reason: str, comm: int | None = None) -> None:
        """Make another communicator, for this one is of no use any more.

        Parameters:
            comm: only if it is still this one.
        """
        with self._changed:
            if self.state != "whole" or comm not in (None, self._comm):
                return
            self._begin()
            epoch = self.epoch
        self._events.publish(WorldBroken(world=self.name, epoch=epoch, reason=reason))

    def on_lost(self, event: ContextLost) -> None:
        """A context is gone: if it was a rank's, so is the communicator."""
        if event.device in self.members:
            self.lose(f"{event.device} has lost its context: {event.cause}")

    def close(self) -> None:
        """Have the ranks leave; a second call is fine."""
        with self._changed:
            closed, self.state = self.state == "closed", "closed"
            self._changed.notify_all()
            comm, self._comm = self._comm, 0
        if not closed:
            self._leave(comm)

    def _now(self) -> tuple[int, ...]:
        return tuple(device.generation for device in self.devices)

    def _begin(self) -> None:
        """Have it made anew; the lock is held."""
        self.state, self._failure = "forming", None
        self._lost_at = time.monotonic()
        self._start()

    def _start(self) -> None:
        threading.Thread(target=self._form, name=f"{self.name} forms", daemon=True).start()

    def _form(self) -> None:
        """Try until there is a communicator, nobody wants one, or it has failed too often."""
        with self._changed:
            old, self._comm = self._comm, 0
        try:
            self._try()
        finally:  # what was under way has failed by then, with a better reason
            self._leave(old)

    def _try(self) -> None:
        failure: AccelError | None = None
        for attempt in range(ATTEMPTS):
            with self._changed:
                if self.state != "forming":
                    return
            if attempt:
                least, most = _PAUSE_S
                time.sleep(min(most, least * 2**attempt))
            try:
                if self._on_loss == "shrink" and self.epoch:
                    self._shrink()
                comm, generations = self._join()
            except (SystemClosed, BackendUnavailable) as error:
                failure = error
                break
            except AccelError as error:
                failure = error
                if any(device.state == "circuit open" for device in self.devices):
                    break  # a person has to see to that
                continue
            except TimeoutError as error:
                failure = GroupAborted(f"{self.name}: a rank did not answer: {error}")
                continue
            if self._take(comm, generations):
                return
        self._give_up(failure)

    def _shrink(self) -> None:
        """Go on without the devices whose context is not there."""
        there = tuple(device for device in self.devices if device.state == "running")
        if there:
            self.devices = there

    def _join(self) -> tuple[int, tuple[int, ...]]:
        """Have all ranks join a new communicator."""
        devices, comm = self.devices, next(_numbers)
        # While a rank waits for others to join it does nothing else, and a device that is being
        # rebuilt may need something that the rank has.
        away = [device.ping() for device in devices if device.state != "running"]
        for answer in away:
            answer.result(PATIENCE_S)
        key = collective.make_key(devices[0], len(devices)).result(PATIENCE_S)
        generations = self._now()
        parts = [(device, collective.Join(comm, key)) for device in devices]
        reply = self._groups.send(parts, PATIENCE_S, nowait=False)
        try:
            reply.result(PATIENCE_S)
        except (AccelError, TimeoutError):
            reply.cancel()
            self._leave(comm)
            raise
        return comm, generations

    def _take(self, comm: int, generations: tuple[int, ...]) -> bool:
        """Use a new communicator; return False where a context was lost meanwhile."""
        with self._changed:
            if self.state == "forming" and generations == self._now():
                self._comm, self._generations = comm, generations
                self.epoch += 1
                self.state = "whole"
                self._changed.notify_all()
                comm = 0
            epoch, seconds = self.epoch, time.monotonic() - self._lost_at
        self._leave(comm)
        if comm:
            return False
        names = tuple(device.name for device in self.devices)
        self._events.publish(
            WorldFormed(world=self.name, epoch=epoch, devices=names, seconds=seconds)
        )
        return True

    def _give_up(self, failure: AccelError | None) -> None:
        with self._changed:
            if self.state != "forming":
                return
            self.state = "closed" if isinstance(failure, SystemClosed) else "given up"
            self._failure = failure
            self._changed.notify_all()
        if self.state == "given up":
            reason = str(failure).partition("\n")[0]
            self._events.publish(WorldGivenUp(world=self.name, epoch=self.epoch, reason=reason))

    def _leave(self, comm: int) -> None:
        """Have the contexts forget a communicator."""
        if not comm:
            return
        for device in self.devices:
            try:
                collective.leave(device, comm)
            except AccelError:
                continue  # it is closed, or full: the context forgets all with its end
