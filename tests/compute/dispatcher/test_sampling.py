"""What is seen of a device's memory: through a system, and part by part."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.msgpack import encode

from accel_lab import array, blas
from accel_lab.backends.host.device import HostBackend
from accel_lab.backends.host.support import SUPPORT
from accel_lab.compute.actors.transfer import UploadActor
from accel_lab.compute.cells.lent_buffers import LentBuffers
from accel_lab.compute.dispatcher.sampling import (
    LISTED,
    NAMED,
    PACKET_BYTES,
    _blocks,
    _parts,
    show,
)
from accel_lab.compute.events.samples import Block, MemorySampled, WorkTraced
from accel_lab.compute.execution.context import Context
from accel_lab.compute.execution.stream import Storage
from accel_lab.compute.execution.tracer import Tracer
from accel_lab.compute.supervision.context_health import ContextHealth
from accel_lab.compute.supervision.sampler import UNREAD, DeviceSampler
from accel_lab.compute.wire.side_channel import Blocks, Downward, Look, receive_upward
from accel_lab.errors import AccelError
from accel_lab.system import System

WAIT_S = 30.0


@pytest.fixture(scope="module")
def lab() -> Iterator[System]:
    with System("host", devices=1) as lab:
        yield lab


def seen(lab: System, wanted: Callable[[MemorySampled], bool]) -> MemorySampled:
    """Look until a sample is wanted."""
    end = time.monotonic() + WAIT_S
    while time.monotonic() < end:
        for sample in lab.look(memory=True, work=False):
            if isinstance(sample, MemorySampled) and wanted(sample):
                return sample
        time.sleep(0.02)
    raise TimeoutError("no such sample")


def has(*ids: int) -> Callable[[MemorySampled], bool]:
    """Want the sample in which exactly these buffers are listed."""
    return lambda sample: {id_ for block in sample.blocks for id_ in block.ids} == set(ids)


def test_every_buffer_is_listed_with_its_owner_and_all_add_up(lab: System) -> None:
    gpu = lab.devices[0]
    a = gpu.put(np.ones((300, 200), np.float32))
    product = gpu.ask(blas.Gemm(a, a, trans_b="t"))
    half = gpu.put(np.ones(1001, np.float16))
    sample = seen(lab, has(a.id, product.id, half.id))
    assert (sample.device, sample.generation, sample.unlisted) == (gpu.name, 1, 0)
    facts = {
        block.ids: (block.owner.partition(" #")[0], block.dtype, block.shape, block.nbytes)
        for block in sample.blocks
    }
    assert facts == {
        (a.id,): ("Allocate", "float32", (300, 200), 300 * 200 * 4),
        (product.id,): ("Gemm", "float32", (300, 300), 300 * 300 * 4),
        (half.id,): ("Put", "float16", (1001,), 2002),
    }
    assert sum(block.nbytes for block in sample.blocks) == sample.used_bytes
    addresses = [block.address for block in sample.blocks]
    assert addresses == sorted(addresses)
    assert all(
        before.address + before.nbytes <= block.address
        for before, block in zip(sample.blocks, sample.blocks[1:], strict=False)
    )
    assert sample.total_bytes is not None
    assert sample.free_bytes is not None
    assert sample.free_bytes <= sample.total_bytes - sample.used_bytes


def test_views_share_one_block(lab: System) -> None:
    gpu = lab.devices[0]
    whole = gpu.put(np.arange(4096, dtype=np.float64))
    view = gpu.ask(array.Reshape(whole, (64, 64)))
    part = gpu.run(np.ndarray.__getitem__, whole, slice(1024, None), writes=())
    part.result()
    sample = seen(lab, has(whole.id, view.id, part.id))
    shared, *others = sample.blocks
    assert others == []
    assert sorted(shared.ids) == [whole.id, view.id, part.id]
    assert shared.nbytes == sample.used_bytes == 4096 * 8
    del whole
    sample = seen(lab, has(view.id, part.id))
    assert [block.nbytes for block in sample.blocks] == [4096 * 8]


def test_what_only_a_running_cell_holds_is_listed_until_the_cell_drops_it() -> None:
    arena: Any = None
    context = Context(HostBackend(0), [UploadActor], arena, 1, SUPPORT, None)
    table, stream = context.table, context.stream("upload")
    x = np.ones((4, 4), np.float32)
    buffer = table.fill(1, x, (4, 4), "float32", Storage(stream, x.nbytes, "given"))
    lent = LentBuffers([buffer], table)
    lent.lend(x)
    assert buffer.array is None
    assert [block.ids for block in _blocks(context)] == [(1,)]
    del x
    assert _blocks(context) == []
    lent.take_back()
    assert context.used_bytes == 0
    context.close()


def test_a_freed_buffer_is_gone(lab: System) -> None:
    gpu = lab.devices[0]
    x = gpu.put(np.ones(1000))
    id_ = x.id
    seen(lab, has(id_))
    del x
    gpu.ping().result(timeout_s=WAIT_S)
    assert seen(lab, has()).used_bytes == 0


def test_beyond_a_limit_the_smallest_blocks_are_counted_not_listed(lab: System) -> None:
    gpu = lab.devices[0]
    more = 7
    refs = [gpu.put(np.ones(100 if i % 300 else 5000)) for i in range(LISTED)]
    refs += [gpu.put(np.ones(3)) for _ in range(more)]
    gpu.ping().result(timeout_s=WAIT_S)
    used = sum(ref.nbytes for ref in refs)
    sample = seen(lab, lambda sample: sample.used_bytes == used)
    assert (len(sample.blocks), sample.unlisted) == (LISTED, more)
    assert {id_ for block in sample.blocks for id_ in block.ids} == {
        ref.id for ref in refs[:LISTED]
    }
    assert sum(block.nbytes for block in sample.blocks) == used - more * 24
    addresses = [block.address for block in sample.blocks]
    assert addresses == sorted(addresses)


def wait_for(gate: Path) -> None:
    while not gate.exists():
        time.sleep(0.001)


def test_a_context_that_is_busy_is_still_seen(lab: System, tmp_path: Path) -> None:
    gpu = lab.devices[0]
    x = gpu.put(np.ones(5000))
    x.result()
    busy = gpu.run(wait_for, tmp_path / "go")
    sample = seen(lab, has(x.id))
    assert not busy.done
    assert sample.used_bytes == x.nbytes
    (tmp_path / "go").touch()
    busy.result(timeout_s=WAIT_S)


def test_a_look_does_not_wait_and_after_a_loss_the_next_generation_answers() -> None:
    with System("host", devices=1) as lab:
        x = lab.devices[0].put(np.ones(5000))
        seen(lab, has(x.id))
        with pytest.raises(AccelError):
            lab.inject("kill").result(timeout_s=WAIT_S)
        sample = seen(lab, lambda sample: sample.generation > 1 and bool(sample.blocks))
        assert (sample.generation, [block.ids for block in sample.blocks]) == (2, [(x.id,)])
    lab.look(memory=True, work=True)  # what was answered before the end
    assert lab.look(memory=True, work=True) == []


# Part by part.


class Asked:
    """A context that remembers what it was told."""

    name = "gpu0"
    generation = 3

    def __init__(self) -> None:
        self.health = ContextHealth()
        self.health.total_bytes = 1000
        self.packets: list[Downward] = []

    def tell(self, packet: Downward) -> None:
        self.packets.append(packet)


def part(*ids: int, last: bool) -> Blocks:
    blocks = [Block((id_,), id_, 10, "Gemm #1", "float32", (2,)) for id_ in ids]
    return Blocks(blocks, 30, 970, 5, last)


def test_parts_become_one_sample_when_the_last_is_there() -> None:
    asked = Asked()
    sampler = DeviceSampler(asked)
    assert sampler.look(memory=True, work=False) == []
    assert asked.packets == [Look(memory=True, work=False)]
    sampler.heard(part(1, 2, last=False))
    assert sampler.look(memory=False, work=False) == []
    assert len(asked.packets) == 1
    sampler.heard(part(3, last=True))
    (sample,) = sampler.look(memory=False, work=False)
    assert isinstance(sample, MemorySampled)
    assert [block.ids for block in sample.blocks] == [(1,), (2,), (3,)]
    assert (sample.device, sample.generation) == ("gpu0", 3)
    assert (sample.used_bytes, sample.total_bytes, sample.unlisted) == (30, 1000, 5)
    assert sampler.look(memory=False, work=False) == []


def test_parts_of_a_lost_context_do_not_reach_the_next_sample() -> None:
    sampler = DeviceSampler(Asked())
    sampler.heard(part(1, last=False))
    sampler.lost()
    sampler.heard(part(2, last=True))
    traced, sample = sampler.look(memory=False, work=False)
    assert isinstance(traced, WorkTraced)
    assert traced.running == ()
    assert isinstance(sample, MemorySampled)
    assert [block.ids for block in sample.blocks] == [(2,)]


def test_answers_that_nobody_reads_are_few() -> None:
    sampler = DeviceSampler(Asked())
    for _ in range(UNREAD + 10):
        sampler.heard(part(1, last=True))
    assert len(sampler.look(memory=False, work=False)) == UNREAD


def test_a_look_may_meet_an_answer_from_another_thread() -> None:
    sampler = DeviceSampler(Asked())
    rounds = 3000

    def answer() -> None:
        for id_ in range(rounds):
            sampler.heard(part(id_, last=True))

    thread = threading.Thread(target=answer)
    thread.start()
    ids: list[int] = []
    while thread.is_alive() or not ids or ids[-1] != rounds - 1:
        ids += [
            block.ids[0]
            for sample in sampler.look(memory=False, work=False)
            if isinstance(sample, MemorySampled)
            for block in sample.blocks
        ]
    thread.join()
    assert ids == sorted(set(ids))


@pytest.mark.parametrize("length", [1, 1000, PACKET_BYTES])
def test_a_long_list_goes_in_parts_that_a_packet_holds(length: int) -> None:
    for count in (0, 1, 100, LISTED):
        things = ["x" * (length + i % 2) for i in range(min(count, (1 << 24) // length))]
        parts = _parts(things)
        assert [one for part, _ in parts for one in part] == things
        assert [last for _, last in parts] == [False] * (len(parts) - 1) + [True]
        assert all(len(part) == 1 or len(encode(part)) <= PACKET_BYTES + 5 for part, _ in parts)


def test_what_changes_while_it_is_listed_is_listed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The dispatcher goes on meanwhile, and the sum was that of more blocks than were listed."""
    arena: Any = None
    context = Context(HostBackend(0), [UploadActor], arena, 1, {}, None)
    notebook, mine = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    stream, address = context.actors["upload"].stream, context.backend.address

    def fill(id_: int) -> None:
        storage = Storage(stream, 64, f"Put #{id_}")
        context.table.fill(id_, np.ones(8), (8,), "float64", storage)

    def found(array: Any) -> int | None:
        monkeypatch.undo()
        fill(2)
        return address(array)

    fill(1)
    monkeypatch.setattr(context.backend, "address", found)
    tracer = Tracer(context.backend.clock(), context.launched)
    show(mine, Look(memory=True, work=False), context, tracer, [])
    packet = receive_upward(notebook)
    assert isinstance(packet, Blocks)
    assert {block.ids for block in packet.blocks} == {(1,), (2,)}
    assert packet.used_bytes == 128
    context.close()
    notebook.close()
    mine.close()


def test_a_block_of_many_views_names_the_first_of_them() -> None:
    """Half a million names took more than a packet holds, and no sample came any more."""
    arena: Any = None
    context = Context(HostBackend(0), [UploadActor], arena, 1, {}, None)
    notebook, mine = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    values = np.ones(8)
    storage = Storage(context.actors["upload"].stream, values.nbytes, "Put #1")
    for id_ in range(1, 100_001):
        context.table.fill(id_, values, (8,), "float64", storage)
    tracer = Tracer(context.backend.clock(), context.launched)
    show(mine, Look(memory=True, work=False), context, tracer, [])
    packet = receive_upward(notebook)
    assert isinstance(packet, Blocks)
    assert packet.last
    (block,) = packet.blocks
    assert block.ids == tuple(range(1, NAMED + 1))
    context.close()
    notebook.close()
    mine.close()
