"""What a device holds and who keeps it: `gpu.resident`, and how to free what errors keep.

A table is a moment's: it keeps nothing alive, and its rows act on what is there when they do.
"""

import gc
import itertools
import time
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from types import CellType, FrameType
from typing import Any, overload

from accel_lab.compute.message.buffer import AccelRef, Ref, RunRef
from accel_lab.compute.message.handle import Handle
from accel_lab.compute.message.operation import Spec, spec_text
from accel_lab.compute.message.service import in_context
from accel_lab.compute.residency import kept_objects, kept_tracebacks
from accel_lab.compute.residency.asked_device import AskedContext, AskedDevice
from accel_lab.compute.residency.holdings import ContextMemory, Held, Holdings, Thing
from accel_lab.compute.residency.kept_objects import CELLS
from accel_lab.compute.residency.notebook_names import handles, names
from accel_lab.compute.residency.referrers import referrers
from accel_lab.compute.wire.side_channel import Look
from accel_lab.display import failure, table
from accel_lab.display.buffer_number import short
from accel_lab.display.counts import counted
from accel_lab.display.sizes import memory, size
from accel_lab.errors import AccelError, InvalidArgument

BUSY_AFTER_S = 2.0
"""After this time without an answer the context is taken to be busy."""
ROWS = 30
"""How many rows are drawn."""
KEEPERS = 5
"""How many of the keepers of a buffer are drawn."""
NOTE_WITHIN_S = 1.0
OFFERED_BYTES = 4 << 10
"""What is less is not worth a line."""
GLANCE_S = 0.01
_ARTICLES: dict[type, str] = {dict: "a", list: "a", tuple: "a", set: "a", CellType: "a closure's"}
_COLUMNS = ("What", "Size", "Array or type", "Generation", "Made by", "Kept by")


@dataclass(frozen=True, repr=False)
class ResidentBuffer:
    """A buffer, with all that shares its memory.

    Attributes:
        ids: of the buffer, and of the views of it.
        nbytes: of the device's memory that they share.
        away_bytes: of the host's, where a buffer waits that has given way to others.
        dtype, shape: of the first.
        generation: in which the handle was made; the device's own when there is no handle.
        made_by: the message that made it, as "Gemm #12"; "SVD #12.u" where it has several results.
        kept_by: who holds it: names of the notebook, variables of a failed function, names of
            `%%gpu` cells, messages in flight.
    """

    ids: tuple[int, ...]
    nbytes: int
    away_bytes: int
    dtype: str
    shape: tuple[int, ...]
    generation: int
    made_by: str
    kept_by: tuple[str, ...]
    _device: AskedDevice
    _handles: tuple["weakref.ref[Ref[Any]]", ...]

    def free(self) -> None:
        """Give the memory back after all that was sent before; does not block.

        What uses one of the buffers later raises StaleRef, and `%%gpu` cells no longer know them.

        Raises:
            AccelError: the device takes no messages.
        """
        self._device.run(ContextMemory.forget, in_context(ContextMemory), self.ids)
        for one in self._handles:
            handle = one()
            if handle is not None:
                handle.free()
        self._device.ping()  # the freed go with the next batch

    def __repr__(self) -> str:
        return _of_row(self._cells(self.generation))

    def _cells(self, now: int) -> tuple[str, ...]:
        is_scratch = self.ids[0] < 0
        what = "workspace" if is_scratch else f"buffer {', '.join(map(short, self.ids))}"
        array = spec_text(Spec(self.shape, self.dtype))
        again = "" if self.generation == now else f", made again in {now}"
        keepers = list(self.kept_by[:KEEPERS])
        if len(self.kept_by) > KEEPERS:
            keepers.append(f"{len(self.kept_by) - KEEPERS} more")
        return (
            what,
            f"{size(self.away_bytes)} on the host" if self.away_bytes else size(self.nbytes),
            array,
            f"{self.generation}{again}",
            self.made_by,
            ", ".join(keepers),
        )


