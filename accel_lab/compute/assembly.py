"""Put a device together: what keeps its contexts, its requests, its transfers."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Literal, NamedTuple

from accel_lab.actor.events import EventStream
from accel_lab.compute.arena.staging import CopyPool
from accel_lab.compute.device import Device
from accel_lab.compute.lineage.content_store import Contents
from accel_lab.compute.lineage.lineage import Lineage
from accel_lab.compute.lineage.recorder import Recorder
from accel_lab.compute.recovery.recovery import Recovery
from accel_lab.compute.recovery.result_digests import ResultDigests
from accel_lab.compute.requests.requests import Requests
from accel_lab.compute.supervision.context_supervisor import ContextSupervisor
from accel_lab.compute.supervision.guests import Guests
from accel_lab.compute.supervision.shared_services import SharedServices
from accel_lab.compute.suspension.process_keeping import ProcessKeeper
from accel_lab.compute.tracing.asked import UNSUSPENDED
from accel_lab.compute.transfer.ipc_memory import IpcMemory
from accel_lab.compute.transfer.transfers import Transfers
from accel_lab.compute.transfer.ways import Ways
from accel_lab.compute.world.group_sender import GroupSender
from accel_lab.compute.world.member import Member
from accel_lab.compute.world.twins import Source, Twins

QUEUE_LIMIT = 1024
QUEUE_TIMEOUT_S = 60.0
Recover = Literal["stale", "replay"]
Results = Literal["digests", "values"]


class Options(NamedTuple):
    """What all devices of a system have in common; `System` says what each means."""

    reopen_after_s: float
    timeout_s: float | None = None
    recover: Recover = "stale"
    results: Results | None = None
    suspend_after_s: float | None = None


class Assembly:
    """Puts the devices of one system together.

    Attributes:
        lineages: the histories of those whose buffers are made again after a loss.
        groups: sends messages of which each gets a part.
        guests: what stands in the system's tree beside the devices.
        twins: what other devices have of a lost one's results.
        ways: of copies from one device to another.

    Parameters:
        support: the backend's table of dtypes.
        is_card: whether a context can open what another process has on its device.
        contents, copies: the system's.
        process_keeper: makes what keeps the process of a device, by the device's index.
    """

    def __init__(
        self,
        services: SharedServices,
        support: Mapping[str, frozenset[str]],
        contents: Contents,
        copies: CopyPool,
        process_keeper: Callable[[int], ProcessKeeper | None],
        *,
        is_card: bool,
    ) -> None:
        self.lineages: list[Lineage] = []
        self.twins = Twins()
        self.guests = Guests()
        self.groups = GroupSender(services.event_loop)
        self.ways = Ways(is_card=is_card)
        self._services = services
        self._support = support
        self._contents = contents
        self._copies = copies
        self._process_keeper = process_keeper
        self._is_card = is_card

    def device(
        self,
        name: str,
        index: int,
        options: Options,
        recorder: Recorder | None,
        system: Any,
        events: EventStream | None = None,
        *,
        elsewhere: bool = False,
    ) -> tuple[ContextSupervisor, Device]:
        """Return a device, and its supervisor, which has not begun; system is whose it is.

        Parameters:
            recorder: of what it is sent; None where that is not recorded.
            events: tell what becomes of it; the system's when not given.
            elsewhere: whether it is on another machine, so that nothing but bytes gets there.
        """
        services = self._services if events is None else self._services.telling(events)
        supervisor = ContextSupervisor(name, index, services)
        requests = Requests(
            name,
            supervisor,
            self._support,
            queue_limit=QUEUE_LIMIT,
            queue_timeout_s=QUEUE_TIMEOUT_S,
            recorder=recorder,
        )
        requests.outbox.timeout_s = options.timeout_s
        supervisor.requests = requests
        supervisor.reopen_after_s = options.reopen_after_s
        supervisor.suspension.of_process.keeper = self._process_keeper(index)
        if elsewhere:
            supervisor.suspension.refusal = (
                f"{name} is on another machine, which has no way to keep what it holds here"
            )
        if "cupti" in services.trace:
            supervisor.suspension.refusal = f"{name}: {UNSUSPENDED}"
        if services.trace:
            requests.queue.cells = requests.outbox.senders
        ipc_memory: IpcMemory | None = None
        if self._is_card and not elsewhere:
            ipc_memory = IpcMemory(requests.unrecorded.post, services.event_loop)
            requests.connection.ipc_memory = ipc_memory
        transfers = Transfers(requests, services.arena, self._copies, ipc_memory, self.ways)
        if recorder is not None:
            self._record(supervisor, transfers, recorder, options)
        device = Device(requests, transfers, supervisor, system)
        requests.handles.serve(device)
        self.groups.add(Member(requests, supervisor))
        requests.connection.busy = services.busy
        services.busy.append(supervisor.is_waited_for)
        services.arena.busy.append(supervisor.is_entered)
        services.arena.on_segment.append(supervisor.segment_made)
        services.arena.on_drop.append(supervisor.segment_dropped)
        return supervisor, device

    def _record(
        self,
        supervisor: ContextSupervisor,
        transfers: Transfers,
        recorder: Recorder,
        options: Options,
    ) -> None:
        """Have results recorded, and buffers made again, if that is wanted."""
        requests = supervisor.requests
        if options.results is not None:
            values = options.results == "values"
            requests.outbox.digests = ResultDigests(requests, recorder, values=values)
        if options.recover == "replay":
            lineage = Lineage(requests.first_unanswered, lambda: requests.answers.withheld.ids)
            lineage.checkpoint = transfers.checkpoint_soon
            requests.answers.learn = lineage.tell
            recorder.followers.append(lineage.follow)
            supervisor.recovery = requests.connection.recovery = Recovery(
                requests,
                recorder,
                lineage,
                self._services.arena,
                self._contents,
                supervisor.recovered,
                supervisor.broke,
                partial(self.twins.fetch, requests.name),
            )
            lineage.elsewhere = partial(self.twins.available, requests.name)
            recovery = supervisor.recovery
            self.twins.follow(
                requests.name,
                Source(
                    recorder,
                    lineage,
                    lambda: recovery.lost,
                    lambda: requests.state,
                    lambda seq: (
                        seq not in requests.answers.pending and seq not in requests.queue.waiting
                    ),
                    transfers.read,
                ),
            )
            self.lineages.append(lineage)

    def take_apart(self, supervisor: ContextSupervisor) -> None:
        """Have a device that is gone hear nothing more of the arena, and get no parts."""
        self.groups.remove(supervisor.name)
        with suppress(ValueError):  # that is closed, too
            self._services.busy.remove(supervisor.is_waited_for)
            self._services.arena.busy.remove(supervisor.is_entered)
            self._services.arena.on_segment.remove(supervisor.segment_made)
            self._services.arena.on_drop.remove(supervisor.segment_dropped)
