"""One lost context, from the moment its loss is noticed until everybody knows of it.

The supervisor is told at once, so that the restart begins; the requests are answered when the
reason is known, which for a process that ended by itself is when it has been reaped.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from accel_lab.actor.event_loop import EventLoop
from accel_lab.compute.process.bound_process import BoundProcess
from accel_lab.compute.requests.answers import InFlight
from accel_lab.compute.residency.typed import Opened, typed
from accel_lab.errors import AccelError, ContextLost, DeadlineExceeded

EXPLAIN = "lab.explain() names the message that crashed it"
STATUS_SOON_S = 0.03
STATUS_LATE_S = 5.0


class Reason(NamedTuple):
    """Why a context is lost, and what follows.

    Attributes:
        why: None when the end of its process is to tell.
        fields: the error's attributes.
        late: the request that ran too long, with an error of its own.
        again: whether what is in flight may be run again.
        because: what the supervisor has decided upon; else it is told, to decide.
        kind: the error's class.
    """

    why: str | None = None
    fields: Mapping[str, Any] = {}
    late: Mapping[int, DeadlineExceeded] = {}
    again: bool = True
    because: AccelError | None = None
    kind: type[ContextLost] = ContextLost


class Loss:
    """What is known of a loss; all methods run on the system thread.

    Parameters:
        after: the generation of the device now.
        in_flight: the requests it took along; None when the context had never been up.
        noticed: told at once, with the best reason there is.
        explained: told with the final error and how many requests there were, before those are
            answered.
        answer: answers them.
    """

    def __init__(
        self,
        device: str,
        generation: int,
        after: int,
        process: BoundProcess,
        in_flight: InFlight | None,
        reason: Reason,
        *,
        noticed: Callable[[ContextLost], None],
        explained: Callable[[ContextLost, int], None],
        answer: Callable[[InFlight, ContextLost], None],
    ) -> None:
        self.generation = generation
        self.connected = in_flight is not None
        self._after = after
        self._device = device
        self._process = process
        self._in_flight = in_flight
        self._reason = reason
        self._noticed = noticed
        self._explained = explained
        self._answer = answer
        self._is_noticed = False
        self._is_explained = False

    def handle(self, event_loop: EventLoop) -> None:
        """Kill what is left, and tell whom it concerns as soon as it can be told."""
        why, fields = self._reason.why, self._reason.fields
        if why is not None:
            self._process.kill()
            self._explain(self._error(why, fields))
        elif self._process.reaped:
            self._ended(self._process.status)
        else:
            self._process.on_exit.append(self._ended)
            if self.connected:
                event_loop.call_later(STATUS_SOON_S, self._notice_ending)
            event_loop.call_later(STATUS_LATE_S, self._give_up)

    def _ended(self, name: str) -> None:
        failed = self._process.failed
        why = not_started(failed) if failed else f"its process ended with {name}"
        self._explain(self._error(why, {"name": name}))

    def _notice_ending(self) -> None:
        self._notice(self._error("its process is ending", {}))

    def _give_up(self) -> None:
        if not self._is_explained:
            self._process.kill()
            self._ended("an unknown status")

    def _notice(self, error: ContextLost) -> None:
        if not self._is_noticed:
            self._is_noticed = True
            self._noticed(error)

    def _explain(self, error: ContextLost) -> None:
        if self._is_explained:
            return
        self._is_explained = True
        try:
            self._notice(error)
            self._explained(error, 0 if self._in_flight is None else len(self._in_flight))
        finally:  # whatever failed there, the supervisor decides, and those that wait are answered
            with suppress(Exception):  # it has been told of
                self._notice(error)
            if self._in_flight is not None:
                self._answer(self._in_flight, error)

    def _error(self, why: str, fields: Mapping[str, Any]) -> ContextLost:
        after = (
            f"the device is now at generation {self._after}"
            if self._after != self.generation
            else "it had not started"
        )
        text = f"{self._device} lost its context of generation {self.generation}: {why}; {after}"
        text += last_of(fields.get("recent", ()))
        return self._reason.kind(text, generation=self.generation, **fields)


def what_to_do(device: Opened | None) -> str:
    """Say what there is to do about a loss, in names that the user has."""
    if device is not None and getattr(device._system, "_journal", None) is None:  # noqa: SLF001
        return ContextLost.remedy.replace(EXPLAIN, "recent names what it ran last")
    return ContextLost.remedy.replace("lab.explain()", typed(device, "<lab>.explain()"))


def not_started(why: str) -> str:
    """Say what a context says itself of why it is none."""
    return f"it could not start ({why})"


def last_of(recent: tuple[str, ...]) -> str:
    """Say what each stream was given last, the newest first; "" when that is not known."""
    last: dict[str, str] = {}
    for what in reversed(recent):
        last.setdefault(what.rpartition(" on ")[2], what)
    return f"; what it ran last: {', '.join(last.values())}" if last else ""
