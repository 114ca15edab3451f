"""Memory: CUDA's managed memory, buffers that grow in place or are shared, and a device's pool.

A buffer in any kind of memory is a buffer as any other. It stays where it is when memory is
short: what gives way to others is the pool's. On `host` all memory is the host's, so what is asked
of managed memory is noted and changes nothing.
"""

from typing import Any, ClassVar, Protocol

from accel_lab.actor.reply import Reply
from accel_lab.compute.device import Device, device_first
from accel_lab.compute.execution.buffer_table import Buffer
from accel_lab.compute.execution.launch import Launch, handles
from accel_lab.compute.execution.stream import SpecialMemory, SpecialStorage
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.display.sizes import compared, size
from accel_lab.errors import InvalidArgument, OutOfMemory
from accel_lab.libraries.authoring.answer import answer
from accel_lab.libraries.authoring.function import function, maker
from accel_lab.libraries.authoring.operand import describe as described
from accel_lab.libraries.authoring.operand import plain
from accel_lab.libraries.memory.exported import Exported, Opened
from accel_lab.libraries.memory.messages import (
    Advise,
    Attach,
    Describe,
    Description,
    Export,
    Grow,
    Growing,
    Hints,
    Limit,
    Managed,
    OfManaged,
    PinnedState,
    Pool,
    PoolState,
    Prefetch,
    Read,
    Shared,
    Trim,
)
from accel_lab.libraries.memory.offer import Offer, offer
from accel_lab.libraries.memory.sharing import SharedMemory, SharingActor, SharingLibrary, read
from accel_lab.libraries.memory.special import (
    MANAGED,
    SHARED,
    Block,
    GrowingBlock,
    GrowingMemory,
    ManagedMemory,
    bytes_of,
    hints_of,
    reserved_of,
)

__all__ = [
    "Advise",
    "Attach",
    "Describe",
    "Description",
    "Export",
    "Exported",
    "Grow",
    "Growing",
    "Hints",
    "Limit",
    "Managed",
    "Offer",
    "Opened",
    "PinnedState",
    "Pool",
    "PoolState",
    "Prefetch",
    "Read",
    "Shared",
    "Trim",
    "advise",
    "attach",
    "describe",
    "export",
    "grow",
    "growing",
    "limit",
    "managed",
    "offer",
    "pool",
    "prefetch",
    "read",
    "shared",
    "trim",
]

managed = maker(Managed)
growing = maker(Growing)
shared = maker(Shared)
export = function(Export)
prefetch = function(Prefetch)
advise = function(Advise)
attach = function(Attach)
grow = function(Grow)
describe = function(Describe)


def pool(device: Device) -> Reply[PoolState]:
    """Ask what a device's pool has given out, holds unused, and may still give."""
    return device_first(device).ask(Pool())


def trim(device: Device) -> Reply[int]:
    """Have a device's libraries and pool give back what they hold unused; answers how much it was.

    It waits for the device.
    """
    return device_first(device).ask(Trim())


def limit(device: Device, nbytes: int | None) -> Reply[None]:
    """Let what a device holds take so many bytes and no more; None for all that it has.

    It holds for the contexts that follow, too, in place of `System(memory_bytes=…)`. What takes
    more by now gives way to the host, as far as it can.

    Raises:
        InvalidArgument: `nbytes` is no number of bytes.
    """
    number = 0 if nbytes is None else plain(nbytes)
    message = Limit(number)
    message.infer()
    device_first(device).limit_bytes = number or None
    return device.ask(message)


class MemoryLibrary(SharingLibrary, Protocol):
    """What a backend provides."""

    def managed(self, nbytes: int) -> Block:
        """Make managed memory, which is not cleared."""

    def growing(self, reserved_bytes: int) -> GrowingBlock:
        """Reserve addresses, of which none has memory."""

    def clear(self, array: Any) -> None:
        """Write zeros, in order on the active stream."""

    def prefetch(self, block: Block, nbytes: int, to: str) -> None:
        """Have managed memory move, in order on the active stream."""

    def advise(self, block: Block, nbytes: int, advice: str, of: str) -> None:
        """Give an advice about managed memory."""

    def attach(self, block: Block, stream: Any) -> None:
        """Say that only this native stream uses managed memory; None for any."""


