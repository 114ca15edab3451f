"""The entry point of the processes behind a system: `python -m accel_lab.context_process`.

The first is the zygote, which imports everything; its forks are the contexts. They inherit
sockets and listen on nothing. All end with the notebook's process, however that ends: the kernel
signals them, and their sockets reach their end.
"""

import contextlib
import ctypes
import gc
import importlib
import itertools
import os
import select
import socket
import sys
import threading
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from threadpoolctl import ThreadpoolController

from accel_lab.backends.fallback import helped
from accel_lab.backends.libraries import makers
from accel_lab.compute.cells import workspace_registry
from accel_lab.compute.cells.user_modules import Projects, distrust_bytecode
from accel_lab.compute.cells.workspace_registry import Workspaces
from accel_lab.compute.dispatcher import decoding
from accel_lab.compute.dispatcher.dispatcher import Dispatcher
from accel_lab.compute.dispatcher.sampling import Activity, show, show_records
from accel_lab.compute.dispatcher.segments import SegmentBytes
from accel_lab.compute.dispatcher.task import Task
from accel_lab.compute.events.samples import Slice
from accel_lab.compute.execution.context import Context
from accel_lab.compute.execution.launch import LibraryActor
from accel_lab.compute.fallback.fallback import Fallback
from accel_lab.compute.groups import group as groups
from accel_lab.compute.machine import host_heap
from accel_lab.compute.output import ipython_display, no_terminal, printing
from accel_lab.compute.output.printing import Printer, Screen
from accel_lab.compute.process import blas_threads, inherited_signals
from accel_lab.compute.process.parent_death import protect
from accel_lab.compute.process.zygote import LoadFailed, Zygote, tell
from accel_lab.compute.suspension.save_restore import SaveRestore
from accel_lab.compute.tracing.nvtx_ranges import NvtxRanges
from accel_lab.compute.tracing.seam import Follower, Seam
from accel_lab.compute.user_code.class_source import find_classes
from accel_lab.compute.user_code.interrupts import INTERRUPTS
from accel_lab.compute.wire.codec import Born
from accel_lab.compute.wire.failure import where
from accel_lab.compute.wire.side_channel import (
    Bind,
    CancelRequests,
    Collected,
    DropSegment,
    Expired,
    Flush,
    GroupWord,
    Heartbeat,
    Keep,
    Look,
    Segment,
    StartFailed,
    receive_downward,
    send_packet,
)
from accel_lab.compute.wire.text import fitting
from accel_lab.compute.wire.transport import Transport, open_transport
from accel_lab.libraries import ACTORS

HEARTBEAT_S = 1.0
POLL_S = 0.05
GLIMPSE_S = 0.1
PR_SET_TIMERSLACK = 29
TIMER_SLACK_NS = 1000
ALONE = "alone"
MOST_STATISTICS, NAME_BYTES, WHY_BYTES = 100, 256, 16 << 10
"""What a packet of the side channel holds, which is small, of what libraries and errors say."""


class _Seen(NamedTuple):
    """Something at work, and when it was first seen: monotonic, and wall seconds."""

    task: Task
    since: float
    at: float


