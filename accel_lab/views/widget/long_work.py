"""What a system's devices have been running for long, in one line for every view."""

import time
from typing import NamedTuple

from accel_lab.compute.events.samples import Slice
from accel_lab.views.scene.observer import Source
from accel_lab.views.scene.scene import Scene
from accel_lab.views.widget.view import State

LONG_S = 1.0
"""What has been running for so long is named, where the work is traced."""


class LongWork(NamedTuple):
    """A slice that is not at its end, where it runs, and for how many seconds it has."""

    device: str
    slice: Slice
    seconds: float


def long_work(scene: Scene, source: Source) -> list[LongWork]:
    """Return what is seen to run for a second or more, the longest first.

    In the past, for as long as it had been running then.
    """
    now = scene.at if source.lab is None else time.time()
    found = [
        LongWork(device, one, now - one.start)
        for device, running in scene.running.items()
        for one in running
        if now - one.start >= LONG_S and one.kind != "untraced"
    ]
    return sorted(found, key=lambda work: -work.seconds)


def headline_of(found: list[LongWork]) -> State | None:
    """Return what a header says of that: `what` runs, for `how_long`, and how many `more`."""
    if not found:
        return None
    device, one, seconds = found[0]
    headline: State = {
        "what": f"{one.name} #{one.seq} on {device}/{one.stream}",
        "how_long": whole_seconds(seconds),
    }
    if len(found) > 1:
        headline["more"] = len(found) - 1
    return headline


def told(headline: State) -> str:
    """Return a headline as text."""
    more = f" +{headline['more']} more" if "more" in headline else ""
    return f"▶ {headline['what']} · {headline['how_long']}{more}"


def whole_seconds(seconds: float) -> str:
    """Write how long something goes on: 7 s, 2 min 5 s."""
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
