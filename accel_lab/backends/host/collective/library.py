"""Collective operations on the host: rings for what is large, trees for what is small.

A ring all-reduce sends 2 (n - 1) / n of the array from each rank, as NCCL's, and each part of the
result is folded in one order, whatever the timing: the same bits every time (Patarasuk and Yuan,
"Bandwidth optimal all-reduce algorithms for clusters of workstations", 2009). Reductions and
broadcasts of what is large go down a chain in pieces, others up or down a binomial tree.
"""

import math
import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from accel_lab.backends.host.collective.channels import PIECE_BYTES, make_file
from accel_lab.backends.host.collective.communicator import (
    Array,
    Exchanges,
    Fold,
    Incoming,
    Outgoing,
)
from accel_lab.compute.execution.launch import Launch
from accel_lab.compute.groups.group import Group
from accel_lab.libraries.collective import ring
from accel_lab.libraries.collective.algorithms import TREE_BYTES

_FOLDS: dict[str, Fold] = {
    "sum": np.add,
    "avg": np.add,
    "prod": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
}


class HostCommunicator(Exchanges):
    """One rank; each method blocks until its part is done."""

    def all_reduce(self, x: Any, op: str, scale: float | None, out: Any) -> None:
        """Scatter the reduction around the ring, and gather it; or up the tree and down again."""
        into, fold = _into(out), _FOLDS[op]
        self._prepare(into, x, op, scale)
        if into.nbytes <= TREE_BYTES:
            self._up(into, fold, 0)
            self._down(into, 0)
        else:
            parts = self._parts(into)
            self._scatter_around(parts, fold, ring.shift("all_reduce", "folds"))
            self._gather_around(parts, ring.shift("all_reduce", "passes"))
        self._finish(into, op)
        _deliver(out, into)

    def reduce_scatter(self, x: Any, op: str, scale: float | None, out: Any) -> None:
        """Send partial results around the ring, so that each rank's own part ends with it."""
        work = np.empty(x.size, x.dtype)
        self._prepare(work, x, op, scale)
        parts = self._parts(work)
        self._scatter_around(parts, _FOLDS[op], ring.shift("reduce_scatter", "folds"))
        mine = parts[self.rank]
        self._finish(mine, op)
        _deliver(out, mine)

    def all_gather(self, x: Any, out: Any) -> None:
        """Send everybody's part around the ring."""
        into = _into(out)
        parts = self._parts(into)
        parts[self.rank][...] = _flat(x)
        self._gather_around(parts, ring.shift("all_gather", "passes"))
        _deliver(out, into)

    def reduce(self, x: Any, root: int, op: str, scale: float | None, out: Any) -> None:
        """Up the tree, or along a chain that ends at the root."""
        fold = _FOLDS[op]
        work = np.empty(x.size, x.dtype) if out is None else _into(out)
        self._prepare(work, x, op, scale)
        if work.nbytes <= TREE_BYTES:
            self._up(work, fold, root)
        else:
            place = (self.rank - root - 1) % self.size  # the root is the last
            for piece in _pieces(work):
                if place > 0:
                    self.exchange([], [Incoming(self._left, piece, fold)])
                if self.rank != root:
                    self.exchange([Outgoing(self._right, piece)], [])
        if out is not None:
            self._finish(work, op)
            _deliver(out, work)

    def broadcast(self, x: Any, root: int, out: Any) -> None:
        """Down the tree, or along a chain that begins at the root."""
        work = _flat(x) if out is None else _into(out)
        if work.nbytes <= TREE_BYTES:
            self._down(work, root)
        else:
            place = (self.rank - root) % self.size
            for piece in _pieces(work):
                if place > 0:
                    self.exchange([], [Incoming(self._left, piece)])
                if place < self.size - 1:
                    self.exchange([Outgoing(self._right, piece)], [])
        if out is not None:
            _deliver(out, work)

    def gather(self, x: Any, root: int, out: Any) -> None:
        """Send straight to the root."""
        if out is None:
            self.exchange([Outgoing(root, _flat(x))], [])
            return
        into = _into(out)
        parts = self._parts(into)
        parts[self.rank][...] = _flat(x)
        self.exchange([], [Incoming(one, parts[one]) for one in self._others()])
        _deliver(out, into)

    def scatter(self, x: Any, root: int, out: Any) -> None:
        """Send straight from the root."""
        into = _into(out)
        if x is None:
            self.exchange([], [Incoming(root, into)])
        else:
            parts = self._parts(_flat(x))
            into[...] = parts[self.rank]
            self.exchange([Outgoing(one, parts[one]) for one in self._others()], [])
        _deliver(out, into)

    def all_to_all(self, x: Any, sends: Any, receives: Any, out: Any) -> None:
        """Send to and take from everybody at once."""
        flat, into = _flat(x), _into(out)
        row = math.prod(x.shape[1:])
        going = np.split(flat, np.cumsum(sends)[:-1] * row)
        coming = np.split(into, np.cumsum(receives)[:-1] * row)
        coming[self.rank][...] = going[self.rank]
        self.exchange(
            [Outgoing(one, going[one]) for one in self._others()],
            [Incoming(one, coming[one]) for one in self._others()],
        )
        _deliver(out, into)

    def send(self, x: Any, peer: int) -> None:
        """Send to one rank."""
        self.exchange([Outgoing(peer, _flat(x))], [])

    def receive(self, peer: int, out: Any) -> None:
        """Take from one rank."""
        into = _into(out)
        self.exchange([], [Incoming(peer, into)])
        _deliver(out, into)

    def barrier(self) -> None:
        """Send a byte up the tree and down again."""
        token = np.zeros(1, np.uint8)
        self._up(token, np.add, 0)
        self._down(token, 0)

    # The ways.

    @property
    def _left(self) -> int:
        return (self.rank - 1) % self.size

    @property
    def _right(self) -> int:
        return (self.rank + 1) % self.size

    def _others(self) -> Iterator[int]:
        """Name all other ranks, the next one first: not all begin with the same."""
        return ((self.rank + step) % self.size for step in range(1, self.size))

    def _parts(self, flat: Array) -> list[Array]:
        """Cut an array in as many parts as there are ranks, which differ by one element at most."""
        return np.array_split(flat, self.size)

    def _scatter_around(self, parts: list[Array], fold: Fold, shift: int) -> None:
        """Fold the parts around the ring; the rank's is then the one `rank + 1 + shift`."""
        for step in range(self.size - 1):
            going = parts[ring.part(self.rank, shift, step, self.size)]
            coming = parts[ring.part(self._left, shift, step, self.size)]
            self.exchange([Outgoing(self._right, going)], [Incoming(self._left, coming, fold)])

    def _gather_around(self, parts: list[Array], shift: int) -> None:
        """Send the parts around the ring; the rank has the one `rank + shift`."""
        for step in range(self.size - 1):
            going = parts[ring.part(self.rank, shift, step, self.size)]
            coming = parts[ring.part(self._left, shift, step, self.size)]
            self.exchange([Outgoing(self._right, going)], [Incoming(self._left, coming)])

    def _up(self, work: Array, fold: Fold, root: int) -> None:
        """Fold up a binomial tree; only the root has the whole then."""
        place, reach = (self.rank - root) % self.size, 1
        while reach < self.size:
            if place & reach:
                self.exchange([Outgoing((self.rank - reach) % self.size, work)], [])
                return
            if place + reach < self.size:
                self.exchange([], [Incoming((self.rank + reach) % self.size, work, fold)])
            reach *= 2

    def _down(self, work: Array, root: int) -> None:
        """Send down the same tree."""
        place, reach = (self.rank - root) % self.size, 1
        while reach < self.size and not place & reach:
            reach *= 2
        if place:
            self.exchange([], [Incoming((self.rank - reach) % self.size, work)])
        while reach > 1:
            reach //= 2
            if place + reach < self.size:
                self.exchange([Outgoing((self.rank + reach) % self.size, work)], [])

    def _prepare(self, work: Array, x: Any, op: str, scale: float | None) -> None:
        """Begin with the rank's own array, multiplied where it is to be."""
        if op == "avg" and not np.issubdtype(work.dtype, np.integer):  # their sum is divided
            scale = (1 if scale is None else scale) / self.size
        if scale is None:
            work[...] = _flat(x)
        else:
            np.multiply(_flat(x), work.dtype.type(scale), work)

    def _finish(self, work: Array, op: str) -> None:
        """Divide a sum of integers towards 0, as C does; others were divided before."""
        if op == "avg" and np.issubdtype(work.dtype, np.integer):
            below = (work < 0) & (work % self.size != 0)
            work //= work.dtype.type(self.size)
            work += below.astype(work.dtype)


