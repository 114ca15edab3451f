"""One rank of a communicator of NCCL's.

It does not block in NCCL: a thread of NCCL's does what is called, and `settle` looks when it has
enqueued that. So an abort finds nobody inside NCCL, and may end what waits for a lost rank, as
"Fault tolerance" in NCCL's manual has it. Operations that only move data move bytes.

This module has no CUDA: the device and NCCL's functions are given to it.
"""

import itertools
import math
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from accel_lab.backends.cuda.collective.bindings import DTYPES, IN_PROGRESS, REDUCTIONS
from accel_lab.compute.arrays.dtypes import numpy_dtype
from accel_lab.compute.execution.launch import Launch
from accel_lab.compute.execution.stream import NativeStream
from accel_lab.compute.groups.group import Group
from accel_lab.libraries.collective.errors import CommunicatorLost

if TYPE_CHECKING:
    from accel_lab.backends.cuda.device.device import CudaDevice
    from accel_lab.backends.cuda.device.stream import CudaStream

_BYTES = DTYPES["uint8"]
_OF_OTHERS = {2, 6}
"""`ncclSystemError`, as of sockets, and `ncclRemoteError`: this rank itself is well."""
_LOOKS = 256
_ENDS_WITHIN_S = 5.0
_LOOK_S = 0.02
_SLEEP_S = 100e-6
"""NCCL's thread takes some tens of microseconds: so often `settle` looks without sleeping."""


class Part(NamedTuple):
    """What was enqueued and is not decided.

    Attributes:
        done: fires behind it.
    """

    group: Group
    stream: NativeStream
    done: Any

    def fail(self, why: str) -> None:
        """Have it fail unless the device is behind it: NCCL leaves what it ends half done."""
        try:
            done = self.stream.reached(self.done)
        except Exception:  # noqa: BLE001 - the device is in error, and whoever waits is told so
            done = False
        if not done:
            self.group.hear(why, cancelled=False)


class Piece(NamedTuple):
    """Memory that goes to a rank, or comes from it."""

    rank: int
    address: int
    nbytes: int


class Enter(NamedTuple):
    """What a communicator needs of its device beside memory.

    Attributes:
        thread: makes the device current on the calling thread.
        multiplied: returns an array of a dtype times a number.
    """

    thread: Callable[[], object]
    multiplied: Callable[[Any, str, float], Any]


