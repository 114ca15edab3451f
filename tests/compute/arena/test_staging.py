import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from accel_lab.compute.arena.arena import Arena
from accel_lab.compute.arena.block import Block
from accel_lab.compute.arena.staging import CopyPool, copy_into, pieces
from accel_lab.compute.arrays import dtypes
from accel_lab.errors import ArenaFull, InvalidArgument, SystemClosed

Array = npt.NDArray[Any]
PAGE = 4096


@pytest.fixture
def arena() -> Iterator[Arena]:
    arena = Arena(16 * PAGE, segment_bytes=16 * PAGE)
    yield arena
    assert arena.statistics().blocks == 0
    arena.close()


def copiers() -> set[threading.Thread]:
    return {one for one in threading.enumerate() if one.name.startswith("accel_lab copy")}


@pytest.fixture
def pool() -> Iterator[CopyPool]:
    before = copiers()
    pool = CopyPool(2)
    yield pool
    pool.close()
    assert copiers() <= before


@st.composite
def arrays(draw: st.DrawFn) -> Array:
    """Draw any layout: transposed, sliced, reversed, broadcast, big-endian, ml_dtypes."""
    name = draw(st.sampled_from(dtypes.NAMES))
    shape = draw(hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=6))
    order = draw(st.sampled_from(("native", "swapped")))
    dtype = dtypes.numpy_dtype(name)
    if order == "swapped" and dtype.kind in "iufc":
        dtype = dtype.newbyteorder(">")
    count = int(np.prod(shape, dtype=np.int64))
    array: Array = (np.arange(count) * 37 % 113).astype(dtype).reshape(shape)
    array = array.transpose(draw(st.permutations(range(array.ndim))))
    steps = draw(st.tuples(*(st.sampled_from((1, 2, -1, -3)) for _ in shape)))
    key: tuple[Any, ...] = (..., *(slice(None, None, step) for step in steps))
    array = array[key]
    if draw(st.booleans()):
        array = np.broadcast_to(array, (draw(st.integers(1, 3)), *array.shape))
    return array


def native_bytes(array: Array) -> bytes:
    return array.astype(array.dtype.newbyteorder("="), order="C").tobytes()


@given(arrays(), st.integers(16, 400))
def test_pieces_are_the_bytes_of_the_array_in_order(array: Array, limit: int) -> None:
    joined = bytearray()
    for offset, piece in pieces(array, limit):
        assert offset == len(joined)
        assert 0 < piece.nbytes <= limit
        assert np.shares_memory(piece, array)
        joined += piece.tobytes()
    assert bytes(joined) == array.tobytes()


@given(arrays(), st.integers(0, 20))
def test_a_copy_is_native_c_order_bytes_and_touches_nothing_else(array: Array, room: int) -> None:
    view = np.full(array.nbytes + room, 0xAA, np.uint8)
    assert copy_into(view, array) == array.nbytes
    assert view[: array.nbytes].tobytes() == native_bytes(array)
    assert (view[array.nbytes :] == 0xAA).all()


@pytest.mark.parametrize("name", ["float32", "bfloat16", "complex128"])
def test_transposed_arrays_are_copied_in_tiles_without_a_gap(name: str) -> None:
    plain = (np.arange(300 * 130) % 251).astype(name).reshape(300, 130)
    for array in (plain.T, plain.T[:, ::-1], plain.reshape(300, 13, 10).transpose(2, 1, 0)):
        view = np.zeros(array.nbytes, np.uint8)
        copy_into(view, array)
        assert view.tobytes() == array.tobytes()


def test_contiguous_arrays_are_cut_into_full_pieces_whatever_their_rows() -> None:
    sizes = [piece.nbytes for _, piece in pieces(np.zeros((10, 60), np.uint8), 100)]
    assert sizes == [100] * 6


def test_rows_beyond_the_limit_are_cut_themselves() -> None:
    array = np.arange(240, dtype=np.int32).reshape(2, 2, 60)[:, ::-1, ::-2]
    offsets = [offset for offset, _ in pieces(array, 64)]
    assert offsets == [0, 64, 120, 184, 240, 304, 360, 424]


def test_a_subclass_is_cut_as_the_plain_array_that_it_is() -> None:
    masked = np.ma.masked_array(np.arange(6), mask=[False, True] * 3)
    assert b"".join(piece.tobytes() for _, piece in pieces(masked, 16)) == np.arange(6).tobytes()


def test_offsets_beyond_four_gibibytes_are_whole_numbers() -> None:
    huge = np.broadcast_to(np.zeros(1 << 20, np.float64), (1000, 1 << 20))
    cut = list(pieces(huge, 1 << 30))
    assert [offset for offset, _ in cut] == [index << 30 for index in range(8)]
    assert sum(piece.nbytes for _, piece in cut) == huge.nbytes > 1 << 32


def test_an_element_beyond_the_limit_is_refused_at_the_call() -> None:
    with pytest.raises(InvalidArgument, match="an element of 16 bytes exceeds 8"):
        pieces(np.zeros(2, "complex128"), 8)


