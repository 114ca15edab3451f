"""What is the same for all messages of a type, worked out with the first of them."""

from collections.abc import Callable
from typing import Any, NamedTuple, get_origin, get_type_hints

from accel_lab.compute.buffer import AccelRef
from accel_lab.compute.operation import DEFAULT_TIMEOUT_S, Operation, answers_buffer, operands_of
from accel_lab.compute.repeats import Repeats
from accel_lab.compute.support import name_of


class Plan(NamedTuple):
    """What is the same for all messages of a type.

    Attributes:
        operands: lists the buffers that a message names.
        library: the library that it is for.
        listed: whether the backend's table of dtypes has it, as every library's own message.
        supported: the dtypes that the backend is known to have it for.
        has_out: whether it may name a buffer to write to.
        answers_buffer: whether the answer is a buffer.
        bare: whether there is nothing to check: no buffer, no dtype, no rule.
        timeout_s: how long it may execute when nobody says otherwise.
        repeats: those that came more than once.
        is_flat: whether such a message is made of its fields; else who makes it says of what.
    """

    operands: Callable[[Any], tuple[AccelRef, ...]]
    library: str
    listed: bool
    supported: set[str]
    has_out: bool
    answers_buffer: bool
    bare: bool
    timeout_s: float | None
    repeats: Repeats
    is_flat: bool


def plan_of(kind: type[Operation[Any]], timeout_s: float | None) -> Plan:
    """Work out what a device has to know of a type of message.

    Parameters:
        timeout_s: the device's limit, for messages that have none of their own.
    """
    own = kind.timeout_s
    return Plan(
        operands_of(kind),
        kind.library,
        bool(name_of(kind)),
        set(),
        has_out="out" in kind.__struct_fields__,
        answers_buffer=answers_buffer(kind),
        bare=not kind.__struct_fields__ and kind.infer is Operation.infer,
        timeout_s=timeout_s if own == DEFAULT_TIMEOUT_S else own,
        repeats=Repeats(),
        is_flat=_is_flat(kind),
    )


def _is_flat(kind: type[Operation[Any]]) -> bool:
    """Whether its fields are buffers and plain values, and not made anew for each message."""
    hints = get_type_hints(kind)
    fields = kind.__struct_fields__
    return bool(fields) and all(get_origin(hints[n]) not in (tuple, list, dict) for n in fields)