class MemoryActor(SharingActor):
    """Makes the special memory of one context, and looks after its pool."""

    library: ClassVar = "memory"
    lib: MemoryLibrary

    # Managed memory.

    @handles(Managed)
    def managed(self, m: Managed, launch: Launch) -> None:
        """Make it, and have it on the device."""
        nbytes = bytes_of(m.infer())
        array = launch.take_special(self._managed(nbytes, Hints(), launch.seq))
        self.lib.clear(array)

    def _managed(self, nbytes: int, hints: Hints, now: int) -> ManagedMemory:
        self.context.make_room(nbytes, now, self._free_bytes)
        return ManagedMemory(self.lib.managed(nbytes), nbytes, hints)

    def _free_bytes(self) -> int:
        """Return what the device has free, without what was sent to the host and may come back."""
        storages = {one.storage for one in self.context.table.buffers()}
        memories = [one.memory for one in storages if isinstance(one, SpecialStorage)]
        away = [one.nbytes for one in memories if _is_away(one)]
        return self.context.backend.largest_free_bytes() - sum(away)

    @handles(Prefetch)
    def prefetch(self, m: Prefetch, launch: Launch) -> None:
        """Have it move behind what uses it."""
        memory = _managed_of(m, m.x)
        if m.to == "device" and _is_away(memory):
            free = self.context.backend.largest_free_bytes()
            if memory.nbytes > free:
                raise _too_large(memory.nbytes, free)
        launch.write(m.x)
        self.lib.prefetch(memory.block, memory.nbytes, m.to)
        memory.hints = memory.hints._replace(prefetched=m.to)

    @handles(Advise)
    def advise(self, m: Advise, launch: Launch) -> None:
        """Give the advice behind what uses it."""
        memory = _managed_of(m, m.x)
        launch.write(m.x)
        self.lib.advise(memory.block, memory.nbytes, m.advice, m.of)
        memory.hints = _advised(memory.hints, m)

    @handles(Attach)
    def attach(self, m: Attach, launch: Launch) -> None:
        """Have the stream, or all, have it from here on."""
        memory = _managed_of(m, m.x)
        launch.write(m.x)
        stream = self.context.stream(m.stream) if m.stream else None
        if stream is not None:
            stream.after(self.stream, self.stream.operations)
        self.lib.attach(memory.block, None if stream is None else stream.native)
        memory.hints = memory.hints._replace(attached=m.stream)

    # Growing memory.

    @handles(Growing)
    def growing(self, m: Growing, launch: Launch) -> None:
        """Reserve the addresses, and have memory for what is to be there."""
        memory = self._growing(m.reserved_bytes, bytes_of(m.infer()), launch.seq)
        self.lib.clear(launch.take_special(memory))

    def _growing(self, reserved_bytes: int, nbytes: int, now: int) -> GrowingMemory:
        memory = GrowingMemory(self.lib.growing(reserved_bytes), reserved_bytes)
        self._map(memory, nbytes, now)
        return memory

    def _map(self, memory: GrowingMemory, nbytes: int, now: int) -> None:
        missing = memory.block.missing_bytes(nbytes)
        if missing:
            self.context.make_room(missing, now, self.context.backend.largest_free_bytes)
            memory.block.grow(nbytes)
        memory.used_bytes = nbytes

    @handles(Grow)
    def grow(self, m: Grow, launch: Launch) -> None:
        """Have memory for more behind what there is."""
        storage, memory = self._growing_of(m)
        spec = m.infer()
        nbytes = bytes_of(spec)
        row = nbytes // spec.shape[0] if spec.shape[0] else 0
        if nbytes > memory.reserved_bytes:
            most = memory.reserved_bytes // row
            raise InvalidArgument(
                f"Grow: length is {m.length}, and the addresses of x are reserved for {most}, "
                f"{size(memory.reserved_bytes)}; make another with memory.growing(…, most=…)"
            )
        storage.write_on(self.stream)
        before = memory.used_bytes
        if nbytes > before:
            self._map(memory, nbytes, launch.seq)
            self.context.table.resize(storage, memory.nbytes)
            self.lib.clear(memory.array((nbytes,), "uint8")[before:])
        launch.view(m.x, memory.array(spec.shape, spec.dtype), spec.shape, spec.dtype)

    def _growing_of(self, m: Grow) -> tuple[SpecialStorage, GrowingMemory]:
        x, backend = m.x, self.context.backend
        assert isinstance(x, Buffer)
        storage = x.storage
        memory = storage.memory if isinstance(storage, SpecialStorage) else None
        if not isinstance(memory, GrowingMemory):
            text = f"Grow: x is {described(x)} in {_kind(memory)}, and only what memory.growing"
            raise InvalidArgument(f"{text} has made grows")
        begins = backend.address(x.array) == backend.address(memory.array((0,), "uint8"))
        if not (begins and x.array.flags.c_contiguous):
            text = f"Grow: x is {described(x)}, a part that does not begin where its memory does, "
            raise InvalidArgument(f"{text}or has gaps; grow what it is a part of")
        assert isinstance(storage, SpecialStorage)
        return storage, memory

    # The pool.

    @handles(Describe)
    def describe(self, m: Describe, launch: Launch) -> None:
        """Look at once."""
        x: Any = m.x
        storage, address = x.storage, self.context.backend.address(x.array) or 0
        memory: Any = storage.memory if isinstance(storage, SpecialStorage) else None
        reserved = getattr(memory, "reserved_bytes", 0)
        hints = getattr(memory, "hints", Hints())
        kind = _kind(memory).partition(" ")[0]
        answer(launch, Description(kind, storage.nbytes, address, reserved, hints))

    @handles(Pool)
    def pool(self, m: Pool, launch: Launch) -> None:  # noqa: ARG002 - it says nothing
        """Look at once."""
        context, backend = self.context, self.context.backend
        answer(
            launch,
            PoolState(
                context.limit_bytes,
                context.used_bytes,
                backend.idle_bytes(),
                context.free_bytes(),
                context.spill.held_bytes,
                PinnedState(*backend.pinned()),
            ),
        )

    @handles(Trim)
    def trim_pool(self, m: Trim, launch: Launch) -> None:  # noqa: ARG002 - it says nothing
        """Give back what there is."""
        backend = self.context.backend
        before = self.context.scratch.nbytes + backend.idle_bytes()
        self.context.trim()
        after = self.context.scratch.nbytes + backend.idle_bytes()
        answer(launch, max(0, before - after))

    @handles(Limit)
    def limit(self, m: Limit, launch: Launch) -> None:
        """Hold to it from here on."""
        context = self.context
        limit = context.limit_bytes = m.nbytes or context.backend.total_bytes
        if context.used_bytes > limit:
            context.spill.make_room(lambda: context.used_bytes <= limit, launch.seq)
        answer(launch, None)

    def memory_of(self, kind: str, nbytes: int, now: int) -> SpecialMemory:
        """Make memory of a kind of this library again."""
        if kind == SHARED:
            return self._shared(nbytes, now)
        if not kind.startswith(MANAGED):
            return self._growing(reserved_of(kind), nbytes, now)
        hints = hints_of(kind)
        memory = self._managed(nbytes, hints, now)
        for message in _asking(hints):
            self.lib.advise(memory.block, nbytes, *message)
        if hints.attached:
            self.lib.attach(memory.block, self.context.stream(hints.attached).native)
        return memory


