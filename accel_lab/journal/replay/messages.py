"""A recorded message as an object again, with live buffers in place of the recorded numbers."""

from collections.abc import Mapping
from typing import Any

import msgspec

from accel_lab.compute.actors.fault import Inject
from accel_lab.compute.graph.messages import LaunchGraph, RecordGraph, Reserve, TimeGraph
from accel_lab.compute.message.buffer import Ref
from accel_lab.compute.message.builtin import Allocate, Ping, Put, Run, Upload
from accel_lab.compute.message.handle import is_ref
from accel_lab.compute.message.operation import Operation
from accel_lab.display.buffer_number import short
from accel_lab.errors import JournalError
from accel_lab.journal.entries.entry import OF_SEVERAL, kind_of

OF_USERS = frozenset(
    (Put, Allocate, Upload, Run, Ping, RecordGraph, Reserve, LaunchGraph, TimeGraph)
)
"""What calls of the user's send, of the messages that every device takes: not what moves memory."""
_EVERY_DEVICE = f"{Put.__module__.partition('.')[0]}.compute."


def refusal(kind: type[Operation[Any]], *, faults: bool = False) -> str:
    """Return why messages of this type are not sent again; empty where a user can send them.

    Parameters:
        faults: whether to cause faults on purpose, too.
    """
    if kind is Inject and faults:
        return ""
    if kind.grouped is not None:
        return OF_SEVERAL
    if kind.opaque:
        return kind.opaque
    if kind.__module__.startswith(_EVERY_DEVICE) and kind not in OF_USERS:
        return "accel_lab sends it by itself, and no user does"
    return ""


def message_of(raw: list[Any], refs: Mapping[int, Ref[Any]]) -> Operation[Any]:
    """Return the message that `[tag, *fields]` is.

    A complex number stays the list of its two parts, which every message takes. What a message
    names by its place in the arena is not there any more: `Device.repeat` takes those bytes.

    Parameters:
        raw: as decoded from msgpack.
        refs: the buffers by the numbers that they had.

    Raises:
        JournalError: no such message, it does not fit its class, or a buffer is missing.
    """
    kind = kind_of(raw[0])

    def from_record(expected: type, value: Any) -> Any:
        if not is_ref(expected):
            raise NotImplementedError
        ref = refs.get(value)
        if ref is None:
            which = short(value) if isinstance(value, int) else value
            raise JournalError(f"{kind.__name__} names buffer {which}, which is not there")
        return ref

    try:
        message: Operation[Any] = msgspec.convert(raw, kind, dec_hook=from_record)
    except msgspec.ValidationError as error:
        if isinstance(error.__cause__, JournalError):
            raise error.__cause__ from None
        raise JournalError(f"the journal holds an invalid {kind.__name__}: {error}") from error
    if isinstance(message, Upload):
        _require_room(message)
    return message


def _require_room(upload: Upload) -> None:
    """Refuse bytes that would go elsewhere than into the buffer that they are for."""
    room = upload.out.nbytes
    if upload.offset < 0 or upload.nbytes < 0 or upload.offset + upload.nbytes > room:
        text = f"{upload.nbytes} bytes at {upload.offset} of a buffer of {room}"
        raise JournalError(f"the journal holds an invalid Upload: {text}")
