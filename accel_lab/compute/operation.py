"""The message to a device: operands, options, and what its result will look like.

Every operation works out its result's shape and dtype from its operands' alone (`infer`), in
the notebook's process before it is sent and again in the context before memory is taken.
"""

import types
import typing
from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import Any, ClassVar, NamedTuple, TypeVar

from accel_lab.actor.message import Message
from accel_lab.compute.buffer import AccelRef
from accel_lab.errors import InvalidArgument

R = TypeVar("R")
DEFAULT_TIMEOUT_S = 600.0


class Spec(NamedTuple):
    """The shape and dtype of a result."""

    shape: tuple[int, ...]
    dtype: str


class Operation(Message[R], frozen=True, array_like=True, eq=False):
    """A command to one device; a subclass with a `tag` can travel to a context.

    A field called `out` names a buffer that the operation overwrites and answers with.
    """

    library: ClassVar[str] = ""
    timeout_s: ClassVar[float | None] = DEFAULT_TIMEOUT_S

    def infer(self) -> Spec | None:
        """Return the result's shape and dtype, or None when the answer is no single buffer.

        Raises:
            InvalidArgument: the operands or options do not fit.
        """
        return None

    def operands(self) -> tuple[AccelRef, ...]:
        """Return every buffer this message names, `out` included, in field order."""
        return operands_of(type(self))(self)

    @property
    def dtype_key(self) -> str:
        """The dtype by which a backend decides whether it has this operation."""
        operands = self.operands()
        return operands[0].dtype if operands else getattr(self, "dtype", "")


def travelling(root: type[Operation[Any]] = Operation) -> Iterator[type[Operation[Any]]]:
    """Yield every operation imported so far that has a tag, so that it can reach a context."""
    for kind in root.__subclasses__():
        if isinstance(kind.__struct_config__.tag, int):
            yield kind
        yield from travelling(kind)


_buffers: dict[type, bool] = {}


def answers_buffer(kind: type[Operation[Any]]) -> bool:
    """Whether messages of this type answer with a buffer: `Operation[AccelRef]`."""
    known = _buffers.get(kind)
    if known is None:
        bases = kind.__orig_bases__  # type: ignore[attr-defined]
        known = _buffers[kind] = any(AccelRef in typing.get_args(base) for base in bases)
    return known


_extractors: dict[type, Callable[[Any], tuple[AccelRef, ...]]] = {}


def operands_of(kind: type[Operation[Any]]) -> Callable[[Any], tuple[AccelRef, ...]]:
    """Return the function that lists the operands of a message of this type."""
    extract = _extractors.get(kind)
    if extract is None:
        extract = _extractors[kind] = _build(kind)
    return extract


def _build(  # noqa: C901 - one case for each way to name an operand
    kind: type[Operation[Any]],
) -> Callable[[Any], tuple[AccelRef, ...]]:
    required, optional, many = [], [], []
    for name, hint in typing.get_type_hints(kind).items():
        arms = typing.get_args(hint)
        union = typing.get_origin(hint) in (typing.Union, types.UnionType)
        if hint is AccelRef:
            required.append(name)
        elif union and AccelRef in arms:
            optional.append(name)
        elif typing.get_origin(hint) is tuple and arms and arms[0] is AccelRef:
            many.append(name)

    names = [*required, *optional]
    if not names and not many:
        return lambda _: ()
    read = attrgetter(*names) if names else None

    def extract(message: Any) -> tuple[AccelRef, ...]:
        values: tuple[Any, ...] = ()
        if read is not None:
            values = read(message) if len(names) > 1 else (read(message),)
            if optional:
                values = tuple([v for v in values if v is not None])
        for name in many:
            values += getattr(message, name)
        for value in values:
            if not isinstance(value, AccelRef):
                raise _no_operand(message, [*names, *many])
        if len(values) < len(required):
            raise _no_operand(message, required)
        return values

    return extract


def _no_operand(message: Any, names: list[str]) -> InvalidArgument:
    """Say which field holds something that is no buffer."""
    for name in names:
        value = getattr(message, name)
        for one in value if isinstance(value, tuple) else (value,):
            if not isinstance(one, AccelRef):
                return InvalidArgument(
                    f"{type(message).__name__}.{name} must be an AccelRef, not "
                    f"{type(one).__name__}; put() the array on the device first"
                )
    raise AssertionError(names)
