"""Collective operations: NCCL on `cuda`, rings and trees in shared memory on `host`.

They are called by the methods of a world, `lab.world().all_reduce(x)`, which sends each rank its
part and makes a new communicator where a rank is lost.
"""

# ruff: noqa: PLC0414 - names of this module, wherever they are written

import pickle
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Protocol

from accel_lab.actor.reply import Reply
from accel_lab.compute.device import Device
from accel_lab.compute.execution.launch import Launch, LibraryActor, handles
from accel_lab.compute.groups.group import Group
from accel_lab.compute.wire.codec import Answer
from accel_lab.errors import AccelError
from accel_lab.libraries.collective.errors import CollectiveAborted as CollectiveAborted
from accel_lab.libraries.collective.errors import CommunicatorLost as CommunicatorLost
from accel_lab.libraries.collective.messages import AllGather as AllGather
from accel_lab.libraries.collective.messages import AllReduce as AllReduce
from accel_lab.libraries.collective.messages import AllToAll as AllToAll
from accel_lab.libraries.collective.messages import AllToAllV as AllToAllV
from accel_lab.libraries.collective.messages import Barrier as Barrier
from accel_lab.libraries.collective.messages import Collective as Collective
from accel_lab.libraries.collective.messages import Gather as Gather
from accel_lab.libraries.collective.messages import Give as Give
from accel_lab.libraries.collective.messages import Join as Join
from accel_lab.libraries.collective.messages import Leave as Leave
from accel_lab.libraries.collective.messages import MakeKey as MakeKey
from accel_lab.libraries.collective.messages import Reduce as Reduce
from accel_lab.libraries.collective.messages import ReduceScatter as ReduceScatter
from accel_lab.libraries.collective.messages import Scatter as Scatter
from accel_lab.libraries.collective.messages import Take as Take


def make_key(device: Device, size: int) -> Reply[str]:
    """Ask a device for a key by which the ranks of a new communicator find each other."""
    return device.ask(MakeKey(size))


def leave(device: Device, comm: int) -> None:
    """Have a device forget a communicator, if it has one of this number; never blocks.

    Raises:
        AccelError: as `Device.tell`.
    """
    device.tell(Leave(comm), nowait=True)


class Communicator(Protocol):
    """One rank of one communicator, as a backend has it.

    Its methods take arrays and write their last one. They enqueue, or block until they are done, as
    the backend's `enqueue` has them called.

    Attributes:
        rank: which one it is, from 0.
    """

    rank: int

    def all_reduce(self, x: Any, op: str, scale: float | None, out: Any) -> None:
        """Reduce everybody's."""

    def all_gather(self, x: Any, out: Any) -> None:
        """Join everybody's."""

    def reduce_scatter(self, x: Any, op: str, scale: float | None, out: Any) -> None:
        """Reduce everybody's, and keep one part."""

    def all_to_all(self, x: Any, sends: Any, receives: Any, out: Any) -> None:
        """Send rows of `x` to each rank; these are the numbers of rows."""

    def reduce(self, x: Any, root: int, op: str, scale: float | None, out: Any) -> None:
        """Reduce everybody's at `root`; `out` is None elsewhere."""

    def gather(self, x: Any, root: int, out: Any) -> None:
        """Join everybody's at `root`; `out` is None elsewhere."""

    def scatter(self, x: Any, root: int, out: Any) -> None:
        """Give each rank its part of what `root` has; `x` is None elsewhere."""

    def broadcast(self, x: Any, root: int, out: Any) -> None:
        """Give all ranks what `root` has; there `out` is None, and `x` elsewhere."""

    def send(self, x: Any, peer: int) -> None:
        """Give one rank an array."""

    def receive(self, peer: int, out: Any) -> None:
        """Take one rank's array."""

    def barrier(self) -> None:
        """Wait for all ranks."""

    def abort(self) -> None:
        """End whatever waits for other ranks; it cannot be used any more. Any thread."""

    def close(self) -> None:
        """Let it go."""


class CollectiveLibrary(Protocol):
    """What a backend provides."""

    def make_key(self, size: int) -> str:
        """Return what `join` takes; it holds as long as the process lives, or until all joined."""

    def join(self, key: str, group: Group) -> Any:
        """Wait for all ranks, and return a `Communicator`; blocks, on a worker's thread."""

    def enqueue(self, launch: Launch, comm: Any, work: Callable[[], object]) -> None:
        """Have a method of a communicator called in the order of calls, as `work`."""