@pytest.mark.parametrize(
    "view", [np.zeros(7, np.uint8), np.zeros(16, np.uint8)[::2], np.zeros(2, np.float64)]
)
def test_a_view_that_does_not_fit_is_refused(view: Any) -> None:
    with pytest.raises(InvalidArgument, match="8 bytes need a contiguous uint8 view"):
        copy_into(view, np.zeros(1))


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_chunks_are_sent_whole_and_in_order(arena: Arena, threads: int) -> None:
    pool = CopyPool(threads)
    array = np.arange(60 * PAGE // 8).reshape(60, -1)[::-1]
    sent = bytearray()

    def send(offset: int, block: Block) -> None:
        assert offset == len(sent)
        sent.extend(block.view)
        block.release()

    pool.map_chunks(array, arena, send, chunk_bytes=PAGE)
    assert bytes(sent) == array.tobytes()
    pool.close()


@pytest.mark.parametrize("shape", [(), (3,), (0, 4), (PAGE // 8,)])
def test_an_array_of_one_chunk_is_copied_by_the_caller(
    arena: Arena, pool: CopyPool, shape: tuple[int, ...]
) -> None:
    array = np.full(shape, 7.0)
    sent = []
    before = copiers()

    def send(offset: int, block: Block) -> None:
        sent.append((offset, block.view.tobytes()))
        block.release()

    pool.map_chunks(array, arena, send, chunk_bytes=PAGE)
    assert sent == ([(0, array.tobytes())] if array.size else [])
    assert copiers() <= before


def test_the_next_chunk_is_copied_while_one_is_being_sent(arena: Arena, pool: CopyPool) -> None:
    array = np.arange(1, 4 * PAGE + 1, dtype=np.uint32)
    # The arena's only segment shows which chunks have been copied.
    arena.allocate(1).release()
    memory = arena.segments[0].bytes(0, 16 * PAGE).view(np.uint32)
    memory[:] = 0

    def send(offset: int, block: Block) -> None:
        if offset == 0:
            deadline = time.monotonic() + 30
            while PAGE * 2 not in memory:
                assert time.monotonic() < deadline
        block.release()

    pool.map_chunks(array, arena, send, chunk_bytes=4 * PAGE)


def test_room_that_only_the_receiver_can_make_is_waited_for_after_sending(pool: CopyPool) -> None:
    arena = Arena(PAGE, segment_bytes=PAGE)
    array = np.arange(20 * PAGE // 2, dtype=np.uint16)
    sent = bytearray()

    def send(_: int, block: Block) -> None:
        sent.extend(block.view)
        block.release()

    pool.map_chunks(array, arena, send, chunk_bytes=PAGE)
    assert bytes(sent) == array.tobytes()
    arena.close()


def test_a_receiver_that_keeps_every_block_gets_arena_full(pool: CopyPool) -> None:
    arena = Arena(4 * PAGE, segment_bytes=4 * PAGE)
    kept: list[Block] = []
    with pytest.raises(ArenaFull):
        pool.map_chunks(
            np.zeros(20 * PAGE, np.uint8),
            arena,
            lambda _, block: kept.append(block),
            chunk_bytes=PAGE,
            timeout_s=0.01,
        )
    assert len(kept) == arena.statistics().blocks == 4
    for block in kept:
        block.release()
    arena.close()


def test_a_failing_receiver_ends_the_copy_and_leaks_nothing(arena: Arena, pool: CopyPool) -> None:
    def send(offset: int, block: Block) -> None:
        block.release()
        if offset == 3 * PAGE:
            raise ConnectionError

    with pytest.raises(ConnectionError):
        pool.map_chunks(np.zeros(12 * PAGE, np.uint8), arena, send, chunk_bytes=PAGE)


@pytest.mark.parametrize("count", [1, 12])
def test_objects_are_refused_and_nothing_leaks(arena: Arena, pool: CopyPool, count: int) -> None:
    objects = np.array([object()] * (count * PAGE // 8))
    with pytest.raises(InvalidArgument, match="dtype object is not one of"):
        pool.map_chunks(objects, arena, lambda _, block: block.release(), chunk_bytes=PAGE)


def test_several_threads_share_the_pool(arena: Arena, pool: CopyPool) -> None:
    arrays = [np.full(8 * PAGE, mark, np.uint8) for mark in range(4)]
    results: list[bytes] = [b""] * 4

    def upload(index: int) -> None:
        sent = bytearray()

        def send(_: int, block: Block) -> None:
            sent.extend(block.view)
            block.release()

        pool.map_chunks(arrays[index], arena, send, chunk_bytes=PAGE)
        results[index] = bytes(sent)

    threads = [threading.Thread(target=upload, args=(index,)) for index in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [array.tobytes() for array in arrays]


def test_a_closed_pool_refuses_and_leaks_nothing(arena: Arena) -> None:
    pool = CopyPool()
    pool.close()
    pool.close()
    with pytest.raises(SystemClosed, match="copy pool"):
        pool.map_chunks(np.zeros(3 * PAGE), arena, lambda _, b: b.release(), chunk_bytes=PAGE)
