"""The notebook's end of the wire to one context process.

Who waits, reads: a thread blocked in `.result()` or an awaiting loop takes the answers off the
wire itself. The system thread reads when nobody waits, and steps in when the one who waits is
kept from reading by a busy cell.

A thread that only reads would be simpler. Each answer would wake two threads then, and under one
interpreter lock that hand-over is a large part of a small request (docs/decisions/0005). The price
is that reading changes hands, in this file:

- `_reading` says who reads. Whoever gives it up wakes a follower, or leaves the wire announced to
  the system thread or to a loop. An answer that comes just then is read by who gives up: so
  `_let_go` looks once more, before and after.
- The lock is never waited for: who finds it taken becomes a follower (a thread) or relies on the
  descriptor (a loop). So no reader can block another, also not one that an interrupt has hit.
- Answers are delivered by whoever reads, so in any thread, and under this lock. The caller of
  anything that reads must hold no lock that completing a reply takes.
- What is freed is told behind what was sent before it (the trailer), or a message could name a
  buffer that the context has forgotten.

Where the figures come from. A batch of 64 and a tick of 1 ms are what loops of small messages need
to outrun CuPy's own (docs/decisions/0019). Spinning is bounded by `spin_s`, and gives the core away
after 50 µs: a yield costs 1 µs, and without one a spinner that shares a core with its context has
taken 84 to 200 µs. After tries in vain up to 31 are skipped, so slow work pays 3% of them. The
others are judged: no measurement is kept that tells one of them from its half or its double.
"""

import asyncio
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

from accel_lab.actor.event_loop import EventLoop
from accel_lab.actor.reply import GLANCE_S, Reply, acquire
from accel_lab.compute.arena.completion_flag import Flag
from accel_lab.compute.machine import switch_interval
from accel_lab.compute.machine.deferred_interrupts import UNINTERRUPTED
from accel_lab.compute.wire.codec import Report, batch, decode_reports
from accel_lab.compute.wire.transport import Transport

BATCH_MESSAGES = 64
LONG_MESSAGE = 4 << 10
TICK_S = 0.001
LONG_TICK_S = 0.002
REARM_AFTER_TICKS = 30
LINGER_S = 0.05
YIELD_EVERY_S = 0.005
SKIP_LIMIT = 31
RETRY_S = 0.0005
FRAMES_AT_ONCE = 256
LOOKS = 16
YIELD_AFTER_S = 0.00005
BURST_S = 0.00005
ENDED = "its wire ended"
"""The reason of a link whose context is gone: how that ended tells why."""