@dataclass(frozen=True, repr=False)
class ResidentObject:
    """What a name of the `%%gpu` cells stands for, other than a buffer.

    Attributes:
        name: under which the cells know it.
        type: its type, as text; of an array dtype and shape.
        nbytes: of the memory of the device that it is seen to hold, buffers included.
        generation: of its context.
        kept_by: the namespace that keeps it.
    """

    name: str
    type: str
    nbytes: int
    generation: int
    kept_by: tuple[str, ...]
    _device: AskedDevice
    _space: str

    def drop(self) -> None:
        """Have the cells forget it, after all that was sent before; does not block.

        Its memory goes with it, unless something else in the context holds that.

        Raises:
            AccelError: the device takes no messages.
        """
        self._device.run(ContextMemory.drop, in_context(ContextMemory), self._space, self.name)
        kept_objects.forget(self._device, self._space, self.name)

    def __repr__(self) -> str:
        return _of_row(self._cells(self.generation))

    def _cells(self, now: int) -> tuple[str, ...]:  # noqa: ARG002 - as a buffer's
        made = f"{CELLS} cell"
        keepers = ", ".join(self.kept_by)
        what = f"object {self.name}"
        return what, size(self.nbytes), self.type, str(self.generation), made, keepers


Row = ResidentBuffer | ResidentObject


class Resident:
    """Everything that a device held when it was asked, the largest first.

    It has a length, and gives its rows by position, or one by a name that keeps it:
    `gpu.resident["x"].free()`.

    Attributes:
        used_bytes: what the buffers have together.
        note: what could not be seen, else empty.
    """

    def __init__(
        self,
        device: AskedDevice,
        generation: int,
        rows: list[Row],
        used_bytes: int,
        own_bytes: int,
        total_bytes: int | None,
        caches: str,
        note: str,
    ) -> None:
        self._device = device.name
        self._generation = generation
        self._rows = sorted(rows, key=lambda row: -row.nbytes)
        self._own_bytes = own_bytes
        self._total_bytes = total_bytes
        self._caches = caches
        self.used_bytes = used_bytes
        self.note = note

    @property
    def nbytes(self) -> int:
        """What buffers and objects have together, each byte counted once."""
        return self.used_bytes + self._own_bytes

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self._rows)

    @overload
    def __getitem__(self, which: int | str) -> Row: ...
    @overload
    def __getitem__(self, which: slice) -> list[Row]: ...

    def __getitem__(self, which: int | slice | str) -> Row | list[Row]:
        """Return a row by its position, or by a name that keeps it.

        Raises:
            InvalidArgument: no row has the name.
        """
        if not isinstance(which, str):
            return self._rows[which]
        for row in self._rows:
            if which in row.kept_by:
                return row
        for row in self._rows:
            if f"{CELLS} {which}" in row.kept_by:
                return row
        raise InvalidArgument(f"nothing on {self._device} is kept by the name {which!r}")

    def __repr__(self) -> str:
        lines = [self._title()]
        if self._rows:
            lines += table.as_text(_COLUMNS, [*self._drawn(), self._total()], {"Size"}, table.WIDTH)
        notes = (line for note in self._notes() for line in table.folded(note))
        return "\n".join((*lines, *notes))

    def _repr_html_(self) -> str:
        drawn = table.as_html(self._title(), _COLUMNS, self._drawn(), total=self._total())
        return drawn + "".join(f"<p>{escape(note)}</p>" for note in self._notes())

    def _title(self) -> str:
        used = memory(self.nbytes, self._total_bytes)
        return f"Resident on {self._device}: {used}, generation {self._generation}"

    def _drawn(self) -> list[tuple[str, ...]]:
        return [row._cells(self._generation) for row in self._rows[:ROWS]]  # noqa: SLF001 - ours

    def _total(self) -> tuple[str, ...]:
        buffers = sum(isinstance(row, ResidentBuffer) for row in self._rows)
        objects = len(self._rows) - buffers
        what = f"{counted(buffers, 'buffer')}, {counted(objects, 'object')}"
        if sum(row.nbytes for row in self._rows) > self.nbytes:
            what += ", each byte once"
        return "total", size(self.nbytes), what, "", "", ""

    def _notes(self) -> Iterator[str]:
        if (more := len(self._rows) - ROWS) > 0:
            rest = size(sum(row.nbytes for row in self._rows[ROWS:]))
            are = "is" if more == 1 else "are"
            yield f"{counted(more, 'more row')} with {rest} {are} not drawn"
        if self._caches:
            yield f"beside these, what libraries keep for later: {self._caches}"
        if self.note:
            yield self.note


