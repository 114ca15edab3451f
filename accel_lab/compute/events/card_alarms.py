"""What two samples of a card say that somebody should hear of."""

from collections.abc import Iterator

from accel_lab.compute.events.cards import Alarm, CardAlarm
from accel_lab.compute.events.samples import HealthSampled, Reading

COUNTS: dict[str, Alarm] = {
    "ECC uncorrected": "memory errors",
    "remapped rows": "remapped rows",
}
"""Counters that should stay as they are."""


class Alarms:
    """Compares each sample of a card with the one before; one thread at a time."""

    def __init__(self) -> None:
        self._before: dict[str, dict[str, Reading]] = {}

    def look(self, sample: HealthSampled) -> Iterator[CardAlarm]:
        """Yield what is new; what the first sample counts has been there before."""
        now = {one.name: one for one in sample.readings}
        before = self._before.get(sample.source)
        self._before[sample.source] = now
        slowed = now.get("throttling")
        if slowed is not None and slowed.value:
            was = None if before is None else before.get("throttling")
            if was is None or not was.value:
                yield _alarm(sample, "throttled", slowed.why)
        for name, alarm in COUNTS.items():
            is_now, was = now.get(name), None if before is None else before.get(name)
            if is_now is None or was is None or is_now.value is None or was.value is None:
                continue
            if is_now.value > was.value:
                yield _alarm(sample, alarm, f"{name}: {is_now.value:g}, before {was.value:g}")


def _alarm(sample: HealthSampled, alarm: Alarm, detail: str) -> CardAlarm:
    return CardAlarm(at=sample.at, device=sample.source, alarm=alarm, detail=detail)
