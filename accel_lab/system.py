"""The system: opens a backend and owns its devices, their supervision, and the events."""

import contextlib
import os
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self, TypeVar, get_args

import numpy.typing as npt

from accel_lab import backends, open_systems
from accel_lab.actor.actor import Actor, ActorRef
from accel_lab.actor.event_loop import EventLoop
from accel_lab.actor.events import EventStream, warn_of
from accel_lab.actor.own_actors import OwnActors
from accel_lab.actor.supervision import OneForOne
from accel_lab.actor.system import ActorSystem
from accel_lab.backends import fallback as fallbacks
from accel_lab.compute.actors.fault import Fault, Inject
from accel_lab.compute.arena.arena import Arena
from accel_lab.compute.arena.ledger import ArenaStatistics
from accel_lab.compute.arena.staging import CopyPool
from accel_lab.compute.assembly import Assembly, Options, Recover, Results
from accel_lab.compute.cluster.cluster_spawner import ClusterSpawner
from accel_lab.compute.cluster.joined import Joined, Reach, join
from accel_lab.compute.device import Device
from accel_lab.compute.events.samples import MemorySampled, ValuesSeen, WorkTraced, WorldsSampled
from accel_lab.compute.events.tree import Node, State
from accel_lab.compute.lineage.content_store import Contents
from accel_lab.compute.lineage.lineage import Tidying
from accel_lab.compute.lineage.record_thread import RecordThread
from accel_lab.compute.lineage.recorder import Recorder
from accel_lab.compute.machine.host_memory import host_memory_bytes
from accel_lab.compute.machine.loaded_driver import UNPROTECTED, open_contexts
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.operation import DEFAULT_TIMEOUT_S
from accel_lab.compute.message.validation import require_bytes, require_timeout, require_word
from accel_lab.compute.output import cell_origin
from accel_lab.compute.output.native_output import Pipe
from accel_lab.compute.output.output_queue import OutputQueue
from accel_lab.compute.process import standard_streams
from accel_lab.compute.process.spawner import Spawner
from accel_lab.compute.requests.requests import closed
from accel_lab.compute.streams.allocators import Allocator, require_allocator
from accel_lab.compute.streams.strategies import Strategy, require_strategy
from accel_lab.compute.supervision.context_supervisor import ContextSupervisor
from accel_lab.compute.supervision.device_actor import DeviceActor
from accel_lab.compute.supervision.device_records import Profile, joined
from accel_lab.compute.supervision.idle_suspension import IdleSuspension
from accel_lab.compute.supervision.restart_groups import Group, Groups, groups_of
from accel_lab.compute.supervision.shared_services import SharedServices
from accel_lab.compute.supervision.tree_nodes import node_of, node_of_actor
from accel_lab.compute.supervision.unclaimed_failures import UnclaimedFailures
from accel_lab.compute.suspension.suspended import Keep, Suspended
from accel_lab.compute.tracing.asked import Trace, asked_for
from accel_lab.compute.transfer.transfers import Array
from accel_lab.errors import BackendUnavailable, InvalidArgument, NameTaken
from accel_lab.journal.explanation.explainer import Explainer
from accel_lab.journal.explanation.explanation import Explanation
from accel_lab.journal.journal import JOURNAL_BYTES, Journal
from accel_lab.journal.stores.memory import MemoryStore
from accel_lab.journal.stores.open_store import store_for
from accel_lab.journal.stores.store import Store
from accel_lab.journal.writing.facts import Facts
from accel_lab.journal.writing.grants import CONTENTS_BYTES
from accel_lab.journal.writing.writer import Writer
from accel_lab.libraries import ACTORS
from accel_lab.libraries.authoring.registration import messages, require_registered
from accel_lab.uncopied import Uncopied
from accel_lab.world import sight
from accel_lab.world.several_devices import SeveralDevices

CLOSE_LIMIT_S = 5.0
FAREWELL_S = 0.5
SPIN_S = 0.0001
A = TypeVar("A", bound=Actor)
_names = iter(range(1, 1 << 62))


@dataclass
class _Spare:
    """A device on which something may be tried."""

    name: str
    backend: str
    devices: list[Device]


