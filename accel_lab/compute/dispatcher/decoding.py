"""Decode what a notebook asks of a context.

A loop sends the same messages again and again. One that came before is found by its bytes, with
its operands, which takes half the time of decoding it.
"""

from functools import cache
from typing import Annotated, Any, Union, get_origin

import msgspec

from accel_lab.compute.execution.context import Context
from accel_lab.compute.execution.prepared_launch import Prepared
from accel_lab.compute.message.buffer import AccelRef, Ref
from accel_lab.compute.message.bytes_cache import BytesCache
from accel_lab.compute.message.handle import Handle
from accel_lab.compute.message.operation import Spec, operands_of, travelling

SKIP_LIMIT = 63
_HANDLES = (Handle, Ref)


class Seen:
    """A message that came before.

    Attributes:
        message: the same object each time.
        operands: its buffers.
        prepared: what does it again, where its handler has made that.
        title: what it is called then, among the last that were executed.
    """

    __slots__ = ("message", "operands", "prepared", "title")

    def __init__(self, message: Any, operands: tuple[AccelRef, ...]) -> None:
        self.message = message
        self.operands = operands
        self.prepared: Prepared | None = None
        self.title: type | str = type(message)


class Unreadable:
    """Stands for a message whose fields are not of their types, and says so."""

    def __init__(self, why: str) -> None:
        self.why = why


class Entries:
    """Decodes frames, for the dispatcher thread; buffers are looked up while decoding.

    An entry has what `encode_entry` says, by the names `seq`, `result`, `timeout_s`, `message`,
    `spec`, `several` and `place`, and `seen`: what is known of a message that came before, else
    None.
    """

    def __init__(self, context: Context) -> None:
        self._routes = context.routes
        self._known = BytesCache[Seen]()
        self._skip = self._vain = 0
        mention = context.table.mention
        find = context.table.known

        def from_wire(kind: type, value: Any) -> Any:
            if kind is AccelRef or get_origin(kind) in _HANDLES:
                buffer = find(value)
                return mention(value) if buffer is None else buffer
            text = f"nothing on the wire is a {kind.__name__}"
            raise TypeError(text)

        kinds = tuple(travelling())
        union, self._make, raw = _types(kinds)
        self._tags = {kind.__struct_config__.tag for kind in kinds}
        self._alone = msgspec.msgpack.Decoder(self._make, dec_hook=from_wire)
        whole: Any = list[self._make]  # type: ignore[name-defined]
        parts: Any = list[raw]  # type: ignore[valid-type]
        self._whole: msgspec.msgpack.Decoder[list[Any]] = msgspec.msgpack.Decoder(
            whole, dec_hook=from_wire
        )
        self._parts: msgspec.msgpack.Decoder[list[Any]] = msgspec.msgpack.Decoder(parts)
        self._message = msgspec.msgpack.Decoder(union, dec_hook=from_wire)

    def decode(self, frame: memoryview) -> list[Any]:
        """Return the entries of one frame.

        After frames in which little came again more and more of the next are not looked at. The
        message of a known type with fields of other types is `Unreadable`.

        Raises:
            msgspec.DecodeError: it is damaged, or a message is of no known type.
        """
        try:
            return self._decode(frame)
        except msgspec.ValidationError:
            return list(map(self._decode_alone, _raw_entries(frame)))

    def _decode_alone(self, data: msgspec.Raw) -> Any:
        try:
            return self._alone.decode(data)
        except msgspec.ValidationError as error:
            read = msgspec.msgpack.decode(data, type=_Numbered)
            if read.message[0] not in self._tags:
                raise
            return self._make(read.seq, read.result, None, Unreadable(str(error)), None)

    def _decode(self, frame: memoryview) -> list[Any]:
        if self._skip:
            self._skip -= 1
            return self._whole.decode(frame)
        entries = self._parts.decode(frame)
        known = self._known
        found = 0
        for entry in entries:
            data = bytes(entry.message)
            before = known.get(data)
            if before is None:
                entry.message = message = self._message.decode(data)
                self._remember(data, message)
            else:
                entry.seen = before
                entry.message = before.message
                found += 1
        if 2 * found >= len(entries):
            self._vain = 0
        else:
            self._skip = self._vain = min(2 * self._vain + 1, SKIP_LIMIT)
        return entries

    def _remember(self, data: bytes, message: Any) -> None:
        route = self._routes.get(type(message))
        if route is not None:
            self._known.keep(data, Seen(message, route.operands(message)))


class _Numbered(msgspec.Struct, array_like=True):
    """What can be read of an entry whose message cannot."""

    seq: int
    result: int
    timeout_s: Any
    message: Annotated[list[Any], msgspec.Meta(min_length=1)]
    spec: Any


_raw_entries = msgspec.msgpack.Decoder(list[msgspec.Raw]).decode


def prepare() -> None:
    """Find out about every type of message what each context needs; its forks need not."""
    kinds = tuple(travelling())
    for kind in kinds:
        operands_of(kind)
    union, entry, _ = _types(kinds)
    for one in (union, entry):
        msgspec.msgpack.Decoder(one, dec_hook=lambda _, value: value)


@cache
def _types(kinds: tuple[type, ...]) -> tuple[Any, Any, Any]:
    """Return the types of any message, of its entry, and of an entry that is not looked into."""
    union: Any = Union[kinds]  # noqa: UP007 - of as many as there are
    return union, _entry(union), _entry(msgspec.Raw)


def _entry(message: Any) -> Any:
    """Return the type of an entry whose message is decoded as this type."""
    fields: list[tuple[str, Any] | tuple[str, Any, Any]] = [
        ("seq", int),
        ("result", int),
        ("timeout_s", float | None),
        ("message", message),
        ("spec", Spec | None),
        ("several", Any, None),
        ("place", Any, None),
        ("seen", Any, None),
    ]
    # As a launch, where it is enqueued without one: nothing is left to be finished.
    plain = {"finish": None, "shaped": None, "trace": None, "soon_s": 0.0, "group": None}
    return msgspec.defstruct("Entry", fields, namespace=plain, array_like=True)
