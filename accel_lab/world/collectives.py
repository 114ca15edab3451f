"""The collective operations of a world: what is checked, and the part of each rank."""

from collections.abc import Callable, Sequence
from typing import Any

from accel_lab.actor.reply import Reply
from accel_lab.compute.device import Device
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.operation import OWN_TIMEOUT, Operation
from accel_lab.compute.world.group_reply import GroupReply
from accel_lab.errors import InvalidArgument
from accel_lab.libraries import collective
from accel_lab.libraries.collective.messages import Reduction
from accel_lab.world.sharded import Layout, Sharded

Make = Callable[[int, int], Operation[Any]]
"""Returns the part of a rank (second) in a communicator (first)."""


class Collectives:
    """What a world does with its ranks' arrays; each is one call with one answer.

    Attributes:
        name: of the world.
    """

    name: str

    @property
    def devices(self) -> tuple[Device, ...]:
        """The ranks, in their order."""
        raise NotImplementedError

    @property
    def size(self) -> int:
        """How many ranks there are."""
        return len(self.devices)

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
        raise NotImplementedError

    def _alike(self, reply: GroupReply, refs: Sequence[AccelRef]) -> None:
        """With an operation these hold the same bytes: who loses one has it from another."""
        raise NotImplementedError

    def _pieces(self, reply: GroupReply, whole: AccelRef, pieces: Sequence[AccelRef]) -> None:
        """With an operation these hold the pieces of what one rank has."""
        raise NotImplementedError

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
        refs, outs = self._equal(x), self._outs(out)

        def part(comm: int, rank: int) -> Operation[Any]:
            return collective.AllReduce(comm, refs[rank], op=op, scale=scale, out=outs[rank])

        reply = self._send("all_reduce", part, refs, timeout_s)
        self._alike(reply, reply.results)
        return Sharded(self, reply.results, "replicated")

    def all_gather(
        self,
        x: Sharded | Sequence[AccelRef],
        *,
        out: Sharded | None = None,
        timeout_s: float | None = OWN_TIMEOUT,
    ) -> Sharded:
        """Join the ranks' arrays along axis 0, and give all ranks the result (ncclAllGather)."""
        refs, outs, size = self._equal(x), self._outs(out), self.size

        def part(comm: int, rank: int) -> Operation[Any]:
            return collective.AllGather(comm, refs[rank], size, out=outs[rank])

        reply = self._send("all_gather", part, refs, timeout_s, times=size)
        self._alike(reply, reply.results)
        return Sharded(self, reply.results, "replicated")

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
        refs, outs, size = self._equal(x), self._outs(out), self.size

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
        refs, outs, size = self._equal(x), self._outs(out), self.size

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
        refs, root = self._equal(x), self._rank(root)

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
        refs, root, size = self._equal(x), self._rank(root), self.size

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
        self._alike(reply, refs)
        return Sharded(self, refs, "replicated")

    def scatter(self, x: AccelRef, *, timeout_s: float | None = OWN_TIMEOUT) -> Sharded:
        """Give each rank its part, along axis 0, of what one has."""
        root, size = self._place(x), self.size
        shape = collective.Scatter(0, x, size).infer().shape

        def part(comm: int, rank: int) -> Operation[Any]:
            if rank == root:
                return collective.Scatter(comm, x, size)
            return collective.Take(comm, "scatter", root, shape, x.dtype)

        reply = self._send("scatter", part, [x], timeout_s)
        self._pieces(reply, x, reply.results)
        return Sharded(self, reply.results, 0)

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
        self._alike(reply, [x, result])
        return result

    def barrier(self, *, timeout_s: float | None = OWN_TIMEOUT) -> Reply[Any]:
        """Return what is done when all ranks have done what was sent before."""
        return self._send("barrier", lambda comm, _: collective.Barrier(comm), [], timeout_s)

    def _all(
        self,
        call: str,
        part: Make,
        refs: Sequence[AccelRef],
        layout: Layout,
        timeout_s: float | None,
    ) -> Sharded:
        return Sharded(self, self._send(call, part, refs, timeout_s).results, layout)

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

    def _equal(self, x: Sharded | Sequence[AccelRef]) -> tuple[AccelRef, ...]:
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
            (
                r
                for r, ref in enumerate(refs)
                if (ref.dtype, ref.shape) != (first.dtype, first.shape)
            ),
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
