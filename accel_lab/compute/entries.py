"""What a notebook asks of a context, decoded.

A loop sends the same messages again and again. One that came before is found by its bytes, with
its operands, which takes half the time of decoding it.
"""

from typing import Any

import msgspec

from accel_lab.compute.buffer import AccelRef
from accel_lab.compute.context import Context
from accel_lab.compute.operation import Spec, travelling
from accel_lab.compute.prepared import Prepared
from accel_lab.compute.remembered import Remembered

SKIP_LIMIT = 63


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


class Entries:
    """Decodes frames, for the dispatcher thread; buffers are looked up while decoding.

    An entry has `seq`, `result`, `timeout_s`, `message` and `spec`, as `wire.encode_entry` tells,
    and `seen`: what is known of a message that came before, else None.
    """

    def __init__(self, context: Context) -> None:
        self._routes = context.routes
        self._known = Remembered[Seen]()
        self._skip = self._vain = 0
        mention = context.table.mention
        find = context.table.known

        def from_wire(kind: type, value: Any) -> Any:
            if kind is AccelRef:
                buffer = find(value)
                return mention(value) if buffer is None else buffer
            text = f"nothing on the wire is a {kind.__name__}"
            raise TypeError(text)

        union: Any = None
        for kind in travelling():
            union = kind if union is None else union | kind
        self._whole: msgspec.msgpack.Decoder[list[Any]] = msgspec.msgpack.Decoder(
            _list_of(union), dec_hook=from_wire
        )
        self._parts: msgspec.msgpack.Decoder[list[Any]] = msgspec.msgpack.Decoder(
            _list_of(msgspec.Raw)
        )
        self._message = msgspec.msgpack.Decoder(union, dec_hook=from_wire)

    def decode(self, frame: memoryview) -> list[Any]:
        """Return the entries of one frame.

        After frames in which little came again more and more of the next are not looked at.

        Raises:
            msgspec.DecodeError: it is damaged.
        """
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


def _list_of(message: Any) -> Any:
    """Return the type of a frame whose messages are decoded as this type."""
    fields: list[tuple[str, Any] | tuple[str, Any, Any]] = [
        ("seq", int),
        ("result", int),
        ("timeout_s", float | None),
        ("message", message),
        ("spec", Spec | None),
        ("seen", Any, None),
    ]
    # As a launch, where it is enqueued without one: nothing is left to be finished.
    plain = {"finish": None, "shaped": None, "trace": None, "soon_s": 0.0}
    entry = msgspec.defstruct("Entry", fields, namespace=plain, array_like=True)
    return list[entry]  # type: ignore[valid-type]
