"""Suspend a device: what it holds is kept on the host until the device is used again.

Suspending is no fault. What is sent meanwhile waits, what was sent before is answered, the context
copies what it holds into anonymous files of the notebook, and its process ends. The next message
starts a context, which is given all of it under the same ids before it takes that message; so the
generation stays. Until then the files take precedence over what the record could make again.
"""

import threading
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from accel_lab.actor.event_loop import EventLoop
from accel_lab.actor.events import EventStream
from accel_lab.compute.events import lifecycle as facts
from accel_lab.compute.lineage.history import Slice
from accel_lab.compute.lineage.recorded_message import decode, encode, step_of
from accel_lab.compute.machine.anonymous_files import Stripes
from accel_lab.compute.machine.host_memory import free_host_bytes, host_memory_bytes
from accel_lab.compute.message.builtin import Ping, Run
from accel_lab.compute.message.operation import NO_RESULT, Operation
from accel_lab.compute.message.service import in_context
from accel_lab.compute.requests.answers import Again, InFlight, Overtaken
from accel_lab.compute.residency import kept_objects
from accel_lab.compute.residency.notebook_names import held_in, names
from accel_lab.compute.suspension.process_keeping import ProcessKeeping
from accel_lab.compute.suspension.save_restore import Saved, SaveRestore
from accel_lab.compute.suspension.suspended import Keep, Suspended
from accel_lab.compute.user_code.call import pack_call
from accel_lab.compute.wire.codec import encode_entry
from accel_lab.compute.wire.side_channel import Downward
from accel_lab.compute.wire.side_channel import Keep as KeepFiles
from accel_lab.display.buffer_number import short
from accel_lab.display.progress import REFRESH_S, Bar
from accel_lab.errors import AccelError, CannotKeep, ContextLost, InvalidArgument

if TYPE_CHECKING:
    from accel_lab.compute.process.bound_process import BoundProcess
    from accel_lab.compute.recovery.recovery import Recovery
    from accel_lab.compute.requests.requests import Requests
    from accel_lab.compute.wire.link import Link

GONE_WITHIN_S = 30.0
Look = Callable[[], None]
LOOK_S = 0.005


class Suspending(Protocol):
    """The context of one device, as far as it is suspended and resumed.

    Attributes:
        recovery: rebuilds what cannot be copied; None where nothing is recorded for that.
    """

    name: str
    recovery: "Recovery | None"
    requests: "Requests"
    events: EventStream
    process: "BoundProcess | None"

    @property
    def generation(self) -> int:
        """Which context it is in."""

    def tell(self, packet: Downward, *fds: int) -> None:
        """Send a control packet to the context, if there is one; any thread."""

    def retire(
        self, link: "Link", refusal: AccelError | None = None
    ) -> "tuple[InFlight, BoundProcess] | None":
        """Let a context that is held or being filled go; system thread.

        Returns what was in flight, and the process; None when that context is lost.
        """

    def emptied(self) -> None:
        """The device was given back in order: it holds nothing; any thread."""

    def broke(self, error: BaseException, link: "Link | None") -> None:
        """Something of ours failed, for which a context is lost; any thread."""


class _Kept(NamedTuple):
    """What waits, and where.

    Attributes:
        rebuilding: the messages that rebuild what could not be copied.
        live: what was in use.
    """

    told: Suspended
    files: Stripes
    saved: Saved
    rebuilding: Slice
    live: set[int]


