"""Running a function on every rank of a world at once, answered together."""

import shutil
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from accel_lab.actor.event_loop import EventLoop, Timer
from accel_lab.actor.reply import Reply
from accel_lab.compute.device import Device
from accel_lab.compute.output import cell_origin
from accel_lab.compute.user_code.call import name_of
from accel_lab.compute.world.part_pump import PartPump
from accel_lab.errors import AccelError, Cancelled, ContextLost, GroupAborted, SystemClosed
from accel_lab.world.rank_process import STOP, Rank, call_as, failed_at, prepare

GRACE_S = 5.0
"""So long a rank may take to end once another has failed; then its context is replaced."""
LOOK_S = 0.01
SETTLE_S = 0.3
"""So long after a failure those of other ranks are waited for, of which one may be its cause."""
WAIT_S = 1800.0
"""How long an operation of `torch.distributed` waits when nobody says otherwise, as torch's."""


class RanksReply(Reply[list[Any]]):
    """What `world.run` returns: the answers of all ranks, or what the first failure was.

    Attributes:
        replies: the handle of each rank's answer.
        awaited: whether somebody waits, or has waited.
        folder: where the ranks find each other.
    """

    def __init__(self, what: str, devices: Sequence[Device], event_loop: EventLoop) -> None:
        super().__init__(
            PartPump(self, devices[0].requests.pump, self._flush), cell_origin.current()
        )
        self.replies: list[Reply[Any]] = []
        self.awaited = False
        self.folder = tempfile.mkdtemp(prefix="accel_lab-ranks-")
        # It goes with this, and at the end of the program at the latest.
        self._clean = weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)
        self._what, self._devices = what, tuple(devices)
        self._event_loop = event_loop
        self._deadline: Timer | None = None
        self._failure: AccelError | None = None
        self._failed: list[int] = []  # the ranks, as it was heard of them
        self._lock = threading.RLock()

    def follow(self, replies: Sequence[Reply[Any]], timeout_s: float | None) -> None:
        """Be done when all of these are."""
        self.replies = list(replies)
        if timeout_s is not None:
            self._deadline = self._event_loop.call_later(timeout_s, self._late, timeout_s)
        for rank, reply in enumerate(replies):
            reply.add_waiter(partial(self._ended, rank))

    def cancel(self) -> None:
        """Interrupt the function on all ranks."""
        self._abort(Cancelled(f"{self._what} was cancelled"))

    def _outcome(self) -> list[Any]:
        if self._error is not None:
            raise self._error.take()
        return [reply.result(0) for reply in self.replies]

    def _flush(self) -> None:
        for device in self._devices:
            device.requests.flush()

    def _ended(self, rank: int) -> None:
        """A rank has its answer; any thread, and it may be called twice."""
        all_ended = all(reply.done for reply in self.replies)
        if self.replies[rank].failed:
            self._failed.append(rank)
        if self.replies[rank].failed and self._failure is None:
            if not all_ended:  # another one's failure may be the cause of this one
                self._event_loop.call_later(SETTLE_S, self._judge)
                return
            self._judge()
        with self._lock:
            if self._failure is not None or not all_ended:
                return
            self.resolve()
        self._close()

    def _judge(self) -> None:
        """Find the failure that came first, and end the other ranks."""
        failed = {at: one.error for at, one in enumerate(self.replies) if one.error is not None}
        lost = [at for at, error in failed.items() if isinstance(error, ContextLost)]
        first = min(lost or failed, key=self._when)
        error = failed[first]
        assert error is not None
        self._abort(self._failure_of(first, error))

    def _when(self, rank: int) -> tuple[float, int]:
        """Return what orders failures: when they were, or as it was heard on another machine."""
        heard = self._failed.index(rank) if rank in self._failed else len(self._failed)
        return failed_at(self.folder, rank), heard

    def _failure_of(self, rank: int, error: AccelError) -> AccelError:
        if isinstance(error, SystemClosed | Cancelled):
            return error
        device = self._devices[rank].name
        said = str(error).partition("\n")[0]
        text = f"{self._what}: rank {rank} on {device} failed: {type(error).__name__}: {said}"
        running = tuple(r for r, one in enumerate(self.replies) if r != rank and not one.done)
        failure = GroupAborted(text, rank=rank, device=device, reason=said, unfinished=running)
        failure.__cause__ = error
        return failure

    def _abort(self, failure: AccelError) -> None:
        """End the function on all ranks: first what waits for another, then all else."""
        with self._lock:
            if self._failure is not None or self.done:
                return
            self._failure = failure
        with suppress(OSError):
            (Path(self.folder) / STOP).touch()
        for reply in self.replies:
            reply.cancel()
        self._event_loop.call_soon(self._settle, time.monotonic() + GRACE_S)

    def _settle(self, until: float) -> None:
        """Fail once the function has ended on all ranks; replace the contexts where it does not."""
        stubborn = [device for device in self._devices if device.requests.withdrawn]
        if stubborn and time.monotonic() < until:
            self._event_loop.call_later(LOOK_S, self._settle, until)
            return
        for device in stubborn:
            device.replace()
        self._close()
        assert self._failure is not None
        if not self.fail(self._failure) and not self.awaited:
            self._devices[0].requests.pump.unclaimed(self)

    def _late(self, timeout_s: float) -> None:
        text = f"{self._what} was not done after {timeout_s:g} s"
        running = tuple(rank for rank, one in enumerate(self.replies) if not one.done)
        self._abort(GroupAborted(text, reason=text, unfinished=running, waited_s=timeout_s))

    def _close(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._clean()


def run_on_ranks(
    devices: Sequence[Device],
    backend: str,
    event_loop: EventLoop,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    timeout_s: float | None,
) -> RanksReply:
    """Run a function on every device, as `World.run` says."""
    called = name_of(function)
    reply = RanksReply(called or "a function", devices, event_loop)
    wait_s = WAIT_S if timeout_s is None else timeout_s
    ranks = [
        Rank(at, len(devices), reply.folder, backend, wait_s, device.is_apart)
        for at, device in enumerate(devices)
    ]
    sent: list[Reply[Any]] = []
    try:
        for device, rank in zip(devices, ranks, strict=True):
            if backend:
                device.run(prepare, rank, called="prepare").add_waiter(_nothing)
            sent.append(device.run(call_as, rank, function, args, kwargs, called=called))
    except BaseException:
        for one in sent:
            one.cancel()
        raise
    reply.follow(sent, timeout_s)
    return reply


def _nothing() -> None:
    """Nobody is told: what failed to prepare fails in the call, with the same words."""
