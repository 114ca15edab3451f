"""What a system does with several of its devices: worlds, placement, and copies between them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any

from accel_lab.actor.event_loop import EventLoop
from accel_lab.actor.events import EventStream
from accel_lab.compute.assembly import Assembly
from accel_lab.compute.cluster.cluster_spawner import ClusterSpawner
from accel_lab.compute.device import Device
from accel_lab.compute.message.buffer import AccelRef, Ref
from accel_lab.compute.message.operation import OWN_TIMEOUT, Operation
from accel_lab.compute.peers.auto_copy import AutoCopy, copy_to
from accel_lab.compute.peers.topology import Links, P2pTopology
from accel_lab.compute.placement.placement import Placement, Shard
from accel_lab.compute.placement.policies import Hints
from accel_lab.compute.process.spawner import Spawner
from accel_lab.compute.supervision.guests import Guests
from accel_lab.compute.world.group_reply import GroupReply
from accel_lab.errors import InvalidArgument
from accel_lab.world.communicator import OnLoss
from accel_lab.world.world import World
from accel_lab.world.worlds import Worlds


class SeveralDevices:
    """The part of a system that looks at more than one of its devices.

    Attributes:
        name: of the system.
        backend: of all its devices.
        events: what becomes of them.
        devices: all of them, in order.
    """

    name: str
    backend: str
    events: EventStream
    devices: list[Device]
    _event_loop: EventLoop
    _assembly: Assembly
    _indices: dict[str, int]
    _module: Any
    _source: Spawner | ClusterSpawner

    @property
    def guests(self) -> Guests:
        """What stands in its tree beside the devices, as the pipelines that run."""
        return self._assembly.guests

    def device(self, name: str | int) -> Device:
        """Return a device by its name, as `gpu0`, or its position.

        Raises:
            InvalidArgument: there is none; the text lists those there are.
        """
        for position, device in enumerate(self.devices):
            if name in (device.name, position):
                return device
        text = f"{name!r} is no device of {self.name}; there are {[d.name for d in self.devices]}"
        raise InvalidArgument(text)

    def group(
        self,
        parts: Mapping[Device, Operation[Any]] | Iterable[tuple[Device, Operation[Any]]],
        *,
        timeout_s: float | None = OWN_TIMEOUT,
        nowait: bool = False,
    ) -> GroupReply:
        """Send a message of which each device gets a part, as `{gpu0: …, gpu1: …}`.

        The parts have ranks in this order. All of them are sent, or none; those of two messages
        come in one order to all devices. Returns one reply, with the handle of each rank in
        `results`, an operand at once. They are done together, and they fail together: when a part
        fails or is cancelled, its context is lost, or the time is over, all others are aborted.

        Parameters:
            timeout_s: how long it may take from the moment at which the first part begins; when
                not given the messages' own limit. None is for ever.
            nowait: as in `Device.ask`.

        Raises:
            InvalidArgument: a part does not fit, or is a message for one device; nothing was sent.
            AccelError: as `Device.ask`, of any of the devices; nothing was sent.
        """
        return self._assembly.groups.send(parts, timeout_s, nowait=nowait)

    def world(
        self,
        devices: Sequence[Device] | None = None,
        *,
        name: str | None = None,
        on_loss: OnLoss = "rebuild",
        shape: Mapping[str, int] | None = None,
    ) -> World:
        """Return some devices as one, whose ranks they are in this order; all if none are named.

        It does not wait until they have found each other; what is asked of it does.

        Parameters:
            name: what views and errors call it.
            on_loss: "rebuild" waits for the context of a lost rank; "shrink" goes on without.
            shape: a grid of named dimensions, as {"data": 2, "model": 2}: `world["data"]` are its
                lines along one.

        Raises:
            InvalidArgument: there is none, or one twice, or one of another system, or too few for
                the grid; or one is on another machine.
        """
        ranks = self.devices if devices is None else devices
        if isinstance(self._source, ClusterSpawner):
            ours = (self._indices[one.name] for one in ranks if one in self.devices)
            self._source.require_one_machine(ours)
        return self.worlds.open(ranks, name, on_loss, shape)

    @cached_property
    def worlds(self) -> Worlds:
        """Its worlds, as views look at them."""
        assembly = self._assembly
        groups, twins = assembly.groups, assembly.twins
        return Worlds(groups, self.events, self._event_loop, self.backend, twins)

    def ask(
        self,
        message: Operation[Any],
        *,
        nbytes: int = 0,
        capability: float = 0.0,
        priority: int = 0,
        near: Ref[Any] | Device | None = None,
        timeout_s: float | None = OWN_TIMEOUT,
        nowait: bool = False,
    ) -> Any:
        """Send a message to a device that `lab.placement` chooses; returns what `Device.ask` does.

        Operands decide where it goes, if it has any. Blocks while all devices have full queues.

        Parameters:
            nbytes: the memory that it takes; a device with less free is not chosen.
            capability: the least compute capability that it needs, as 9.0.
            priority: above 0 it goes where it begins soonest, and waits for no room.
            near: a handle, or a device, that it should be close to.
            timeout_s, nowait: as in `Device.ask`.

        Raises:
            NoDevice: no device may take it; `why` says of each the reason.
            InvalidArgument: its operands lie on two devices, or do not fit.
            AccelError: as `Device.ask`.
        """
        hints = Hints(nbytes, capability, priority)
        return self.placement.ask(message, hints, near, timeout_s, nowait=nowait)

    def shard(self, key: str | bytes | int) -> Shard:
        """Return what sends to the device of a key, always the same while its circuit is closed."""
        return Shard(key, self.placement)

    @cached_property
    def placement(self) -> Placement:
        """What chooses devices for `ask` and `shard`: its policy, and reservations of memory."""
        return Placement(self.devices, self.events)

    @cached_property
    def topology(self) -> P2pTopology:
        """Which devices reach each other, over what, and how fast: a heat map in a notebook."""
        links: Callable[[], Links] = partial(self._module.peer_links, [*self._indices.values()])
        if isinstance(self._source, ClusterSpawner):
            names = {index: name for name, index in self._indices.items()}
            links = partial(self._source.links, names, self._module.peer_links)
        return P2pTopology(self.devices, links, self._assembly.ways)

    def copy(self, ref: AccelRef, *, to: Device | str | int, timeout_s: float = 60.0) -> AccelRef:
        """Copy a buffer to another device, as its `put` does; return the copy at once.

        The way is chosen by what the two have in common; `lab.topology.copies` tells. The copy is
        as the buffer is after what was sent before. Blocks for room in the arena, and for a shape
        that only a device knows; not for the copy.

        Raises:
            InvalidArgument: there is no such device, or it is no buffer.
            AccelError: as `Device.put`.
        """
        return copy_to(ref, to if isinstance(to, Device) else self.device(to), timeout_s)

    @property
    def auto_copy(self) -> bool:
        """Whether an operand that another device has is copied to where a message is sent.

        Otherwise that is refused. It can be set, for what is sent later. Each such copy is told as
        the event `CopyInserted` and recorded as any copy; what a message writes is never copied.
        """
        return self.devices[0].requests.outbox.bring is not None

    @auto_copy.setter
    def auto_copy(self, auto_copy: bool) -> None:
        for device in self.devices:
            device.requests.outbox.bring = AutoCopy(device, self.events) if auto_copy else None
