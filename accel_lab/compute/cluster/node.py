"""What a node of the cluster does for a system: it owns the context processes there.

They are started as a system starts its own, from a zygote, with rings and a control channel. What
they say goes up in batches, whatever there is by then; what they are told comes down likewise.
"""

import os
import threading
from collections import deque
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from accel_lab.actor.event_loop import EventLoop
from accel_lab.compute.cluster.entries import (
    Down,
    End,
    Exited,
    Fill,
    Forked,
    Frame,
    Heard,
    Kill,
    Printed,
    Region,
    Take,
    Tell,
    Unloadable,
    Up,
)
from accel_lab.compute.cluster.greeting import Greeting, greeting
from accel_lab.compute.cluster.mirror import Mirror
from accel_lab.compute.cluster.named_bytes import answered
from accel_lab.compute.process import zygote_cache
from accel_lab.compute.process.spawner import ContextProcess, Spawner
from accel_lab.compute.wire.side_channel import Bind, Downward, DropSegment, Segment, Upward

BATCH_BYTES = 32 << 20
"""So much goes up at once at most, or the one entry that is larger."""
FRAMES_AT_ONCE = 256
RETRY_S = 0.0005
CLOSE_LIMIT_S = 5.0
PART = 1 << 16


class Contexts:
    """The contexts of one system on this machine; any thread may call.

    Parameters:
        backend: which.
        threads: `OMP_NUM_THREADS` of the notebook, "" for none: that of this process is Ray's own.
    """

    def __init__(self, backend: str, threads: str) -> None:
        os.environ.pop("OMP_NUM_THREADS", None)
        if threads:
            os.environ["OMP_NUM_THREADS"] = threads
        self._up: deque[Up] = deque()
        self._news = threading.Condition()
        self._closed = self._is_ending = False
        self._mirror = Mirror()
        self._hosted: dict[int, _Hosted] = {}
        self._event_loop = EventLoop("accel_lab node")
        folder = Path(__file__).parents[2] / "backends" / backend
        self._spawner = Spawner(backend, folder, self._event_loop, self._pipe, self._unloadable)
        self._taking = 0
        self._event_loop.start()

    def greet(self) -> Greeting:
        """Say what runs here; any system asks that first."""
        return greeting()

    def down(self, entries: list[Down]) -> None:
        """Do what these say, in their order; blocks until that is done."""
        done, failed = threading.Event(), list[BaseException]()
        if self._event_loop.call_soon(self._obey_all, entries, failed, done):
            done.wait()
        if failed:
            raise failed[0]

    def up(self, timeout_s: float = 10.0) -> list[Up] | None:
        """Return what there is to say, once there is something; None when all is closed."""
        with self._news:
            self._news.wait_for(lambda: self._up or self._closed, timeout_s)
            if self._closed and not self._up:
                return None
            batch: list[Up] = []
            left = BATCH_BYTES
            while self._up and left > 0:
                batch.append(self._up.popleft())
                if isinstance(batch[-1], Fill):
                    left -= batch[-1].data.nbytes
            return batch

    def close(self) -> None:
        """Kill and reap every context, and end what forked them; blocks for that."""
        done = threading.Event()
        if self._event_loop.call_soon(self._end, done.set):
            done.wait(CLOSE_LIMIT_S)
        zygote_cache.end()
        self._event_loop.call_soon(self._mirror.clear)
        self._event_loop.stop(CLOSE_LIMIT_S)
        with self._news:
            self._closed = True
            self._news.notify_all()

    # All that follows happens on the event loop.

    def _end(self, done: Callable[[], None]) -> None:
        self._is_ending = True
        self._spawner.close(done)

    def _say(self, entry: Up) -> None:
        with self._news:
            self._up.append(entry)
            self._news.notify_all()

    def _unloadable(self, why: str) -> None:
        self._say(Unloadable(why))

    def _obey_all(
        self, entries: list[Down], failed: list[BaseException], done: threading.Event
    ) -> None:
        try:
            for entry in entries:
                if not self._is_ending:  # else it would start what nobody ends
                    self._obey(entry)
        except BaseException as error:  # noqa: BLE001 - whoever sent it is told
            failed.append(error)
        finally:
            done.set()

    def _obey(self, entry: Down) -> None:
        if isinstance(entry, Take):
            self._take(entry.number)
        elif isinstance(entry, Fill):
            self._mirror.fill(entry)
        else:
            hosted = self._hosted.get(entry.number)
            if hosted is None:
                return  # it has ended, and that is on its way
            if isinstance(entry, Frame):
                hosted.send(entry)
            elif isinstance(entry, Tell):
                self._tell(hosted.process, entry)
            elif isinstance(entry, End):
                hosted.process.wire.shutdown()
            elif isinstance(entry, Kill):
                hosted.process.kill()

    def _take(self, number: int) -> None:
        self._taking = number
        try:
            process = self._spawner.take()
        except OSError as error:
            self._say(Exited(number, f"no start on its machine: {error}", (0, 0)))
            return
        hosted = self._hosted[number] = _Hosted(number, process, self._mirror, self._say)
        process.on_exit.append(partial(self._exited, hosted))
        self._event_loop.add_reader(process.wire.fd, partial(hosted.read, self._event_loop))
        self._event_loop.call_soon(hosted.read, self._event_loop)
        hosted.later = self._event_loop.call_later

    def _tell(self, process: ContextProcess, entry: Tell) -> None:
        packet: Downward = entry.packet
        if isinstance(packet, Bind):
            process.bind(packet, partial(self._heard, entry.number))
        elif isinstance(packet, Segment):
            fd = self._mirror.open(packet.id, packet.size)
            process.tell(packet, *([fd] if fd >= 0 else []))
        else:
            process.tell(packet)
            if isinstance(packet, DropSegment):
                self._mirror.drop(packet.id)

    def _heard(self, number: int, packet: Upward) -> None:
        hosted = self._hosted.get(number)
        if hosted is not None:
            hosted.tell_pid()
        self._say(Heard(number, packet))

    def _pipe(self, fd: int, stream: str) -> "_RawPipe":
        return _RawPipe(fd, partial(_print, self._say, self._taking, stream), self._event_loop)

    def _exited(self, hosted: "_Hosted", status: str) -> None:
        hosted.read(self._event_loop)  # what it has said last
        hosted.tell_pid()
        executing = hosted.executing
        hosted.end(self._event_loop)
        hosted.process.wire.close()
        self._hosted.pop(hosted.number, None)
        self._say(Exited(hosted.number, status, executing))
        if not self._hosted:  # the next one is told of all segments that there are then
            self._mirror.clear()


