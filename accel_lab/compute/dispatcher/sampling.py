"""Answer `Look` on the control thread, so that a context answers while it computes."""

import socket
from typing import Any, Protocol, TypeVar

import msgspec

from accel_lab.compute.events.device_work import DeviceWork
from accel_lab.compute.events.samples import Block, Slice
from accel_lab.compute.execution.buffer_table import Buffer
from accel_lab.compute.execution.context import Context
from accel_lab.compute.execution.stream import Storage
from accel_lab.compute.execution.tracer import Tracer
from accel_lab.compute.wire.side_channel import Blocks, Flush, Look, Recorded, Traced, send_packet
from accel_lab.compute.wire.text import fitting

LISTED = 2_000
"""How many blocks are listed, the largest first."""
NAMED = 100
"""How many of the buffers that share a block are named, the first."""
PACKET_BYTES = 32 << 10
RUNNING = 250
"""How much work at hand is told of: more cannot be overlooked."""
LOOKS = 3
"""So often memory is listed for one answer where it changes meanwhile."""

WHY_BYTES = 4 << 10

T = TypeVar("T")
_encode = msgspec.msgpack.Encoder().encode


class Activity(Protocol):
    """The device's own records."""

    def take(self) -> tuple[list[DeviceWork], int]:
        """Return those of work that has ended, each once, and how many were dropped."""


def show(
    channel: socket.socket,
    look: Look,
    context: Context,
    tracer: Tracer,
    glimpsed: list[Slice],
) -> None:
    """Answer in as many packets as it takes; `glimpsed` is what runs, marked or not."""
    if look.memory:
        _show_memory(channel, context)
    if look.work:
        tracer.watch(every=look.every)
        _show_work(channel, tracer, glimpsed)


def show_records(channel: socket.socket, flush: Flush, activity: Activity | None) -> None:
    """Answer `Flush`, in as many packets as it takes."""
    try:
        works, dropped = ([], 0) if activity is None else activity.take()
    except Exception as error:  # noqa: BLE001 - whoever asks is told, and the context beats on
        why = fitting(f"CUPTI gives no records: {error}", WHY_BYTES)
        send_packet(channel, Recorded(flush.number, [], 0, last=True, why=why))
        return
    for part, last in _parts(works):
        send_packet(channel, Recorded(flush.number, part, dropped if last else 0, last))


def _show_memory(channel: socket.socket, context: Context) -> None:
    for _ in range(LOOKS):  # the dispatcher goes on, and the sum is to be that of the blocks
        before = context.table.changes, context.used_bytes
        blocks, used, free = _blocks(context), context.used_bytes, context.free_bytes()
        if (context.table.changes, used) == before:
            break
    unlisted = max(0, len(blocks) - LISTED)
    if unlisted:
        blocks = sorted(blocks, key=lambda block: -block.nbytes)[:LISTED]
    blocks.sort(key=lambda block: block.address)
    for part, last in _parts(blocks):
        send_packet(channel, Blocks(part, used, free, unlisted, last))


def _blocks(context: Context) -> list[Block]:
    """List every storage once, with all buffers that share it."""
    found: dict[Storage, list[tuple[Buffer, Any]]] = {}
    for buffer in context.table.buffers():
        storage, array = buffer.storage, buffer.array
        if array is None:  # a cell that runs has it alone
            array = buffer.lent()
        if storage is not None and array is not None and storage.nbytes:
            found.setdefault(storage, []).append((buffer, array))
    blocks: list[Block] = []
    for storage, users in found.items():
        addresses = [context.backend.address(array) for _, array in users]
        known = [address for address in addresses if address is not None]
        first = users[0][0]
        if known:
            ids = tuple(buffer.id for buffer, _ in users[:NAMED])
            dtype = str(first.dtype)  # what is sent is text, and no class of it
            rest = storage.label, dtype, first.shape, (), _memory_of(storage)
            blocks.append(Block(ids, min(known), storage.nbytes, *rest))
    for number, label, array in context.scratch.blocks():
        at = context.backend.address(array)
        if at is not None:
            rest = label, "uint8", tuple(array.shape), (), "workspace"
            blocks.append(Block((number,), at, array.nbytes, *rest))
    return blocks


def _memory_of(storage: Storage) -> str:
    """Return the kind of a memory, the second word of what makes it again: "memory managed"."""
    library, _, rest = storage.kind.partition(" ")
    return (rest.partition(" ")[0] or library) if library else "pool"


def _show_work(channel: socket.socket, tracer: Tracer, glimpsed: list[Slice]) -> None:
    done, running, dropped = tracer.take(glimpsed)
    running, _ = _parts(running[:RUNNING])[0]
    parts = _parts(done)
    for part, last in parts:
        packet = Traced(part, running if last else [], dropped if last else 0, last)
        send_packet(channel, packet)


def _parts(things: list[T]) -> list[tuple[list[T], bool]]:
    """Cut a list to what packets hold; the last part, or the only and empty one, says so."""
    parts: list[list[T]] = [[]]
    room = PACKET_BYTES
    for thing in things:
        taken = len(_encode(thing))
        room -= taken
        if room < 0 and parts[-1]:
            parts.append([])
            room = PACKET_BYTES - taken
        parts[-1].append(thing)
    return [(part, part is parts[-1]) for part in parts]