class Suspension:
    """The suspensions of one device, one at a time.

    Attributes:
        cause: why the device could not come back when that was last tried.
        room_bytes: returns how much the host may keep.
        refusal: why the device cannot be suspended at all; "" where it can.
        of_process: suspends it by keeping its process, and brings that back.
    """

    def __init__(self, supervisor: Suspending, event_loop: EventLoop) -> None:
        self._supervisor = supervisor
        self._event_loop = event_loop
        self._alone = threading.Lock()
        self._suspender = self._resumer = 0
        """The threads that are at it; 0 for none."""
        self._kept: _Kept | None = None
        self.cause: AccelError | None = None
        self.room_bytes: Callable[[], int] = _room_bytes
        self.refusal = ""
        self.of_process = ProcessKeeping(supervisor)

    @property
    def told(self) -> Suspended | None:
        """What waits on the host; None when nothing does."""
        kept = self._kept
        return self.of_process.told if kept is None else kept.told

    @property
    def is_at_work(self) -> bool:
        """Whether this thread takes the device away or brings it back: it cannot wait for it."""
        here = threading.get_ident()
        is_back = self._supervisor.requests.connection.link is not None
        return here == self._suspender or (here == self._resumer and not is_back)

    # Going.

    def suspend(
        self, timeout_s: float | None, *, drop: bool, keep: Keep = "memory", shown: bool = True
    ) -> Suspended:
        """Have the device keep what it holds on the host, and end its context; blocks for that.

        Parameters:
            keep: whether its memory is kept, or its whole process.
            shown: whether a bar is to say so, if it takes over a second.
        """
        deadline = time.monotonic() + (threading.TIMEOUT_MAX if timeout_s is None else timeout_s)
        if self.refusal:
            raise InvalidArgument(self.refusal)
        if keep not in ("memory", "process"):
            raise InvalidArgument(f'suspend: keep is "memory" or "process", not {keep!r}')
        self._supervisor.requests.pump.require_free()
        if not self._alone.acquire(timeout=max(0.0, deadline - time.monotonic())):
            raise TimeoutError(f"{self._supervisor.name} is being suspended by another thread")
        try:
            if (link := self._held(deadline)) is not None:
                self._suspender = threading.get_ident()
                name = f"suspend {self._supervisor.name}"
                with Bar(name, None, unit="bytes", shown=shown) as bar:
                    try:
                        if keep == "process":
                            self._freeze(link, deadline, bar)
                            return self.told or Suspended(self._supervisor.name)
                        process = self._suspend(link, deadline, bar, drop=drop)
                    except Overtaken:
                        raise _lost(self._supervisor) from None
                    finally:
                        self._supervisor.requests.connection.release(link)
                    _await_end(process, bar)
            return self.told or Suspended(self._supervisor.name)
        finally:
            self._suspender = 0
            self._alone.release()

    def _freeze(self, link: "Link", deadline: float, bar: Bar) -> None:
        """Have the process kept as it is, with the context in it."""
        look = partial(bar.at, 0)
        began = time.monotonic()
        self._quiet(link, deadline, look)
        _, blob = pack_call(SaveRestore.counted, (in_context(SaveRestore),), {})
        found = self._ask(link, deadline, Run((), blob, pure=True), look)
        self.of_process.freeze(link, deadline, began, *found)

    def _held(self, deadline: float) -> "Link | None":
        """Have what is sent wait, once there is a context; None when none can be expected."""
        requests = self._supervisor.requests
        while True:
            requests.pump.settled(deadline)
            if requests.state == "stopped":
                assert requests.refusal is not None
                raise requests.refusal.copy()
            if requests.state != "running":
                return None
            link = requests.connection.hold()
            if link is not None:
                return link

    def _suspend(self, link: "Link", deadline: float, bar: Bar, *, drop: bool) -> "BoundProcess":
        supervisor, began = self._supervisor, time.monotonic()
        self._quiet(link, deadline, partial(bar.at, 0))
        files = Stripes.make()
        try:
            supervisor.tell(KeepFiles(), *files.fds)
            room = max(0, self.room_bytes())
            _, blob = pack_call(SaveRestore.save, (in_context(SaveRestore), room), {"drop": drop})
            save = Run((), blob, pure=True)
            saved: Saved = self._ask(link, deadline, save, lambda: bar.at(files.written_bytes()))
            rebuilding, live = self._rebuilding(saved.things)
            saved = saved._replace(lost=saved.lost | dict[int | str, str](rebuilding.lost.items()))
            told = self._told(saved, drop=drop)
            return self._give_up(link, _Kept(told, files, saved, rebuilding, live), began)
        finally:
            if self._kept is None or self._kept.files is not files:
                files.close()

    def _rebuilding(self, things: tuple[int, ...]) -> tuple[Slice, set[int]]:
        """Return what makes things again that are no arrays, and what is in use."""
        recovery = self._supervisor.recovery
        if recovery is not None:
            return recovery.slice_of(things)
        why = 'it is not an array, and only a System(recover="replay") rebuilds it'
        return Slice([], dict.fromkeys(things, why)), set()

    def _told(self, saved: Saved, *, drop: bool) -> Suspended:
        """Say what was kept; refuse what would be lost.

        Raises:
            CannotKeep: something would be, and is not to be dropped.
        """
        name, lost = self._supervisor.name, self._named(saved.lost)
        if not saved.record[1] or (lost and not drop):
            text = "; ".join(f"{what}: {why}" for what, why in lost.items())
            raise CannotKeep(f"{name} was not suspended: {text}", lost=lost)
        return Suspended(name, saved.buffers, saved.objects, saved.nbytes, tuple(lost.items()))

    def _quiet(self, link: "Link", deadline: float, look: Look) -> None:
        """Wait until all that was sent is answered."""
        requests = self._supervisor.requests
        while True:
            self._ask(link, deadline, Ping(), look)
            if not requests.in_flight:
                return
            look()
            time.sleep(LOOK_S)  # what was deferred, as a compilation, is answered out of its turn

    def _named(self, lost: dict[int | str, str]) -> dict[str, str]:
        """Name buffers as the notebook does."""
        supervisor = self._supervisor
        device = supervisor.requests.device
        held = held_in(names(), [device]) if device is not None else {}
        by_id = held.get((supervisor.name, supervisor.generation), {})
        return {
            key
            if isinstance(key, str)
            else ", ".join(by_id.get(key, (f"buffer {short(key)}",))): why
            for key, why in lost.items()
        }

    def _give_up(self, link: "Link", kept: _Kept, began: float) -> "BoundProcess":
        """Have the system thread end the context, and wait until it has begun to.

        Raises:
            Overtaken: the context is lost.
        """
        self.of_process.prepare_end()
        process: list[BoundProcess] = []
        supervisor, told, done = self._supervisor, kept.told, threading.Event()

        def let_go() -> None:
            try:
                retire()
            finally:
                done.set()

        def retire() -> None:
            retired = supervisor.retire(link)
            if retired is not None:
                self._kept, self.cause = kept, None
                supervisor.requests.connection.kept_bytes = told.nbytes
                supervisor.requests.handles.drop(kept.saved.lost_buffers)
                kept_objects.drop(supervisor.requests.device, dict(told.lost))
                in_flight, ended = retired
                process.append(ended)
                in_flight.clear()
                supervisor.events.publish(
                    facts.DeviceSuspended(
                        device=told.device,
                        generation=supervisor.generation,
                        buffers=told.buffers,
                        objects=told.objects,
                        nbytes=told.nbytes,
                        lost=tuple(name for name, _ in told.lost),
                        seconds=time.monotonic() - began,
                    )
                )
                if supervisor.requests.queued:
                    supervisor.requests.connection.wake()

        self._event_loop.call_soon(let_go)
        done.wait(GONE_WITHIN_S)
        if not process:
            raise Overtaken
        return process[0]

    # Coming back.

    def resume(self, timeout_s: float) -> None:
        """Have the device run again; blocks for that."""
        requests = self._supervisor.requests
        requests.connection.wake()
        requests.pump.settled(time.monotonic() + timeout_s)
        cause = self.of_process.cause if self.of_process.is_frozen else self.cause
        error = cause if requests.state == "suspended" else requests.refusal
        if error is not None:
            raise error.copy()

    def begin(
        self, link: "Link", process: "BoundProcess", pid: int, up: Callable[[], None]
    ) -> bool:
        """A context is up: have it filled, connect it, call `up`; False when nothing is kept.

        System thread; returns at once.
        """
        kept = self._kept
        if kept is None:
            return False
        process.tell(KeepFiles(), *kept.files.fds)
        threading.Thread(
            target=self._run,
            args=(kept, link, pid, up),
            name=f"accel_lab resumption of {self._supervisor.name}",
            daemon=True,
        ).start()
        return True

    def _run(self, kept: _Kept, link: "Link", pid: int, up: Callable[[], None]) -> None:
        self._resumer = threading.get_ident()
        try:
            self._fill(kept, link, pid, up)
        except Exception as error:  # noqa: BLE001 - whatever it is, the device must go on
            self._supervisor.broke(error, link)
        finally:
            if self._resumer == threading.get_ident():  # the next one may be at it
                self._resumer = 0

    def _fill(self, kept: _Kept, link: "Link", pid: int, up: Callable[[], None]) -> None:
        requests, began = self._supervisor.requests, time.monotonic()
        try:
            gone = self._rebuild(kept, link)
            place, freed = kept.saved.record, self._freed()
            _, blob = pack_call(SaveRestore.restore, (in_context(SaveRestore), place, freed), {})
            lost: dict[int | str, str] = self._ask(link, None, Run((), blob, pure=True))
            lost.update(gone.items())
            for message in kept.saved.again:
                _, made, timeout_s, fields, *specs = decode(message)
                seq = requests.outbox.number()
                data = encode([seq, made, timeout_s, fields, *specs])
                self._wait(link, None, seq, data)
        except (Overtaken, ContextLost):
            return  # the next one begins anew
        except Exception as error:  # noqa: BLE001 - whatever it is, nothing is lost, and it is told
            known = error if isinstance(error, AccelError) else AccelError(repr(error))
            self._event_loop.call_soon(self._go_back, link, known)
            return
        if not requests.connection.connect(link, pid):
            return
        if self._kept is kept:  # and not what has been kept since, for it is suspended again
            self._kept = None
        kept.files.close()
        up()
        told = kept.told
        self._supervisor.events.publish(
            facts.DeviceResumed(
                device=told.device,
                generation=requests.generation,
                buffers=told.buffers,
                objects=0 if lost else told.objects,
                nbytes=told.nbytes,
                lost=tuple(f"{name}: {why}" for name, why in lost.items()),
                seconds=time.monotonic() - began,
            )
        )

    def _rebuild(self, kept: _Kept, link: "Link") -> dict[int, str]:
        """Rebuild what could not be copied; return why something could not.

        First, for its messages read what others held then: what was kept takes the place of that.
        """
        recovery, things = self._supervisor.recovery, kept.saved.things
        if recovery is None or not things:
            return {}
        wanted = set(things) - kept.rebuilding.lost.keys()
        gone = recovery.rebuild(link, kept.rebuilding, wanted, kept.live)
        self._supervisor.requests.handles.drop(gone)
        return gone

    def _freed(self) -> frozenset[int]:
        """Return the buffers that were freed meanwhile, and that nothing names which waits."""
        freed, waiting = self._supervisor.requests.connection.unsent()
        named = (id_ for data in waiting for id_ in step_of(decode(data), data).operands)
        return frozenset(freed).difference(named)

    def _go_back(self, link: "Link", error: AccelError) -> None:
        """Let go of a context that cannot have what is kept; system thread."""
        self.cause = error
        retired = self._supervisor.retire(link, error)
        if retired is None:
            return
        in_flight, _ = retired
        cause = str(error)
        try:
            self._supervisor.events.publish(
                facts.SuspensionFailed(device=self._supervisor.name, cause=cause)
            )
        finally:
            in_flight.fail(error)

    def forget(self) -> None:
        """Give the host's memory back."""
        kept, self._kept = self._kept, None
        if kept is not None:
            kept.files.close()

    # Asking a context that takes no messages.

    def _ask(
        self,
        link: "Link",
        deadline: float | None,
        message: Operation[Any],
        look: Look | None = None,
    ) -> Any:
        seq = self._supervisor.requests.outbox.number()
        data = encode_entry(seq, 0, None, message, NO_RESULT)
        return self._wait(link, deadline, seq, data, look)

    def _wait(
        self,
        link: "Link",
        deadline: float | None,
        seq: int,
        data: bytes,
        look: Look | None = None,
    ) -> Any:
        """Send an entry and wait for its answer.

        Parameters:
            look: called ten times a second meanwhile.

        Raises:
            Overtaken: the context is lost.
            TimeoutError: the deadline is over.
            AccelError: the answer.
        """
        requests, reply = self._supervisor.requests, Again()
        wait = requests.pump.wait
        requests.connection.resend(link, seq, data, reply)
        while not reply.done:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            if look is None or left == 0.0:
                wait(reply, left, shown=False)
                break
            wait(reply, REFRESH_S if left is None else min(left, REFRESH_S), shown=False)
            look()
        if not reply.done:
            raise TimeoutError(f"{self._supervisor.name} is still busy")
        if isinstance(reply.error, ContextLost):
            raise Overtaken
        return reply.result(0.0)


def _await_end(process: "BoundProcess", bar: Bar) -> None:
    """Wait until a process that has been told to end is reaped: it holds nothing any more."""
    until = time.monotonic() + GONE_WITHIN_S
    while not process.reaped and time.monotonic() < until:
        time.sleep(LOOK_S)
        bar.at(bar.count)


def _room_bytes() -> int:
    """Return what the host has free, and leave it a part."""
    return free_host_bytes() - host_memory_bytes() // 16


def _lost(supervisor: Suspending) -> AccelError:
    refusal = supervisor.requests.refusal
    if refusal is not None:
        return refusal.copy()
    text = f"{supervisor.name} lost its context while it was being suspended; see lab.explain()"
    return ContextLost(text, generation=supervisor.generation - 1)