class _Hosted:
    """One context, and what is on its way to it."""

    def __init__(self, number: int, process: ContextProcess, mirror: Mirror, say: Any) -> None:
        self.number = number
        self.process = process
        self.later: Any = None
        self._mirror = mirror
        self._say = say
        self._backlog: deque[bytes] = deque()
        self._reads: dict[int, Region] = {}
        self._is_told = self._is_over = False

    @property
    def executing(self) -> tuple[int, int]:
        """The two words of its wire."""
        words = self.process.wire.executing
        return words[0], words[1]

    def tell_pid(self) -> None:
        """Say which process it is, once."""
        if not self._is_told and self.process.pid:
            self._is_told = True
            self._say(Forked(self.number, self.process.pid))

    def send(self, frame: Frame) -> None:
        """Send a frame, behind those that found no room."""
        self._reads.update(frame.reads)
        self._backlog.append(frame.data)
        if len(self._backlog) == 1:
            self._send()

    def _send(self) -> None:
        wire = self.process.wire
        try:
            while self._backlog and wire.send(self._backlog[0]):
                self._backlog.popleft()
        except OSError:  # it is gone, and that is noticed elsewhere
            self._backlog.clear()
        if self._backlog:
            self.later(RETRY_S, self._send)

    def read(self, event_loop: EventLoop) -> None:
        """Take the frames that have come, behind what was printed before."""
        if self._is_over:
            return
        for pipe in self.process.pipes:
            pipe.settle()
        wire = self.process.wire
        wire.hear()
        try:
            for _ in range(FRAMES_AT_ONCE):
                payload = wire.receive()
                if payload is not None:
                    self._received(bytes(payload))
                elif wire.sleep():
                    return
        except (EOFError, ValueError) as error:
            self.end(event_loop)
            if isinstance(error, ValueError):  # the wire is damaged: nothing more can be had of it
                self.process.kill()
            return
        if self.process.reaped:
            self.read(event_loop)
        else:
            event_loop.call_soon(self.read, event_loop)

    def end(self, event_loop: EventLoop) -> None:
        """Read no more."""
        if not self._is_over:
            self._is_over = True
            event_loop.remove_reader(self.process.wire.fd)

    def _received(self, frame: bytes) -> None:
        for seq in self._answered(frame) if self._reads else ():
            region = self._reads.pop(seq, None)
            fill = None if region is None else self._mirror.read(region)
            if fill is not None:
                self._say(fill)
        self.tell_pid()
        self._say(Frame(self.number, frame, {}))

    def _answered(self, frame: bytes) -> list[int]:
        try:
            return answered(frame)
        except msgspec.DecodeError:
            return []  # the notebook finds that, too


class _RawPipe:
    """One stream of a context, read as it is."""

    def __init__(self, fd: int, say: Any, event_loop: EventLoop) -> None:
        self._fd = fd
        self._say = say
        self._event_loop = event_loop
        os.set_blocking(fd, False)
        event_loop.add_reader(fd, self.settle)

    def settle(self) -> None:
        """Pass on what is there, in bounds; does not block."""
        for _ in range(16):
            try:
                data = os.read(self._fd, PART) if self._fd >= 0 else b""
            except BlockingIOError:
                return
            if not data:
                self._close()
                return
            self._say(data)

    def close(self) -> None:
        """Pass on what is left; nothing comes any more."""
        self.settle()
        self._close()

    def _close(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            self._event_loop.remove_reader(fd)
            os.close(fd)


def _print(say: Any, number: int, stream: str, data: bytes) -> None:
    say(Printed(number, stream, data))
