"""A recorded message as an object again, with live buffers in place of the recorded numbers."""

from collections.abc import Mapping
from typing import Any

import msgspec

from accel_lab.compute.message.buffer import Ref
from accel_lab.compute.message.handle import is_ref
from accel_lab.compute.message.operation import Operation
from accel_lab.display.buffer_number import short
from accel_lab.errors import JournalError
from accel_lab.journal.entries.entry import kind_of


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
    return message
