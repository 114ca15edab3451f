"""Copies of operands that another device has, made before the message that names them is sent.

A copy stands only for what a message reads: what is written has to be written where it is.
"""

import weakref
from collections.abc import Iterator
from typing import Any

import msgspec

from accel_lab.actor.events import EventStream
from accel_lab.compute.device import Device
from accel_lab.compute.events.lifecycle import CopyInserted
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.operation import Operation, operand_fields, operands_of
from accel_lab.compute.output import cell_origin
from accel_lab.compute.residency.foreign_operand import put_code
from accel_lab.errors import InvalidArgument


class AutoCopy:
    """Brings what the messages of one device read; any thread.

    Parameters:
        device: whose messages; it is not kept alive.
        events: tell of each copy.
    """

    def __init__(self, device: Device, events: EventStream) -> None:
        self._device = weakref.ref(device)
        self._events = events

    def __call__(self, message: Operation[Any]) -> Operation[Any]:
        """Return the message with copies of what other devices of the system have.

        Waits for a shape that only the other device knows, and for room in the arena. The message
        itself comes back where there is nothing to copy.

        Raises:
            InvalidArgument: the message may write to a buffer that another device has.
            AccelError: as `Device.put`.
        """
        device, operands = self._device(), operands_of(type(message))
        try:
            strange: list[Any] = [ref for ref in operands(message) if ref.device is not device]
        except (AttributeError, TypeError):
            return message  # what is no operand is refused where all operands are checked
        found = {
            id(ref): ref
            for ref in strange
            if device is not None and isinstance(ref, AccelRef) and device.is_beside(ref.device)
        }
        if device is None or len(found) < len({*map(id, strange)}) or not found:
            return message
        readable = {*map(id, message.only_reads())}
        for key, ref in found.items():
            if key not in readable:
                put = put_code(ref, device) or "put() it there, and use the copy"
                raise InvalidArgument(
                    f"{ref!r} is not on {device.name}, and {message.title} may write to it: "
                    f"auto_copy copies what is only read; {put}"
                )
        copies = {key: self._copy(device, ref, message) for key, ref in found.items()}
        return msgspec.structs.replace(message, **dict(_replaced(message, copies)))

    def _copy(self, device: Device, ref: AccelRef, message: Operation[Any]) -> AccelRef:
        copied, way = device.copy_of(ref)
        self._events.publish(
            CopyInserted(
                device=device.name,
                source=ref.device.name,
                way=way,
                nbytes=copied.nbytes,
                message=message.title,
                cell=cell_origin.current().cell,
            )
        )
        return copied


def copy_to(ref: AccelRef, device: Device, timeout_s: float) -> AccelRef:
    """Copy a buffer to a device, and return the copy at once.

    Raises:
        InvalidArgument: it is no buffer.
        AccelError: as `Device.put`.
    """
    if not isinstance(ref, AccelRef):
        text = f"copy() takes an AccelRef, not a {type(ref).__name__}: device.put() takes arrays"
        raise InvalidArgument(text)
    return device.put(ref, timeout_s=timeout_s)


def _replaced(message: Operation[Any], copies: dict[int, AccelRef]) -> Iterator[tuple[str, Any]]:
    """Yield the fields that name what was copied, with the copies."""
    required, optional, many = operand_fields(type(message))
    for name in (*required, *optional):
        value = getattr(message, name)
        if id(value) in copies:
            yield name, copies[id(value)]
    for name in many:
        values: Any = getattr(message, name) or ()
        if any(id(value) in copies for value in values):
            made = [copies.get(id(value), value) for value in values]
            yield name, tuple(made)  # a NamedTuple is what is written, and not copied
