"""Suspend a device by keeping its process: all that it has stays as it is, and no code there runs.

So what does not pickle is there afterwards: generators, open files, threads, models. On `cuda` the
driver moves the memory of the card to the host and back (CUDA's checkpoint); on `host` the process
is stopped. The link stays, too: what is sent meanwhile waits here, and wakes the process.

Nothing may wait for the card in such a process. So it is quiet first, and is asked nothing.
"""

import threading
import time
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from accel_lab.compute.events import lifecycle as facts
from accel_lab.compute.requests.answers import Overtaken
from accel_lab.compute.suspension.suspended import Suspended
from accel_lab.errors import AccelError, CannotKeep, InvalidArgument

if TYPE_CHECKING:
    from accel_lab.compute.process.bound_process import BoundProcess
    from accel_lab.compute.wire.link import Link

ENDS_WITHIN_S = 2.0
"""How long to wait for a process that is to end before what it runs is cut off."""


class ProcessKeeper(Protocol):
    """How a backend has a process give its device back, and take it again.

    Attributes:
        ends_frozen: whether one that was brought back must be frozen again before it ends.
    """

    ends_frozen: bool

    def freeze(self, pid: int, timeout_s: float) -> None:
        """Have a process give its device back; blocks for what runs there and for the copy.

        Raises:
            TimeoutError: it is still busy; nothing changed.
            AccelError: it cannot; nothing changed.
        """

    def thaw(self, pid: int) -> None:
        """Have it go on; blocks for the copy.

        Raises:
            OutOfMemory: the device has no room for it; it stays frozen.
            AccelError: the driver cannot bring it back; the process is of no use any more.
        """


class ProcessKeeping:
    """The process of one device, frozen or not.

    Attributes:
        keeper: freezes it; None where nothing can.
        told: what waits while it is frozen.
        cause: why it could not go on when that was last tried.
    """

    def __init__(self, supervisor: Any) -> None:
        self._supervisor = supervisor
        self.keeper: ProcessKeeper | None = None
        self.told: Suspended | None = None
        self.cause: AccelError | None = None
        self._frozen: tuple[Link, BoundProcess] | None = None

    @property
    def is_frozen(self) -> bool:
        """Whether the process is frozen, or on its way there or back: it gives no sign of life."""
        return self._frozen is not None

    def freeze(
        self,
        link: "Link",
        deadline: float,
        began: float,
        buffers: int,
        objects: int,
        nbytes: int,
        refusal: str,
    ) -> None:
        """Freeze the process of a context that is held and quiet.

        Raises:
            CannotKeep: it has what cannot be frozen.
            InvalidArgument: this device has no way.
            TimeoutError: it does not become quiet in time.
            Overtaken: the context is lost.
        """
        supervisor, keeper, process = self._supervisor, self.keeper, self._supervisor.process
        name = supervisor.name
        if process is None:
            raise Overtaken
        if keeper is None:
            raise InvalidArgument(f'{name} has no way to keep its process; keep="memory" is there')
        if refusal:
            text = f"{name} was not suspended: its process: {refusal}"
            raise CannotKeep(text, lost={"its process": refusal})
        self._frozen, before = (link, process), process.before_kill
        process.before_kill = None  # one that is frozen may be killed
        try:
            keeper.freeze(process.pid, max(0.0, deadline - time.monotonic()))
        except BaseException:
            self._frozen, process.before_kill = None, before
            raise
        told = Suspended(name, buffers, objects, nbytes, keep="process")
        connection = supervisor.requests.connection
        self.told, self.cause = told, None
        connection.kept_bytes = nbytes
        if connection.pause(link) is None:
            self.forget()
            raise Overtaken
        supervisor.emptied()
        supervisor.events.publish(
            facts.DeviceSuspended(
                device=name,
                generation=supervisor.generation,
                buffers=buffers,
                objects=objects,
                nbytes=nbytes,
                lost=(),
                seconds=time.monotonic() - began,
                keep="process",
            )
        )
        if supervisor.requests.queued:
            connection.wake()

    def thaw(self) -> bool:
        """Have a frozen process go on, if there is one; system thread, returns at once."""
        if self.told is None or (frozen := self._frozen) is None:
            return False
        name = f"accel_lab resumption of {self._supervisor.name}"
        threading.Thread(target=self._thaw, args=frozen, name=name, daemon=True).start()
        return True

    def _thaw(self, link: "Link", process: "BoundProcess") -> None:
        supervisor, keeper, began = self._supervisor, self.keeper, time.monotonic()
        connection, told = supervisor.requests.connection, self.told
        assert keeper is not None
        is_back = threading.Event()
        if keeper.ends_frozen:  # also where it is killed as soon as it is back
            process.before_kill = partial(_freeze_again, is_back, keeper, process.pid)
        try:
            keeper.thaw(process.pid)
        except MemoryError as error:
            process.before_kill = None  # it is as it was
            self._stay(link, error)
            return
        except Exception as error:  # noqa: BLE001 - whatever it is, the device must go on
            process.before_kill = None
            if self._frozen == (link, process):  # else it has ended meanwhile
                supervisor.broke(error, link)
            return
        finally:
            is_back.set()
        if self._frozen != (link, process):
            return
        self.forget()
        if connection.connect(link, process.pid) and told is not None:
            supervisor.events.publish(
                facts.DeviceResumed(
                    device=told.device,
                    generation=supervisor.generation,
                    buffers=told.buffers,
                    objects=told.objects,
                    nbytes=told.nbytes,
                    lost=(),
                    seconds=time.monotonic() - began,
                )
            )

    def _stay(self, link: "Link", error: Any) -> None:
        """Answer what has woken a process for which there is no room."""
        supervisor = self._supervisor
        self.cause = error
        in_flight = supervisor.requests.connection.pause(link, error)
        if in_flight is not None:
            fact = facts.SuspensionFailed(device=supervisor.name, cause=str(error))
            try:
                supervisor.events.publish(fact)
            finally:
                in_flight.fail(error)

    def prepare_end(self) -> None:
        """Freeze a process that may not end otherwise, and is about to; blocks for that."""
        process = self._supervisor.process
        if process is not None and (before := process.before_kill) is not None:
            process.before_kill = _nothing  # it is killed, and does not end by itself
            with suppress(AccelError, TimeoutError):  # then it ends as it can
                before()

    def forget(self) -> None:
        """The process goes on, or is given up."""
        self._frozen = self.told = None


def _freeze_again(is_back: threading.Event, keeper: ProcessKeeper, pid: int) -> None:
    """Freeze a process that has come back, or is about to."""
    is_back.wait(ENDS_WITHIN_S)
    keeper.freeze(pid, ENDS_WITHIN_S)


def _nothing() -> None:
    pass
