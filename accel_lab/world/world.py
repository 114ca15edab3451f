"""Several devices as one: what a cell calls."""

import math
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from accel_lab.actor.events import EventStream
from accel_lab.actor.reply import Reply
from accel_lab.compute.arrays.dtypes import itemsize
from accel_lab.compute.device import Device
from accel_lab.compute.events.lifecycle import ContextLost
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.operation import OWN_TIMEOUT, Operation
from accel_lab.compute.message.validation import require_word
from accel_lab.compute.world.group_reply import GroupReply
from accel_lab.compute.world.group_sender import GroupSender
from accel_lab.display.summary import as_html
from accel_lab.errors import AccelError, InvalidArgument
from accel_lab.libraries import collective
from accel_lab.libraries.collective.algorithms import algorithm
from accel_lab.libraries.collective.messages import Reduction
from accel_lab.world.communicator import Communicator, OnLoss, State
from accel_lab.world.flight import Flight
from accel_lab.world.sharded import Layout, Sharded

Make = Callable[[int, int], Operation[Any]]
"""Returns the part of a rank (second) in a communicator (first)."""


class Services(NamedTuple):
    """What a system has for its worlds."""

    groups: GroupSender
    events: EventStream
    backend: str


class World:
    """Several devices that do collective operations together; its ranks are their positions.

    Each operation is one call with one answer, an array of all ranks, and does not block. It waits
    only while the world has no communicator. A rank that is lost, or an operation that is aborted,
    costs the others nothing but what they were at: the world makes a new communicator by itself,
    and its `epoch` rises.

    Attributes:
        name: what views and errors call it.
        in_flight: the operations that are not done, by their number.
    """

    def __init__(
        self, name: str, devices: Sequence[Device], services: Services, *, on_loss: OnLoss
    ) -> None:
        require_word(on_loss, "on_loss", ("rebuild", "shrink"))
        self.name = name
        self.in_flight: dict[int, Flight] = {}
        self._services = services
        comm = Communicator(name, devices, services.groups, services.events, on_loss)
        self._communicator = comm
        watching = services.events.subscribe(comm.on_lost, ContextLost)
        self._finalizer = weakref.finalize(self, _end, comm, watching.close)

    # What it is.

    @property
    def devices(self) -> tuple[Device, ...]:
        """The ranks, in their order."""
        return self._communicator.devices

    @property
    def size(self) -> int:
        """How many ranks there are."""
        return len(self.devices)

    @property
    def epoch(self) -> int:
        """How many communicators there were, the present one counted; 0 before the first."""
        return self._communicator.epoch

    @property
    def state(self) -> State:
        """Whether it has a communicator: "whole", "forming", "given up" or "closed"."""
        return self._communicator.state

    def ready(self, timeout_s: float = 120.0) -> "World":
        """Block until there is a communicator.

        Raises:
            AccelError: none can be made, and why.
            TimeoutError: it took longer.
        """
        self._communicator.require(timeout_s)
        return self

    def close(self) -> None:
        """Have the ranks leave; what is under way fails. A second call is fine."""
        self._finalizer()

    # Arrays with a part on each rank.

    def shard(self, array: npt.ArrayLike, axis: int = 0) -> Sharded:
        """Put a piece of an array on each rank; the first ones are one longer if need be."""
        whole = np.asarray(array)
        if not -whole.ndim <= axis < whole.ndim:
            raise InvalidArgument(f"axis is {axis}, and the array has {whole.ndim} axes")
        pieces = np.array_split(whole, self.size, axis % whole.ndim)
        refs = [device.put(piece) for device, piece in zip(self.devices, pieces, strict=True)]
        return Sharded(self, refs, axis % whole.ndim)

    def replicate(self, array: npt.ArrayLike) -> Sharded:
        """Put the same array on each rank."""
        return Sharded(self, [device.put(array) for device in self.devices], "replicated")

    def own(self, refs: Sequence[AccelRef]) -> Sharded:
        """Return handles, one of each rank, as one array."""
        return Sharded(self, self._checked(refs), "own")

    # Collective operations.

    def all_reduce(
        self,
        x: Sharded | Sequence[AccelRef],
        op: Reduction = "sum",
        *,
        scale: float | None = None,
        out: Sharded | None = None,
        timeout_s: float | None = OWN_TIMEOUT,
    ) -> Sharded:
        """Reduce the ranks' arrays, and give all ranks the result (ncclAllReduce).

        Parameters:
            op: "sum", "prod", "min", "max" or "avg"; an average of integers is cut.
            scale: a number by which each is multiplied before.
            out: where it is written; it may be `x`.
            timeout_s: how long it may take once the first rank has begun.

        Raises:
            InvalidArgument: the ranks' arrays differ in shape or dtype; nothing was sent.
        """
        refs, outs = self._alike(x), self._outs(out)

        def part(comm: int, rank: int) -> Operation[Any]:
            return collective.AllReduce(comm, refs[rank], op=op, scale=scale, out=outs[rank])

        return self._all("all_reduce", part, refs, "replicated", timeout_s)

    def all_gather(
        self,
        x: Sharded | Sequence[AccelRef],
        *,
        out: Sharded | None = None,
        timeout_s: float | None = OWN_TIMEOUT,
    ) -> Sharded:
        """Join the ranks' arrays along axis 0, and give all ranks the result (ncclAllGather)."""
        refs, outs, size = self._alike(x), self._outs(out), self.size

        def part(comm: int, rank: int) -> Operation[Any]:
            return collective.AllGather(comm, refs[rank], size, out=outs[rank])

        return self._all("all_gather", part, refs, "replicated", timeout_s, times=size)

    def reduce_scatter(
        self,
        x: Sharded | Sequence[AccelRef],
        op: Reduction = "sum",
        *,
        scale: float | None = None,
        out: Sharded | None = None,
        timeout_s: float | None = OWN_TIMEOUT,
    ) -> Sharded:
        """Reduce the ranks' arrays; each keeps its part along axis 0 (ncclReduceScatter)."""
        refs, outs, size = self._alike(x), self._outs(out), self.size

        def part(comm: int, rank: int) -> Operation[Any]:
            made = collective.ReduceScatter
            return made(comm, refs[rank], size, op=op, scale=scale, out=outs[rank])

        return self._all("reduce_scatter", part, refs, 0, timeout_s)

    def all_to_all(
        self,
        x: Sharded | Sequence[AccelRef],
        *,
        out: Sharded | None = None,
        timeout_s: float | None = OWN_TIMEOUT,
    ) -> Sharded:
        """Send the r-th part of each array, along axis 0, to rank r."""
        refs, outs, size = self._alike(x), self._outs(out), self.size

        def part(comm: int, rank: int) -> Operation[Any]:
            return collective.AllToAll(comm, refs[rank], size, out=outs[rank])

        return self._all("all_to_all", part, refs, "own", timeout_s)

    def all_to_all_v(
        self,
        x: Sharded | Sequence[AccelRef],
        rows: Sequence[Sequence[int]],
        *,
        timeout_s: float | None = OWN_TIMEOUT,
    ) -> Sharded:
        """Send `rows[s][r]` rows of rank s to rank r, in this order."""
        refs = self._checked(x)
        size = self.size
        if len(rows) != size or any(len(row) != size for row in rows):
            raise InvalidArgument(f"rows has a row and a column for each of the {size} ranks")
        trailing = {(ref.dtype, ref.shape[1:]) for ref in refs}
        if len(trailing) > 1:
            raise self._unlike(refs)

        def part(comm: int, rank: int) -> Operation[Any]:
            sends = tuple(map(int, rows[rank]))
            receives = tuple(int(row[rank]) for row in rows)
            return collective.AllToAllV(comm, refs[rank], sends, receives)

        return self._all("all_to_all", part, refs, "own", timeout_s)

    def reduce(
        self,
        x: Sharded | Sequence[AccelRef],
        root: int = 0,
        op: Reduction = "sum",
        *,
        scale: float | None = None,
        timeout_s: float | None = OWN_TIMEOUT,
    ) -> AccelRef:
        """Reduce the ranks' arrays, and give one rank the result (ncclReduce)."""
        refs, root = self._alike(x), self._rank(root)

        def part(comm: int, rank: int) -> Operation[Any]:
            if rank == root:
                return collective.Reduce(comm, refs[rank], op=op, scale=scale)
            return collective.Give(comm, refs[rank], "reduce", root, op=op, scale=scale)

        result: AccelRef = self._send("reduce", part, refs, timeout_s).results[root]
        return result

    def gather(
        self,
        x: Sharded | Sequence[AccelRef],
        root: int = 0,
        *,
        timeout_s: float | None = OWN_TIMEOUT,
    ) -> AccelRef:
        """Join the ranks' arrays along axis 0 on one of them."""
        refs, root, size = self._alike(x), self._rank(root), self.size

        def part(comm: int, rank: int) -> Operation[Any]:
            if rank == root:
                return collective.Gather(comm, refs[rank], size)
            return collective.Give(comm, refs[rank], "gather", root)

        reply = self._send("gather", part, refs, timeout_s, times=size)
        result: AccelRef = reply.results[root]
        return result

    def broadcast(self, x: AccelRef, *, timeout_s: float | None = OWN_TIMEOUT) -> Sharded:
        """Give all ranks what one has (ncclBroadcast); there the result is `x` itself."""
        root = self._place(x)

        def part(comm: int, rank: int) -> Operation[Any]:
            if rank == root:
                return collective.Give(comm, x, "broadcast", root)
            return collective.Take(comm, "broadcast", root, x.shape, x.dtype)

        reply = self._send("broadcast", part, [x], timeout_s)
        refs = [x if rank == root else one for rank, one in enumerate(reply.results)]
        return Sharded(self, refs, "replicated")

    def scatter(self, x: AccelRef, *, timeout_s: float | None = OWN_TIMEOUT) -> Sharded:
        """Give each rank its part, along axis 0, of what one has."""
        root, size = self._place(x), self.size
        shape = collective.Scatter(0, x, size).infer().shape

        def part(comm: int, rank: int) -> Operation[Any]:
            if rank == root:
                return collective.Scatter(comm, x, size)
            return collective.Take(comm, "scatter", root, shape, x.dtype)

        return self._all("scatter", part, [x], 0, timeout_s)

    def send(self, x: AccelRef, to: int, *, timeout_s: float | None = OWN_TIMEOUT) -> AccelRef:
        """Give one rank what another has (ncclSend, ncclRecv); return its handle there."""
        source, target = self._place(x), self._rank(to)
        if source == target:
            raise InvalidArgument(f"the array is on rank {to} already")

        def part(comm: int, rank: int) -> Operation[Any]:
            if rank == source:
                return collective.Give(comm, x, "send", target)
            return collective.Take(comm, "send", source, x.shape, x.dtype)

        reply = self._send("send", part, [x], timeout_s, ranks=(source, target))
        result: AccelRef = reply.results[1]
        return result

    def barrier(self, *, timeout_s: float | None = OWN_TIMEOUT) -> Reply[Any]:
        """Return what is done when all ranks have done what was sent before."""
        return self._send("barrier", lambda comm, _: collective.Barrier(comm), [], timeout_s)

    # How they are sent.

    def _all(
        self,
        call: str,
        part: Make,
        refs: Sequence[AccelRef],
        layout: Layout,
        timeout_s: float | None,
        times: int = 1,
    ) -> Sharded:
        return Sharded(self, self._send(call, part, refs, timeout_s, times).results, layout)

    def _send(
        self,
        call: str,
        part: Make,
        refs: Sequence[AccelRef],
        timeout_s: float | None,
        times: int = 1,
        ranks: Sequence[int] | None = None,
    ) -> GroupReply:
        """Send all parts; `times` the first array's bytes are those of the whole."""
        comm, epoch = self._communicator.require()
        devices = self.devices
        places = range(len(devices)) if ranks is None else ranks
        nbytes = math.prod(refs[0].shape) * itemsize(refs[0].dtype) * times if refs else 0
        flight = Flight(
            self.name,
            epoch,
            call,
            algorithm(self._services.backend, call, nbytes, len(places)),
            refs[0].dtype if refs else "",
            nbytes,
            tuple(devices[place].name for place in places),
            self._services.events,
            self._over(comm),
        )
        parts = [(devices[place], part(comm, place)) for place in places]
        reply = self._services.groups.send(parts, timeout_s, nowait=False, follower=flight)
        flight.group = reply.id
        if not reply.done:
            self.in_flight[id(flight)] = flight
            if reply.done:
                self.in_flight.pop(id(flight), None)
        return reply

    def _over(self, comm: int) -> Callable[[Flight, AccelError | None, bool], None]:
        """Return what is called at the end of an operation; it keeps the world from nothing."""
        communicator, in_flight = self._communicator, self.in_flight

        def over(flight: Flight, error: AccelError | None, sent: bool) -> None:
            in_flight.pop(id(flight), None)
            if error is not None and sent:
                reason = str(error).partition("\n")[0]
                communicator.lose(f"{flight.call} was aborted: {reason}", comm)

        return over

    def _checked(self, x: Sharded | Sequence[AccelRef]) -> tuple[AccelRef, ...]:
        """Return the handle of each rank.

        Raises:
            InvalidArgument: there is not one for each.
        """
        refs = x.refs if isinstance(x, Sharded) else tuple(x)
        if [getattr(ref, "device", None) for ref in refs] != list(self.devices):
            names = ", ".join(device.name for device in self.devices)
            found = ", ".join(getattr(getattr(r, "device", None), "name", repr(r)) for r in refs)
            text = f"{self.name} takes a handle on each of {names}, in this order, not on {found}"
            raise InvalidArgument(text)
        return refs

    def _alike(self, x: Sharded | Sequence[AccelRef]) -> tuple[AccelRef, ...]:
        """Return the handle of each rank; they are alike.

        Raises:
            InvalidArgument: they are not.
        """
        refs = self._checked(x)
        if len({(ref.dtype, ref.shape) for ref in refs}) > 1:
            raise self._unlike(refs)
        return refs

    def _unlike(self, refs: Sequence[AccelRef]) -> InvalidArgument:
        first = refs[0]
        at = next(
            (r for r, ref in enumerate(refs) if (ref.dtype, ref.shape) != (first.dtype, first.shape)),
        )
        other = refs[at]
        return InvalidArgument(
            f"rank 0 on {first.device.name} has {first.dtype}{list(first.shape)}, and rank {at} on "
            f"{other.device.name} has {other.dtype}{list(other.shape)}; all ranks' are to be alike"
        )

    def _outs(self, out: Sharded | None) -> Sequence[AccelRef | None]:
        return [None] * self.size if out is None else self._checked(out)

    def _place(self, ref: AccelRef) -> int:
        """Return the rank of a handle."""
        for rank, device in enumerate(self.devices):
            if ref.device is device:
                return rank
        raise InvalidArgument(f"{ref.label} is on {ref.device.name}, no device of {self.name}")

    def _rank(self, rank: int) -> int:
        if not 0 <= rank < self.size:
            raise InvalidArgument(f"{self.name} has the ranks 0 to {self.size - 1}, and no {rank}")
        return rank

    def __len__(self) -> int:
        return self.size

    def __repr__(self) -> str:
        names = ", ".join(device.name for device in self.devices)
        return f"World({self.name}: {names}; {self.state}, epoch {self.epoch})"

    def _repr_html_(self) -> str:
        lines = [("state", self.state), ("epoch", str(self.epoch))]
        lines += [(f"rank {n}", device.name) for n, device in enumerate(self.devices)]
        return as_html(self.name, lines)


def _end(communicator: Communicator, stop: Callable[[], object]) -> None:
    """Leave, for whoever had the world is gone."""
    stop()
    communicator.close()
