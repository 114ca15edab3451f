"""Any NumPy array as C-order bytes, piece by piece, copied by several threads.

NumPy releases the GIL while it copies, so that two threads copy twice as fast and the
notebook's other threads run on.
"""

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from accel_lab.compute.arena.arena import Arena
from accel_lab.compute.arena.block import Block
from accel_lab.compute.arrays import dtypes
from accel_lab.compute.machine.memfd_mapping import Bytes
from accel_lab.errors import ArenaFull, InvalidArgument, SystemClosed
from accel_lab.uncopied import Uncopied

Array = npt.NDArray[Any]
Send = Callable[[int, Block], None]
Fill = Callable[[Bytes], object]

CHUNK_BYTES = 8 << 20
_CACHE_LINE = 64
_TILE = 32


def pieces(array: Array, limit_bytes: int) -> Iterator[tuple[int, Array]]:
    """Cut an array into views of at most `limit_bytes`, in C order, copying nothing.

    Yields `(offset, view)`: the view's bytes in C order are those of `array.tobytes()` from
    `offset`. Any shape and strides; an array without elements yields nothing.

    Raises:
        InvalidArgument: one element is larger than the limit.
    """
    array = np.asarray(array)
    if array.itemsize > limit_bytes:
        raise InvalidArgument(f"an element of {array.itemsize} bytes exceeds {limit_bytes}")
    if array.flags.c_contiguous:
        # Rows mean nothing here; full pieces are faster than whole rows.
        array = array.reshape(-1)
    return _cut(array, limit_bytes)


def copy_into(view: Bytes, array: Array) -> int:
    """Write the array's bytes in C order and native byte order; return how many.

    Releases the GIL while it copies.

    Raises:
        InvalidArgument: the view is shorter, not contiguous, or not uint8; or the array's dtype
            is not in the table (objects would be copied as pointers).
    """
    if view.dtype != np.uint8 or not view.flags.c_contiguous or view.nbytes < array.nbytes:
        raise InvalidArgument(
            f"{array.nbytes} bytes need a contiguous uint8 view of that size, "
            f"not {view.dtype}{list(view.shape)}"
        )
    native = dtypes.numpy_dtype(dtypes.canonical(array.dtype))
    target: Array = np.ndarray(array.shape, native, buffer=view)
    if not _runs_across(array):
        np.copyto(target, array, casting="equiv")
        return array.nbytes
    for start in range(0, array.shape[-1], _TILE):
        tile = np.s_[..., start : start + _TILE]
        np.copyto(target[tile], array[tile], casting="equiv")
    return array.nbytes


