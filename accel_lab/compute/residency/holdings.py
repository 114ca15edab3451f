"""What of a context's memory is held, and by what in it; all on the dispatcher's thread.

Arrays are found where they lie: in the table, at the names of `%%gpu` cells, inside the objects
there, and in the frames that a failure has left. Looking runs none of the user's code.
"""

import gc
import weakref
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from types import FrameType, FunctionType, ModuleType, TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple

from accel_lab.compute.arena.address_index import AddressIndex
from accel_lab.compute.arrays.torch_interop import as_array
from accel_lab.compute.cells.workspace_registry import Workspaces
from accel_lab.compute.machine.stack_frames import (
    clear,
    of_function,
    of_user,
    suspended,
    variables,
    within,
)
from accel_lab.compute.residency.library_memory import LibraryMemory, allocators, by_library

if TYPE_CHECKING:
    from accel_lab.compute.execution.context import Context

LOOKED_AT = 20_000
"""How many objects below one are looked at."""
_FRAMES = (BaseException, TracebackType, FrameType)


class Piece(NamedTuple):
    """An array where it lies.

    Attributes:
        array: the array, or the one of which it is a view.
    """

    start: int
    nbytes: int
    array: Any

    @property
    def end(self) -> int:
        """Where the next byte is."""
        return self.start + self.nbytes


class Held(NamedTuple):
    """A block of the table: `ids` are its buffers, `names` those of `%%gpu` cells that have it.

    One that has given way has `away_bytes` on the host and none on the device.
    """

    ids: tuple[int, ...]
    nbytes: int
    owner: str
    dtype: str
    shape: tuple[int, ...]
    names: tuple[str, ...] = ()
    away_bytes: int = 0


class Thing(NamedTuple):
    """What a name of the `%%gpu` cells stands for, other than a buffer.

    Attributes:
        serial: of the notebook's handle of it, 0 when the notebook has none.
        dtype, shape: of an array, else empty.
        nbytes: of the memory of the device that it is seen to hold.
        own_bytes: of these, what no buffer has and no thing before it.
    """

    space: str
    name: str
    serial: int
    kind: str
    dtype: str
    shape: tuple[int, ...]
    nbytes: int
    own_bytes: int


class Holdings(NamedTuple):
    """Everything that a context holds, as it was at a moment."""

    generation: int
    used_bytes: int
    blocks: list[Held]
    things: list[Thing]


Watched = tuple["weakref.ref[Any]", Piece]
"""An array that is not kept, and where it lies; the piece does not have it, either."""