class CollectiveActor(LibraryActor):
    """Owns the communicators of one context."""

    library: ClassVar = "collective"
    lib: CollectiveLibrary

    def __init__(self, context: Any, lib: Any) -> None:
        super().__init__(context, lib)
        self._comms: dict[int, Communicator] = {}

    @handles(MakeKey)
    def make_key(self, m: MakeKey, launch: Launch) -> None:
        """Answer with a key."""

        def answer(key: str) -> None:
            data = pickle.dumps(key)
            launch.finish = lambda: [Answer(launch.seq, data, True, [])]  # noqa: FBT003

        launch.blocking(lambda _: self.lib.make_key(m.size), answer)

    @handles(Join)
    def join(self, m: Join, launch: Launch) -> None:
        """Wait beside the dispatcher for all ranks."""
        group = _group(launch)
        launch.blocking(lambda _: self.lib.join(m.key, group), lambda comm: self._keep(m, comm))

    def _keep(self, m: Join, comm: Communicator) -> None:
        self._comms[m.comm] = comm

    @handles(Leave)
    def leave(self, m: Leave, launch: Launch) -> None:
        """Let a communicator go."""
        del launch
        comm = self._comms.pop(m.comm, None)
        if comm is not None:
            comm.abort()
            comm.close()

    @handles(AllReduce)
    def all_reduce(self, m: AllReduce, launch: Launch) -> None:
        """Enqueue the rank's part."""
        comm, x, out = self._of(m, launch), launch.read(m.x), launch.write()
        self.lib.enqueue(launch, comm, lambda: comm.all_reduce(x, m.op, m.scale, out))

    @handles(AllGather)
    def all_gather(self, m: AllGather, launch: Launch) -> None:
        """Enqueue the rank's part."""
        comm, x, out = self._of(m, launch), launch.read(m.x), launch.write()
        self.lib.enqueue(launch, comm, lambda: comm.all_gather(x, out))

    @handles(ReduceScatter)
    def reduce_scatter(self, m: ReduceScatter, launch: Launch) -> None:
        """Enqueue the rank's part."""
        comm, x, out = self._of(m, launch), launch.read(m.x), launch.write()
        self.lib.enqueue(launch, comm, lambda: comm.reduce_scatter(x, m.op, m.scale, out))

    @handles(AllToAll)
    def all_to_all(self, m: AllToAll, launch: Launch) -> None:
        """Enqueue the rank's part."""
        comm, x, out = self._of(m, launch), launch.read(m.x), launch.write()
        rows = (m.x.shape[0] // m.size,) * m.size
        self.lib.enqueue(launch, comm, lambda: comm.all_to_all(x, rows, rows, out))

    @handles(AllToAllV)
    def all_to_all_v(self, m: AllToAllV, launch: Launch) -> None:
        """Enqueue the rank's part."""
        comm, x, out = self._of(m, launch), launch.read(m.x), launch.write()
        self.lib.enqueue(launch, comm, lambda: comm.all_to_all(x, m.sends, m.receives, out))

    @handles(Reduce)
    def reduce(self, m: Reduce, launch: Launch) -> None:
        """Enqueue the part of the rank that gets the result."""
        comm, x, out = self._of(m, launch), launch.read(m.x), launch.write()
        self.lib.enqueue(launch, comm, lambda: comm.reduce(x, comm.rank, m.op, m.scale, out))

    @handles(Gather)
    def gather(self, m: Gather, launch: Launch) -> None:
        """Enqueue the part of the rank that gets the result."""
        comm, x, out = self._of(m, launch), launch.read(m.x), launch.write()
        self.lib.enqueue(launch, comm, lambda: comm.gather(x, comm.rank, out))

    @handles(Scatter)
    def scatter(self, m: Scatter, launch: Launch) -> None:
        """Enqueue the part of the rank that has the array."""
        comm, x, out = self._of(m, launch), launch.read(m.x), launch.write()
        self.lib.enqueue(launch, comm, lambda: comm.scatter(x, comm.rank, out))

    @handles(Give)
    def give(self, m: Give, launch: Launch) -> None:
        """Enqueue the part of a rank that gets nothing."""
        comm, x, peer = self._of(m, launch), launch.read(m.x), m.peer
        work: dict[str, Callable[[], None]] = {
            "reduce": lambda: comm.reduce(x, peer, m.op, m.scale, None),
            "gather": lambda: comm.gather(x, peer, None),
            "broadcast": lambda: comm.broadcast(x, comm.rank, None),
            "send": lambda: comm.send(x, peer),
        }
        self.lib.enqueue(launch, comm, work[m.call])

    @handles(Take)
    def take(self, m: Take, launch: Launch) -> None:
        """Enqueue the part of a rank that has nothing."""
        comm, out, peer = self._of(m, launch), launch.write(), m.peer
        work: dict[str, Callable[[], None]] = {
            "broadcast": lambda: comm.broadcast(None, peer, out),
            "scatter": lambda: comm.scatter(None, peer, out),
            "send": lambda: comm.receive(peer, out),
        }
        self.lib.enqueue(launch, comm, work[m.call])

    @handles(Barrier)
    def barrier(self, m: Barrier, launch: Launch) -> None:
        """Enqueue a wait for all ranks."""
        comm = self._of(m, launch)
        self.lib.enqueue(launch, comm, comm.barrier)

    def _of(self, m: Collective[Any], launch: Launch) -> Communicator:
        """Return the communicator of a part, which ends with it if it is aborted.

        Raises:
            CommunicatorLost: this context has none of this number.
        """
        comm = self._comms.get(m.comm)
        if comm is None:
            raise CommunicatorLost(f"this context has no communicator {m.comm}")
        _group(launch).on_abort(comm.abort)
        return comm

    def statistics(self) -> Mapping[str, int]:
        """Count communicators, and what they have sent."""
        comms = list(self._comms.values())
        sent = sum(getattr(comm, "sent_bytes", 0) for comm in comms)
        return {"communicators": len(comms), "bytes sent": sent}

    def close(self) -> None:
        """End all communicators."""
        comms = list(self._comms.values())
        self._comms.clear()
        for comm in comms:
            comm.abort()
            comm.close()
        super().close()


def _group(launch: Launch) -> Group:
    group = launch.group
    if group is None:
        raise AccelError("a collective operation is sent to all ranks at once, by a world")
    return group
