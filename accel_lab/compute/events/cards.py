"""What is wrong with a card itself, as facts on the event stream."""

from typing import Literal

from accel_lab.actor.events import Event

Alarm = Literal["throttled", "memory errors", "remapped rows"]


class CardAlarm(Event, frozen=True):
    """A card began to slow itself down, or has more memory errors than before; `detail` says how.

    `alarm` is "throttled", "memory errors" or "remapped rows". It is told while somebody has the
    health of the system sampled: a health view, a recording, an export.
    """

    device: str
    alarm: Alarm
    detail: str