class ContextMemory:
    """The memory of one context; tells it under which names cells keep its buffers."""

    def __init__(self, context: "Context") -> None:
        self._context = context
        self._workspaces = context.service(Workspaces)
        self._failed: list[Watched] = []
        context.cell_names = self.cell_names
        context.library_memory = self.library_memory

    def holdings(self) -> Holdings:
        """Return what the context holds."""
        named = [
            (space, name, value)
            for space, one in self._workspaces.spaces().items()
            for name, value in one.bound().items()
        ]
        blocks = self._blocks(named)
        taken = _where(piece for _, piece in self._entered())
        things = []
        for space, name, value in named:
            piece = self._piece(value)
            if piece is not None and taken.has(piece.start):
                continue
            own = _unseen(self._pieces([value]), taken)
            serial = self._workspaces.spaces()[space].serial(name)
            things.append(
                Thing(
                    space,
                    name,
                    serial,
                    _kind(value),
                    str(value.dtype) if piece is not None else "",
                    tuple(value.shape) if piece is not None else (),
                    self.bytes_of(value),
                    sum(one.nbytes for one in own),
                )
            )
        return Holdings(self._context.generation, self._context.used_bytes, blocks, things)

    def cell_names(self, ids: Collection[int]) -> dict[int, list[str]]:
        """Return the names by which `%%gpu` cells have these buffers, by the buffer's number."""
        found: dict[int, list[str]] = {}
        entered = AddressIndex[int]()
        for id_, buffer in self._entered():
            if id_ in ids:
                entered.add(buffer.start, buffer.nbytes, id_)
        for one in self._workspaces.spaces().values():
            for name, value in one.bound().items():
                piece = self._piece(value)
                if piece is not None:
                    for id_ in entered.at(piece.start):
                        found.setdefault(id_, []).append(f"%%gpu {name}")
        return found

    def library_memory(self) -> list[LibraryMemory]:
        """Return what libraries hold in cells that is no buffer, the largest first."""
        taken = _where(piece for _, piece in self._entered())
        named = (
            (name, piece.array, piece.nbytes)
            for one in self._workspaces.spaces().values()
            for name, value in one.bound().items()
            for piece in _unseen(self._pieces([value]), taken)
        )
        return by_library(named, allocators())

    def forget(self, ids: Collection[int]) -> None:
        """Have the names of cells forget these buffers, so that freeing them frees their memory."""
        wanted = set(ids)
        entered = _where(piece for number, piece in self._entered() if number in wanted)
        for one in self._workspaces.spaces().values():
            for name, value in one.bound().items():
                piece = self._piece(value)
                if piece is not None and entered.has(piece.start):
                    one.forget(name, value)

    def drop(self, space: str, name: str) -> None:
        """Have cells forget what a name stands for."""
        one = self._workspaces.spaces().get(space)
        if one is not None and name in one.bound():
            one.forget(name, one.bound()[name])

    def pieces_of(self, value: Any) -> Iterator[Piece]:
        """Yield the arrays and tensors of the device that can be reached from an object."""
        return self._pieces([value])

    def bytes_of(self, value: Any) -> int:
        """Return how many bytes of the device an object is seen to hold."""
        return sum(piece.nbytes for piece in _unseen(self._pieces([value]), _where(())))

    # Frames of what failed.

    def note_failure(self, error: BaseException) -> None:
        """Remember the arrays in the frames of an error, without keeping them; never raises."""
        self._failed.clear()
        with suppress(Exception):  # strange as they may be, the error itself is to arrive
            passed = [frame for frame in within(error) if of_user(frame)]
            self._failed[:] = self._watched(passed, [])

    def left_bytes(self) -> int:
        """Return how many bytes only the frames of the last failure still hold."""
        left = [piece for watched, piece in self._failed if watched() is not None]
        if not left:
            return 0
        held: list[Piece] = []
        for one in self._workspaces.spaces().values():
            held += self._pieces(one.bound().values(), frames=False)
        return sum(piece.nbytes for piece in _unseen(left, _where(held)))

    def release(self) -> int:
        """Empty the frames of everything that has failed; return how many bytes that gave back."""
        noted = [(one, piece) for one, piece in self._failed if one() is not None]
        self._failed.clear()
        found = [one.tb_frame for one in gc.get_objects() if type(one) is TracebackType]
        over = dict.fromkeys(found).keys() - suspended(found)
        dead = [frame for frame in over if of_function(frame)]
        del found, over
        watched = [*noted, *self._watched([frame for frame in dead if of_user(frame)], noted)]
        for frame in dead:
            clear(frame)
        del dead
        gc.collect()
        self._context.trim()
        return sum(piece.nbytes for one, piece in watched if one() is None)

    def released(self) -> tuple[int, int]:
        """Return what the buffers have now, and what `release` has given back."""
        nbytes = self.release()
        return self._context.used_bytes, nbytes

    def _watched(self, frames: list[FrameType], beside: list[Watched]) -> list[Watched]:
        """Return the arrays in frames that are no buffers, nor among others; keeps none of them."""
        values = [value for frame in frames for value in variables(frame).values()]
        known = _where(piece for _, piece in (*self._entered(), *beside))
        return _watch(_unseen(self._pieces(values), known))

    # Arrays.

    def _blocks(self, named: list[tuple[str, str, Any]]) -> list[Held]:
        """List every storage once, with the buffers and the names of cells that have it."""
        found: dict[Any, list[Any]] = {}
        for buffer in self._context.table.buffers():
            if buffer.storage is not None and buffer.storage.nbytes:
                found.setdefault(buffer.storage, []).append(buffer)
        names = self._names_by_storage(found, named)
        blocks = []
        for storage, buffers in found.items():
            ids, first = tuple(one.id for one in buffers), buffers[0]
            called = tuple(dict.fromkeys(names.get(storage, ())))
            blocks.append(
                Held(ids, storage.nbytes, storage.label, first.dtype, tuple(first.shape), called)
            )
        for number, label, array in self._context.scratch.blocks():
            shape = tuple(array.shape)
            blocks.append(Held((number,), int(array.nbytes), label, "uint8", shape))
        for id_, away in self._context.spill.held.items():
            waits = self._context.table.mention(id_)
            shape = tuple(waits.shape)
            blocks.append(
                Held((id_,), 0, away.label, waits.dtype, shape, away_bytes=int(away.data.nbytes))
            )
        return blocks

    def _names_by_storage(
        self, found: dict[Any, list[Any]], named: list[tuple[str, str, Any]]
    ) -> dict[Any, list[str]]:
        """Return the names that stand for a part of each storage, given its buffers."""
        pieces = [
            (name, piece) for _, name, value in named if (piece := self._piece(value)) is not None
        ]
        names: dict[Any, list[str]] = {}
        if pieces:
            where = AddressIndex[Any]()
            for storage, buffers in found.items():
                here = [piece for one in buffers if (piece := self._piece(one.array)) is not None]
                for start, nbytes in {(piece.start, piece.nbytes) for piece in here}:
                    where.add(start, nbytes, storage)
            for name, piece in pieces:
                for storage in where.at(piece.start):
                    names.setdefault(storage, []).append(name)
        return names

    def _entered(self) -> list[tuple[int, Piece]]:
        """Return where the buffers of the table lie."""
        buffers = [one for one in self._context.table.buffers() if one.storage is not None]
        return [(one.id, piece) for one in buffers if (piece := self._piece(one.array)) is not None]

    def _piece(self, value: Any) -> Piece | None:
        """Return where an array lies, all of what it is a view of; None for what is no array."""
        kind, backend = type(value), self._context.backend
        if not hasattr(kind, "__array_interface__") and not hasattr(
            kind, "__cuda_array_interface__"
        ):
            return None
        start = backend.address(value)
        if start is not None:
            base = getattr(value, "base", None)
            while base is not None and (first := backend.address(base)) is not None:
                value, start, base = base, first, getattr(base, "base", None)
            return Piece(start, int(value.nbytes), value)
        tensor = as_array(value)
        if tensor is not None and (start := backend.address(tensor)) is not None:
            return Piece(start, int(tensor.nbytes), value)
        with suppress(Exception):  # one of torch that is neither dense nor on a card
            start = value.__cuda_array_interface__["data"][0]
            return Piece(int(start), int(value.nbytes), value)
        return None

    def _pieces(self, values: Iterable[Any], *, frames: bool = True) -> Iterator[Piece]:
        """Yield the arrays that these values lead to; without `frames`, not by way of errors."""
        never: tuple[type, ...] = (ModuleType, type) if frames else (ModuleType, type, *_FRAMES)
        own = {id(one.names) for one in self._workspaces.spaces().values()}
        seen: set[int] = set()
        ahead = list(values)
        while ahead and len(seen) < LOOKED_AT:
            value = ahead.pop()
            kind = type(value)  # not `isinstance`, which asks the value
            if id(value) in seen or id(value) in own or issubclass(kind, never):
                continue
            seen.add(id(value))
            piece = self._piece(value)
            if piece is not None:
                yield piece
            elif issubclass(kind, FunctionType):  # not its module's names
                ahead += [value.__defaults__, value.__kwdefaults__, value.__closure__]
            elif issubclass(kind, FrameType):
                if of_function(value):
                    ahead += variables(value).values()
            elif issubclass(kind, TracebackType):
                ahead += [value.tb_frame, value.tb_next]
            else:
                ahead += gc.get_referents(value)


def _watch(pieces: list[Piece]) -> list[Watched]:
    watched: list[Watched] = []
    for piece in pieces:
        with suppress(TypeError):  # an array that cannot be watched is not counted
            watched.append((weakref.ref(piece.array), piece._replace(array=None)))
    return watched


def _where(pieces: Iterable[Piece]) -> AddressIndex[None]:
    """Return where pieces lie; each place once, however many have it."""
    index = AddressIndex[None]()
    for start, nbytes in dict.fromkeys((piece.start, piece.nbytes) for piece in pieces):
        index.add(start, nbytes, None)
    return index


def _unseen(pieces: Iterable[Piece], seen: AddressIndex[None]) -> list[Piece]:
    """Return each of the pieces once that does not lie where one was seen, and has been now."""
    new = []
    for piece in pieces:
        if piece.nbytes and not seen.has(piece.start):
            seen.add(piece.start, piece.nbytes, None)
            new.append(piece)
    return new


def _kind(value: Any) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")
