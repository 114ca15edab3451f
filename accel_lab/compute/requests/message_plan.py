"""What is the same for all messages of a type, worked out with the first of them."""

from collections.abc import Callable
from typing import Any, NamedTuple, get_origin, get_type_hints

from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.operation import (
    DEFAULT_TIMEOUT_S,
    Operation,
    answered_handle,
    answers_buffer,
    handle_fields,
    operands_of,
)
from accel_lab.compute.message.results import Results, results_of
from accel_lab.compute.message.support import name_of
from accel_lab.compute.requests.message_cache import MessageCache
from accel_lab.errors import InvalidArgument

Options = tuple[tuple[str, tuple[type, ...]], ...]
_PLAIN: dict[Any, tuple[type, ...]] = {bool: (bool,), int: (int,), float: (float, int), str: (str,)}


class MessagePlan(NamedTuple):
    """What is the same for all messages of a type.

    Attributes:
        operands: lists the buffers that a message names.
        library: the library that it is for.
        listed: whether the backend's table of dtypes has it, as every library's own message.
        supported: the dtypes that the backend is known to have it for.
        has_out: whether it may name a buffer to write to.
        answers_buffer: whether the answer is a buffer.
        handle: what the answer is a handle of, if it is one.
        handles: whether it names handles.
        results: what the answer is if that is several buffers.
        bare: whether there is nothing to check: no buffer, no dtype, no rule.
        timeout_s: how long it may execute when nobody says otherwise.
        repeats: those that came more than once.
        is_flat: whether such a message is made of its fields; else who makes it says of what.
        options: the fields that are a plain value, with the types that it may have.
    """

    operands: Callable[[Any], tuple[AccelRef, ...]]
    library: str
    listed: bool
    supported: set[str]
    has_out: bool
    answers_buffer: bool
    handle: type[Any] | None
    handles: bool
    results: Results | None
    bare: bool
    timeout_s: float | None
    repeats: MessageCache
    is_flat: bool
    options: Options


class MessagePlans(dict[type, MessagePlan]):
    """The plans of one device, by type, each made when it is first asked for.

    Parameters:
        timeout_s: the device's limit, for messages that have none of their own.
    """

    def __init__(self, timeout_s: float | None = DEFAULT_TIMEOUT_S) -> None:
        super().__init__()
        self.timeout_s = timeout_s
        self._of_parts: dict[type, MessagePlan] = {}

    def __missing__(self, kind: type[Operation[Any]]) -> MessagePlan:
        if kind.grouped is not None:  # never in here, so that it is asked each time
            name = kind.__name__
            raise InvalidArgument(
                f"{name} has a part on each of several devices, and is sent to all of them at "
                f"once: lab.group({{gpu0: {name}(…), gpu1: {name}(…)}})"
            )
        plan = self[kind] = self._of(kind)
        return plan

    def of_part(self, kind: type[Operation[Any]]) -> MessagePlan:
        """Return the plan of messages of which several devices have a part.

        Raises:
            InvalidArgument: they are for one device.
        """
        if kind.grouped is None:
            name = kind.__name__
            raise InvalidArgument(f"{name} is a message to one device: gpu.ask({name}(…))")
        plan = self._of_parts.get(kind)
        if plan is None:
            plan = self._of_parts[kind] = self._of(kind)
        return plan

    def _of(self, kind: type[Operation[Any]]) -> MessagePlan:
        own = kind.timeout_s
        return MessagePlan(
            operands_of(kind),
            kind.library,
            bool(name_of(kind)),
            set(),
            has_out="out" in kind.__struct_fields__,
            answers_buffer=answers_buffer(kind),
            handle=answered_handle(kind),
            handles=bool(handle_fields(kind)),
            results=results_of(kind),
            bare=not kind.__struct_fields__ and kind.infer is Operation.infer,
            timeout_s=self.timeout_s if own == DEFAULT_TIMEOUT_S else own,
            repeats=MessageCache(),
            is_flat=_is_flat(kind),
            options=_options(kind),
        )


def _is_flat(kind: type[Operation[Any]]) -> bool:
    """Whether its fields are buffers and plain values, and not made anew for each message."""
    if results_of(kind) is not None:
        return False
    hints = get_type_hints(kind)
    fields = kind.__struct_fields__
    return bool(fields) and all(get_origin(hints[n]) not in (tuple, list, dict) for n in fields)


def _options(kind: type[Operation[Any]]) -> Options:
    hints = get_type_hints(kind)
    found = [(name, hints[name]) for name in kind.__struct_fields__]
    return tuple((name, _PLAIN[hint]) for name, hint in found if hint in _PLAIN)


def require_options(message: Operation[Any], options: Options) -> None:
    """Refuse a message that the context could not read.

    Raises:
        InvalidArgument: an option is of another type than its field.
    """
    for name, types in options:
        value = getattr(message, name)
        if type(value) in types:
            continue
        if type(value) is bool or not isinstance(value, types):
            kind, wanted = type(message).__name__, types[0].__name__
            text = f"{kind}: {name} is of type {wanted}, and {value!r} is of {type(value).__name__}"
            raise InvalidArgument(text)
