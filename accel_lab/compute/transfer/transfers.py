"""Putting arrays on a device and getting them back, through the host arena."""

import math
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from accel_lab.actor.reply import Pump, Reply
from accel_lab.compute.actors.transfer import soon_s
from accel_lab.compute.arena.arena import Arena
from accel_lab.compute.arena.block import Block
from accel_lab.compute.arena.completion_flag import Flag, Flags
from accel_lab.compute.arena.staging import CHUNK_BYTES, CopyPool, Part, Send
from accel_lab.compute.arrays import dtypes
from accel_lab.compute.arrays.cuda_arrays import DeviceArray, Export, device_array
from accel_lab.compute.arrays.host_array import host_array
from accel_lab.compute.lineage.markers import Checkpoint
from accel_lab.compute.lineage.recorder import Kept, Recorder
from accel_lab.compute.message.buffer import AccelRef, Borrowed, Ref
from accel_lab.compute.message.builtin import (
    INLINE_BYTES,
    Allocate,
    CopyIn,
    Download,
    Location,
    Put,
    Run,
    SaveThing,
    Upload,
)
from accel_lab.compute.message.handle import Handle
from accel_lab.compute.message.operation import OWN_TIMEOUT
from accel_lab.compute.output import cell_origin
from accel_lab.compute.requests.answers import Settle
from accel_lab.compute.requests.requests import Requests
from accel_lab.compute.transfer.device_copy import DeviceCopy
from accel_lab.compute.transfer.direct_copy import DirectCopy
from accel_lab.compute.transfer.ipc_memory import IpcMemory
from accel_lab.compute.transfer.ways import Way, Ways
from accel_lab.compute.wire.codec import FRAME_LIMIT
from accel_lab.display.progress import Bar
from accel_lab.display.sizes import compared, size
from accel_lab.errors import (
    AccelError,
    ContextLost,
    DependencyFailed,
    InvalidArgument,
    OutOfMemory,
    StaleRef,
)
from accel_lab.host_waits import HOST_WAITS

Array = npt.NDArray[Any]
PUT_ATTEMPTS = 3
KEPT_BYTES = 64 << 20
KEPT_IN_PLACE_BYTES = 4 << 20
COPY_OUT_BYTES = 4 << 10
SHARED_BYTES = 1 << 20
"""From how many bytes on an array on a card is read there: below it the host is no slower."""


class Copied(NamedTuple):
    """A copy of another device's buffer, and how it goes."""

    ref: AccelRef
    way: Way


class ArrayReply(Reply[Array]):
    """The answer of `get`: an array that owns its memory, in the arena when it is large."""

    __slots__ = ("_arena", "_dtype", "_landing", "_shape")

    def __init__(
        self, pump: Pump, arena: Arena, block: Block, shape: tuple[int, ...], dtype: str
    ) -> None:
        super().__init__(pump, cell_origin.current())
        self._arena = arena
        self._landing = block
        self._shape = shape
        self._dtype = dtype

    @property
    def copying(self) -> str:
        """Say what is copied."""
        name = getattr(self._pump, "name", "a device")
        return f"download from {name}, {size(self._landing.nbytes)}"

    def resolve(self, value: Any = None) -> None:  # noqa: ARG002 - the block holds the value
        """Complete: the block has been filled."""
        array: Array
        if self._landing.nbytes <= COPY_OUT_BYTES:
            native = dtypes.numpy_dtype(self._dtype)
            array = np.frombuffer(self._landing.view.tobytes(), native).reshape(self._shape).copy()
            self._landing.release()
        else:
            array = self._arena.array(self._landing, self._shape, self._dtype)
        super().resolve(array)

    def reject(self, error: AccelError) -> None:
        """Complete with a failure, and give the block back."""
        self._landing.release()
        super().reject(error)

    def take_back(self, error: AccelError) -> Callable[[], object]:
        """Fail, and keep the block until the context no longer writes to it."""
        super().reject(error)
        return self._landing.release