class System(SeveralDevices, Uncopied):
    """A supervised set of devices, each driven by a context process of its own.

    The constructor starts the contexts and returns; messages wait until their context is up.
    `with System() as lab:` also waits for that, and closes at the end, when what was sent is done.

    Attributes:
        streams, completion: how its contexts place their work, and how they wait for it.
        finish_s: how long the end of `with`, or of the program, waits for what was sent and not
            awaited. What is not done then is dropped, and a line for each device says how much.
            An exception ends both at once, and a notebook's kernel waits for nothing as it ends.

    Parameters:
        backend: `host` computes with NumPy on the CPU, `cuda` on NVIDIA GPUs; `auto` takes
            `cuda` where it can run. `ssh://user@host` is `auto` on that machine.
        devices: None for every GPU (one device on `host`), a count, or a list of indices.
        name: of the system in views and events.
        max_restarts: how often, within `within_s` seconds, a device may lose its context
            before its circuit opens.
        strategy: whose contexts a loss replaces: `one_for_one` that device's alone;
            `all_for_one` those of all devices of this system, when they share state;
            `rest_for_one` that device's and those after it, when each takes what the one before
            makes. Those that a loss replaces draw on one budget of restarts. A list of groups
            gives some devices, by position, one of their own: `[("all_for_one", [0, 1])]`.
        timeout_s: how long a message may execute before its context is replaced, where neither
            the message nor `ask` says otherwise; None for ever. `run` has no limit of its own.
        recover: what becomes of buffers when their context is lost. `replay` makes them again, by
            running the messages again on which they depend; `stale` leaves them lost.
        journal: where to keep what was sent and what became of it: `memory`, the path of an
            SQLite file, a URL as `postgresql+psycopg://…` or `redis://…`, a Store, or None.
        journal_bytes: how much the journal keeps, that of earlier sessions included; the oldest
            goes first, and contents of arrays before messages. 32 MiB in memory and 1 GiB elsewhere
            when not given.
        results: what is recorded of each result, for comparing when a journal is run again:
            nothing, `digests`, or `values` with their digests. Every result is read back for it.
        memory_bytes: limit of each device's buffers; the device's own when not given.
        spill: whether buffers that have not been named for longest wait on the host, up to a
            quarter of its RAM, when an allocation finds no room; they come back by themselves.
        fuse: whether functions of each element that follow each other may be computed as one, which
            leaves out intermediate results that nobody can ask for any more.
        fallback: `host` has the host compute what `wgpu` lacks: its operands are copied there and
            what it writes back. Without it that is refused. `auto` takes it where it takes `wgpu`.
        streams: which library enqueues on which stream: `PerActor()`, `Single()` or `Pooled(n)` of
            `accel_lab.streams`, each with priorities; `PerActor()` when not given.
        completion: how contexts wait for work that takes long: `Polled()`, `Sync()` or `HostFn()`
            of `accel_lab.streams`; `Polled()` when not given.
        arena_bytes: limit of the host memory for transfers; a quarter of RAM when not given.
        suspend_after_s: how long a device is asked nothing before it is suspended by itself; never
            when not given. Not in a cluster.
        trace: what follows the messages in each context, `nvtx` or `cupti`, or both: ranges for
            Nsight Systems, and records of what the card did, which `profile` returns; with
            `cupti-calls` also of each call of CUDA. Each message is then enqueued by itself. A
            device under CUPTI cannot be suspended.
        cluster: `ray` takes the devices of all nodes of a Ray cluster, the notebook's own node
            first: every GPU, or with `host` one device of each node. `devices` is a count of them.
            It is the cluster that this process is connected to, or the one that runs here.
            `ssh://user@host` has all devices on that machine, which ssh reaches without a password.
        python: the interpreter of such a machine; the first that has this version when not given.
        grace_s: for how long such a machine keeps its contexts without a connection, which is made
            anew meanwhile; 60 when not given, and with 0 a connection's loss is theirs.
        ssh: the program that reaches it, and options for it, as `"ssh -i key"`.

    Raises:
        BackendUnavailable: the backend cannot run here, there is no cluster, or the machine is not
            reached; says what to do.
        InvalidArgument: no such backend, device, limit, cluster, or folder for the journal.
        JournalUnavailable: a package for the journal's store is missing, or its file or folder may
            not be written; says which.
        TelemetryUnavailable: the backend has no CUPTI, or what `trace` needs is not installed.
    """

    _instead = "it owns the processes of its devices; open another with System()"
    finish_s: float = 30.0
    keeps_all = False
    """Whether its journal forgets nothing: a session's, of which buffers are made again."""
    again = "open another with System()"
    """What an error says of a system that is closed."""
    _forked = False

    def __init__(
        self,
        backend: str = "auto",
        devices: int | list[int] | None = None,
        *,
        name: str | None = None,
        max_restarts: int = 3,
        within_s: float = 60.0,
        strategy: Groups = "one_for_one",
        timeout_s: float | None = DEFAULT_TIMEOUT_S,
        recover: Recover = "replay",
        journal: str | Path | Store | None = "memory",
        journal_bytes: int | None = None,
        results: Results | None = None,
        memory_bytes: int | None = None,
        spill: bool = True,
        fuse: bool = True,
        fallback: Literal["host"] | None = None,
        streams: Allocator | None = None,
        completion: Strategy | None = None,
        arena_bytes: int | None = None,
        suspend_after_s: float | None = None,
        trace: Trace | Iterable[Trace] | None = None,
        cluster: str | None = None,
        python: str | None = None,
        grace_s: float | None = None,
        ssh: str | Sequence[str] = "ssh",
    ) -> None:
        self._closed = True  # until there is something to close
        standard_streams.occupy()
        self._joined = join(cluster, backend, devices, suspend_after_s, Reach(python, grace_s, ssh))
        self.backend, module, indices = _loaded(self._joined, backend, devices)
        require_word(recover, "recover", get_args(Recover))
        _require_results(results)
        groups = groups_of(strategy, len(indices), max_restarts=max_restarts, within_s=within_s)
        self.streams, self.completion = _waiting(streams, completion)
        timeout_s, suspend_after_s = (
            require_timeout(timeout_s),
            require_timeout(suspend_after_s, "suspend_after_s"),
        )
        memory_bytes, journal_bytes = (
            require_bytes(memory_bytes, "memory_bytes"),
            require_bytes(journal_bytes, "journal_bytes"),
        )
        self.trace, helps = (
            asked_for(trace, self.backend, module, suspend_after_s),
            fallbacks.accepted(fallback, backend, self.backend, module),
        )
        store = None if journal is None else store_for(journal)
        self._opened_with: dict[str, Any] = {
            "max_restarts": max_restarts,
            "within_s": within_s,
            "strategy": strategy,
            "timeout_s": timeout_s,
            "recover": recover,
            "results": results,
            "memory_bytes": memory_bytes,
            "spill": spill,
            "fuse": fuse,
            "fallback": helps or None,
            "streams": streams,
            "completion": completion,
            "arena_bytes": arena_bytes,
            "suspend_after_s": suspend_after_s,
            "trace": trace,
        }
        require_registered(messages(), ACTORS, module.SUPPORT, self.backend)
        self.name = name or f"lab{next(_names)}"
        self.events = EventStream()
        self._closing = threading.RLock()  # a finalizer that closes it comes in the middle, too
        cell_origin.follow_notebook()
        self._event_loop = EventLoop(f"accel_lab {self.name}")
        self._patient = EventLoop(f"accel_lab {self.name} patient")
        self._background = UnclaimedFailures(self._patient, self.events)
        self._event_loop.on_error = self._patient.on_error = self._background.escaped
        self._arena = Arena(arena_bytes)
        self._copies = CopyPool()
        self._contents = Contents()
        self._record_thread = RecordThread(f"accel_lab {self.name}", self._background.escaped)
        self.recorders: list[Recorder] = []
        self._writer: Writer | None = None
        self._journal: Journal | None = None
        self._supervisors: list[ContextSupervisor] = []
        self._indices: dict[str, int] = {}
        self._explainer = Explainer(self._indices)
        self._outputs = OutputQueue(self._patient, self.events)
        self._source = self._process_source(Path(module.__file__).parent)
        services = SharedServices(
            self.backend,
            self._event_loop,
            self._patient,
            self.events,
            self._source,
            self._outputs,
            self._arena,
            self._background,
            memory_bytes,
            host_memory_bytes() // (4 * len(indices)) if spill else 0,
            SPIN_S if len(os.sched_getaffinity(0)) > len(indices) else 0.0,
            bool(fuse),
            self.streams,
            self.completion,
            self.trace,
            helps,
        )
        self._event_loop.start()
        self._patient.start()
        self._actors = ActorSystem(self.name, event_loop=self._event_loop, events=self.events)
        self._module = module
        self._assembly = Assembly(
            services,
            fallbacks.served(module, helps),
            self._contents,
            self._copies,
            module.process_keeper,
            is_card=self.backend == "cuda",
        )
        if store is not None:
            self._keep_journal(store, journal_bytes)
        options = Options(within_s, timeout_s, recover, results, suspend_after_s)
        self._own_actors = OwnActors(
            self.name,
            self.events,
            OneForOne(max_restarts=max_restarts, within_s=within_s),
            self._background.escaped,
        )
        self.devices: list[Device] = [
            self._open_device(module.device_name(index), index, options) for index in indices
        ]
        self._supervise(groups)
        self._record_thread.after += [
            Tidying(self._assembly.lineages, self._contents),
            self._assembly.twins.tidy,
        ]
        self._record_thread.start()
        self._closed = False
        open_systems.add(self)

    def _process_source(self, folder: Path) -> Spawner | ClusterSpawner:
        """Return what starts context processes; the modules of the backend are in the folder."""
        pipe = partial(Pipe, outputs=self._outputs, event_loop=self._event_loop)
        self._spawner = Spawner(
            self.backend,
            folder,
            self._event_loop,
            pipe,
            partial(_give_up, self.backend, self._supervisors),
        )
        if self._joined is None:
            return self._spawner
        return self._joined.spawner(self._spawner, self._arena, self._event_loop, pipe)

    def _keep_journal(self, store: Store, limit_bytes: int | None) -> None:
        """Have what devices are sent kept in a store."""
        if limit_bytes is None:
            limit_bytes = store.limit_bytes if isinstance(store, MemoryStore) else JOURNAL_BYTES
        facts = partial(_facts, self.name, self.backend, self._module, self._supervisors)
        self._writer = Writer(
            store,
            self._contents,
            self.events,
            facts,
            contents_bytes=sys.maxsize if self.keeps_all else CONTENTS_BYTES,
            limit_bytes=None if self.keeps_all else limit_bytes,
        )
        self._record_thread.after.append(self._writer)
        self._journal = Journal(store, self._writer, self._record_thread.flush)

    @property
    def journal(self) -> Journal:
        """What was sent and what became of it; `lab.journal[-20:]` are the last entries.

        Raises:
            InvalidArgument: the system keeps none.
        """
        if self._journal is None:
            raise InvalidArgument(f"{self.name} keeps no journal: System(journal=None)")
        return self._journal

    @property
    def recover(self) -> Recover:
        """What becomes of buffers when their context is lost, as `System(recover=…)` was told."""
        return "stale" if all(one.recovery is None for one in self._supervisors) else "replay"

    def explain(
        self,
        device: Device | str | None = None,
        *,
        timeout_s: float = 60.0,
        sanitize: bool = False,
        allow_code: bool = False,
    ) -> Explanation:
        """Say which message ended the last context that was lost; blocks until it is known.

        What was in flight is run again in a spare context on the same hardware, one message at a
        time, also functions that are not pure. What becomes of the spare is in the explanation,
        and not among the events. Who was told a culprit and asks again, of the same loss, with the
        same limit, is told the same; nothing is run then.

        Parameters:
            device: which; that of the last loss when not given.
            timeout_s: how long a message may run there before it counts as hanging.
            sanitize: whether to run them once more in a process of their own under NVIDIA's
                compute-sanitizer, which says what a kernel did wrong, where; takes seconds more.
            allow_code: whether to run functions and kernels that another process has written into
                the journal.

        Raises:
            JournalError: no context was lost, or there is code and no leave to run it.
            JournalUnavailable: compute-sanitizer is asked for, and not installed.
            InvalidArgument: the system keeps no journal.
        """
        spare = None if self._closed else self._spare  # then it is of a system of its own
        return self._explainer.explain(
            self.journal,
            self,
            device,
            spare=spare,
            timeout_s=timeout_s,
            sanitize=sanitize,
            allow_code=allow_code,
        )

    @contextlib.contextmanager
    def _spare(self, device: Device) -> Iterator["_Spare"]:
        """Open a second context on a device's hardware, for what may break it."""
        index = self._indices[device.name]
        strategy = OneForOne(max_restarts=0)
        options = Options(strategy.within_s)
        with self._closing:
            if self._closed:
                raise closed(device.name, self.again)
            name = f"{device.name} spare"
            # Its faults are none of the system's.
            actors = ActorSystem(self.name, event_loop=self._event_loop)
            supervisor, spare = self._assembly.device(
                name,
                index,
                options,
                None,
                self,
                actors.events,
                elsewhere=self._is_elsewhere(index),
            )
            actor = actors.spawn(partial(DeviceActor, [supervisor], strategy), name=name)
            self._supervisors.append(supervisor)
        try:
            yield _Spare(self.name, self.backend, [spare])
        finally:
            process = supervisor.process
            self._event_loop.call_soon(supervisor.stop, closed(supervisor.name, self.again))
            actor.stop()
            self._assembly.take_apart(supervisor)
            until = time.monotonic() + CLOSE_LIMIT_S
            while process is not None and not process.reaped and time.monotonic() < until:
                time.sleep(0.001)
            self._supervisors.remove(supervisor)

    def _open_device(self, name: str, index: int, options: Options) -> Device:
        """Open a device and have what it is sent recorded."""
        recorder = Recorder(name, self._contents, self._record_thread.rouse)
        if self._writer is not None:
            recorder.followers.append(self._writer.follow(name))
        self.recorders.append(recorder)
        self._record_thread.follow(recorder)
        elsewhere = self._is_elsewhere(index)
        supervisor, device = self._assembly.device(
            name, index, options, recorder, self, elsewhere=elsewhere
        )
        self._supervisors.append(supervisor)
        self._indices[name] = index
        if options.suspend_after_s is not None:
            IdleSuspension(supervisor, self._event_loop, options.suspend_after_s)
        return device

    def _is_elsewhere(self, index: int) -> bool:
        """Whether a device is on another machine."""
        source = self._source
        return isinstance(source, ClusterSpawner) and source.is_elsewhere(index)

    def _supervise(self, groups: list[Group]) -> None:
        """Start the contexts: each group's under one actor, one that stands alone under its own."""
        for group in groups:
            supervisors = [self._supervisors[one] for one in group.members]
            for one in supervisors:
                lost = group.strategy.affected(supervisors, one)
                self._assembly.twins.fate[one.name] = frozenset(each.name for each in lost)
            name = supervisors[0].name if isinstance(group.strategy, OneForOne) else group.name
            self._actors.spawn(partial(DeviceActor, supervisors, group.strategy), name=name)

    def ready(self, timeout_s: float = 120.0) -> Self:
        """Block until every device's context is up, those apart that are suspended.

        Raises:
            AccelError: a device cannot start, with the reason.
            TimeoutError: it took longer than `timeout_s` seconds.
        """
        deadline = time.monotonic() + timeout_s
        for supervisor in self._supervisors:
            supervisor.requests.pump.settled(deadline)
        for supervisor in self._supervisors:
            if supervisor.requests.refusal is not None:
                raise supervisor.requests.refusal.copy()
        return self

    def suspend(
        self, *, drop: bool = False, timeout_s: float | None = None, keep: Keep = "memory"
    ) -> list[Suspended]:
        """Give the hardware back, one device after the other; `Device.suspend` says how.

        Raises:
            AccelError: as `Device.suspend`; the devices before that one are suspended.
            TimeoutError: as there.
        """
        options: Any = {"drop": drop, "timeout_s": timeout_s, "keep": keep}
        return [device.suspend(**options) for device in self.devices]

    def resume(self, *, timeout_s: float = 120.0) -> None:
        """Start contexts for all devices that are suspended, together; blocks until they are up.

        Raises:
            AccelError: as `Device.resume`, of the first device that cannot.
            TimeoutError: not within `timeout_s` seconds.
        """
        for supervisor in self._supervisors:
            supervisor.requests.connection.wake()
        deadline = time.monotonic() + timeout_s
        for device in self.devices:
            device.resume(timeout_s=max(0.0, deadline - time.monotonic()))

    def empty(self, shape: int | tuple[int, ...], dtype: npt.DTypeLike = "float32") -> Array:
        """Return an uninitialised NumPy array in the host arena: its upload is one copy by DMA.

        Blocks while the arena is full; the memory lives as long as the array does.

        Raises:
            ArenaFull: no room within 60 s.
        """
        return self._arena.empty(shape, dtype)

    def inject(
        self, fault: Fault, device: Device | str | int = 0, *, timeout_s: float | None = None
    ) -> Any:
        """Cause a real fault in a device's context and return the handle of its answer.

        `kill`, `segfault`, `exit`: the process ends. `poison`, `trap`: a kernel breaks the
        device's context. `hang`: one that never ends. `library`: a library call fails.
        `out of memory`: an allocation that cannot be.

        Parameters:
            timeout_s: how long a `hang` may last before its context is replaced.
        """
        target = device if isinstance(device, Device) else self.device(device)
        return target.ask(Inject(fault), timeout_s=timeout_s)

    def flush(self) -> None:
        """Have everything sent so far recorded, and committed by the journal. Blocks.

        Raises:
            JournalUnavailable: the store does not take it now; it is kept and tried again.
        """
        if self._journal is None:
            self._record_thread.flush()
        else:
            self._journal.flush()

    def spawn(
        self, factory: Callable[[], A], *, name: str | None = None, capacity: int = 1024
    ) -> ActorRef[A]:
        """Start an actor of your own, supervised beside the devices; returns its address at once.

        All actors of a system share one thread: a handler may wait for a device, and holds up the
        other actors meanwhile, but neither devices nor their supervision. One that fails is
        restarted as often as a device may be, then stopped.

        Parameters:
            factory: makes the actor, an `accel_lab.actor.Actor`; called again for each restart.
            name: unique in this system; made up when not given.
            capacity: how many messages may wait in its mailbox.

        Raises:
            NameTaken: an actor or a device has this name.
            InvalidArgument: the name is empty or holds a slash.
            SystemClosed: the system is closed.
        """
        if self._closed:
            raise closed(self.name, self.again)
        if any(device.name == name for device in self.devices):
            raise NameTaken(f"{self.name} has a device named {name!r}")
        return self._own_actors.spawn(factory, name=name, capacity=capacity)

    def fork(
        self,
        names: Mapping[str, Any] | None = None,
        *,
        drop: bool = False,
        timeout_s: float = 120.0,
    ) -> Any:
        """Return a second system, whose devices have what this one's have now: for a what-if.

        `with lab.fork() as other:` closes it at the end. `other[x]` is its buffer for `x`, and
        `other.names["x"]` what the name `x` stands for there. What is written in one changes
        nothing in the other, and a lost context or `close` of one leaves the other alone. It has a
        process for each device of its own, and the options of this system, but for the journal,
        which is in memory. Views share memory again, records of handles, kernels and generators
        come along, and generators go on from where they are now. A `Fork` is no session: it ends
        with the kernel.

        Arrays are copied through the host, which needs room on the device for a second copy; what
        is no array is made again by its messages. Blocks for what was sent before, and for the
        copies. Other threads should send nothing meanwhile, or it may have some of that.

        Parameters:
            names: what to look at for handles; the notebook's names, or the program's, when not
                given. Those that have nothing of this system are left out.
            drop: leave out what cannot be taken along, as objects of `%%gpu` cells and handles in
                objects of your own classes. Otherwise that is refused before anything is done.
            timeout_s: how long it may take.

        Raises:
            CannotKeep: something cannot be taken along; `lost` says what, by name, and why.
            InvalidArgument: it is the devices of a cluster.
            AccelError: a device cannot start, or has no room.
            TimeoutError: not within `timeout_s` seconds.
            SystemClosed: it is closed.
        """
        return from_above["fork"](self, names, drop=drop, timeout_s=timeout_s)

    def check(self) -> None:
        """Raise what failed in the background and was not awaited; blocks for nothing.

        A journal that is not written is told each time, for as long as that lasts.

        Warns (`RuntimeWarning`) when this process has a CUDA context of its own, for a fault of
        the code that uses it is not survived.

        Raises:
            AccelError: the only such failure.
            ExceptionGroup: several.
        """
        if cards := open_contexts():
            where = ", ".join(map(str, cards))
            text = f"this process has a CUDA context of its own on card {where}: {UNPROTECTED}"
            warnings.warn(text, RuntimeWarning, stacklevel=2)
        self._background.check(None if self._writer is None else self._writer.failure)

    def tree(self) -> Node:
        """Return the system, its devices, contexts, libraries and your actors as they are now."""
        state: State = "stopped" if self._closed else "running"
        nodes = tuple(node_of(supervisor, self.name) for supervisor in self._supervisors)
        detail = f"{self.backend} backend, {len(nodes)} device{'s' if len(nodes) != 1 else ''}"
        # What actors and pipelines have in flight is the devices' already.
        in_flight = sum(node.in_flight for node in nodes)
        nodes += tuple(node_of_actor(ref, self.name) for ref in self._own_actors.children)
        nodes += tuple(self._assembly.guests.nodes(self.name, [node.name for node in nodes]))
        return Node(
            name=self.name,
            path=self.name,
            kind="system",
            state=state,
            mailbox=sum(node.mailbox for node in nodes),
            in_flight=in_flight,
            children=nodes,
            detail=detail,
            kept=tuple(self._kept()),
        )

    def _kept(self) -> Iterator[tuple[str, int]]:
        """Yield what the host keeps so that a fault takes nothing; does not wait."""
        contents, store = self._contents, None if self._journal is None else self._journal.store
        found = (
            ("kept for recovery", contents.used_bytes),
            ("kept for recovery, on disk", contents.spilled_bytes),
            (
                "in the journal (may be the same arrays)",
                store.used_bytes if isinstance(store, MemoryStore) else 0,
            ),
        )
        return (one for one in found if one[1])

    def look(self, *, memory: bool, work: bool) -> list[MemorySampled | WorkTraced | WorldsSampled]:
        """Return what has been seen of the devices and worlds, and have them looked at again.

        Any thread, does not block: what is asked for now comes with a later call.

        Parameters:
            memory: have the blocks of each device listed.
            work: have the work of each device traced, for the next two seconds.
        """
        sights = [supervisor.sampler for supervisor in self._supervisors]
        of_devices = (seen for sampler in sights for seen in sampler.look(memory=memory, work=work))
        opened = self.worlds.opened() if "worlds" in vars(self) else ()
        measured = self.topology if "topology" in vars(self) else None
        return [*of_devices, *sight.look(opened, measured)]

    def sql(self, query: str) -> Any:
        """Ask in SQL what happened in this system, and return a pandas DataFrame.

        `lab.sql("select kernel, sum(duration_ns) from launches group by 1")`. There are the tables
        `events`, `launches`, `faults`, `buffers`, `metrics` and, with `trace="cupti"`, `kernels`.
        Work is traced from the first call on, or from when a view or a recording of the system
        began. Blocks up to a second.

        Raises:
            InvalidArgument: it is no query; the text has what DuckDB says.
            TelemetryUnavailable: the `observability` extra is not installed.
        """
        return from_above["sql"](self, query)

    def profile(self, *, timeout_s: float = 60.0) -> Profile:
        """Return each kernel, copy and fill of the cards, with exact times and its message.

        With `trace="cupti-calls"` also each call of CUDA, and CUPTI's overhead.

        Waits for what was sent. What CUPTI records is that of `System("cuda", trace="cupti")`, from
        its begin on.

        Raises:
            InvalidArgument: the system was not opened with that.
            TelemetryUnavailable: CUPTI has failed.
            TimeoutError: the devices are not done, or do not answer, within `timeout_s` seconds.
        """
        if "cupti" not in self.trace:
            text = f'{self.name} has no records of its cards: open it with trace="cupti"'
            raise InvalidArgument(text)
        until = time.monotonic() + timeout_s
        while not all(map(_is_idle, self._supervisors)):
            if time.monotonic() > until:
                raise TimeoutError(f"{self.name} is still at work after {timeout_s:g} s")
            time.sleep(SPIN_S)
        return joined(supervisor.records.take(timeout_s) for supervisor in self._supervisors)

    def watch_finite(self) -> contextlib.AbstractContextManager[Any]:
        """Stop at the first NaN or Inf that a message computes, until what this returns is closed.

        `with lab.watch_finite():` watches a block. The call that sent the message raises
        NonFiniteResult, which names the message, the operand, the cell and the line. Each message
        is waited for, so it is slow. What was put on a device is looked at when something is
        computed of it.

        Raises:
            InvalidArgument: the system is watched already.
        """
        watch: contextlib.AbstractContextManager[Any] = from_above["watch_finite"](self)
        return watch

    def observe(self, name: str, x: AccelRef, *, bins: int = 24) -> ValuesSeen:
        """Look at what an array holds now: its range, its mean and its histogram.

        They are computed on the device, whose answer is waited for, and become a fact of this name:
        `views.values(lab)` draws all looks over time, and recordings keep them.

        Parameters:
            bins: of the histogram, at most 64, of one width between the least and the most.

        Raises:
            InvalidArgument: it is no array of this system, or the name or the bins cannot be.
            AccelError: it could not be computed, as when the array is lost.
        """
        device = getattr(x, "device", None)
        if device not in self.devices or not hasattr(x, "shape"):
            raise InvalidArgument(f"observe: x is {x!r}; it is an array of {self.name}")
        seen: ValuesSeen = from_above["observe"](device, name, x, bins)
        return seen

    def watch_values(
        self, *messages: str, every: int = 1, bins: int = 24
    ) -> contextlib.AbstractContextManager[Any]:
        """Look at what messages of these names make, until what this returns is closed.

        `with lab.watch_values("Gemm", every=10):` looks, as `observe` does, at the first result of
        Gemm and at each tenth after it; without names at results of all messages. Each look is
        waited for. What was put on a device or got from it is not looked at.

        Raises:
            InvalidArgument: the system is watched already, or `every` or `bins` cannot be.
        """
        watch: contextlib.AbstractContextManager[Any] = from_above["watch_values"](
            self, messages, every, bins
        )
        return watch

    @contextlib.contextmanager
    def closely(self) -> Iterator[None]:
        """Have all work traced while this lasts, where otherwise some of much work would do.

        Where small messages come thick and fast it makes them slower. Any thread.
        """
        sights = [supervisor.sampler for supervisor in self._supervisors]
        for sampler in sights:
            sampler.closely += 1
        try:
            yield
        finally:
            for sampler in sights:
                sampler.closely -= 1

    @property
    def is_closed(self) -> bool:
        """Whether it was closed, or this process is a fork of the one that has it."""
        return self._closed or self._forked

    def arena(self) -> ArenaStatistics:
        """Return what the host arena holds."""
        return self._arena.statistics()

    def close(self) -> None:
        """End every context and answer what is pending with SystemClosed. Safe to repeat.

        A line for each device says how many requests that were not done this ends.
        Blocks until all contexts are reaped and the system thread has ended, 5 s at most. The
        process that forked them waits a minute for the next system, with nothing on a device.
        Where a finalizer calls it in the middle of what accel_lab does, a thread does this later.
        """
        if any(supervisor.is_waited_for() for supervisor in self._supervisors):
            self._close_later(self.close)
            return
        with self._closing:
            if self._closed or self._forked:
                return
            self._closed = True
            with contextlib.suppress(TimeoutError):  # a handler waits for a device
                self._own_actors.end(FAREWELL_S)
            self._background.report()
            told = [supervisor.requests for supervisor in self._supervisors]
            unfinished = [requests.cancellation.unfinished() for requests in told]
            done = threading.Event()
            self._event_loop.call_soon(self._end, done)
            done.wait(CLOSE_LIMIT_S)
            try:
                self._own_actors.close(CLOSE_LIMIT_S)
            except TimeoutError as error:
                warn_of(error, f"an actor of {self.name} outlives it")
            self._actors.shutdown()
            self._event_loop.stop()
            self._patient.stop(CLOSE_LIMIT_S)
            for supervisor in self._supervisors:
                if supervisor.requests.connection.ipc_memory is not None:
                    supervisor.requests.connection.ipc_memory.forget()
            self._outputs.write()
            for requests, count in zip(told, unfinished, strict=True):
                if count:
                    requests.cancellation.tell_closed(count)
            self._record_thread.stop()
            if self._writer is not None:
                self._writer.close()
            self._contents.close()
            self._copies.close()
            self._arena.close()
            self.events.close()
            if self._joined is not None:
                self._joined.leave()
        open_systems.remove(self)

    def end(self) -> None:
        """Close at the end of the program, when what was sent is done, for `finish_s` at most."""
        try:
            # After an error, and in a notebook, nobody is there who would wait.
            if getattr(sys, "last_value", None) is None and not cell_origin.in_notebook():
                self._finish()
        finally:
            self.close()

    def _finish(self) -> None:
        """Wait until what was sent is done, for as long as that may take."""
        pause_s, until = 0.001, time.monotonic() + self.finish_s
        while not self._closed and not self._forked and time.monotonic() < until:
            if self._own_actors.is_idle and all(map(_is_idle, self._supervisors)):
                return
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, 0.02)

    def _end(self, done: threading.Event) -> None:
        """Stop everything, and say when the last process is reaped; system thread."""
        for supervisor in self._supervisors:
            supervisor.stop(closed(supervisor.name, self.again))
        self._source.close(done.set)

    def orphan(self) -> None:
        """Make this copy, in a forked child, refuse everything."""
        self._forked = True
        self._own_actors.orphan()
        for supervisor in self._supervisors:
            supervisor.requests.orphan()

    def __enter__(self) -> Self:
        try:
            return self.ready()
        except BaseException:
            self.close()
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if error is None:
                self._finish()
        finally:
            self.close()

    async def __aenter__(self) -> Self:
        import asyncio

        return await asyncio.to_thread(self.__enter__)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        import asyncio

        await asyncio.to_thread(self.__exit__, kind, error, trace)

    def __del__(self) -> None:
        """Close a system that nobody can reach any more, as when its cell is run again."""
        # When the interpreter ends the contexts end with it, and no thread starts any more: up to
        # Python 3.11 one would be waited for in vain.
        if getattr(self, "_closed", True) or self._forked or sys.is_finalizing():
            return
        # Collection may happen on the system thread, which cannot wait for its own end.
        self._close_later(self.end)

    def _close_later(self, close: Callable[[], None]) -> None:
        with contextlib.suppress(RuntimeError):  # no thread can be had
            threading.Thread(target=close, name=f"accel_lab {self.name} closing").start()

    def _repr_mimebundle_(self, **options: Any) -> Any:
        """Show what goes on in it, where somebody has said how."""
        return None if show is None else show(self)._repr_mimebundle_(**options)

    def __repr__(self) -> str:
        return f"<System {self.name}: {', '.join(map(repr, self.devices)) or 'no devices'}>"


