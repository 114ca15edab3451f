"""The refusal of an operand that another device has, with the code that mends it."""

from typing import Any

from accel_lab.compute.message.buffer import AccelRef, Ref
from accel_lab.compute.message.operation import Operation, no_operand
from accel_lab.compute.residency.typed import called, name_of, typed
from accel_lab.errors import InvalidArgument


def foreign_operand(ref: Any, message: Operation[Any], device: Any, name: str) -> InvalidArgument:
    """Say that an operand is not on the device that a message is for, and how to bring it there.

    Parameters:
        device: the one that the message is for; None where nobody holds it any more.
        name: that device's.
    """
    if not isinstance(ref, Ref):
        return no_operand(message)
    where = f"{ref!r} is not on {name}"
    if ref.device.state == "stopped":
        return InvalidArgument(f"{where}, but of a system that is closed: put or compute it again")
    if ref.device.name == name:
        theirs, ours = called(ref.device, name), called(device, name)
        where = f"{ref!r} is of another system, on {theirs}, and not on this {ours}"
    if not isinstance(ref, AccelRef):
        return InvalidArgument(f"{where}, and what is no array is not copied: make one there")
    return InvalidArgument(f"{where}: {advice(ref, device, ref.device)}")


def put_code(ref: AccelRef, device: Any) -> str:
    """Return code that puts a buffer on a device under its own name; empty where it has none."""
    own = name_of(ref)
    return typed(device, f"{own} = <gpu>.put({own})") if own else ""


def advice(ref: AccelRef, device: Any, owner: Any) -> str:
    """Return code that brings a buffer to a device, with the user's own names."""
    is_beside = device is not None and device.is_beside(owner)
    always = typed(device, "<lab>.auto_copy = True")
    if code := put_code(ref, device):
        put = f"{code} copies it there"
        return f"{put}; {always} has that done by itself" if is_beside else put
    if is_beside:
        return f"{always} has it copied there; so does put(), for one operand"
    return "bring it there with get() and put()"
