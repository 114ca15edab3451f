"""Suspend devices that nobody has used for some time."""

import threading
from typing import TYPE_CHECKING

from accel_lab.actor.event_loop import EventLoop
from accel_lab.compute.events import lifecycle as facts
from accel_lab.errors import AccelError

if TYPE_CHECKING:
    from accel_lab.compute.supervision.context_supervisor import ContextSupervisor

LOOKS = 4
"""How often the time after which a device is idle is looked at."""


class IdleSuspension:
    """Suspends a device that has been asked nothing for some time."""

    def __init__(
        self, supervisor: "ContextSupervisor", event_loop: EventLoop, after_s: float
    ) -> None:
        self._supervisor = supervisor
        self._event_loop = event_loop
        self._after_s = after_s
        self._seen: object = None
        self._since = 0.0
        event_loop.call_later(after_s / LOOKS, self._look)

    def _look(self) -> None:
        requests, now = self._supervisor.requests, self._event_loop.clock.now()
        if requests.state == "stopped":
            return
        seen = requests.last_number, requests.in_flight, requests.generation, requests.state
        if seen != self._seen or requests.in_flight or requests.state != "running":
            self._seen, self._since = seen, now
        elif now - self._since >= self._after_s:
            self._since = float("inf")  # once, until something is sent
            threading.Thread(
                target=self._suspend, name=f"accel_lab idle {self._supervisor.name}", daemon=True
            ).start()
        self._event_loop.call_later(self._after_s / LOOKS, self._look)

    def _suspend(self) -> None:
        supervisor = self._supervisor
        try:
            supervisor.suspension.suspend(None, drop=False, shown=False)
        except AccelError as error:
            if supervisor.requests.state != "stopped":
                fact = facts.SuspensionFailed(device=supervisor.name, cause=str(error))
                supervisor.events.publish(fact)
