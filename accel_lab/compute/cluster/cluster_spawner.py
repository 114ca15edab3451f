"""The context processes of a system whose devices are on several machines.

Those of the notebook's own machine are as in any system. The others are had from their node; when
that is lost they are lost with it, and the next process of each device is taken elsewhere.
"""

import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from itertools import permutations
from typing import Any, Protocol

from accel_lab.actor.event_loop import EventLoop
from accel_lab.compute.arena.arena import Arena
from accel_lab.compute.cluster.places import Node, Places
from accel_lab.compute.cluster.relay import Machine, Relay
from accel_lab.compute.cluster.remote_process import RemoteProcess
from accel_lab.compute.peers.link import Link
from accel_lab.compute.peers.topology import Links
from accel_lab.compute.process.bound_process import BoundProcess, MakePipe
from accel_lab.compute.process.spawner import Spawner
from accel_lab.errors import BackendUnavailable, InvalidArgument
from accel_lab.uncopied import Uncopied

APART = "another machine"


class Cluster(Protocol):
    """The machines that there are; its methods may block for a moment.

    Attributes:
        own: the node that this process is on.
    """

    own: str

    def nodes(self) -> list[Node]:
        """Return the nodes that are up."""

    def machine(self, node: Node) -> Machine:
        """Return what owns contexts on a node; it has not begun."""


class ClusterSpawner(Uncopied):
    """Takes each process from the node that its device is on.

    Parameters:
        local: starts those of this machine.
    """

    def __init__(
        self,
        local: Spawner,
        cluster: Cluster,
        places: Places,
        arena: Arena,
        event_loop: EventLoop,
        pipe: MakePipe,
    ) -> None:
        self._local = local
        self._cluster = cluster
        self._places = places
        self._arena = arena
        self._event_loop = event_loop
        self._pipe = pipe
        self._lock = threading.Lock()
        self._relays: dict[str, Relay] = {}
        self._lost_relays: list[Relay] = []
        self._is_closing = False
        self._left = 0

    @property
    def variables(self) -> Mapping[Any, Any]:
        """The environment in which processes of this machine begin."""
        return self._local.variables

    def is_entered(self) -> bool:
        """Whether this thread carries what is said to contexts, or what they say; any thread."""
        return any(relay.is_entered for relay in [*self._relays.values(), *self._lost_relays])

    def take(self, index: int) -> BoundProcess:
        """Return a process to bind to the device of this index; does not wait for its node."""
        try:
            place = self._places.place(index)
        except BackendUnavailable:
            process = self._remote(index)
            self._start(self._seek, process, index)
            return process
        if place.node.id == self._cluster.own:
            return self._local.take(place.slot)
        process = self._remote(place.slot)
        self._send(process, place.node)
        return process

    def is_elsewhere(self, index: int) -> bool:
        """Whether a device is not on this machine; any thread."""
        return self._node_of(index) != self._cluster.own

    def require_one_machine(self, indices: Iterable[int]) -> None:
        """Raise InvalidArgument unless these devices are on one machine, and that is this one."""
        if any(map(self.is_elsewhere, indices)):
            raise InvalidArgument(
                "the ranks of a world share the memory of this machine, and one of these devices "
                "is on another: name those of this machine, or use torch.distributed there"
            )

    def links(self, names: Mapping[int, str], ask: Callable[[list[int]], Links]) -> Links:
        """Return how each device reaches each other one.

        Parameters:
            names: of the devices, by index.
            ask: returns the links between devices of this machine, in the order of `permutations`.
        """
        found = dict.fromkeys(permutations(names.values(), 2), Link(APART, reachable=False))
        here = [index for index in names if not self.is_elsewhere(index)]
        own = {index: self._places.place(index).slot for index in here}
        known = ask([own[index] for index in here]) if here else {}
        pairs = permutations([names[index] for index in here], 2)
        found.update(zip(pairs, known.values(), strict=True))
        return found

    def close(self, closed: Callable[[], None]) -> None:
        """Kill every context on every node, and call `closed` when all are reaped."""

        def one_closed() -> None:
            self._left -= 1
            if not self._left:
                closed()

        with self._lock:
            self._is_closing = True
            relays = [*self._relays.values(), *self._lost_relays]
            self._relays, self._lost_relays = {}, []
        self._left = len(relays) + 1
        for relay in relays:
            relay.close(lambda: self._event_loop.call_soon(one_closed))
        self._local.close(one_closed)

    def _node_of(self, index: int) -> str:
        place = self._places.of(index)
        return "" if place is None else place.node.id

    def _remote(self, index: int) -> RemoteProcess:
        return RemoteProcess(next(self._local.numbers), index, self._event_loop, self._pipe)

    def _send(self, process: RemoteProcess, node: Node) -> None:
        """Have a process started on a node, through what speaks with it."""
        with self._lock:
            relay = self._relays.get(node.id)
            if relay is None and not self._is_closing:
                relay = self._relays[node.id] = Relay(
                    self._cluster.machine(node),
                    self._arena,
                    lambda relay, _: self._lost(relay, node.id),
                )
        if relay is None:
            process.end("its system, which was closed")
            process.leave()
        else:
            relay.take(process)

    def _lost(self, relay: Relay, id_: str) -> None:
        """A node is gone: see which there are, before its devices ask for another place."""
        with self._lock:
            if self._relays.get(id_) is relay:
                del self._relays[id_]
            if not self._is_closing:
                self._lost_relays = [one for one in self._lost_relays if not one.has_ended]
                self._lost_relays.append(relay)
        self._places.gone(id_)
        with suppress(Exception):  # the cluster does not answer; what is known has to do
            self._places.update(node for node in self._cluster.nodes() if node.id != id_)

    def _seek(self, process: RemoteProcess, index: int) -> None:
        """Look again for a node with room, and have a process started there, or refuse it."""
        try:
            with suppress(ConnectionError):
                self._places.update(self._cluster.nodes())
            place = self._places.place(index)
        except Exception as error:  # noqa: BLE001 - whatever the cluster says, the device waits
            process.refuse(str(error))
            process.leave()
            return
        process.index = place.slot
        if place.node.id == self._cluster.own:  # there is another kind of process for that
            process.end("the loss of its node")
            process.leave()
        else:
            self._send(process, place.node)

    def _start(self, target: Callable[..., None], *args: Any) -> None:
        threading.Thread(target=target, args=args, name="accel_lab seeks a node").start()
