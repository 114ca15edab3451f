"""The notebook's part in driving one node: what its contexts are told and say, in batches.

One thread takes what there is to say to the node and says it, and goes on when the node has done
it; meanwhile more comes together. Another one waits for what the node says. Nobody else waits for
the cluster.

A node has a copy of the arena. The relay looks through the frames for what messages name there:
what they read goes before the frame; what they write comes before the answer, and stands here when
that is read; and what another device is still to write goes when it is there.
"""

import os
import select
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

import msgspec
import numpy as np

from accel_lab.compute.arena.arena import Arena
from accel_lab.compute.arena.segment import Segment
from accel_lab.compute.cluster.entries import (
    Down,
    End,
    Exited,
    Fill,
    Forked,
    Frame,
    Heard,
    Printed,
    Region,
    Take,
    Tell,
    Unloadable,
    Up,
)
from accel_lab.compute.cluster.named_bytes import answered, named
from accel_lab.compute.cluster.remote_process import RemoteProcess
from accel_lab.compute.message.builtin import TAIL_BYTES, WORD
from accel_lab.compute.wire.side_channel import DropSegment
from accel_lab.errors import BackendUnavailable
from accel_lab.uncopied import Uncopied

BATCH_BYTES = 32 << 20
"""So much goes down at once: a frame more may come with it."""
LOOK_S = 0.001
"""So often it is looked whether another device has written what a context here waits for."""
UP_LIMIT_S = 10.0


class NodeLost(Exception):
    """A node of the cluster is gone, or its actor is; the relay alone meets it."""


class Machine(Protocol):
    """What owns the contexts on a node; each method blocks, and one thread at a time calls it."""

    name: str

    @property
    def is_mute(self) -> bool:
        """Whether nothing can be heard of it now, although it may go on; any thread."""

    @property
    def is_entered(self) -> bool:
        """Whether this thread is one of its own, which carries what others wait for."""

    def begin(self) -> None:
        """Have it started.

        Raises:
            BackendUnavailable: contexts of this system cannot run there.
            NodeLost: it is gone.
        """

    def down(self, entries: list[Down]) -> None:
        """Have it do these; raises NodeLost."""

    def up(self, timeout_s: float) -> list[Up] | None:
        """Return what it says, None when it is closed; raises NodeLost."""

    def close(self) -> None:
        """End it with all that it owns; also one that is gone, or has not begun."""


