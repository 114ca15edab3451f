"""Several devices as one: what a cell calls."""

import math
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from accel_lab.actor.event_loop import EventLoop
from accel_lab.actor.events import EventStream
from accel_lab.compute.arrays.dtypes import itemsize
from accel_lab.compute.device import Device
from accel_lab.compute.events.lifecycle import ContextLost
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.validation import require_word
from accel_lab.compute.world.group_reply import GroupReply
from accel_lab.compute.world.group_sender import GroupSender
from accel_lab.compute.world.twins import Twin, Twins
from accel_lab.display.summary import as_html
from accel_lab.errors import AccelError, InvalidArgument
from accel_lab.libraries import collective
from accel_lab.libraries.collective.algorithms import algorithm
from accel_lab.world.collectives import Collectives, Make
from accel_lab.world.communicator import Communicator, OnLoss, State
from accel_lab.world.flight import Flight, Over
from accel_lab.world.rank_process import has_torch, run_file
from accel_lab.world.sharded import Sharded
from accel_lab.world.split import Split, grid, lines
from accel_lab.world.spmd import RanksReply, run_on_ranks


class Services(NamedTuple):
    """What a system has for its worlds."""

    groups: GroupSender
    events: EventStream
    event_loop: EventLoop
    backend: str
    opened: "weakref.WeakSet[World]"
    twins: Twins


