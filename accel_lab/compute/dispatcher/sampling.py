"""Answer `Look` on the control thread, so that a context answers while it computes."""

import socket
from typing import Any, TypeVar

from accel_lab.compute.events.samples import Block, Slice
from accel_lab.compute.execution.buffer_table import Buffer
from accel_lab.compute.execution.context import Context
from accel_lab.compute.execution.stream import Storage
from accel_lab.compute.execution.tracer import Tracer
from accel_lab.compute.wire.side_channel import Blocks, Look, Traced, send_packet

LISTED = 2_000
"""How many blocks are listed, the largest first."""
A_PACKET = 250

T = TypeVar("T")


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


def _show_memory(channel: socket.socket, context: Context) -> None:
    blocks = _blocks(context)
    unlisted = max(0, len(blocks) - LISTED)
    if unlisted:
        blocks = sorted(blocks, key=lambda block: -block.nbytes)[:LISTED]
    blocks.sort(key=lambda block: block.address)
    used, free = context.table.used_bytes, context.free_bytes()
    for part, last in _parts(blocks):
        send_packet(channel, Blocks(part, used, free, unlisted, last))


def _blocks(context: Context) -> list[Block]:
    """List every storage once, with all buffers that share it."""
    found: dict[Storage, list[tuple[Buffer, Any]]] = {}
    for buffer in context.table.buffers():
        storage, array = buffer.storage, buffer.array
        if storage is not None and array is not None and storage.nbytes:
            found.setdefault(storage, []).append((buffer, array))
    blocks: list[Block] = []
    for storage, users in found.items():
        addresses = [context.backend.address(array) for _, array in users]
        known = [address for address in addresses if address is not None]
        first = users[0][0]
        if known:
            ids = tuple(buffer.id for buffer, _ in users)
            blocks.append(
                Block(ids, min(known), storage.nbytes, storage.label, first.dtype, first.shape)
            )
    return blocks


def _show_work(channel: socket.socket, tracer: Tracer, glimpsed: list[Slice]) -> None:
    done, running, dropped = tracer.take(glimpsed)
    running = running[:A_PACKET]  # what cannot be overlooked
    parts = _parts(done)
    for part, last in parts:
        packet = Traced(part, running if last else [], dropped if last else 0, last)
        send_packet(channel, packet)


def _parts(things: list[T]) -> list[tuple[list[T], bool]]:
    """Cut a list to what packets hold; the last part, or the only and empty one, says so."""
    starts = range(0, max(len(things), 1), A_PACKET)
    return [(things[start : start + A_PACKET], start == starts[-1]) for start in starts]