class Relay(Uncopied):
    """Carries what is said between the contexts of one node and their devices.

    Parameters:
        gone: called, before the contexts end, with why nothing more can be had of the node.
    """

    def __init__(
        self, machine: Machine, arena: Arena, gone: Callable[["Relay", str], None]
    ) -> None:
        self._machine = machine
        self._arena = arena
        self._gone = gone
        # Re-entrant: in the middle of it a finalizer may have a context told something.
        self._lock = threading.RLock()
        self._processes: dict[int, RemoteProcess] = {}
        self._new: list[RemoteProcess] = []
        self._segments: dict[int, Segment] = {}
        self._heard_of: dict[int, RemoteProcess] = {}  # by the descriptor that is polled
        self._full: set[int] = set()
        """The descriptors of those that had more to say than there was room for."""
        self._bell = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._poll = select.poll()
        self._poll.register(self._bell, select.POLLIN)
        self._is_over = self._is_closing = False
        self._why = self._refusal = ""
        self._begun = threading.Event()
        self._threads = [
            threading.Thread(target=target, name=f"accel_lab {name} {machine.name}", daemon=True)
            for name, target in (("down", self._run_down), ("up", self._run_up))
        ]
        for thread in self._threads:
            thread.start()

    def take(self, process: RemoteProcess) -> None:
        """Have a context started there; any thread. It ends at once where the node is lost."""
        process.place = self._machine.name
        with self._lock:
            is_over = self._is_over
            if not is_over:
                process.ring = self._ring
                process.machine = self._machine
                self._processes[process.number] = process
                self._new.append(process)
        if is_over:
            self._end(process)
            process.leave()
        else:
            self._ring()

    @property
    def has_ended(self) -> bool:
        """Whether nothing of it goes on here any more; any thread."""
        return self._is_over and not any(thread.is_alive() for thread in self._threads)

    @property
    def is_entered(self) -> bool:
        """Whether this thread carries what others wait for: a finalizer asks."""
        return threading.current_thread() in self._threads or self._machine.is_entered

    def close(self, closed: Callable[[], object]) -> None:
        """Kill the contexts, end the node's part, and call `closed`; does not wait for that.

        Of a node that is lost it says when the last of it here has ended.
        """
        self._is_closing = True

        def close() -> None:
            with suppress(NodeLost):
                self._machine.close()
            self._lose("its system was closed")
            for thread in self._threads:
                thread.join(UP_LIMIT_S)
            closed()

        threading.Thread(target=close, name=f"accel_lab leaves {self._machine.name}").start()

    def _ring(self) -> None:
        with self._lock:  # the number may be another file's once it is closed
            if self._bell >= 0:
                os.eventfd_write(self._bell, 1)

    def _lose(self, why: str, refusal: str = "") -> None:
        """Nothing more can be had of the node; any thread, once."""
        with self._lock:
            if self._is_over:
                return
            self._is_over = True
            self._why, self._refusal = why, refusal
            processes = list(self._processes.values())
        self._begun.set()
        if not self._is_closing:
            self._gone(self, why)
        for process in processes:
            self._end(process)
        self._ring()
        if not self._is_closing:  # what is left there is of no use, and who waits for it ends so
            name = f"accel_lab leaves {self._machine.name}"
            leaving = threading.Thread(target=self._machine.close, name=name, daemon=True)
            self._threads.append(leaving)
            leaving.start()

    def _end(self, process: RemoteProcess) -> None:
        if self._refusal:
            process.refuse(self._refusal)
        else:
            process.end(f"the loss of its node, {self._machine.name}: {self._why}")

    # Down.

    def _run_down(self) -> None:
        try:
            self._machine.begin()
            self._begun.set()
            if self._is_over:  # while it began, so it was not ended
                self._machine.close()
            while not self._is_over:
                entries = self._collect()
                if entries:
                    self._machine.down(entries)
        except BackendUnavailable as error:
            self._lose(str(error), str(error))
        except NodeLost as error:
            self._lose(str(error))
        except Exception as error:  # noqa: BLE001 - nobody is to wait for what does not come
            self._lose(f"accel_lab failed beside it: {type(error).__name__}: {error}")
        finally:
            self._end_down()

    def _end_down(self) -> None:
        for process in [*self._heard_of.values(), *self._new]:
            process.far.close()
        with self._lock:
            bell, self._bell = self._bell, -1
        os.close(bell)
        self._segments.clear()

    def _collect(self) -> list[Down]:
        """Wait for something to say, and return it."""
        awaits = any(process.awaits for process in self._heard_of.values())
        wait_ms = 0 if self._full else LOOK_S * 1000 if awaits else None
        ready = {fd for fd, _ in self._poll.poll(wait_ms)} | self._full
        self._full = set()
        if self._bell in ready:
            ready.discard(self._bell)
            with suppress(BlockingIOError):
                os.eventfd_read(self._bell)
        frames: list[Down] = []
        left = BATCH_BYTES
        for fd in ready:
            left -= self._frames(self._heard_of[fd], frames, left)
        if awaits:
            self._arrived(frames)
        # Taken last and said first: a segment is told before a frame names it.
        entries: list[Down] = [*self._taken()]
        for process in list(self._heard_of.values()):
            if process.is_over:
                self._forget(process)
                continue
            for entry in process.said():
                entries.append(entry)
                if isinstance(entry, Tell) and isinstance(entry.packet, DropSegment):
                    self._segments.pop(entry.packet.id, None)
        return entries + frames

    def _taken(self) -> list[Down]:
        with self._lock:
            new, self._new = self._new, []
        for process in new:
            self._heard_of[process.far.fd] = process
            self._poll.register(process.far.fd, select.POLLIN)
        return [Take(process.number) for process in new]

    def _forget(self, process: RemoteProcess) -> None:
        if self._heard_of.pop(process.far.fd, None) is not None:
            self._deaf(process)
            process.far.close()
        with self._lock:
            self._processes.pop(process.number, None)

    def _deaf(self, process: RemoteProcess) -> None:
        self._full.discard(process.far.fd)
        with suppress(KeyError):
            self._poll.unregister(process.far.fd)

    def _frames(self, process: RemoteProcess, into: list[Down], left: int) -> int:
        """Add the frames that a context is sent, with what they name; return how many bytes."""
        taken = 0
        try:
            while True:
                if taken > left:
                    # It may have been read from the socket already, which is then silent about it.
                    self._full.add(process.far.fd)
                    break
                payload = process.far.receive()
                if payload is None:
                    break
                frame = bytes(payload)
                found = named(frame)
                for region in found.reads:
                    into.append(self._fill(region))
                    taken += region.nbytes
                for seq, region in found.awaits.items():
                    into.append(Fill(*_tail(region)[:2], np.zeros(TAIL_BYTES, np.uint8)))
                    with process.lock:
                        process.awaits[seq] = region
                into.append(Frame(process.number, frame, found.writes))
                taken += len(frame)
        except (EOFError, ValueError, msgspec.DecodeError):
            self._deaf(process)  # it stays known until it has ended
            into.append(End(process.number))
        return taken

    def _arrived(self, into: list[Down]) -> None:
        """Add what other devices have written of that for which contexts wait."""
        for process in self._heard_of.values():
            with process.lock:
                for seq, region in list(process.awaits.items()):
                    tail = _tail(region)
                    if not self._fill(tail).data[:WORD].any():
                        continue
                    del process.awaits[seq]
                    word = tail._replace(nbytes=WORD)
                    rest = Region(region.segment, tail.start + WORD, TAIL_BYTES - WORD)
                    contents = region._replace(nbytes=region.nbytes - TAIL_BYTES)
                    # In this order: who has seen the word reads the others.
                    into += [_copied(self._fill(one)) for one in (contents, rest, word)]

    def _fill(self, region: Region) -> Fill:
        view = self._segment(region.segment).bytes(region.start, region.nbytes)
        return Fill(region.segment, region.start, view)

    def _segment(self, id_: int) -> Segment:
        found = self._segments.get(id_)
        if found is None:
            self._segments.update((one.id, one) for one in self._arena.segments)
            found = self._segments[id_]
        return found

    # Up.

    def _run_up(self) -> None:
        self._begun.wait()
        try:
            while not self._is_over:
                entries = self._machine.up(UP_LIMIT_S)
                if entries is None:
                    return
                for entry in entries:
                    self._deliver(entry)
        except NodeLost as error:
            self._lose(str(error))
        except Exception as error:  # noqa: BLE001 - nobody is to wait for what does not come
            self._lose(f"accel_lab failed beside it: {type(error).__name__}: {error}")

    def _deliver(self, entry: Up) -> None:
        if isinstance(entry, Unloadable):
            text = f"the backend cannot be loaded on {self._machine.name}: {entry.why}"
            self._lose(text, text)
            return
        if isinstance(entry, Fill):
            nbytes = entry.data.nbytes
            where = next((one for one in self._arena.segments if one.id == entry.segment), None)
            if where is not None:
                where.bytes(entry.start, nbytes)[:] = entry.data
            return
        process = self._processes.get(entry.number)
        if process is None or process.is_over:
            return
        if isinstance(entry, Frame):
            self._settle(process, entry.data)
            process.deliver(entry.data)
        elif isinstance(entry, Heard):
            process.hear(entry.packet)
        elif isinstance(entry, Printed):
            process.print(entry.stream, entry.data)
        elif isinstance(entry, Forked):
            process.forked(entry.pid)
        elif isinstance(entry, Exited):
            process.end(entry.status, entry.executing)
            self._ring()

    def _settle(self, process: RemoteProcess, frame: bytes) -> None:
        """Wait no more for what requests were to get that are answered: its place is free then."""
        if not process.awaits:
            return
        with suppress(msgspec.DecodeError), process.lock:
            for seq in answered(frame):
                process.awaits.pop(seq, None)


def _tail(region: Region) -> Region:
    """Return where it stands whether a region is there, which ends with that."""
    return Region(region.segment, region.start + region.nbytes - TAIL_BYTES, TAIL_BYTES)


def _copied(fill: Fill) -> Fill:
    """Return it as it is now."""
    return fill._replace(data=np.array(fill.data))
