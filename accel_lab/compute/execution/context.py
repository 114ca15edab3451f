"""The device of one generation, inside its context process."""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar, cast

from accel_lab.actor.clock import MonotonicClock
from accel_lab.actor.supervision import RestartWindow
from accel_lab.compute.arrays.dtypes import itemsize
from accel_lab.compute.execution.backend import Backend, Poison
from accel_lab.compute.execution.buffer_table import BufferTable, MemoryOwner
from accel_lab.compute.execution.held_objects import HeldObjects
from accel_lab.compute.execution.launch import Launch, LibraryActor, handlers_of
from accel_lab.compute.execution.scratch import ScratchPools
from accel_lab.compute.execution.spill import Spill
from accel_lab.compute.execution.stream import SpecialStorage, Stream
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.operation import Operation, name_of, operands_of
from accel_lab.compute.streams.allocators import USER_CODE, Allocator, PerActor
from accel_lab.display.owners import kept, told
from accel_lab.display.sizes import compared, size
from accel_lab.errors import AccelError, BackendUnavailable, OutOfMemory

S = TypeVar("S")


Handler = Callable[[Any, Launch], None]


class Route(NamedTuple):
    """Where messages of one type go, how their operands are listed and who gives them a name."""

    actor: LibraryActor
    handler: Handler
    operands: Callable[[Any], tuple[AccelRef, ...]]
    stream: Stream
    name: Callable[[Any], str] | None


LARGEST = 5
"""How many owners an OutOfMemory tells."""


class HostBytes(Protocol):
    """The arena as the context sees it."""

    def view(self, segment_id: int, offset: int, nbytes: int) -> Any:
        """Return bytes of a segment as a uint8 array; waits for one that is on its way."""


class Help(Protocol):
    """What has another backend compute what this one lacks."""

    served: Mapping[str, frozenset[str]]

    def around(self, kind: type[Operation[Any]], handler: Handler) -> Handler:
        """Return a handler that has the other one compute what the backend's lacks."""

    def actor(self, library: str) -> LibraryActor:
        """Return the other backend's actor of a library."""

    def statistics(self, library: str) -> Mapping[str, int]:
        """Count what it has computed; any thread."""

    def forget(self, library: str) -> None:
        """Close its actor of a library: it is made anew when it is needed."""

    def close(self) -> None:
        """Close its actors."""