show: Callable[[System], Any] | None = None
"""How a system shows itself in a notebook: returns a view, which stands a floor above."""

from_above: dict[str, Callable[..., Any]] = {}
"""Methods of systems that stand a floor above, by name; `accel_lab.telemetry` adds them."""


def _require_results(results: Any) -> None:
    if results is not None:
        require_word(results, "results", get_args(Results))


def _loaded(
    joined: Joined | None, backend: str, devices: int | list[int] | None
) -> tuple[str, Any, list[int]]:
    """Return the backend, its package, and the indices of the devices that there are to be."""
    if joined is None:
        name, module = backends.load(backend)
        return name, module, backends.indices(devices, module.device_count(), name)
    open_systems.end_first()  # while the end of what the cluster is had by is still to come
    return *backends.load(joined.backend, here=False), joined.indices


def _waiting(streams: Any, completion: Any) -> tuple[Allocator, Strategy]:
    """Return how contexts place their work on streams, and how they wait for it."""
    libraries = [actor.library for actor in ACTORS]
    return require_allocator(streams, libraries), require_strategy(completion)


def _give_up(backend: str, supervisors: list[ContextSupervisor], why: str) -> None:
    """A package of the backend cannot be imported: no device will ever start; system thread."""
    error = BackendUnavailable(f"the {backend} backend cannot be loaded: {why}")
    for supervisor in supervisors:
        supervisor.give_up(error)


def _is_idle(supervisor: ContextSupervisor) -> bool:
    """Whether a device has answered all that it was sent; any thread."""
    requests = supervisor.requests
    requests.flush()
    link = requests.connection.current_link
    if link is not None:
        link.drain()
    return requests.first_unanswered() is None and not requests.answers.has_parts


def _facts(name: str, backend: str, module: Any, supervisors: list[ContextSupervisor]) -> Facts:
    """Return what is true of a session; it must not keep the system alive."""
    models = {supervisor.name: supervisor.health.model for supervisor in supervisors}
    return Facts(name, backend, models, module.versions())