class CheckpointReply(ArrayReply):
    """The answer of `checkpoint`: done when the contents are kept."""

    __slots__ = ("_id", "_placed", "_recorder", "_seq")

    def keep_as(self, recorder: Recorder, id_: int, seq: int) -> None:
        """Name the buffer whose contents these are, and the request that fetches them."""
        self._recorder, self._id, self._seq = recorder, id_, seq

    def resolve(self, value: Any = None) -> None:
        """Have the block's bytes kept by the thread that writes the record.

        Parameters:
            value: the axes of the buffer and its kind, as `Download` answers.
        """
        if value is None:
            text = (
                "a checkpoint needs a contiguous buffer, and this is a view with gaps: checkpoint "
                "array.copy(ref) instead"
            )
            self.reject(InvalidArgument(text))
            return
        self._placed: tuple[tuple[int, ...], str] = value
        self._recorder.later(self._kept)

    def _kept(self) -> Checkpoint:
        nbytes = self._landing.nbytes
        key = self._recorder.contents.put(self._landing.view.data)
        self._landing.release()
        if key is None:
            text = f"the contents, {size(nbytes)}, exceed what may be kept"
            Reply.reject(self, OutOfMemory(text, asked_bytes=nbytes))
        else:
            Reply.resolve(self, None)
        return Checkpoint(self._id, self._seq, key or "", self._shape, self._dtype, *self._placed)


class ThingReply(Reply[None]):
    """The answer of `checkpoint` of what is no array: done when that is kept.

    Parameters:
        handle: what is kept.
    """

    __slots__ = ("_dtype", "_id", "_recorder", "_seq")

    def __init__(self, pump: Pump, handle: Handle[Any], recorder: Recorder, seq: int) -> None:
        super().__init__(pump, cell_origin.current())
        self._recorder, self._id, self._seq = recorder, handle.id, seq
        self._dtype = f"{handle.library}.{handle.kind}"

    def resolve(self, value: Any = None) -> None:
        """Have what was saved kept by the thread that writes the record."""
        self._value = value
        self._recorder.later(self._kept)

    def _kept(self) -> Checkpoint:
        data: bytes = self._look()
        key = self._recorder.contents.put(data)
        if key is None:
            text = f"what it is made of, {size(len(data))}, exceeds what may be kept"
            self.reject(OutOfMemory(text, asked_bytes=len(data)))
        else:
            super().resolve(None)
        return Checkpoint(self._id, self._seq, key or "", (), self._dtype)