def _is_away(memory: Any) -> bool:
    return isinstance(memory, ManagedMemory) and memory.hints.prefetched == "host"


def _kind(memory: object) -> str:
    if isinstance(memory, ManagedMemory):
        return "managed memory"
    if isinstance(memory, SharedMemory):
        return "shared memory"
    return "growing memory" if isinstance(memory, GrowingMemory) else "pool memory"


def _managed_of(message: OfManaged, x: AccelRef) -> ManagedMemory:
    """Return the managed memory of a buffer.

    Raises:
        InvalidArgument: it has none.
    """
    assert isinstance(x, Buffer)
    memory = x.storage.memory if isinstance(x.storage, SpecialStorage) else None
    if isinstance(memory, ManagedMemory):
        return memory
    text = f"{type(message).__name__}: x is {described(x)} in {_kind(memory)}"
    raise InvalidArgument(f"{text}, and it takes what memory.managed has made")


def _too_large(asked: int, free: int) -> OutOfMemory:
    write = compared(asked, free)
    text = f"Prefetch: x has {write(asked)}, and the device has {write(free)} free"
    return OutOfMemory(text, asked_bytes=asked, free_bytes=free)


def _advised(hints: Hints, m: Advise) -> Hints:
    """Return what is known after an advice."""
    verb, _, what = m.advice.partition("_")
    is_set = verb == "set"
    if what == "read_mostly":
        return hints._replace(read_mostly=is_set)
    if what == "preferred_location":
        return hints._replace(preferred=m.of if is_set else "")
    others = [one for one in hints.accessed_by if one != m.of]
    return hints._replace(accessed_by=tuple(sorted([*others, m.of] if is_set else others)))


def _asking(hints: Hints) -> list[tuple[str, str]]:
    """Return the advices that ask for this."""
    found = [("set_accessed_by", one) for one in hints.accessed_by]
    if hints.read_mostly:
        found.append(("set_read_mostly", "device"))
    if hints.preferred:
        found.append(("set_preferred_location", hints.preferred))
    return found
