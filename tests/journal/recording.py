"""Records what a system's devices are sent, into groups in memory."""

import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from accel_lab import AccelRef, System
from accel_lab.compute.contents import Contents, key_of
from accel_lab.compute.markers import Result
from accel_lab.compute.recorder import Recorder
from accel_lab.journal.entry import Entry, entries_of


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
        self.own = {"lab"}
        self._recorders: list[Recorder] = []
        for device in system.devices:
            recorder = Recorder(device.name, self.contents, lambda: None)
            recorder.followers.append(self._follow(device.name))
            device._requests.recorder = recorder
            device._requests._answers._recorder = recorder
            self._recorders.append(recorder)

    def read(self) -> list[Drain]:
        self._drain()
        return self.groups

    def __iter__(self) -> Iterator[Entry]:
        return entries_of(self.read())

    def content(self, key: str) -> bytes | None:
        return self.contents.get(key)

    @property
    def own_sessions(self) -> Collection[str]:
        return self.own

    def result(self, ref: AccelRef, *, values: bool = True) -> AccelRef:
        """Record the digest of what the last message made, as a system that keeps results does."""
        requests = ref.device._requests
        seq, data = requests._seq, ref.device.get(ref).result().tobytes()
        key = self.contents.put(data) if values else ""
        assert requests.recorder is not None
        requests.recorder.mark(Result(seq, key_of(data), key or "", ref.shape, ref.dtype))
        return ref

    def _drain(self) -> None:
        for recorder in self._recorders:
            recorder.drain()

    def _follow(self, device: str) -> Callable[[list[bytes]], None]:
        def follow(parts: list[bytes]) -> None:
            number = len(self.groups) + 1
            data = b"".join(parts)
            self.groups.append(Drain(number, "lab", device, time.time(), len(parts), data))

        return follow