class Control(threading.Thread):
    """Follows the control channel, beats, and watches deadlines while the dispatcher works."""

    def __init__(
        self,
        channel: socket.socket,
        service: Dispatcher,
        context: Context,
        arena: SegmentBytes,
        surplus: host_heap.Surplus | None,
        activity: Activity | None = None,
    ) -> None:
        super().__init__(name="control", daemon=True)
        self._channel = channel
        self._service = service
        self._context = context
        self._kept = context.service(SaveRestore)
        self._arena = arena
        self._sizes: dict[int, int] = {}
        self._seen: dict[int, _Seen] = {}
        self._unread_s = 0.0
        self._looked = time.monotonic()
        self._told_bytes = 0
        self._surplus = surplus
        self._activity = activity

    def run(self) -> None:
        """Follow the channel until the notebook is gone, then end the process."""
        poll = select.poll()
        poll.register(self._channel, select.POLLIN)
        beat = 0.0
        while True:
            if poll.poll(POLL_S * 1000):
                try:
                    self._follow()
                except EOFError:
                    os._exit(0)
                except Exception:  # noqa: BLE001, S110 - as for want of a descriptor; it beats on
                    pass
            now = time.monotonic()
            INTERRUPTS.insist()
            self._watch(now)
            self._keep_house(now)
            if now >= beat or self._context.used_bytes != self._told_bytes:
                beat = now + HEARTBEAT_S
                send_packet(self._channel, self._heartbeat())

    def _keep_house(self, now: float) -> None:
        """Do what can wait; where it fails, as for want of a descriptor, the beat goes on."""
        with contextlib.suppress(Exception):
            printing.look()
        if self._surplus is not None:
            with contextlib.suppress(Exception):
                self._surplus.look(now, self._service.last, busy=bool(self._seen))

    def _heartbeat(self) -> Heartbeat:
        context = self._context
        self._told_bytes = context.used_bytes
        return Heartbeat(
            self._told_bytes,
            {
                name: {**self._by_host(name), **_statistics(actor)}
                for name, actor in list(context.actors.items())
            },
            self._unread_s,
        )

    def _by_host(self, library: str) -> Mapping[str, int]:
        fallback = self._context.fallback
        return {} if fallback is None else fallback.statistics(library)

    def _follow(self) -> None:
        packet, fds = receive_downward(self._channel)
        if isinstance(packet, Segment):
            self._sizes[packet.id] = packet.size
            # Without a free descriptor none has come, and the segment fails when it is used.
            self._arena.attach(packet, fds[0] if fds else -1)
        elif isinstance(packet, DropSegment):
            size = self._sizes.pop(packet.id, None)
            if size is not None:
                self._arena.detach(packet.id, size)
        elif isinstance(packet, CancelRequests):
            self._service.cancelled.update(packet.seqs)
            busy = self._service.busy_seq
            if busy in packet.seqs:
                INTERRUPTS.interrupt(busy)
        elif isinstance(packet, GroupWord):
            self._service.groups.hear(packet.group, packet.why, cancelled=packet.cancelled)
        elif isinstance(packet, Collected):
            self._service.collected.set()
        elif isinstance(packet, Keep):
            self._kept.received(fds)
        elif isinstance(packet, Look | Flush):
            self._show(packet)

    def _show(self, packet: Look | Flush) -> None:
        """Answer what the notebook asks of the context."""
        if isinstance(packet, Flush):
            show_records(self._channel, packet, self._activity)
            return
        self._watch(time.monotonic())
        show(self._channel, packet, self._context, self._service.tracer, self._glimpsed())

    def _watch(self, now: float) -> None:
        """See what runs, and report what has been seen running for longer than it may."""
        seen: dict[int, _Seen] = {}
        for task in self._service.under_way():
            key = id(task.identity)
            before = self._seen.get(key) or _Seen(task, now, time.time())
            seen[key] = before._replace(task=task)  # holding it keeps the identity unique
            if task.timeout_s is not None and now - before.since > task.timeout_s:
                self._expire(task.seq, task.timeout_s)
            elif task.group is not None and task.group.has_waited_in_vain(now):
                self._expire(task.seq, groups.GRACE_S, task.group.id)
        self._seen = seen
        # A process that was stopped for a while has not let anything lie.
        passed_s, self._looked = min(now - self._looked, 2 * POLL_S), now
        behind = not seen and self._service.is_behind
        self._unread_s = self._unread_s + passed_s if behind else 0.0

    def _expire(self, seq: int, timeout_s: float, group: int = 0) -> None:
        recent = [fitting(what, NAME_BYTES) for what in self._service.recent()]
        send_packet(self._channel, Expired(seq, timeout_s, recent, group))

    def _glimpsed(self) -> list[Slice]:
        """Return what has run for a moment and is not marked: nobody watched when it began."""
        long_ago = time.monotonic() - GLIMPSE_S
        return [
            seen.task.slice(seen.at)
            for seen in self._seen.values()
            if not seen.task.traced and seen.since <= long_ago
        ]


def _statistics(actor: LibraryActor) -> dict[str, int]:
    """Return a library's counters; one that cannot count must not end the heartbeats."""
    try:
        counts = itertools.islice(actor.statistics().items(), MOST_STATISTICS)
        return {fitting(str(what), NAME_BYTES): int(count) for what, count in counts}
    except Exception:  # noqa: BLE001 - shown where the counters would be
        return {"statistics failed": 1}


def _help(module: Any, backend: str, context: Context) -> Fallback:
    """Return what has another backend compute what this one lacks."""
    opened: Any = context.backend  # whose package says that it has mirrors
    other = importlib.import_module(f"accel_lab.backends.{backend}").open_backend(0)
    return Fallback(context, module.SUPPORT, helped(), makers(backend, other), opened.mirrors)


