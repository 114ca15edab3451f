"""Devices that nobody has asked anything for some time give their hardware back by themselves."""

import threading
from typing import TYPE_CHECKING

from accel_lab.actor.dispatcher import Dispatcher
from accel_lab.compute.events import lifecycle as facts
from accel_lab.errors import AccelError

if TYPE_CHECKING:
    from accel_lab.compute.supervision.context_supervisor import DeviceKeeper

LOOKS = 4
"""How often the time after which a device is idle is looked at."""


class Idle:
    """Suspends a device that has been asked nothing for some time."""

    def __init__(self, keeper: "DeviceKeeper", dispatcher: Dispatcher, after_s: float) -> None:
        self._keeper = keeper
        self._dispatcher = dispatcher
        self._after_s = after_s
        self._seen: object = None
        self._since = 0.0
        dispatcher.call_later(after_s / LOOKS, self._look)

    def _look(self) -> None:
        requests, now = self._keeper.requests, self._dispatcher.clock.now()
        if requests.state == "stopped":
            return
        seen = requests.last_number, requests.in_flight, requests.generation, requests.state
        if seen != self._seen or requests.in_flight or requests.state != "running":
            self._seen, self._since = seen, now
        elif now - self._since >= self._after_s:
            self._since = float("inf")  # once, until something is sent
            threading.Thread(
                target=self._suspend, name=f"accel_lab idle {self._keeper.name}", daemon=True
            ).start()
        self._dispatcher.call_later(self._after_s / LOOKS, self._look)

    def _suspend(self) -> None:
        keeper = self._keeper
        try:
            keeper.suspension.suspend(None, drop=False, shown=False)
        except AccelError as error:
            if keeper.requests.state != "stopped":
                fact = facts.SuspensionFailed(device=keeper.name, cause=str(error))
                keeper.events.publish(fact)
