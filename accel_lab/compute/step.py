"""One recorded message as its lineage sees it: which buffers it reads, writes and makes.

Read from the bytes of the wire alone, for a record outlives the objects that were sent.
"""

from functools import cache
from typing import Any, NamedTuple

import msgspec

from accel_lab.compute.operation import Operation, operand_fields, travelling
from accel_lab.compute.transfer import Allocate, Free, Upload
from accel_lab.compute.user_code import Run

FREE = Free.__struct_config__.tag
UPLOAD = Upload.__struct_config__.tag
ALLOCATE = Allocate.__struct_config__.tag
RUN = Run.__struct_config__.tag


class Step(NamedTuple):
    """A message that was sent.

    Attributes:
        seq: its number on its device.
        tag: its type.
        made: the id of the buffer that it makes, 0 for none.
        operands: the ids of the buffers that it names.
        writes: those of them that it changes.
        shares: those whose memory its result shares, or may share.
        opaque: why it cannot be run again, empty when it can.
        data: its bytes on the wire.
        in_arena: whether it takes bytes from the arena, whose place is over by now.
    """

    seq: int
    tag: int
    made: int
    operands: tuple[int, ...]
    writes: tuple[int, ...]
    shares: tuple[int, ...]
    opaque: str
    data: bytes
    in_arena: bool


class _Layout(NamedTuple):
    """Where a type of message keeps its operands, as indices into its array."""

    single: tuple[int, ...]
    many: tuple[int, ...]
    writes: int
    shares: int
    opaque: str


def step_of(raw: list[Any], data: bytes) -> Step:
    """Return the step of a decoded entry of the wire."""
    seq, result, _, fields, _ = raw
    tag = fields[0]
    layout = _layouts()[tag]
    operands: list[int] = [fields[i] for i in layout.single if fields[i]]
    for i in layout.many:
        operands += fields[i]
    writes = _ids(fields, layout.writes)
    shares = _ids(fields, layout.shares)
    opaque, in_arena = layout.opaque, tag == UPLOAD
    if tag == RUN:
        _, refs, _, pure, place, *rest = fields
        changed = rest[0] if rest else None
        in_arena = place is not None
        if pure:
            shares = tuple(refs)
        else:
            writes = tuple(refs) if changed is None else tuple(refs[i] for i in changed)
            opaque = "a function that was run without pure=True made or changed it"
    made = abs(result)
    if made in writes:  # its shape was unknown when it was overwritten
        made = 0
    return Step(seq, tag, made, tuple(operands), writes, shares, opaque, data, in_arena)


def _ids(fields: list[Any], index: int) -> tuple[int, ...]:
    if not index or not fields[index]:
        return ()
    value = fields[index]
    return tuple(value) if isinstance(value, list) else (value,)


@cache
def _layouts() -> dict[int, _Layout]:
    return {kind.__struct_config__.tag: _layout(kind) for kind in travelling()}  # type: ignore[misc]


def _layout(kind: type[Operation[Any]]) -> _Layout:
    at = {name: index for index, name in enumerate(kind.__struct_fields__, 1)}
    required, optional, many = operand_fields(kind)
    return _Layout(
        tuple(at[name] for name in (*required, *optional)),
        tuple(at[name] for name in many),
        at.get(kind.written, 0),
        at.get(kind.aliased, 0),
        kind.opaque,
    )


decode = msgspec.msgpack.decode
encode = msgspec.msgpack.encode