class CopyPool(Uncopied):
    """A few threads that fill arena blocks from arrays; shared by all devices.

    Any thread may use it, several at once.
    """

    def __init__(self, threads: int | None = None) -> None:
        """Start nothing yet; `threads` None is one for two cores, from two to eight."""
        self.threads = threads or min(8, max(2, (os.cpu_count() or 1) // 2))
        self._executor = ThreadPoolExecutor(self.threads, thread_name_prefix="accel_lab copy")
        # The executor has locks that a finalizer would wait for, if its thread is handing it work.
        self._handing = threading.RLock()
        # What a Condition asks of its lock: there is no public way.
        self._hands_here: Callable[[], bool] = attrgetter("_is_owned")(self._handing)

    def map_chunks(
        self,
        array: Array,
        arena: Arena,
        send: Send,
        *,
        chunk_bytes: int = CHUNK_BYTES,
        timeout_s: float = 60.0,
    ) -> None:
        """Copy the array into arena blocks and call `send(offset, block)` for each, in C order.

        Blocks until the last `send` has returned. `send` runs in the calling thread while the
        next chunks are being copied, and owns its block from then on. The caller must not
        change the array meanwhile; afterwards it may. An array of one chunk is copied by the
        calling thread, because a hand-off costs more than it saves; and so is one that a finalizer
        puts in the middle of another's hand-off.

        Raises:
            ArenaFull: no block within `timeout_s` though every finished chunk was sent.
            InvalidArgument: as `pieces` and `copy_into`.
            SystemClosed: the pool or the arena is closed.
            BaseException: whatever `send` raises. In each case no thread still writes, and the
                blocks that were not sent are released.
        """
        if array.nbytes <= chunk_bytes:
            _send_whole(array, arena, send, timeout_s)
            return
        parts = (
            Part(offset, piece.nbytes, partial(_copy_piece, piece))
            for offset, piece in pieces(array, chunk_bytes)
        )
        self.map_parts(parts, arena, send, timeout_s=timeout_s)

    def map_parts(
        self,
        parts: Iterable["Part"],
        arena: Arena,
        send: Send,
        *,
        in_order: bool = False,
        timeout_s: float = 60.0,
    ) -> None:
        """Have each part fill an arena block, and call `send(offset, block)` for each in turn.

        As `map_chunks`, of what fills the blocks itself. Each `fill` writes all of its block.

        Parameters:
            in_order: whether they have to be filled one after the other: the calling thread does.

        Raises:
            ArenaFull: no block within `timeout_s` though every finished part was sent.
            SystemClosed: the pool or the arena is closed.
            BaseException: whatever `fill` or `send` raises; then as with `map_chunks`.
        """
        if in_order or self._hands_here():
            for part in parts:
                _send_part(part, arena, send, timeout_s)
            return
        copying: deque[_Chunk] = deque()
        try:
            for part in parts:
                block = self._reserve(arena, part.nbytes, copying, send, timeout_s)
                copying.append(_Chunk(part.offset, block, self._fill(block, part.fill)))
                # Never the only one: the next chunk is to be copied while this one is sent.
                while len(copying) > self.threads or (len(copying) > 1 and copying[0].copy.done()):
                    _send_oldest(copying, send)
            while copying:
                _send_oldest(copying, send)
        finally:
            for chunk in copying:
                if not chunk.copy.cancel():
                    chunk.copy.exception()
                chunk.block.release()

    def close(self) -> None:
        """End the threads once the copies that run are done; a second call is fine."""
        self._executor.shutdown(wait=True)

    def _fill(self, block: Block, fill: Fill) -> Future[object]:
        try:
            with self._handing:
                return self._executor.submit(fill, block.view)
        except RuntimeError as error:
            block.release()
            raise SystemClosed("the copy pool is closed") from error

    def _reserve(
        self, arena: Arena, nbytes: int, copying: "deque[_Chunk]", send: Send, timeout_s: float
    ) -> Block:
        # Room may come only from the receiver of chunks that wait here: send those first.
        while copying:
            with suppress(ArenaFull):
                return arena.allocate(nbytes, timeout_s=0)
            _send_oldest(copying, send)
        return arena.allocate(nbytes, timeout_s=timeout_s)


class Part(NamedTuple):
    """Some bytes of an array, and what writes them.

    Attributes:
        offset: where they stand among the array's bytes in C order.
        nbytes: how many.
        fill: writes all of a view of that size; may be called by any thread.
    """

    offset: int
    nbytes: int
    fill: Fill


class _Chunk(NamedTuple):
    offset: int
    block: Block
    copy: "Future[object]"


def _send_oldest(copying: deque[_Chunk], send: Send) -> None:
    copying[0].copy.result()
    chunk = copying.popleft()
    send(chunk.offset, chunk.block)


def _copy_piece(piece: Array, view: Bytes) -> int:
    return copy_into(view, piece)


def _send_whole(array: Array, arena: Arena, send: Send, timeout_s: float) -> None:
    if array.size:
        whole = Part(0, array.nbytes, partial(_copy_piece, array))
        _send_part(whole, arena, send, timeout_s)


def _send_part(part: Part, arena: Arena, send: Send, timeout_s: float) -> None:
    block = arena.allocate(part.nbytes, timeout_s=timeout_s)
    try:
        part.fill(block.view)
    except BaseException:
        block.release()
        raise
    send(part.offset, block)


def _runs_across(array: Array) -> bool:
    """Tell whether C order jumps through memory that another axis would walk: a transpose.

    Copied in narrow tiles, whose cache lines are used whole, it is 2 to 5 times as fast.
    """
    *outer, last = (abs(stride) for stride in array.strides) if array.ndim else (0,)
    nearest = min(outer, default=0)
    is_transposed = 0 < nearest <= _CACHE_LINE and last >= 4 * _CACHE_LINE
    return is_transposed and array.size >= 4 * _TILE * array.shape[-1]


def _cut(array: Array, limit_bytes: int) -> Iterator[tuple[int, Array]]:
    if array.nbytes <= limit_bytes:
        if array.size:
            yield 0, array
        return
    row_bytes = array.nbytes // len(array)
    if row_bytes <= limit_bytes:
        rows = limit_bytes // row_bytes
        for start in range(0, len(array), rows):
            yield start * row_bytes, array[start : start + rows]
        return
    for index in range(len(array)):
        for offset, piece in _cut(array[index], limit_bytes):
            yield index * row_bytes + offset, piece
