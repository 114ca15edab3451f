"""What a device's context reports of its own health."""

import time

from accel_lab.compute.wire.codec import Born
from accel_lab.compute.wire.side_channel import Heartbeat

HEARTBEAT_LIMIT_S = 30.0
START_LIMIT_S = 120.0


class ContextHealth:
    """The last that is known of the context of one device; written on the system thread.

    Attributes:
        model, total_bytes: of the device; "" and None until its first context was up.
        capability: its compute capability, 0 where it has none.
        used_bytes: what its buffers take.
        libraries: those that it has.
        library_restarts: how often each of them was replaced; written where the wire is read.
        statistics: what each of them counts.
        streams: each one's stream, the priority that was asked for it and what it has.
    """

    def __init__(self) -> None:
        self.model = ""
        self.total_bytes: int | None = None
        self.capability = 0.0
        self.used_bytes = 0
        self.libraries: list[str] = []
        self.library_restarts: dict[str, int] = {}
        self.statistics: dict[str, dict[str, int]] = {}
        self.streams: dict[str, tuple[str, int, int]] = {}
        self._heard = 0.0

    def starts(self) -> None:
        """A process was started, which has `START_LIMIT_S` for its first sign of life."""
        self._heard = time.monotonic() + START_LIMIT_S - HEARTBEAT_LIMIT_S

    def born(self, born: Born, *, empty: bool) -> None:
        """A context is up; `empty` when it gets nothing back of what the last one held."""
        self._heard = time.monotonic()
        self.model, self.total_bytes, self.libraries = born.model, born.total_bytes, born.libraries
        self.capability, self.streams = born.capability, born.streams
        self.library_restarts, self.statistics = {}, {}
        if empty:
            self.used_bytes = 0

    def beats(self, heartbeat: Heartbeat, *, fills: bool) -> None:
        """It lives; while it `fills`, what was there is coming back."""
        self._heard = time.monotonic()
        self.used_bytes = max(heartbeat.used_bytes, self.used_bytes if fills else 0)
        self.statistics = heartbeat.statistics

    def unheard(self, seconds: float) -> None:
        """For so long nobody could listen: that is no silence of the context's."""
        self._heard += max(0.0, seconds)

    def emptied(self) -> None:
        """It was given up in order: the device holds nothing."""
        self.used_bytes, self.statistics = 0, {}

    @property
    def silent_s(self) -> float:
        """For how long it has given no sign of life; below 0 while it may still start."""
        return time.monotonic() - self._heard