class Link:
    """One wire to one context: batches what is sent, shares the reading of what arrives."""

    def __init__(
        self,
        transport: Transport,
        event_loop: EventLoop,
        received: Callable[["Link", list[Report]], None],
        ended: Callable[["Link", str], None],
        trailer: Callable[[], bytes | None],
        *,
        spin_s: float,
    ) -> None:
        self._transport = transport
        self._fd = transport.fd
        self._event_loop = event_loop
        self._received = received
        self._ended = ended
        self._trailer = trailer
        self._spin_s = spin_s
        self._begun = 0
        self._parts: deque[bytes] = deque()
        self._last = b""
        self._backlog: deque[bytes] = deque()
        self._writing = threading.RLock()
        self.writer = 0
        """The thread that writes; 0 for none."""
        self._reading = threading.Lock()
        self._reader = 0
        """The thread that reads; 0 for none."""
        self._followers: deque[threading.Lock] = deque()
        self._loops: dict[asyncio.AbstractEventLoop, _LoopReader] = {}
        self._armed = True
        self._ticking = False
        self._urgent = switch_interval.IntervalClaim()
        self._left_alone = 0.0
        self._collected = False
        self._tick_s = TICK_S
        self._idle_ticks = 0
        self._drained = False
        self._skip = 0
        self._vain = 0
        self._yielded = 0.0
        self.closed = False
        self._is_over = False
        event_loop.add_reader(self._fd, self._on_dispatcher)
        event_loop.call_soon(self._on_dispatcher)  # the context may have been faster

    @property
    def executing(self) -> int:
        """The request that the context is executing, or was when its process ended; 0 for none.

        Any thread.
        """
        told = self._transport.executing
        begun: int = told[0]
        return begun if begun != told[1] else 0

    @property
    def begun(self) -> int | None:
        """The newest request that the context has begun; None where it cannot tell. Any thread."""
        if not self._transport.is_told:
            return None
        # What was put off is finished later, under a number that is none of the newest.
        self._begun = max(self._begun, self._transport.executing[0])
        return self._begun

    # Sending. The device's lock is held by the caller of `send`, so parts keep its order.

    def send(self, data: bytes, *, idle: bool) -> bool:
        """Append one encoded entry; whether it completed a batch, and it is time to `collect`.

        It leaves at once when nothing else is in flight, unless it follows another closely that
        nobody has waited for: such messages leave together.
        """
        if idle:
            now = time.perf_counter()
            alone, self._left_alone = now - self._left_alone > BURST_S, now
            if alone and self._send_alone(data):
                return False
        self._parts.append(data)
        if len(self._parts) >= BATCH_MESSAGES or len(data) > LONG_MESSAGE:
            self.flush()
            return True
        if not self._urgent.made:
            self._hold()
        return False

    def send_now(self, data: bytes) -> None:
        """Send one encoded entry, and all that is before it, without waiting for a batch."""
        if not self._send_alone(data):
            self._parts.append(data)
            self.flush()

    @property
    def is_written_here(self) -> bool:
        """Whether this thread is writing: what is sent now comes from a finalizer."""
        return bool(self.writer) and self.writer == threading.get_ident()

    @property
    def is_read_here(self) -> bool:
        """Whether this thread is reading: who waits now is a finalizer, or what is delivered."""
        return bool(self._reader) and self._reader == threading.get_ident()

    def took(self, data: bytes) -> bool:
        """Whether the entry that came last has come this far; for a `send` that was interrupted."""
        # In this order: another thread that writes notes the last before it takes it away.
        return data in self._parts or self._last is data

    def _send_alone(self, data: bytes) -> bool:
        """Write one entry at once, if nothing is to be written before it."""
        UNINTERRUPTED.begin()
        try:
            if self.is_written_here or not self._writing.acquire(blocking=False):
                return False
            try:
                if self._parts or self.closed:
                    return False
                self.writer = threading.get_ident()
                self._last = data
                self._write(batch([data]))
                # Nobody can append a message meanwhile that names what is free by now.
                trailer = self._trailer()
                if trailer is not None:
                    self._write(batch([trailer]))
                return True
            finally:
                self.writer = 0
                self._writing.release()
        finally:
            UNINTERRUPTED.end()

    def flush(self) -> None:
        """Write what has been appended, and after it the trailer; never blocks."""
        UNINTERRUPTED.begin()
        try:
            if self.is_written_here:  # by a finalizer, in the middle of that
                self._event_loop.call_soon(self.flush)
                return
            with self._writing:
                self.writer = threading.get_ident()
                try:
                    if not self.closed:  # else what has been freed since is for the next link
                        self._write_all()
                finally:
                    self.writer = 0
        finally:
            UNINTERRUPTED.end()

    def _write_all(self) -> None:
        # What names a freed buffer was appended before it was freed: so the trailer is made
        # first, and written last.
        trailer = self._trailer()
        waiting = self._parts
        while waiting:
            count = min(len(waiting), BATCH_MESSAGES)
            self._last = waiting[count - 1]
            parts = [waiting.popleft() for _ in range(count)]
            if trailer is not None and not waiting and len(trailer) <= LONG_MESSAGE:
                parts.append(trailer)  # so the context knows what of the batch nobody asks for
                trailer = None
            self._write(batch(parts))
        if trailer is not None:
            self._write(batch([trailer]))

    def _write(self, frame: bytes) -> None:
        """Write a frame behind those that found no room; the writing lock is held."""
        if self.closed:
            return
        try:
            if not self._backlog and self._transport.send(frame):
                return
        except OSError:
            self._event_loop.call_soon(self._end, ENDED)
            return
        self._backlog.append(frame)
        if len(self._backlog) == 1:
            self._event_loop.call_later(RETRY_S, self._retry)

    def _retry(self) -> None:
        """Write what found no room before; system thread."""
        with self._writing:
            backlog, self._backlog = self._backlog, deque()
            for frame in backlog:
                self._write(frame)

    # Reading.

    @property
    def spins(self) -> bool:
        """Whether there are cores to read without sleeping."""
        return self._spin_s > 0.0

    @property
    def is_supervised(self) -> bool:
        """Whether the thread that supervises is reading: it waits for nobody."""
        return self._event_loop.is_current()

    def spin(self, reply: Reply[Any], soon_s: float = 0.0, flag: Flag | None = None) -> bool:
        """Read for a moment without sleeping; whether that brought the reply, or set the flag.

        Parameters:
            soon_s: how much longer it may take, because what is asked for takes that long.
        """
        self._left_alone = 0.0
        if self._parts:
            self.flush()
        return self._spin(reply, soon_s, flag)

    def wait(self, reply: Reply[Any], timeout_s: float | None) -> None:
        """Block until the reply is done, the link has ended, or the time is over."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        self.flush()
        while not reply.done and not self.closed:
            if self._begin():
                try:
                    in_time = self._lead(reply, deadline)
                finally:
                    self._let_go()
            else:
                in_time = self._follow(reply, deadline)
            if not in_time:
                return

    def _lead(self, reply: Reply[Any], deadline: float | None) -> bool:
        """Read until the reply is done or the link has ended; False when the time is over."""
        self._claim()
        transport = self._transport
        if not self.closed:
            transport.wake()
        while not reply.done and not self.closed:
            if self._take() or not transport.sleep():
                continue
            # Not for ever: another thread may complete the reply, by taking it back.
            left = GLANCE_S
            if deadline is not None:
                left = min(deadline - time.monotonic(), GLANCE_S)
                if left <= 0:
                    return False
            with UNINTERRUPTED.heeded():
                transport.wait(left)
        return True

    def _follow(self, reply: Reply[Any], deadline: float | None) -> bool:
        """Wait for the reply or for the reader's place; False when the time is over."""
        gate = threading.Lock()
        gate.acquire()
        wake = _Gate(gate)
        reply.add_waiter(wake)
        self._followers.append(gate)
        if not self._reading.locked():
            self._promote()
        woken = acquire(gate, deadline)
        try:
            self._followers.remove(gate)
        except ValueError:
            if not woken:
                self._promote()  # it was promoted as it gave up: pass the place on
        return woken

    def _promote(self) -> None:
        try:
            gate = self._followers.popleft()
        except IndexError:
            return
        _Gate(gate)()

    def attend(self, loop: asyncio.AbstractEventLoop, reply: Reply[Any]) -> bool:
        """Have the loop (the calling thread's) read while it awaits.

        A reply that is quick is read at once, but a loop of quick awaits still lets the loop's
        other tasks run every few milliseconds.
        """
        now = time.perf_counter()
        if now - self._yielded < YIELD_EVERY_S:
            if self.spin(reply):
                return False
        else:
            self._yielded = now
        self._left_alone = 0.0
        self.flush()
        reader = self._reader_of(loop)
        if reader is None:
            return False
        reader.attending += 1
        self._claim()
        self.drain()  # has what comes next announced
        return True

    def _reader_of(self, loop: asyncio.AbstractEventLoop) -> "_LoopReader | None":
        """Return what reads for a loop (the calling thread's); None once the link is closed."""
        reader = self._loops.get(loop)
        if reader is None:
            with self._writing:  # while it is held the descriptor stays open
                if self.closed:
                    return None
                reader = self._loops[loop] = _LoopReader(self, loop, os.dup(self._fd))
            if self.closed:  # who closed it may not have seen this reader
                self.forget(loop)
                reader.stop()
                return None
        return reader

    def _spin(  # noqa: C901, PLR0912 - the hot path, in one piece
        self, reply: Reply[Any], soon_s: float = 0.0, flag: Flag | None = None
    ) -> bool:
        """Read without sleeping for a moment; True when that brought the reply, or set the flag.

        After tries in vain more and more of the next are skipped: the work at hand is slow. Not so
        where it is known for how long, which says nothing of the rest.
        """
        if self._spin_s == 0.0 or (self._skip and not soon_s):
            self._skip = max(self._skip - 1, 0)
            return False
        if not self._begin():
            return False
        try:
            self._claim()
            if not self.closed:
                self._transport.wake()
            begin = time.perf_counter()
            spin_s = self._spin_s + soon_s
            looks = 0
            while not self.closed:
                if self._take():
                    if reply.done:
                        self._skip = self._vain = 0
                        return True
                elif reply.done or (flag is not None and flag.is_set):
                    return True
                else:
                    looks += 1
                    if looks % LOOKS == 0:
                        spun = time.perf_counter() - begin
                        if spun > spin_s or UNINTERRUPTED.late:
                            break
                        if spun > YIELD_AFTER_S:
                            os.sched_yield()  # the context may share this core
        finally:
            self._let_go()
        if not soon_s:
            self._skip = self._vain = min(2 * self._vain + 1, SKIP_LIMIT)
        return reply.done

    @contextmanager
    def reading(self) -> Iterator[Callable[[], bool]]:
        """Read alone for a while: give what delivers a frame, and tells whether there was one.

        It delivers none where another thread reads.
        """
        if not self._begin():
            yield lambda: False
            return
        try:
            self._claim()
            if not self.closed:
                self._transport.wake()
            yield lambda: not self.closed and self._take()
        finally:
            self._let_go()

    def collect(self) -> None:
        """Take what has come, so that no other thread has to while this one sends.

        Replies are completed here, so the caller must hold no lock.
        """
        self._collected = True
        if self._begin():
            try:
                self._claim()
                while not self.closed and self._take():
                    pass
            finally:
                self._let_go()

    def leave(self, loop: asyncio.AbstractEventLoop) -> None:
        """Undo one `attend`; the loop goes on reading for a moment, in case it awaits again."""
        reader = self._loops.get(loop)
        if reader is not None:
            reader.left()

    def forget(self, loop: asyncio.AbstractEventLoop) -> None:
        """Stop having this loop read."""
        self._loops.pop(loop, None)

    def drain(self) -> None:
        """Read what is there without blocking, unless another thread is reading."""
        if self._begin():
            try:
                self._drained = True
                if not self.closed:
                    self._transport.hear()
                    self._take_all()
            finally:
                self._release()
                UNINTERRUPTED.end()

    def _begin(self) -> bool:
        """Begin to read, if nobody does; no KeyboardInterrupt comes until that has ended."""
        UNINTERRUPTED.begin()
        if self._reading.acquire(blocking=False):
            self._reader = threading.get_ident()
            return True
        UNINTERRUPTED.end()
        return False

    def _release(self) -> None:
        """Let others read, and tell who waits for that; it raises nothing."""
        self._reader = 0
        self._reading.release()
        if self._followers:
            self._promote()
        if self._is_over:
            self._close_transport()

    def _let_go(self) -> None:
        """Stop reading; who relies on the descriptor will hear of what comes from now on."""
        relied = self._armed or bool(self._loops)
        try:
            try:
                if relied:
                    self._take_all()
            finally:
                self._release()
            if not relied and (self._armed or self._loops):
                self.drain()  # somebody has come to rely on it meanwhile
        finally:
            UNINTERRUPTED.end()

    def _take_all(self) -> None:
        """Deliver every frame there is and have the next one announced; the lock is held."""
        for _ in range(FRAMES_AT_ONCE):
            if self.closed or (not self._take() and self._transport.sleep()):
                return
        self._event_loop.call_soon(self._on_dispatcher)

    def _take(self) -> bool:
        """Deliver one frame; False when there is none. The reading lock is held."""
        try:
            payload = self._transport.receive()
            if payload is None:
                return False
            reports = decode_reports(payload)
        except EOFError:
            self._end(ENDED)
        except (ValueError, msgspec.DecodeError) as error:
            self._end(f"its wire is corrupt: {error}")
        else:
            return self._deliver(reports)
        return False

    def _deliver(self, reports: list[Report]) -> bool:
        """Have a frame's answers taken; where that fails, the rest of it would never come."""
        try:
            self._received(self, reports)
        except Exception as error:  # noqa: BLE001 - who waits for others is told of no error here
            self._end(f"its answers cannot be taken in: {type(error).__name__}: {error}")
            return False
        return True

    def _end(self, reason: str) -> None:
        if not self.closed:
            self.closed = True
            self._ended(self, reason)

    def close(self) -> None:
        """End the link: wakes whoever reads; the descriptors close when nobody does any more."""
        self.closed = True
        self._urgent.drop()  # no tick may come any more
        self._transport.shutdown()
        for reader in list(self._loops.values()):
            reader.stop()
        self._loops.clear()
        self._event_loop.call_soon(self._close_descriptors)

    def _close_descriptors(self) -> None:
        self._event_loop.remove_reader(self._fd)
        self._is_over = True
        self._close_transport()

    def _close_transport(self) -> None:
        """Close it, unless somebody reads, and does so then: making an answer may take long."""
        if self._reading.acquire(blocking=False):
            with self._writing:
                self._transport.close()
            self._reading.release()
            if self._followers:
                self._promote()

    # The system thread's part.

    def _claim(self) -> None:
        """Take the reading away from the system thread while somebody waits."""
        if self.closed:
            return
        self._idle_ticks = 0
        if self._armed:
            self._armed = False
            self._event_loop.pause_reader(self._fd)
            if not self._ticking:
                self._tick_soon()

    def _on_dispatcher(self) -> None:
        if not self.closed:
            self.flush()
            self.drain()
            self.flush()

    def _hold(self) -> None:
        """What is held back leaves with the next tick, for which a busy cell has to make room."""
        self._urgent.make()
        if self.closed:  # who closed it may not have seen that
            self._urgent.drop()
        elif not self._ticking:
            self._tick_soon()

    def _tick_soon(self) -> None:
        self._ticking = True
        self._event_loop.call_soon(self._arm_tick)

    def _arm_tick(self) -> None:
        self._event_loop.call_later(self._tick_s, self._tick)

    def _tick(self) -> None:
        if self.closed:
            self._ticking = False
            return
        # A tick takes the interpreter away from who sends: rarer while that one flushes by itself.
        self._tick_s = min(2 * self._tick_s, LONG_TICK_S) if self._collected else TICK_S
        self._collected = False
        if not self._parts:
            self._urgent.drop()
        self.flush()
        for loop, reader in list(self._loops.items()):
            if loop.is_closed():  # before it could stop its reader
                self.forget(loop)
                reader.stop()
        attended = any(reader.attending for reader in self._loops.values())
        if not self._reading.locked():
            if not attended or not self._drained:
                self.drain()
            self._drained = False
            self._idle_ticks = 0 if attended else self._idle_ticks + 1
        if not self._armed and self._idle_ticks > REARM_AFTER_TICKS:
            self._armed = True
            self._event_loop.resume_reader(self._fd)
            self.drain()
        if self._armed and not self._parts:
            self._ticking = False
            self._urgent.drop()
            if self._parts:  # a sender saw the old flags
                self._tick_soon()
            return
        self._arm_tick()


