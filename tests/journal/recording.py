"""Records what a system's devices are sent, into groups in memory, with no journal of its own."""

import threading
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from accel_lab import System
from accel_lab.compute.lineage.markers import Checkpoint, Content, Result
from accel_lab.journal.entries.entry import Entry, entries_of

KEYS = {
    kind.__struct_config__.tag: kind.__struct_fields__.index("key") + 1
    for kind in (Checkpoint, Content, Result)
}


@dataclass(frozen=True)
class Drain:
    number: int
    session: str
    device: str
    at: float
    count: int
    data: bytes
    generation: int = 1
    cell: int | None = None


class Recording:
    """What a system is sent from now on."""

    def __init__(self, system: System) -> None:
        self.groups: list[Drain] = []
        self.own = {"lab"}
        self._contents: dict[str, bytes] = {}
        self._system = system
        self._recorders = system.recorders
        for recorder in self._recorders:
            recorder.drain()
            recorder.followers.append(self._follow(recorder.device, recorder.contents.get))

    def read(self) -> list[Drain]:
        """Wait until everything is answered, results included, and return what was recorded."""
        until = time.monotonic() + 20.0
        while any(device.in_flight for device in self._system.devices):
            assert time.monotonic() < until
            threading.Event().wait(0.002)
        for recorder in self._recorders:
            recorder.drain()
        return self.groups

    def __iter__(self) -> Iterator[Entry]:
        return entries_of(self.read())

    def content(self, key: str) -> bytes | None:
        return self._contents.get(key)

    @property
    def own_sessions(self) -> Collection[str]:
        return self.own

    def _follow(
        self, device: str, content: Callable[[str], bytes | None]
    ) -> Callable[[list[bytes]], None]:
        def follow(parts: list[bytes]) -> None:
            number, data = len(self.groups) + 1, b"".join(parts)
            for part in parts:
                raw: Any = msgspec.msgpack.decode(part)
                key = raw[KEYS[raw[0]]] if raw[0] in KEYS else ""
                if key and (kept := content(key)) is not None:
                    self._contents[key] = kept
            self.groups.append(Drain(number, "lab", device, time.time(), len(parts), data))

        return follow