def be_context(
    transport: Transport,
    channel: socket.socket,
    parent: int,
    module: Any,
    projects: Projects,
    one_thread: ThreadpoolController | None = None,
) -> None:
    """Wait to be bound to a device, and serve it; the body of a forked context process."""
    protect(parent)
    # Whoever waits for a device sleeps for microseconds at a time, and means it.
    ctypes.CDLL(None).prctl(PR_SET_TIMERSLACK, TIMER_SLACK_NS, 0, 0, 0)
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")  # rather this than the notebook
    try:
        surplus = host_heap.Surplus() if host_heap.keep() else None
        if one_thread is not None:
            blas_threads.have_all(one_thread)
        bind, _ = receive_downward(channel)
        assert isinstance(bind, Bind)
        if bind.sys_path:  # else it has files of its own
            sys.path[:] = map(os.fsdecode, bind.sys_path)
        with contextlib.suppress(OSError):
            os.chdir(bind.folder)
        distrust_bytecode()
        backend = module.open_backend(bind.index)
        backend.wait_by(bind.strategy)
        arena = SegmentBytes(backend)
        followers: list[Follower] = [NvtxRanges()] if "nvtx" in bind.trace else []
        activity = (
            module.open_activity(calls="cupti-calls" in bind.trace)
            if "cupti" in bind.trace
            else None
        )
        followers += [] if activity is None else [activity]
        context = Context(
            backend,
            ACTORS,
            arena,
            bind.generation,
            module.SUPPORT,
            bind.limit_bytes,
            bind.spill_bytes,
            bind.allocator,
            Seam(followers).around if followers else None,
            partial(_help, module, bind.fallback) if bind.fallback else None,
        )
    except EOFError:
        return  # the notebook is gone
    except Exception as error:  # noqa: BLE001 - the notebook gets it as the reason
        why = fitting(f"{error}{where(error)}", WHY_BYTES)
        send_packet(channel, StartFailed(type(error).__name__, why))
        sys.exit(1)
    workspaces = context.service(Workspaces)
    workspaces.projects = projects
    workspace_registry.serve(workspaces)
    find_classes()
    service = Dispatcher(
        transport,
        context,
        spin_s=bind.spin_s,
        fuse=bind.fuse and not followers,
        look_s=bind.strategy.look_s,
    )
    sys.stdout, sys.stderr = Printer(service, "stdout"), Printer(service, "stderr")
    ipython_display.use(Screen(service))
    no_terminal.do_without()
    INTERRUPTS.serve()
    Control(channel, service, context, arena, surplus, activity).start()
    libraries = list(context.actors)
    limit_bytes, places = context.limit_bytes, context.places()
    service.send(
        [Born(os.getpid(), backend.model, limit_bytes, libraries, backend.capability, places)]
    )
    service.run()
    context.finish()


def main(channel_fd: int, backend_name: str, parent: int) -> None:
    """Import everything, then fork a context whenever the notebook asks for one."""
    protect(parent)
    inherited_signals.forget()
    channel = socket.socket(fileno=channel_fd)
    try:
        module = importlib.import_module(f"accel_lab.backends.{backend_name}")
        module.preload()
        decoding.prepare()
        projects = _imported()
        threads = blas_threads.loaded()
    except Exception as error:  # noqa: BLE001 - the notebook gets it as the reason
        tell(channel, LoadFailed(type(error).__name__, str(error)))
        sys.exit(1)
    gc.freeze()  # what is loaded stays shared between the forks
    ours = [sys.executable, "-P", "-m", "accel_lab.context_process", ALONE, backend_name]
    forks = os.environ.get("ACCEL_LAB_FORK", "1") != "0"
    Zygote(
        channel,
        lambda wire, control, zygote: be_context(wire, control, zygote, module, projects, threads),
        parent,
        None if forks else ours,
    ).run()
    if forks:  # else a profiler may have to write what it found
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)  # taking all modules apart takes a tenth of a second


def _imported() -> Projects:
    """Look at what is imported by now, so that no context has to."""
    projects = Projects()
    projects.seen()
    return projects


def be_alone(backend_name: str, parent: int, wire: int, control: int, *rings: int) -> None:
    """Import everything, and serve one device: a context that is no fork."""
    module = importlib.import_module(f"accel_lab.backends.{backend_name}")
    module.preload()
    lower = open_transport(socket.socket(fileno=wire), *rings, upper=False)
    be_context(lower, socket.socket(fileno=control), parent, module, _imported())


if __name__ == "__main__":
    if sys.argv[1] == ALONE:
        be_alone(sys.argv[2], *map(int, sys.argv[3:]))
    else:
        main(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