@dataclass(frozen=True)
class Released:
    """What `release_frames` gave back.

    Attributes:
        nbytes: all of it.
        notebook_bytes: what variables of failed functions in the notebook held.
        context_bytes: what those in the context held.
    """

    notebook_bytes: int
    context_bytes: int

    @property
    def nbytes(self) -> int:
        """All of it, in bytes."""
        return self.notebook_bytes + self.context_bytes

    def __repr__(self) -> str:
        parts = f"{size(self.notebook_bytes)} of the notebook's frames"
        return (
            f"{size(self.nbytes)} came back: {parts}, {size(self.context_bytes)} of the context's"
        )


def look(device: AskedDevice, supervisor: AskedContext) -> Resident:
    """Return what the device holds after all that was sent before.

    Blocks until the context is up and answers. One that is busy for 2 s is looked at while it
    works, and then its `%%gpu` names are not known.
    """
    seen, note = _ask(device, supervisor)
    keepers = _keepers(device)
    rows: list[Row] = []
    for block in seen.blocks:
        found = [one for id_ in block.ids for one in keepers.get(id_, ())]
        kept = list(dict.fromkeys(name for name, _ in found if name))
        kept += [f"{CELLS} {name}" for name in block.names]
        if block.ids[0] < 0:
            kept = ["its library, for its next call"]
        elif not kept:
            kept = ["work in flight" if device.in_flight else "nothing that has a name"]
        refs = {id(ref): ref for _, ref in found}.values()
        rows.append(
            ResidentBuffer(
                block.ids,
                block.nbytes,
                block.away_bytes,
                block.dtype,
                block.shape,
                max((ref.generation for ref in refs), default=seen.generation),
                block.owner,
                tuple(kept),
                device,
                tuple(weakref.ref(ref) for ref in refs),
            )
        )
    rows += [_object(thing, device, seen.generation) for thing in seen.things]
    own = sum(thing.own_bytes for thing in seen.things)
    caches = ", ".join(
        f"{library} {what} {count}"
        for library, counts in supervisor.health.statistics.items()
        for what, count in counts.items()
        if count
    )
    total = supervisor.health.total_bytes
    return Resident(device, seen.generation, rows, seen.used_bytes, own, total, caches, note)


def release_frames(device: AskedDevice, supervisor: AskedContext) -> Released:
    """Empty the frames of what has failed, here and in the context; blocks for its answers."""
    before, in_context = _used(device, supervisor)
    kept_tracebacks.release(names())
    after, more = _used(device, supervisor)
    return Released(max(0, before - after), in_context + more)


def offer(error: BaseException) -> str:
    """Say what the frames of an error hold in this notebook; empty when that is next to nothing."""
    found = kept_tracebacks.only_there(error).values()
    nbytes = sum(ref.nbytes for ref in found if isinstance(ref, AccelRef) and ref.known)
    devices = {ref.device.name: ref.device for ref in found}
    return told(nbytes, *devices.values()) if nbytes >= OFFERED_BYTES else ""


failure.offers.append(offer)


def offer_frames(device: AskedDevice, error: AccelError) -> None:
    """Note on an error what the frames that it left in the context hold, if that is much."""
    try:
        nbytes = device.run(ContextMemory.left_bytes, in_context(ContextMemory)).result(
            NOTE_WITHIN_S
        )
    except (AccelError, TimeoutError):  # it has other worries
        return
    if nbytes >= OFFERED_BYTES:
        error.add_note(told(nbytes, device))


def told(nbytes: int, *devices: object) -> str:
    """Say how much the frames of an error hold, and how to get it back."""
    space = names()
    known = [next((n for n, v in space.items() if v is one), "") for one in devices]
    calls = [f"{name}.release_frames()" for name in known if name.isidentifier()]
    how = " and ".join(calls) or "the device's release_frames()"
    return f"variables of the functions that failed hold {size(nbytes)}; {how} gives that back"