class Context:
    """Buffers, streams and library actors; used by the dispatcher thread alone.

    Attributes:
        streams: those that it has, by their own names.
        allocator: which library has which of them.
        answered: how many buffers came inside answers, here and in those contexts for which this
            one goes on.
        cell_names: returns by which names `%%gpu` cells keep some buffers, by number.
        cell: which notebook cell's messages these are, where that is told; 0 for none.
        support, served: the tables of what the backend computes, and of what is computed.
        fallback: has the host compute what the backend lacks, where the user says so.
    """

    def __init__(
        self,
        backend: Backend,
        kinds: list[type[LibraryActor]],
        arena: HostBytes,
        generation: int,
        support: Mapping[str, frozenset[str]],
        limit_bytes: int | None,
        spill_bytes: int = 0,
        allocator: Allocator | None = None,
        around: Callable[[Handler], Handler] | None = None,
        help_of: "Callable[[Context], Help] | None" = None,
    ) -> None:
        self.support = support
        self.generation = generation
        self.backend = backend
        self.arena = arena
        self.limit_bytes = limit_bytes or backend.total_bytes
        self.table = BufferTable()
        self.spill = Spill(self, spill_bytes)
        self.table.away, self.table.forget = self.spill.held, self.spill.forget
        self.table.moved = self.forget_addresses
        self.held = HeldObjects()
        self.scratch = ScratchPools(self)
        self.allocator = allocator or PerActor()
        self.streams: dict[str, Stream] = {}
        self._placed: dict[str, Stream] = {}
        self.actors: dict[str, LibraryActor] = {}
        self.routes: dict[type[Operation[Any]], Route] = {}
        self.restarts = {kind.library: 0 for kind in kinds}
        self._kinds = {kind.library: kind for kind in kinds}
        self._windows = {name: RestartWindow(3, 60.0, MonotonicClock()) for name in self._kinds}
        self.active: Stream | None = None
        self.cell_names: Callable[[Collection[int]], dict[int, list[str]]] = _none
        self.library_memory: Callable[[], Sequence[tuple[str, int, tuple[str, ...]]]] = tuple
        self.answered = 0
        self.cell = 0
        self._around = around
        self._services: dict[object, Any] = {}
        self.fallback: Help | None = None if help_of is None else help_of(self)
        self.served = support if self.fallback is None else self.fallback.served
        for name in self._kinds:
            self._start(name)

    def service(self, kind: Callable[["Context"], S]) -> S:
        """Return the one object of a kind that this context has, made when it is first asked for.

        It outlives the actors: one that is replaced finds it as it was.
        """
        if kind not in self._services:
            self._services[kind] = kind(self)
        return cast("S", self._services[kind])

    def stream(self, name: str) -> Stream:
        """Return the stream of a library, made on first use; others may have the same."""
        stream = self._placed.get(name)
        if stream is None:
            place = self.allocator.place(name, self._placed)
            stream = self.streams.get(place.stream)
            if stream is None:
                stream = self.streams[place.stream] = self._make(*place)
            self._placed[name] = stream
        return stream

    def _make(self, name: str, asked: int) -> Stream:
        """Make a stream, with the priority that was asked for as far as the device has such."""
        backend = self.backend
        if name == USER_CODE:
            return Stream(name, backend.user_stream())
        if not asked:
            return Stream(name, backend.native_stream())
        priority = min(asked, backend.most_priority)
        return Stream(name, backend.native_stream(priority), priority, asked)

    def places(self) -> dict[str, tuple[str, int, int]]:
        """Return each library's stream, with the priority that was asked for and what it has."""
        return {
            name: (one.name, one.asked, one.priority)
            for name, one in self._placed.items()
            if name in self.actors
        }

    def launched(self) -> int:
        """Return how many operations there were on all streams; any thread."""
        return sum(stream.operations for stream in list(self.streams.values()))

    def operations(self) -> dict[str, int]:
        """Return how many operations there were on each stream; any thread."""
        return {stream.name: stream.operations for stream in list(self.streams.values())}

    def activate(self, stream: Stream) -> None:
        """Enqueue the libraries' next calls on this stream."""
        if self.active is not stream:
            stream.native.activate()
            self.active = stream

    @property
    def used_bytes(self) -> int:
        """What buffers and the libraries' workspaces hold; any thread."""
        return self.table.used_bytes + self.scratch.nbytes

    def free_bytes(self) -> int:
        """Return what an allocation could still get; any thread."""
        return max(0, min(self.backend.free_bytes(), self.limit_bytes - self.used_bytes))

    def allocate(self, shape: tuple[int, ...], dtype: str, now: int = 0) -> tuple[Any, int]:
        """Allocate from the active stream's pool; return the array and its bytes.

        Where there is no room, room is made, as `Spill` says.

        Parameters:
            now: the message for which; what it names stays.

        Raises:
            OutOfMemory: with what was asked, what is free and the largest owners.
        """
        nbytes = math.prod(shape) * itemsize(dtype)
        array, cause = self.take(shape, dtype)
        if array is not None:
            return array, nbytes

        def has_room() -> bool:
            nonlocal array, cause
            array, failed = self.take(shape, dtype)
            cause = failed or cause
            return array is not None

        if nbytes <= self.limit_bytes and self.spill.make_room(has_room, now):
            return array, nbytes
        raise self.out_of_memory(nbytes) from cause

    def allocate_special(self, kind: str, nbytes: int, label: str, now: int) -> SpecialStorage:
        """Have a library make memory as its `kind` says, on the active stream.

        Raises:
            OutOfMemory: there is no room for it.
        """
        assert self.active is not None
        memory = self.actors[kind.partition(" ")[0]].memory_of(kind, nbytes, now)
        return SpecialStorage(self.active, memory, label, self.held)

    def make_room(self, nbytes: int, now: int, free_bytes: Callable[[], int]) -> None:
        """Have so much memory free, as told, of which a library makes something itself.

        Raises:
            OutOfMemory: there is no such room.
        """

        def has_room() -> bool:
            return nbytes <= min(free_bytes(), self.free_bytes())

        if self.table.changed:
            self.table.measure()
        possible = nbytes <= self.limit_bytes
        if not (has_room() or (possible and self.spill.make_room(has_room, now))):
            raise self.out_of_memory(nbytes)

    def take(self, shape: tuple[int, ...], dtype: str) -> tuple[Any, MemoryError | None]:
        """Return an array where there is room, else None and what the pool has raised."""
        nbytes = math.prod(shape) * itemsize(dtype)
        if self.table.changed:
            self.table.measure()
        if self.used_bytes + nbytes > self.limit_bytes:
            return None, None
        if self.spill.held and self.backend.free_bytes() < nbytes:
            return None, None  # a pool that has to fail takes milliseconds for it
        try:
            return self.backend.empty(shape, dtype), None
        except MemoryError as error:
            return None, error

    def forget_addresses(self) -> None:
        """Have the libraries take every buffer anew: one may be elsewhere."""
        for actor in self.actors.values():
            actor.forget_addresses()

    def give_way(self) -> bool:
        """Have each library give back what it has not used for longest; whether one did."""
        gave = [actor.give_way() for actor in self.actors.values()]
        return any(gave)

    def trim(self) -> None:
        """Give back what libraries and the pool hold for later; may wait for the device."""
        for actor in self.actors.values():
            actor.trim()
        self.scratch.trim()
        self.backend.trim()

    def out_of_memory(self, asked_bytes: int) -> OutOfMemory:
        """Describe an allocation that cannot be had."""
        free = self.free_bytes()
        largest = min(free, self.backend.largest_free_bytes())
        write = compared(asked_bytes, free)
        asked = f"{write(asked_bytes)} were" if asked_bytes else "more was"
        text = f"{asked} asked for and {write(free)} are free of {size(self.limit_bytes)}"
        if free:
            text += f", {write(largest)} of these in one piece"
        if largest < free:
            text += " and the rest in pieces that the pool keeps"
        if self.spill.held_bytes:
            text += f"; {size(self.spill.held_bytes)} wait on the host"
        others = self.backend.others()
        if others:
            used = ", ".join(f"{name} has {size(nbytes)}" for name, nbytes in others)
            text += f"; beside us {used}"
        libraries = self.library_memory()
        if libraries:
            held = ", ".join(
                f"{library} has {size(nbytes)}{kept(names)}" for library, nbytes, names in libraries
            )
            text += f"; in %%gpu cells, beside the buffers, {held}"
        found = self._largest_owners()
        cells = self.cell_names({id_ for one in found for id_ in one.ids})
        owners = tuple((one.label, one.nbytes) for one in found)
        kept_by = tuple(
            tuple(dict.fromkeys(name for id_ in one.ids for name in cells.get(id_, ())))
            for one in found
        )
        return OutOfMemory(
            text + told(owners, kept_by),
            asked_bytes=asked_bytes,
            free_bytes=free,
            largest_free_bytes=largest,
            owners=owners,
            owner_ids=tuple(one.ids for one in found),
            kept_by=kept_by,
            others=others,
            libraries=tuple((library, nbytes) for library, nbytes, _ in libraries),
            library_names=tuple(names for *_, names in libraries),
        )

    def _largest_owners(self) -> list[MemoryOwner]:
        """Return who has most of what is held: messages, and libraries with their workspaces."""
        pools = [MemoryOwner(one.label, one.nbytes, ()) for one in self.scratch.blocks()]
        found = [*self.table.largest_owners(LARGEST), *pools]
        return sorted(found, key=lambda one: -one.nbytes)[:LARGEST]

    def explain(self, error: BaseException, library: str) -> AccelError | Poison:
        """Translate what a library raised; of memory that it misses, tell who has it."""
        explained = self.backend.explain(error, library)
        if not isinstance(explained, OutOfMemory):
            return explained
        full = self.out_of_memory(explained.asked_bytes)
        full.args = (f"{explained}: {full}",)
        full.__cause__ = explained.__cause__
        return full

    def raise_if_poisoned(self, error: BaseException) -> None:
        """Raise Poison when the error of a user's function says that the device is lost."""
        explained = self.backend.explain(error, "run")
        if isinstance(explained, Poison):
            raise explained from error

    def restart(self, name: str) -> bool:
        """Replace a library's actor with a fresh one; False when it has failed too often."""
        if self._windows[name].record() is None:
            return False
        self.table.close_things(name)
        self.actors[name].close()
        if self.fallback is not None:
            self.fallback.forget(name)
        self._start(name)
        self.restarts[name] += 1
        self.table.changes += 1
        return True

    def another(self, name: str, stream: Stream) -> LibraryActor:
        """Make an actor of a library beside its own, with handles that nothing else uses.

        Parameters:
            stream: where it enqueues.
        """
        make = self.backend.libraries.get(name)
        actor = self.actor_with(name, make() if make else None)
        actor.stream = stream
        return actor

    def actor_with(self, name: str, lib: Any) -> LibraryActor:
        """Make an actor of a library beside its own, with what a backend has for it."""
        return self._kinds[name](self, lib)

    def finish(self) -> None:
        """Close what is kept, after its streams: nothing is asked any more."""
        self.table.close_things()
        if self.held:
            self.held.close()

    def close(self) -> None:
        """Close what is kept and drop what is held, after their streams; release every handle."""
        try:
            self.finish()
        finally:
            for actor in self.actors.values():
                actor.close()
            if self.fallback is not None:
                self.fallback.close()

    def _start(self, name: str) -> None:
        make = self.backend.libraries.get(name)
        if make is None and any(
            dtypes and row.startswith(f"{name}.") for row, dtypes in self.support.items()
        ):
            backend = type(self.backend)
            raise BackendUnavailable(
                f"{backend.__name__}.libraries of {backend.__module__} lacks {name!r}, of which "
                "its table has rows; add what makes the library"
            )
        actor = self._kinds[name](self, make() if make else None)
        self.actors[name] = actor
        for message, handler in handlers_of(actor).items():
            operands, title = operands_of(message), name_of(message)
            if self.fallback is not None:
                handler = self.fallback.around(message, handler)  # noqa: PLW2901 - as below
            if self._around is not None:
                handler = self._around(handler)  # noqa: PLW2901 - the same, and followed
            self.routes[message] = Route(actor, handler, operands, actor.stream, title)


def _none(_: Collection[int]) -> dict[int, list[str]]:
    return {}
