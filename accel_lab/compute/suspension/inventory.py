"""The inventory of a context: what of its contents is to be kept, and what of that cannot be.

Nothing is copied yet. Dispatcher's thread.
"""

from typing import TYPE_CHECKING, Any

from accel_lab.compute.arrays import torch_interop
from accel_lab.compute.cells.workspace import Kept
from accel_lab.compute.cells.workspace_registry import Workspaces
from accel_lab.compute.execution.stream import SpecialStorage
from accel_lab.compute.machine.anonymous_files import in_pages
from accel_lab.compute.message.operation import inferred
from accel_lab.compute.message.unwritten import Refusal
from accel_lab.compute.residency.holdings import ContextMemory
from accel_lab.compute.suspension import cell_pickle
from accel_lab.compute.suspension.memory_image import (
    Entry,
    Look,
    Memory,
    Range,
    Seen,
    is_in_order,
    look_of,
    ranges_of,
    seen_at,
)
from accel_lab.compute.wire.codec import encode_entry
from accel_lab.display.sizes import compared, size

if TYPE_CHECKING:
    from accel_lab.compute.execution.buffer_table import Buffer
    from accel_lab.compute.execution.context import Context


class Inventory:
    """Finds what a context holds, and what of it cannot be kept.

    Attributes:
        lost: why something cannot be kept, by buffer or by name.
        things: what is no array, and has to be made again by its messages.
        again: messages that make other such things by themselves.
        objects: how many objects are kept.
    """

    def __init__(self, context: "Context") -> None:
        self._context = context
        self._workspaces = context.service(Workspaces)
        self._pieces_of = context.service(ContextMemory).pieces_of
        self._arrays: list[Any] = []  # those inside objects, by number
        self.lost: dict[int | str, str] = {}
        self.again: list[bytes] = []
        self.things: list[int] = []
        self.objects = 0
        self._kept: set[int] = set()
        for buffer in context.table.things():
            self._take_thing(buffer)

    def _take_thing(self, buffer: "Buffer") -> None:
        """Have what is no array made again."""
        self._kept.add(buffer.id)
        message: Any = buffer.storage.again  # type: ignore[union-attr]
        if message is None:
            self.things.append(buffer.id)
        else:
            spec: Any = inferred(message)
            self.again.append(encode_entry(0, buffer.id, message.timeout_s, message, spec))

    def take_objects(self) -> bytes:
        """Pickle the namespaces of the cells; each array is a number in it."""
        states = {name: one.state() for name, one in self._workspaces.spaces().items()}
        self._find_sharing(states)
        try:
            data = self._pickle(states)
        except Exception:  # noqa: BLE001 - the user's own classes: find out which
            for state in states.values():
                self._find_unpicklable(state)
            self._arrays.clear()
            data = self._pickle(states)
        self.objects = sum(len(state.serials) for state in states.values())
        return data

    def _find_unpicklable(self, state: Kept) -> None:
        for name, value in list(state.names.items()):
            try:
                self._pickle(value)
            except Exception as error:  # noqa: BLE001 - as above
                self._lose(state, name, f"it does not pickle: {error}")

    def _find_sharing(self, states: dict[str, Kept]) -> None:
        """Leave out what shares memory by something that is neither an array nor a tensor."""
        plain = self._context.backend.arrays.ndarray
        named = [
            (state, name, piece)
            for state in states.values()
            for name, value in state.names.items()
            for piece in self._pieces_of(value)
        ]
        known = [(one.low, one.high) for one in self._seen()]
        known += [(one.start, one.end) for _, _, one in named if type(one.array) is plain]
        for state, name, piece in named:
            if type(piece.array) is plain or torch_interop.kind_of(piece.array):
                continue
            if any(low < piece.end and piece.start < high for low, high in known):
                kind = type(piece.array).__name__
                self._lose(state, name, f"a {kind} in it shares its memory with an array")

    def _lose(self, state: Kept, name: str, why: str) -> None:
        self.lost[name] = why
        state.names.pop(name, None)
        state.serials.pop(name, None)

    def _pickle(self, value: Any) -> bytes:
        arrays = self._context.backend.arrays
        return cell_pickle.pickled(value, self._number, arrays, self._workspaces)

    def _number(self, array: Any) -> int:
        self._arrays.append(array)
        return len(self._arrays)

    def _seen(self) -> list[Seen]:
        """Return every array on the device that has an element, each where it lies."""
        address = self._context.backend.address
        found: list[Seen] = []
        keyed = [(one.id, one.array) for one in self._context.table.buffers() if one.storage]
        keyed += [(-number, array) for number, array in enumerate(self._arrays, 1)]
        storages = {one.storage for one in self._context.table.buffers() if one.storage}
        keyed += [(0, one.whole) for one in storages if isinstance(one, SpecialStorage)]
        for key, array in keyed:
            if key not in self._kept:
                found.append(seen_at(address(array) or 0, key, array))
        return found

    def memories(self) -> list[tuple[Range, Memory]]:
        """Return the memory that arrays look into."""
        found = [(one, self._memory(one)) for one in ranges_of(self._seen())]
        return [pair for pair in found if pair[1].entries or pair[1].arrays]

    def _memory(self, one: Range) -> Memory:
        entries: list[Entry] = []
        arrays: dict[int, Look] = {}
        label, used, kind = "", 0, ""
        refusals: tuple[Refusal, ...] = ()
        alone = len(one.seen) == 1
        for seen in one.seen:
            if not seen.key:
                continue
            look = look_of(seen, one.low)
            if seen.key < 0:
                arrays[-seen.key] = look
                continue
            buffer = self._context.table.mention(seen.key)
            assert buffer.storage is not None
            kind = kind or buffer.storage.kind
            if alone and not kind and is_in_order(seen.array):
                look = look._replace(dtype=None)
            label = label or buffer.storage.label
            used = max(used, buffer.storage.used)
            refusals = refusals or self._context.table.refusals(buffer)
            entries.append(Entry(buffer.id, tuple(buffer.shape), buffer.dtype, look))
        label = label or "%%gpu cell"
        return Memory(0, one.nbytes, label, used, entries, arrays, refusals, kind)

    def leave_out(
        self, memories: list[tuple[Range, Memory]], taken: int, room_bytes: int
    ) -> list[tuple[Range, Memory]]:
        """Keep the smallest for which there is room; the rest is lost. Objects come first."""
        away = sum(in_pages(one.data.nbytes) for one in self._context.spill.held.values())
        left = room_bytes - taken - away
        kept: list[tuple[Range, Memory]] = []
        for pair in sorted(memories, key=lambda two: (not two[1].arrays, two[0].nbytes)):
            needed = in_pages(pair[0].nbytes)
            if needed <= left or pair[1].arrays:
                left -= needed
                kept.append(pair)
                continue
            write = compared(needed, max(left, 0))
            why = f"it needs {write(needed)}, and the host has {write(max(left, 0))}"
            self.lost |= dict.fromkeys((entry.id for entry in pair[1].entries), why)
        if left < 0:
            raise NoRoomError(f"{size(-left)} more than it has room for are to be kept")
        return sorted(kept, key=lambda two: two[1].used)


class NoRoomError(Exception):
    """The host cannot keep what has to be kept."""