def _used(device: AskedDevice, supervisor: AskedContext) -> tuple[int, int]:
    """Have the context empty its frames; return what its buffers have, and what that gave back."""
    _send_freed(device, supervisor)
    used, released = device.run(ContextMemory.released, in_context(ContextMemory)).result()
    return used, released


def _send_freed(device: AskedDevice, supervisor: AskedContext) -> None:
    """Have what was freed leave before what is sent next: it goes at the end of a batch."""
    device.ping()
    supervisor.requests.flush()


def _ask(device: AskedDevice, supervisor: AskedContext) -> tuple[Holdings, str]:
    """Return what the context holds, and what could not be seen of it."""
    _send_freed(device, supervisor)
    reply = device.run(ContextMemory.holdings, in_context(ContextMemory), pure=True)
    while True:
        started = device.state == "running"
        try:
            return reply.result(BUSY_AFTER_S), ""
        except TimeoutError:
            if started:
                break
    reply.cancel()
    before = supervisor.sampler.memory
    supervisor.tell(Look(memory=True, work=False))
    until = time.monotonic() + BUSY_AFTER_S
    while (sample := supervisor.sampler.memory) is before and time.monotonic() < until:
        time.sleep(GLANCE_S)
    if sample is None or sample is before:
        return Holdings(device.generation, 0, [], []), f"{device.name} does not answer"
    blocks = [Held(one.ids, one.nbytes, one.owner, one.dtype, one.shape) for one in sample.blocks]
    note = f"{device.name} is busy: the names of its {CELLS} cells were not looked at"
    if sample.unlisted:
        note += f"; {sample.unlisted} small blocks are not listed"
    return Holdings(sample.generation, sample.used_bytes, blocks, []), note


def _of_row(cells: tuple[str, ...]) -> str:
    what, nbytes, array, _, made_by, kept_by = cells
    return f"<{what}: {nbytes}, {array}, made by {made_by}, kept by {kept_by}>"


def _object(thing: Thing, device: AskedDevice, generation: int) -> ResidentObject:
    array = f"{thing.dtype}[{', '.join(map(str, thing.shape))}]"
    return ResidentObject(
        thing.name,
        array if thing.dtype else thing.kind,
        thing.nbytes,
        generation,
        (f"{CELLS} {thing.name}",),
        device,
        thing.space,
    )


def _keepers(device: AskedDevice) -> dict[int, list[tuple[str, Ref[Any]]]]:
    """Return by buffer who holds its handles, and these; names first."""
    space = names()
    found: dict[int, list[tuple[str, Ref[Any]]]] = {}
    named: set[int] = set()
    sources = handles(space, kept_tracebacks.LIMIT_S), kept_tracebacks.handles_in_frames(space)
    for name, ref in itertools.chain(*sources):
        if ref.device is device:
            named.add(id(ref))
            found.setdefault(ref.id, []).append((name, ref))
    every = [one for one in gc.get_objects() if type(one) in (AccelRef, RunRef, Handle)]
    mine = [ref for ref in every if getattr(ref, "device", None) is device]
    for ref in mine:
        if not ref.done:
            named.add(id(ref))
            found.setdefault(ref.id, []).append(("its message, in flight", ref))
    rest = [ref for ref in mine if id(ref) not in named]
    del every, mine, named
    for text, ref in _holders(rest):
        found.setdefault(ref.id, []).append((text, ref))
    return found


def _holders(refs: list[Ref[Any]]) -> Iterator[tuple[str, Ref[Any]]]:
    """Yield what holds handles that no name leads to, by its type; "" where nothing is found."""
    known = {id(ref): ref for ref in refs}
    holders = referrers(refs)  # before what is yielded holds them, too
    yield from (("", ref) for ref in refs)
    for holder in holders:
        kind = type(holder)
        if holder is known or kind is FrameType:
            continue
        for held in gc.get_referents(holder):
            if id(held) in known:
                yield f"{_ARTICLES.get(kind, 'an object:')} {kind.__name__}", known[id(held)]
