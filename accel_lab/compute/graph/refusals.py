"""Which messages cannot be in a graph, and why; known before anything is sent."""

import typing
from functools import cache
from typing import Any

from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.handle import Handle
from accel_lab.compute.message.operation import (
    Operation,
    answered_handle,
    answers_buffer,
    operand_fields,
)
from accel_lab.compute.message.results import results_of
from accel_lab.errors import InvalidArgument

_CORE = {
    "run": "it is Python, which no graph can hold",
    "download": "it takes what it reads out of the device",
    "digest": "it takes what it reads out of the device",
    "fault": "it is a fault on purpose",
    "upload": "it copies from memory outside the device",
}


@cache
def is_sent_at_once(kind: type[Operation[Any]]) -> bool:
    """Whether a message has to do with no other buffer, so that it may come before the graph.

    It brings an array to the device, or makes a kernel or another thing of no operand.
    """
    if kind.library == "upload":
        return True
    if kind.fence:  # it is about what is sent before it
        return False
    return answered_handle(kind) is not None and not any(operand_fields(kind))


@cache
def why_refused(kind: type[Operation[Any]]) -> str:
    """Return why no message of this type can be in a graph; empty if it can."""
    if kind.uncaptured:
        return kind.uncaptured
    if kind.library in _CORE:
        return _CORE[kind.library]
    if kind.grouped is not None:
        return "it has a part on each of several devices"
    if hasattr(kind, "judge") and not kind.judged_with:
        return "the host judges what it has computed"
    return _why_not_its_answer(kind)


def _why_not_its_answer(kind: type[Operation[Any]]) -> str:
    results = results_of(kind)
    if answered_handle(kind) is not None or (results is not None and any(results.of)):
        return "it makes what is no array"
    if results is None and not answers_buffer(kind) and not _answers_nothing(kind):
        return "it answers with a value for the host"
    return ""


def is_judged(message: Operation[Any]) -> bool:
    """Whether the host judges a message for an operand that others of its type do not have."""
    operand = message.judged_with
    return operand != "" and getattr(message, operand) is not None


def require_recordable(message: Operation[Any], *, is_whole: bool = True) -> None:
    """Refuse a message that cannot be in a graph.

    Parameters:
        is_whole: whether it is known how much it makes.

    Raises:
        InvalidArgument: with its name, and why.
    """
    why = why_refused(type(message))
    if not why and is_judged(message):
        why = f"the host judges its {message.judged_with}"
    if not why and not is_whole:
        why = "only the device knows how much it makes"
    changed = next((one for one in message.changes() if isinstance(one, Handle)), None)
    if not why and changed is not None and not isinstance(changed, AccelRef):
        why = f"it changes {changed.label}, which is no array"
    if why:
        name = type(message).__name__
        raise InvalidArgument(f"{name} cannot be in a graph: {why}; do it outside the block")


def _answers_nothing(kind: Any) -> bool:
    bases = getattr(kind, "__orig_bases__", ())
    return any(type(None) in typing.get_args(base) for base in bases)