class Transfers:
    """The bulk traffic of one device.

    Parameters:
        ipc_memory: what the device's context has open of another process's memory on the same card;
            None where the device is no card.
        ways: of the copies from other devices; those of the host when not given.
    """

    def __init__(
        self,
        requests: Requests,
        arena: Arena,
        copies: CopyPool,
        ipc_memory: IpcMemory | None = None,
        ways: Ways | None = None,
    ) -> None:
        self._requests = requests
        self._arena = arena
        self._copies = copies
        self._ipc_memory = ipc_memory
        self.ways = Ways(is_card=False) if ways is None else ways
        self._flags = Flags(arena)

    def put(
        self, array: npt.ArrayLike, timeout_s: float, *, non_blocking: bool = False
    ) -> AccelRef:
        """Send an array; when this returns it has been copied or is held read-only.

        A bar shows a copy that takes over a second.

        Parameters:
            non_blocking: whether one on a card may still be copied from when this returns.
        """
        if isinstance(array, AccelRef) and array.device.is_beside(self._requests.device):
            return self.copy_of(array, timeout_s).ref
        theirs = device_array(array)
        if theirs is not None:
            source, stream = theirs
            kept_below = KEPT_BYTES if self._requests.recorder is not None else SHARED_BYTES
            large = self._ipc_memory is not None and source.nbytes > kept_below
            export = source.settle(stream, share=large)
            put = partial(self._put_from_card, source, export, timeout_s, non_blocking=non_blocking)
            return self._attempt(put)
        plain = host_array(array)
        dtype = dtypes.canonical(plain.dtype)
        return self._attempt(lambda: self._put(plain, dtype, timeout_s))

    def copy_of(self, ref: AccelRef, timeout_s: float, *, kept_bytes: int = KEPT_BYTES) -> "Copied":
        """Have a buffer of another device of the system copied here, and return its handle.

        It blocks for a shape that only the device knows, and for room in the arena; not for the
        copy.

        Parameters:
            kept_bytes: how large it may be for the record to keep its contents.
        """
        source, target = ref.device.requests, self._requests
        is_kept = target.recorder is not None and ref.nbytes <= kept_bytes
        way = self.ways.choose(source.name, target.name, is_kept=is_kept)
        copy: DirectCopy | DeviceCopy
        if way == "ipc" and self._ipc_memory is not None:
            closings, failed = self._ipc_memory, partial(self._refused, source.name)
            copy = DirectCopy(ref, target, self._arena, timeout_s, closings=closings, failed=failed)
        else:
            copy = DeviceCopy(ref, target, self._arena, timeout_s, kept_bytes)
        copied = copy.send(source)
        self.ways.took(source.name, target.name, way, copied.nbytes)
        return Copied(copied, way)

    def _refused(self, source: str, error: AccelError) -> None:
        """Have the next copies staged where another device cannot offer its memory."""
        if isinstance(error, InvalidArgument):
            self.ways.refuse(source, self._requests.name)

    def _attempt(self, put: Callable[[], AccelRef]) -> AccelRef:
        """Put again what was lost with its context on the way."""
        for attempt in range(1, PUT_ATTEMPTS + 1):
            try:
                return put()
            except (StaleRef, ContextLost, DependencyFailed):
                if attempt == PUT_ATTEMPTS:
                    raise
        raise AssertionError

    def _put(self, source: Array, dtype: str, timeout_s: float) -> AccelRef:
        if source.nbytes <= INLINE_BYTES:
            native = np.ascontiguousarray(source, dtypes.numpy_dtype(dtype))
            return self._buffer(Put(source.shape, dtype, native.tobytes()))
        target = self._buffer(Allocate(source.shape, dtype))
        # A finalizer cannot hold it in the middle of the books there: it is copied then.
        location = None if self._arena.is_entered else self._arena.locate(source)
        if location is not None:
            hold = self._arena.hold(source)
            message = Upload(target, 0, location.segment_id, location.offset, source.nbytes)
            try:
                ref = self._buffer(message, lambda _: hold.release(), self._kept_in_place(source))
            except BaseException:
                hold.release()
                raise
            self._requests.flush()  # bulk is not held back for a fuller batch
            return ref
        last = [target]
        with self._bar(source.nbytes) as bar:
            send = self._sender(last, source.nbytes, bar)
            self._copies.map_chunks(source, self._arena, send, timeout_s=timeout_s)
        return last[0]

    def fill(
        self,
        shape: tuple[int, ...],
        dtype: str,
        parts: Callable[[], Iterable[Part]],
        timeout_s: float,
        *,
        in_order: bool = False,
    ) -> AccelRef:
        """Send an array of which each part is written straight into the arena.

        Parameters:
            parts: gives them all in C order; called again where the context was lost on the way.
            in_order: as in `CopyPool.map_parts`.
        """
        return self._attempt(lambda: self._fill(shape, dtype, parts(), timeout_s, in_order))

    def _fill(
        self,
        shape: tuple[int, ...],
        dtype: str,
        parts: Iterable[Part],
        timeout_s: float,
        in_order: bool,  # noqa: FBT001 - its only caller is above
    ) -> AccelRef:
        nbytes = math.prod(shape) * dtypes.itemsize(dtype)
        if nbytes <= INLINE_BYTES:
            data = np.empty(nbytes, np.uint8)
            for part in parts:
                part.fill(data[part.offset : part.offset + part.nbytes])
            return self._buffer(Put(shape, dtype, data.tobytes()))
        last = [self._buffer(Allocate(shape, dtype))]
        with self._bar(nbytes) as bar:
            send = self._sender(last, nbytes, bar)
            self._copies.map_parts(parts, self._arena, send, in_order=in_order, timeout_s=timeout_s)
        return last[0]

    def _put_from_card(
        self, source: DeviceArray, export: Export | None, timeout_s: float, *, non_blocking: bool
    ) -> AccelRef:
        """Have the device copy it, or where it cannot, copy it by the host, which keeps it too."""
        ipc_memory = self._ipc_memory
        if export is not None and ipc_memory is not None:
            is_open, flag = ipc_memory.is_open(export[0]), None
            if is_open and not non_blocking:
                flag = self._flags.take()
            try:
                copied = self._copy_in(ipc_memory, source, export, flag)
                if not (is_open and non_blocking):
                    self._wait_for_copy(copied, source.nbytes, timeout_s, flag)
            except InvalidArgument:
                pass  # the device cannot read it
            else:
                return copied
        if source.nbytes <= INLINE_BYTES:
            data = np.empty(source.nbytes, np.uint8)
            if source.nbytes:
                source.read(0, data)
            return self._buffer(Put(source.shape, source.dtype, data.tobytes()))
        last = [self._buffer(Allocate(source.shape, source.dtype))]
        with self._bar(source.nbytes) as bar:
            send = self._sender(last, source.nbytes, bar)
            for offset in range(0, source.nbytes, CHUNK_BYTES):
                length = min(CHUNK_BYTES, source.nbytes - offset)
                block = self._arena.allocate(length, timeout_s=timeout_s)
                try:
                    source.read(offset, block.view)
                except BaseException:
                    block.release()
                    raise
                send(offset, block)
        return last[0]

    def _bar(self, nbytes: int) -> Bar:
        return Bar(f"upload to {self._requests.name}", nbytes, unit="bytes")

    def _copy_in(
        self, ipc_memory: IpcMemory, source: DeviceArray, export: Export, flag: Flag | None
    ) -> AccelRef:
        loan = ipc_memory.lend(export[0], source)
        sign = None if flag is None else flag.sign()
        message = CopyIn(source.shape, source.dtype, *export, sign)
        settle: Settle = loan if flag is None else partial(_both, loan, flag.settle)
        requests, announced = self._requests, 0
        try:
            if flag is not None:
                announced = requests.unrecorded.announce(message)
                if not announced:  # no context takes messages now
                    message = CopyIn(source.shape, source.dtype, *export)
            copied = requests.outbox.send(message, OWN_TIMEOUT, settle=settle, announced=announced)
            requests.flush()
        except BaseException:
            requests.unrecorded.give_up(announced)
            settle(None)
            raise
        finally:
            loan.keep()
        assert isinstance(copied, AccelRef)
        return copied

    def _wait_for_copy(
        self, copied: AccelRef, nbytes: int, timeout_s: float, flag: Flag | None
    ) -> None:
        noted = HOST_WAITS.begin()
        try:
            self._requests.pump.wait(copied, timeout_s, soon_s=soon_s(nbytes), flag=flag)
        finally:
            if noted:
                HOST_WAITS.end()
        if not copied.done:
            if flag is not None and flag.is_set:
                return  # and the answer is on its way
            copied.cancel()  # the array may be another by the time the device would come to it
            text = f"{self._requests.name} did not come to the array on the card in {timeout_s:g} s"
            raise TimeoutError(text)
        copied.result()

    def _sender(self, last: list[AccelRef], nbytes: int, bar: Bar) -> Send:
        """Return what sends a filled block to the buffer in `last`, and owns it from then on."""
        large = _too_large(nbytes) if nbytes > KEPT_BYTES else None

        def send(offset: int, block: Block) -> None:
            message = Upload(last[0], offset, block.segment_id, block.offset, block.nbytes)
            settle, kept = _release(block), large
            if large is None and self._requests.recorder is not None:
                settle, kept = _shared(block)
            try:
                last[0] = self._buffer(message, settle, kept)
                self._requests.flush()
            except BaseException:
                block.release()
                raise
            bar.at(offset + block.nbytes)

        return send

    def upload(
        self, message: Upload, data: Sequence[bytes], timeout_s: float | None, key: str = ""
    ) -> Reply[Any]:
        """Send an upload again, with these bytes in place of those that lay in the arena then.

        Parameters:
            data: in pieces.
            key: their key, where it is known.
        """
        block, at = self._arena.allocate(sum(map(len, data))), 0
        for piece in data:
            block.view[at : at + len(piece)] = np.frombuffer(piece, np.uint8)
            at += len(piece)
        place = block.segment_id, block.offset, block.nbytes
        settle, kept = _release(block), None
        if self._requests.recorder is not None:
            settle, kept = _shared(block, key)
        try:
            reply = self._requests.outbox.send(
                Upload(message.out, message.offset, *place), timeout_s, settle=settle, kept=kept
            )
        except BaseException:
            block.release()
            raise
        self._requests.flush()
        return reply

    def get(self, ref: AccelRef, timeout_s: float) -> Reply[Array]:
        """Ask for a copy of a buffer; waits for room in the arena and for an unknown shape."""
        return self._fetch(ref, timeout_s, ArrayReply)

    def _fetch(
        self,
        ref: AccelRef,
        timeout_s: float,
        kind: type[ArrayReply],
        recorder: Recorder | None = None,
        *,
        nowait: bool = False,
    ) -> Reply[Array]:
        if not isinstance(ref, AccelRef):
            raise _no_ref(ref)
        shape, dtype = ref.shape, ref.dtype
        nbytes = 0 if ref.failed else ref.nbytes  # why it was never made is said, whatever its size
        block = self._arena.allocate(nbytes, timeout_s=timeout_s)
        made: list[Reply[Any]] = []

        def make(pump: Pump, _: int) -> Reply[Any]:
            reply = kind(pump, self._arena, block, shape, dtype)
            made.append(reply)  # from here on it has the block, for as long as that is written to
            if isinstance(reply, CheckpointReply) and recorder is not None:
                reply.keep_as(recorder, ref.id, self._requests.last_number)
            return reply

        def settle(lost: Hashable | None) -> None:
            if lost is not None:
                block.release(after=lost)

        message = Download(
            ref, block.segment_id, block.offset, kind is CheckpointReply, block.nbytes
        )
        try:
            return self._requests.outbox.send(
                message, OWN_TIMEOUT, make=make, settle=settle, nowait=nowait
            )
        except BaseException:
            if not made:
                block.release()
            raise

    def checkpoint(self, ref: Ref[Any], timeout_s: float) -> Reply[Any]:
        """Keep a buffer's contents on the host as they are after what was sent before.

        The answer is `InvalidArgument` where the elements do not follow each other in memory, and
        where what is no array has no checkpoint.
        """
        return self._keep(ref, timeout_s)

    def _keep(self, ref: Any, timeout_s: float, *, nowait: bool = False) -> Reply[Any]:
        recorder = self._requests.recorder
        if recorder is None or self._requests.connection.recovery is None:
            text = 'only a System(recover="replay") uses checkpoints'
            raise InvalidArgument(text)
        if type(ref) is Handle:
            return self._requests.outbox.send(
                SaveThing(ref),
                OWN_TIMEOUT,
                make=lambda pump, _: ThingReply(pump, ref, recorder, self._requests.last_number),
                recorded=False,
                nowait=nowait,
            )
        return self._fetch(ref, timeout_s, CheckpointReply, recorder, nowait=nowait)

    def read(self, id_: int, shape: tuple[int, ...], dtype: str, timeout_s: float) -> Array:
        """Return a copy of a buffer that is in use, by its id; blocks.

        For a thread of accel_lab's own, which others may wait for meanwhile.

        Raises:
            AccelError: it is not there.
            TimeoutError: it took longer.
        """
        reply = self.get(self._borrowed(id_, shape, dtype), timeout_s)
        self._requests.pump.wait(reply, timeout_s, shown=False)
        if not reply.done:
            reply.cancel()
            raise TimeoutError(f"{self._requests.name} did not answer within {timeout_s:g} s")
        return reply.result(0.0)

    def _borrowed(self, id_: int, shape: tuple[int, ...], dtype: str) -> AccelRef:
        """Return a handle that holds nothing."""
        requests = self._requests
        owner, generation = Borrowed(id_, deque()), requests.generation
        ref = AccelRef(requests.pump, None, requests.device, owner, generation, shape, dtype)
        ref.resolve()
        return ref

    def checkpoint_soon(self, id_: int, shape: tuple[int, ...], dtype: str) -> None:
        """Keep the contents of a buffer that is in use, unless that would take long or much."""
        if dtype not in dtypes.NAMES:  # its messages rebuild it
            return
        ref = self._borrowed(id_, shape, dtype)
        if ref.nbytes <= KEPT_BYTES:
            with suppress(AccelError):  # it was freed, or lost, or there is no room for it now
                # With a waiter a failure is not told as one that nobody has heard of.
                self._keep(ref, 0.0, nowait=True).add_waiter(lambda: None)

    def run(self, message: Run, timeout_s: float | None, *, recorded: bool = True) -> Reply[Any]:
        """Send a call; a pickle larger than a frame goes by the arena."""
        settle = kept = None
        if len(message.blob) > FRAME_LIMIT // 2:
            kept = Kept(message.blob)
            block = self._arena.allocate(len(message.blob))
            block.view[:] = np.frombuffer(message.blob, np.uint8)
            at = Location(block.segment_id, block.offset, block.nbytes)
            message = msgspec.structs.replace(message, blob=b"", blob_at=at)
            settle = _release(block)
        return self._requests.outbox.send(
            message,
            timeout_s,
            make=lambda _, id_: self._requests.handles.of_call(id_),
            settle=settle,
            kept=kept,
            recorded=recorded,
        )

    def _kept_in_place(self, source: Array) -> Kept | None:
        """Copy an array of the arena for the record, for the user may write to it soon."""
        if self._requests.recorder is None:
            return None
        return (
            Kept(source.tobytes())
            if source.nbytes <= KEPT_IN_PLACE_BYTES
            else _too_large(source.nbytes)
        )

    def _buffer(
        self, message: Any, settle: Settle | None = None, kept: Kept | None = None
    ) -> AccelRef:
        reply = self._requests.outbox.send(message, OWN_TIMEOUT, settle=settle, kept=kept)
        assert isinstance(reply, AccelRef)
        return reply


