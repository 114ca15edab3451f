"""Nothing ends the beat of a context but its end: a context that does not beat is killed."""

import contextlib
import os
import select
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from accel_lab.backends.host.device import HostBackend
from accel_lab.compute.dispatcher.segments import SegmentBytes
from accel_lab.compute.execution.context import Context
from accel_lab.compute.machine.host_heap import Surplus
from accel_lab.compute.message.builtin import Free
from accel_lab.compute.output import printing
from accel_lab.compute.wire.side_channel import (
    Heartbeat,
    Look,
    Segment,
    receive_upward,
    send_packet,
)
from accel_lab.context_process import Control
from accel_lab.errors import LibraryError
from tests.compute.wires import Wire, service_of

WAIT_S = 30.0


def no_descriptor(*_: Any, **__: Any) -> None:
    raise OSError(24, "Too many open files")


class Ending(Control):
    """Ends with its channel, and the process goes on."""

    def run(self) -> None:
        with contextlib.suppress(SystemExit):
            super().run()


class Beating:
    """A control thread, and the notebook's end of its channel."""

    def __init__(self) -> None:
        kind = socket.SOCK_SEQPACKET
        self.upper, self._lower = socket.socketpair(socket.AF_UNIX, kind)
        backend = HostBackend(0)
        self.arena, self.surplus = SegmentBytes(backend), Surplus()
        self.context = Context(backend, [], self.arena, 1, {}, None)
        service = service_of(Wire([]), self.context)
        self.control = Ending(self._lower, service, self.context, self.arena, self.surplus)

    def beats(self) -> bool:
        """Begin, and wait for the first beat."""
        self.control.start()
        ready = select.select([self.upper], [], [], WAIT_S)[0]
        return bool(ready) and isinstance(receive_upward(self.upper), Heartbeat)

    def end(self) -> None:
        self.upper.close()
        self.control.join(WAIT_S)
        self._lower.close()


@pytest.fixture
def beating(monkeypatch: pytest.MonkeyPatch) -> Iterator[Beating]:
    def leave(_: int) -> None:
        raise SystemExit

    monkeypatch.setattr(os, "_exit", leave)
    monkeypatch.setattr("accel_lab.compute.dispatcher.decoding.travelling", lambda: [Free])
    beating = Beating()
    yield beating
    beating.end()


def test_it_beats_though_what_the_context_keeps_cannot_be_read(
    beating: Beating, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(beating.surplus, "look", no_descriptor)
    assert beating.beats()


def test_it_beats_though_what_is_printed_cannot_be_sent(
    beating: Beating, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_text() -> None:
        raise UnicodeEncodeError("utf-8", "x", 0, 1, "of a test")

    monkeypatch.setattr(printing, "look", no_text)
    assert beating.beats()


def test_it_beats_though_nobody_can_be_told_what_is_free(
    beating: Beating, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(beating.context, "free_bytes", no_descriptor)
    send_packet(beating.upper, Look(memory=True, work=False, every=False))
    assert beating.beats()


def test_it_beats_though_a_segment_comes_without_its_descriptor(beating: Beating) -> None:
    """As where the process has none free; what needs the segment fails then."""
    send_packet(beating.upper, Segment(1, 4096))
    assert beating.beats()
    with pytest.raises(LibraryError, match="segment 1 cannot be mapped"):
        beating.arena.view(1, 0, 8)