def _flat(x: Any) -> Array:
    return np.ascontiguousarray(x).reshape(-1)


def _into(out: Any) -> Array:
    """Return memory in C order for a result: its own, if it is so."""
    flat: Array = out.reshape(-1) if out.flags.c_contiguous else np.empty(out.size, out.dtype)
    return flat


def _deliver(out: Any, flat: Array) -> None:
    """Copy a result to its place, if it was not made there."""
    if not np.may_share_memory(out, flat):
        out[...] = flat.reshape(out.shape)


def _pieces(flat: Array) -> Iterator[Array]:
    step = max(1, PIECE_BYTES // flat.itemsize)
    return (flat[at : at + step] for at in range(0, flat.size, step))


class HostCollective:
    """Makes communicators; each has a file that its ranks share."""

    def __init__(self) -> None:
        self._made: dict[str, int] = {}

    def make_key(self, size: int) -> str:
        """Return the path of a new file, which this process keeps open until all have joined."""
        fd = make_file(size)
        path = f"/proc/{os.getpid()}/fd/{fd}"
        self._made[path] = fd
        return path

    def capabilities(self) -> dict[str, Any]:
        """Say that it is ours, and what it can."""
        return {
            "library": "host",
            "version": np.__version__,
            "float8 reductions": True,
            "multicast": False,
        }

    def join(self, key: str, group: Group) -> HostCommunicator:
        """Open the file, and wait for all ranks."""
        try:
            return HostCommunicator(key, group.rank, group.size, group.require)
        finally:
            self._release(key)

    def enqueue(self, launch: Launch, comm: HostCommunicator, work: Callable[[], object]) -> None:
        """Do the work on a thread that may block, when what was called before is done."""
        ticket = comm.ticket()
        launch.blocking(lambda _: comm.in_turn(ticket, work))

    def close(self) -> None:
        """Close the files."""
        for path in list(self._made):
            self._release(path)

    def _release(self, path: str) -> None:
        fd = self._made.pop(path, None)
        if fd is not None:
            os.close(fd)