def _no_ref(given: Any) -> InvalidArgument:
    """Say that something is no buffer; the handle of an object has a `get` of its own."""
    text = f"get takes an AccelRef, and this is an instance of {type(given).__name__}"
    if hasattr(given, "device") and callable(getattr(given, "get", None)):
        text += f": fetch it with its own get, {getattr(given, 'name', 'it')}.get()"
    return InvalidArgument(text)


def _too_large(nbytes: int) -> Kept:
    write = compared(nbytes, KEPT_BYTES, KEPT_IN_PLACE_BYTES)
    text = (
        f"an upload of {write(nbytes)} is not kept (the limit is {size(KEPT_BYTES)}, or "
        f"{size(KEPT_IN_PLACE_BYTES)} from lab.empty); device.checkpoint(ref) keeps it"
    )
    return Kept(None, text)


def _shared(block: Block, key: str = "") -> tuple[Settle, Kept]:
    """Give a block back when the context and the record are both done with it."""
    first = [None]
    lost: list[Hashable] = []

    def claim() -> None:
        try:
            first.pop()
        except IndexError:
            block.release(after=lost[0])

    def settle(token: Hashable | None) -> None:
        lost.append(token)
        claim()

    return settle, Kept(block.view, done=claim, key=key)


def _both(first: Settle, second: Settle, lost: Hashable | None) -> None:
    first(lost)
    second(lost)


def _release(block: Block) -> Settle:
    """Give a block back: at once when the context has answered, else when it is reaped."""
    return lambda lost: block.release(after=lost)