class NcclCommunicator:
    """One rank; for the dispatcher thread, but `abort`.

    Parameters:
        nccl: the functions of `nccl.bindings.nccl`.
        comm: what `comm_init_rank_scalable` has returned.

    Attributes:
        sent_bytes: how much this rank has given to NCCL; for people.
        aborted: whether `abort` was called.
        freed: set once NCCL has freed what an aborted one had.
    """

    def __init__(
        self, nccl: Any, device: "CudaDevice", enter: Enter, comm: Any, rank: int, size: int
    ) -> None:
        self.rank, self.size = rank, size
        self.sent_bytes = 0
        self._nccl, self._device, self._enter, self._comm = nccl, device, enter, comm
        self._arrays: Any = device.arrays
        self._lock = threading.Lock()  # nobody is inside NCCL with this communicator but its owner
        self.aborted = False
        self.freed = threading.Event()
        self._parts: list[Part] = []
        self._stream, self._dtype = 0, ""

    def enqueue(self, launch: Launch, work: Callable[[], object]) -> None:
        """Have a method called for a launch, on its stream.

        Raises:
            CommunicatorLost: it was aborted.
        """
        group, native = launch.group, cast("CudaStream", launch.stream.native)
        assert group is not None
        self._stream, self._dtype = native.ptr, _dtype_of(launch)
        try:
            work()
            with self._lock:
                self._require()
                parts = [part for part in self._parts if not part.group.has_word]
                self._parts = [*parts, Part(group, native, native.record())]
        except BaseException:
            self.abort()  # the other ranks wait for what this one did not send
            raise

    def settle(self) -> None:
        """Wait until NCCL's thread is through with what was called, and has enqueued it.

        Raises:
            CommunicatorLost: it was aborted meanwhile, or NCCL does not reach the other ranks.
            NCCLError: it has failed.
        """
        looks = 0
        while True:
            with self._lock:
                self._require()
                state = self._nccl.comm_get_async_error(self._comm)
            if state in _OF_OTHERS:
                raise CommunicatorLost(
                    f"NCCL lost the other ranks: {self._nccl.Result(state).name}"
                )
            if state != IN_PROGRESS:
                self._nccl.check_status(int(state))
                return
            looks += 1
            if looks > _LOOKS:
                time.sleep(_SLEEP_S)
            else:
                os.sched_yield()

    def abort(self) -> None:
        """End what waits for other ranks, and fail it; a thread frees what NCCL has of it."""
        with self._lock:
            if self.aborted:
                return
            self.aborted = True
            parts, self._parts = self._parts, []
        self._enter.thread()
        for part in parts:
            part.fail("its communicator was aborted")
        threading.Thread(target=self._end, name=f"abort of rank {self.rank}", daemon=True).start()

    def close(self) -> None:
        """Nothing to do: `abort` frees what NCCL has."""

    def all_reduce(self, x: Any, op: str, scale: float | None, out: Any) -> None:
        """Reduce everybody's: ncclAllReduce."""
        with self._target(out) as into, self._reduction(x, op, scale, into) as (source, how):
            self._collect(self._nccl.all_reduce, source, into, source.size, *how)

    def reduce(self, x: Any, root: int, op: str, scale: float | None, out: Any) -> None:
        """Reduce everybody's at the root: ncclReduce."""
        with self._target(out) as into, self._reduction(x, op, scale, into) as (source, how):
            self._collect(self._nccl.reduce, source, into, source.size, *how, root)

    def reduce_scatter(self, x: Any, op: str, scale: float | None, out: Any) -> None:
        """Reduce everybody's, and keep one part: ncclReduceScatter."""
        with self._target(out) as into, self._reduction(x, op, scale, into) as (source, how):
            self._collect(self._nccl.reduce_scatter, source, into, into.size, *how)

    def all_gather(self, x: Any, out: Any) -> None:
        """Join everybody's: ncclAllGather."""
        with self._target(out) as into:
            source = self._source(x, into)
            self._collect(self._nccl.all_gather, source, into, source.nbytes, _BYTES)

    def broadcast(self, x: Any, root: int, out: Any) -> None:
        """Give all ranks what the root has, in its place there: ncclBroadcast."""
        with self._target(out) as into:
            source = into if x is None else self._source(x)
            target = source if into is None else into
            self._collect(self._nccl.broadcast, source, target, source.nbytes, _BYTES, root)

    def all_to_all(self, x: Any, sends: Any, receives: Any, out: Any) -> None:
        """Send to and take from everybody at once, as ncclAlltoAll does."""
        with self._target(out) as into:
            source = self._source(x, into)
            row = math.prod(x.shape[1:]) * x.itemsize
            self._exchange(
                _pieces(self._address(source), [rows * row for rows in sends]),
                _pieces(self._address(into), [rows * row for rows in receives]),
            )

    def gather(self, x: Any, root: int, out: Any) -> None:
        """Send to the root, which takes from everybody, as ncclGather does."""
        with self._target(out) as into:
            source = self._source(x, into)
            nbytes = source.nbytes
            takes = [] if into is None else _pieces(self._address(into), [nbytes] * self.size)
            self._exchange([Piece(root, self._address(source), nbytes)], takes)

    def scatter(self, x: Any, root: int, out: Any) -> None:
        """Take from the root, which sends to everybody, as ncclScatter does."""
        with self._target(out) as into:
            nbytes = into.nbytes
            source = None if x is None else self._source(x, into)
            parts = [nbytes] * self.size
            sends = [] if source is None else _pieces(self._address(source), parts)
            self._exchange(sends, [Piece(root, self._address(into), nbytes)])

    def send(self, x: Any, peer: int) -> None:
        """Give one rank an array: ncclSend."""
        source = self._source(x)
        self._exchange([Piece(peer, self._address(source), source.nbytes)], [])

    def receive(self, peer: int, out: Any) -> None:
        """Take one rank's array: ncclRecv."""
        with self._target(out) as into:
            self._exchange([], [Piece(peer, self._address(into), into.nbytes)])

    def barrier(self) -> None:
        """Reduce a byte: nobody has the sum before all are there."""
        token = self._arrays.zeros(1, "uint8")
        self._collect(self._nccl.all_reduce, token, token, 1, _BYTES, REDUCTIONS["sum"])

    # The calls.

    def _collect(
        self, call: Callable[..., object], source: Any, into: Any, count: int, *how: int
    ) -> None:
        """Call what takes two addresses; `into` is None where there is no result."""
        if count == 0:
            return  # on all ranks
        self.sent_bytes += source.nbytes
        target = 0 if into is None else self._address(into)
        with self._lock:
            self._require()
            call(self._address(source), target, count, *how, self._comm, self._stream)
        self.settle()

    def _exchange(self, sends: "list[Piece]", takes: "list[Piece]") -> None:
        """Send and take all of these side by side."""
        nccl = self._nccl
        calls = [(nccl.send, one) for one in sends if one.nbytes]
        calls += [(nccl.recv, one) for one in takes if one.nbytes]
        self.sent_bytes += sum(one.nbytes for one in sends)
        if not calls:
            return
        with self._lock:
            self._require()
            nccl.group_start()
            try:
                for call, (rank, address, nbytes) in calls:
                    call(address, nbytes, _BYTES, rank, self._comm, self._stream)
            finally:
                nccl.group_end()
        self.settle()

    def _require(self) -> None:
        if self.aborted:
            raise CommunicatorLost("the communicator was aborted")

    def _end(self) -> None:
        try:
            self._enter.thread()
            self._nccl.comm_abort(self._comm)
        finally:
            self.freed.set()

    # Arrays in C order, as NCCL takes them.

    def _address(self, array: Any) -> int:
        address = self._device.address(array)
        assert address is not None, f"no array of the device: {type(array)}"
        return address

    def _source(self, x: Any, into: Any = None, *, in_place: bool = False) -> Any:
        """Return an operand in C order, apart from the result; or in its place if that may be."""
        flat = self._arrays.ascontiguousarray(x)
        if into is None or not x.nbytes or not into.nbytes:
            return flat
        begin, other = self._address(flat), self._address(into)
        apart = begin + flat.nbytes <= other or other + into.nbytes <= begin
        same = begin == other and flat.nbytes == into.nbytes
        return flat if apart or (in_place and same) else flat.copy()

    @contextmanager
    def _target(self, out: Any) -> Iterator[Any]:
        """Give memory in C order for a result, and copy it to its place if that is another."""
        if out is None or out.flags.c_contiguous:
            yield out
            return
        made = self._arrays.empty(out.shape, out.dtype)
        yield made
        out[...] = made

    @contextmanager
    def _reduction(
        self, x: Any, op: str, scale: float | None, into: Any
    ) -> Iterator[tuple[Any, tuple[int, int]]]:
        """Give the operand of a reduction, and the numbers of its dtype and operation.

        NCCL has a factor of its own for sums; for others the operand is multiplied before.
        """
        dtype, factor = self._dtype, scale
        if factor is not None and op == "avg" and not dtype.startswith(("int", "uint")):
            op, factor = "sum", factor / self.size
        if factor is None or op != "sum":
            if factor is not None:
                x = self._enter.multiplied(x, dtype, factor)
            yield self._source(x, into, in_place=True), (DTYPES[dtype], REDUCTIONS[op])
            return
        nccl, number = self._nccl, np.array([factor], numpy_dtype(dtype))
        residence = int(nccl.ScalarResidence.HostImmediate)  # it is read at once
        with self._lock:
            self._require()
            made = nccl.red_op_create_pre_mul_sum(
                number.ctypes.data, DTYPES[dtype], residence, self._comm
            )
        yield self._source(x, into, in_place=True), (DTYPES[dtype], made)
        with self._lock:
            if not self.aborted:
                nccl.red_op_destroy(made, self._comm)


def until_freed(comms: list[NcclCommunicator], group: Group) -> None:
    """Wait until NCCL has freed what aborted ones had, 5 s at most, and take those out of the list.

    To free is to wait for the card. Were a new communicator at work meanwhile, that would wait for
    its kernels, these for the other ranks, and those for what this process cannot do until it has
    freed.

    Raises:
        AccelError: the group was aborted meanwhile.
    """
    until = time.monotonic() + _ENDS_WITHIN_S
    for comm in [one for one in comms if one.aborted]:
        while not comm.freed.wait(_LOOK_S) and time.monotonic() < until:
            group.require()
        with suppress(ValueError):  # another join looks at the same time
            comms.remove(comm)


def _pieces(address: int, sizes: Sequence[int]) -> list[Piece]:
    """Return pieces of these sizes that lie one behind the other."""
    begins = itertools.accumulate(sizes, initial=address)
    return [
        Piece(rank, begin, n) for rank, (begin, n) in enumerate(zip(begins, sizes, strict=False))
    ]


def _dtype_of(launch: Launch) -> str:
    """Return the dtype of a part's array, which the array does not say; empty for a barrier."""
    x = getattr(launch.message, "x", launch.message)
    return getattr(x, "dtype", "")
