"""Send recorded messages again, to the next context, with the bytes that belong to them."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from accel_lab.compute.arena.arena import Arena
from accel_lab.compute.arena.staging import CHUNK_BYTES
from accel_lab.compute.arrays.dtypes import NAMES, numpy_dtype
from accel_lab.compute.lineage.content_store import Contents
from accel_lab.compute.lineage.history import Restore
from accel_lab.compute.lineage.markers import Checkpoint
from accel_lab.compute.lineage.recorded_message import (
    ALLOCATE,
    FREE,
    RUN,
    UPLOAD,
    Step,
    decode,
)
from accel_lab.compute.message.builtin import Allocate, RestoreThing, Run, Upload
from accel_lab.compute.message.operation import Spec
from accel_lab.compute.message.parts import in_parts
from accel_lab.compute.requests.answers import Again, Overtaken, Settle
from accel_lab.errors import StaleRef

if TYPE_CHECKING:
    from accel_lab.compute.requests.requests import Requests
    from accel_lab.compute.wire.link import Link

RESTORE = RestoreThing.__struct_config__.tag
UPLOAD_TIMEOUT_S = Upload.timeout_s
ROOM_WITHIN_S = 30.0
ROOM_AGAIN_WITHIN_S = 1.0
"""How long to wait for room in the arena, and how long once that was in vain."""

_encode = msgspec.msgpack.Encoder().encode


class Resending:
    """Sends the messages of one device again; for the thread of its recovery.

    Parameters:
        content_key: returns the key of the bytes that a request took from the arena.
    """

    def __init__(
        self,
        requests: "Requests",
        arena: Arena,
        contents: Contents,
        content_key: Callable[[int], str],
    ) -> None:
        self._requests = requests
        self._arena = arena
        self._contents = contents
        self._content_key = content_key
        self._room_within_s = ROOM_WITHIN_S

    def begin(self) -> None:
        """Wait for room as long as that takes, as a recovery does that begins."""
        self._room_within_s = ROOM_WITHIN_S

    def hurry(self) -> None:
        """Do not wait for room as long any more: it was in vain."""
        self._room_within_s = ROOM_AGAIN_WITHIN_S

    def send(self, link: "Link", step: Step | Restore) -> list[Again]:
        """Send what a step takes; returns the answers to wait for.

        Raises:
            StaleRef: bytes that were kept are gone.
            OutOfMemory: the arena has no room for them.
            Overtaken: the context is lost.
        """
        if isinstance(step, Restore):
            point = step.checkpoint
            if point.dtype not in NAMES:
                return [self._thing(link, point)]
            spec = Spec(point.shape, point.dtype)
            data = self._kept(point.key)
            if point.axes:
                array = np.frombuffer(data, numpy_dtype(point.dtype)).reshape(point.shape)
                data = array.transpose(point.axes).tobytes()
            seq = self._requests.outbox.number()
            message = [ALLOCATE, *spec, point.axes, point.kind]
            make = entry_of(seq, point.id, Allocate.timeout_s, message, spec)
            return [
                self.again(link, seq, make),
                *self._upload(link, point.id, 0, data, point.axes),
            ]
        if step.is_part:
            return self._left(link, step)
        if not step.in_arena:
            return [self.again(link, step.seq, step.data)]
        data = self._kept(self._content_key(step.seq))
        raw: Any = decode(step.data)
        if step.tag == UPLOAD:
            _, out, offset, *_ = raw[3]
            return self._upload(link, out, offset, data)
        return self._call(link, raw, data)

    def free(self, link: "Link", ids: Iterable[int]) -> None:
        """Have the context forget these buffers.

        Raises:
            Overtaken: the context is lost.
        """
        for some in in_parts(ids):
            self._requests.connection.resend(link, 0, entry_of(0, 0, None, [FREE, some]))

    def _kept(self, key: str) -> bytes:
        """Return bytes that the record promises; without them memory would hold anything."""
        data = self._contents.get(key)
        if data is None:
            raise StaleRef(f"the bytes that were kept as {key} are gone")
        return data

    def _left(self, link: "Link", step: Step) -> list[Again]:
        """Have what a part of a message to several devices had left here, as another had it."""
        data = self._kept(self._content_key(step.seq))
        if not step.made:
            (written,) = step.writes
            return self._upload(link, written, 0, data)
        raw: Any = decode(step.data)
        spec = Spec(tuple(raw[4][0]), raw[4][1])
        seq = self._requests.outbox.number()
        make = entry_of(seq, step.made, Allocate.timeout_s, [ALLOCATE, *spec, ()], spec)
        return [self.again(link, seq, make), *self._upload(link, step.made, 0, data)]

    def _upload(
        self, link: "Link", out: int, offset: int, data: bytes, axes: tuple[int, ...] = ()
    ) -> list[Again]:
        """Copy kept bytes to the arena, in pieces, and have them uploaded."""
        replies = []
        for start in range(0, len(data), CHUNK_BYTES):
            piece = memoryview(data)[start : start + CHUNK_BYTES]
            place, settle = self._place(piece)
            seq = self._requests.outbox.number()
            entry = entry_of(seq, 0, UPLOAD_TIMEOUT_S, [UPLOAD, out, offset + start, *place, axes])
            replies.append(self.again(link, seq, entry, settle))
        return replies

    def _thing(self, link: "Link", point: Checkpoint) -> Again:
        """Have a library make what is no array of its checkpoint."""
        place, settle = self._place(memoryview(self._kept(point.key)))
        library, _, kind = point.dtype.partition(".")
        seq = self._requests.outbox.number()
        message = [RESTORE, library, kind, list(place)]
        entry = entry_of(seq, point.id, RestoreThing.timeout_s, message, Spec((), kind))
        return self.again(link, seq, entry, settle)

    def _call(self, link: "Link", raw: Any, data: bytes) -> list[Again]:
        """Send a call again whose pickle went by the arena."""
        place, settle = self._place(memoryview(data))
        _, refs, _, pure, _, *rest = raw[3]
        call = [RUN, refs, b"", pure, list(place), *rest]
        return [self.again(link, raw[0], entry_of(raw[0], raw[1], Run.timeout_s, call), settle)]

    def _place(self, data: memoryview) -> tuple[tuple[int, int, int], Settle]:
        block = self._arena.allocate(len(data), timeout_s=self._room_within_s)
        block.view[:] = data
        place = block.segment_id, block.offset, block.nbytes
        return place, lambda lost: block.release(after=lost)

    def again(self, link: "Link", seq: int, data: bytes, settle: Settle | None = None) -> Again:
        """Send an entry; what `settle` would do is done if that cannot be.

        Raises:
            Overtaken: the context is lost.
        """
        reply = Again()
        try:
            self._requests.connection.resend(link, seq, data, reply, settle)
        except Overtaken:
            if settle is not None:
                settle(None)
            raise
        return reply


def entry_of(
    seq: int, result: int, timeout_s: float | None, message: list[Any], spec: Spec | None = None
) -> bytes:
    """Return an entry of the wire."""
    return _encode([seq, result, timeout_s, message, spec])