class _Gate:
    """Opens a waiting thread's gate; more than once does no harm."""

    __slots__ = ("_gate",)

    def __init__(self, gate: threading.Lock) -> None:
        self._gate = gate

    def __call__(self) -> None:
        try:
            self._gate.release()
        except RuntimeError:
            return


class _LoopReader:
    """An asyncio loop that reads a link through a descriptor of its own."""

    def __init__(self, link: Link, loop: asyncio.AbstractEventLoop, fd: int) -> None:
        self._link = link
        self._loop = loop
        self._fd = fd
        self._lingering = False
        self.attending = 0
        loop.add_reader(fd, link.drain)

    def left(self) -> None:
        self.attending -= 1
        if self.attending <= 0 and not self._lingering:
            self._lingering = True
            self._loop.call_later(LINGER_S, self._maybe_stop)

    def _maybe_stop(self) -> None:
        self._lingering = False
        if self.attending > 0:
            return
        self._link.forget(self._loop)
        self._remove()

    def stop(self) -> None:
        """Stop from any thread."""
        try:
            if asyncio._get_running_loop() is self._loop:  # noqa: SLF001 - the public one raises elsewhere
                self._remove()
            else:
                self._loop.call_soon_threadsafe(self._remove)
        except RuntimeError:  # the loop is closed and polls nothing
            self._close()

    def _remove(self) -> None:
        if self._fd >= 0:
            self._loop.remove_reader(self._fd)
        self._close()

    def _close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
