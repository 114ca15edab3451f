"""A wire without a process behind it: what a service is sent, and what it reports."""

from typing import Any

from accel_lab.compute.dispatcher.dispatcher import Dispatcher
from accel_lab.compute.execution.context import Context
from accel_lab.compute.wire.codec import decode_reports


class Wire:
    """A transport that has these frames, and then ends."""

    fd = -1

    def __init__(self, frames: list[bytes]) -> None:
        self.frames = frames
        self.sent: list[Any] = []
        self.executing = [0, 0]

    def send(self, payload: bytes) -> bool:
        self.sent += decode_reports(payload)
        return True

    def receive(self) -> memoryview | None:
        if not self.frames:
            raise EOFError
        return memoryview(self.frames.pop(0))

    def __getattr__(self, name: str) -> Any:
        return lambda *_: None


def service_of(wire: Wire, context: Context, *, spin_s: float = 0.0) -> Dispatcher:
    """Return what serves a context over this wire."""
    transport: Any = wire
    return Dispatcher(transport, context, spin_s=spin_s)
