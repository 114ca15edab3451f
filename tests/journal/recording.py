"""Records what a system's devices are sent, into groups in memory."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from accel_lab import System
from accel_lab.compute.contents import Contents
from accel_lab.compute.recorder import Recorder


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
    """The record of one system, attached by hand."""

    def __init__(self, system: System, contents: Contents | None = None) -> None:
        self.contents = Contents() if contents is None else contents
        self.groups: list[Drain] = []
        self._recorders: list[Recorder] = []
        for device in system.devices:
            recorder = Recorder(device.name, self.contents, lambda: None)
            recorder.followers.append(self._follow(device.name))
            device._requests.recorder = recorder
            device._requests._answers._recorder = recorder
            self._recorders.append(recorder)

    def read(self) -> list[Drain]:
        for recorder in self._recorders:
            recorder.drain()
        return self.groups

    def content(self, key: str) -> bytes | None:
        return self.contents.get(key)

    def _follow(self, device: str) -> Callable[[list[bytes]], None]:
        def follow(parts: list[bytes]) -> None:
            number = len(self.groups) + 1
            data = b"".join(parts)
            self.groups.append(Drain(number, "lab", device, time.time(), len(parts), data))

        return follow