class World(Collectives):
    """Several devices that do collective operations together; its ranks are their positions.

    Each operation is one call with one answer, an array of all ranks, and does not block. It waits
    only while the world has no communicator. A rank that is lost, or an operation that is aborted,
    costs the others nothing but what they were at: the world makes a new communicator by itself,
    and its `epoch` rises.

    Attributes:
        name: what views and errors call it.
        shape: the extents of its grid by the names of the dimensions, the last one the quickest;
            empty for a world that is none.
        in_flight: the operations that are not done.
    """

    def __init__(
        self,
        name: str,
        devices: Sequence[Device],
        services: Services,
        *,
        on_loss: OnLoss = "rebuild",
        shape: Mapping[str, int] | None = None,
    ) -> None:
        require_word(on_loss, "on_loss", get_args(OnLoss))
        if shape is not None:
            grid(shape, len(devices))
        self.name = name
        self.shape = dict(shape or {})
        self.in_flight: dict[int, Flight] = {}
        self._services = services
        self._splits: dict[str, Split] = {}
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
    def epoch(self) -> int:
        """How many communicators there were, the present one counted; 0 before the first."""
        return self._communicator.epoch

    @property
    def state(self) -> State:
        """Whether it has a communicator: "whole", "forming", "given up" or "closed"."""
        return self._communicator.state

    @property
    def capabilities(self) -> dict[str, Any]:
        """What does the work: the "library" and its "version", and what that can; blocks."""
        found: dict[str, Any] = collective.capabilities(self.devices[0]).result()
        return found

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

    # Its parts.

    def __getitem__(self, dimension: str) -> Split:
        """Return the lines of its grid along a dimension, as worlds that work at once.

        Raises:
            InvalidArgument: it has no such dimension.
        """
        if dimension not in self._splits:
            along = lines(self.shape, self.size, dimension)
            self._splits[dimension] = self._split(along, dimension)
        return self._splits[dimension]

    def split(self, colours: Sequence[object]) -> Split:
        """Return a world for each colour, of the ranks that have it, in their order.

        Raises:
            InvalidArgument: there is not one for each rank.
        """
        if len(colours) != self.size:
            raise InvalidArgument(f"there are {len(colours)} colours for {self.size} ranks")
        parts = [[r for r, one in enumerate(colours) if one == colour] for colour in {*colours}]
        return self._split(sorted(parts), "split")

    def _split(self, parts: Sequence[Sequence[int]], called: str) -> Split:
        devices = self.devices
        worlds = [
            World(f"{self.name}/{called}{at}", [devices[rank] for rank in part], self._services)
            for at, part in enumerate(parts)
        ]
        for world in worlds:
            self._services.opened.add(world)
        return Split(self, worlds)

    # Functions on each rank.

    def run(
        self,
        function: Callable[..., Any],
        *args: Any,
        timeout_s: float | None = None,
        torch: bool | None = None,
        **kwargs: Any,
    ) -> RanksReply:
        """Call a function on all ranks at once, as torchrun does; return the list of their answers.

        With PyTorch each has a process group of `torch.distributed`, NCCL's on cards and gloo's on
        the host, and the variables that torchrun sets. A function that calls `init_process_group`
        itself may. When one rank fails, is lost, or the time is over, the others are interrupted,
        and what waits in the process group is aborted; contexts stay, but for one that has not
        ended 5 s later.

        Parameters:
            args: for each rank the same, as `kwargs`; buffers have to be on the rank's own device.
            timeout_s: how long it may take; None for ever.
            torch: whether there is a process group; where PyTorch is installed if not given.

        Raises:
            InvalidArgument: the function or an argument does not pickle.
        """
        backend = {"cuda": "nccl"}.get(self._services.backend, "gloo")
        has_group = has_torch() if torch is None else torch
        return run_on_ranks(
            self.devices,
            backend if has_group else "",
            self._services.event_loop,
            function,
            args,
            kwargs,
            timeout_s,
        )

    def run_script(
        self, path: str | Path, *arguments: str, timeout_s: float | None = None
    ) -> RanksReply:
        """Run a Python file on all ranks at once, as `torchrun path arguments` does.

        Raises:
            InvalidArgument: there is no such file.
        """
        file = Path(path).resolve()
        if not file.is_file():
            raise InvalidArgument(f"there is no file {file}")
        given = tuple(map(str, arguments))
        return self.run(run_file, str(file), given, timeout_s=timeout_s)

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
        nbytes = _nbytes(refs[0]) * times if refs else 0
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
        if not flight.is_over:
            self.in_flight[id(flight)] = flight
            if flight.is_over:  # between the two, and `over` did not find it
                self.in_flight.pop(id(flight), None)
        return reply

    def _alike(self, reply: GroupReply, refs: Sequence[AccelRef]) -> None:
        """With an operation these hold the same bytes: who loses one has it from another."""
        if not all(ref.known for ref in refs):
            return
        twins = [
            Twin(name, ref.id, seq, ref.shape, ref.dtype)
            for (name, seq), ref in zip(reply.places, refs, strict=True)
        ]
        for name, seq in reply.places:
            self._services.twins.add(name, seq, _nbytes(refs[0]), twins)

    def _pieces(self, reply: GroupReply, whole: AccelRef, pieces: Sequence[AccelRef]) -> None:
        """With an operation these hold the pieces of what one rank has: who loses one has it there.

        That rank's own piece is lost together with the whole.
        """
        places, offset = reply.places, 0
        at = dict(places)[whole.device.name]
        for (name, seq), piece in zip(places, pieces, strict=True):
            twin = Twin(whole.device.name, whole.id, at, whole.shape, whole.dtype, offset)
            self._services.twins.add(name, seq, _nbytes(piece), [twin])
            offset += _nbytes(piece)

    def _over(self, comm: int) -> Over:
        """Return what is called at the end of an operation; it keeps the world from nothing."""
        communicator, in_flight = self._communicator, self.in_flight

        def over(flight: Flight, error: AccelError | None, *, sent: bool) -> None:
            in_flight.pop(id(flight), None)
            if error is not None and sent:
                reason = str(error).partition("\n")[0]
                communicator.lose(f"{flight.call} was aborted: {reason}", comm)

        return over

    def __len__(self) -> int:
        return self.size

    def __repr__(self) -> str:
        names = ", ".join(device.name for device in self.devices)
        return f"World({self.name}: {names}; {self.state}, epoch {self.epoch})"

    def _repr_html_(self) -> str:
        lines = [("state", self.state), ("epoch", str(self.epoch))]
        lines += [(f"rank {n}", device.name) for n, device in enumerate(self.devices)]
        return as_html(self.name, lines)


def _nbytes(ref: AccelRef) -> int:
    return math.prod(ref.shape) * itemsize(ref.dtype)


def _end(communicator: Communicator, stop: Callable[[], object]) -> None:
    """Leave, for whoever had the world is gone."""
    stop()
    communicator.close()
