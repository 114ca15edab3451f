"""One recorded message as its lineage sees it: which buffers it reads, writes and makes.

Read from the bytes of the wire alone, for a record outlives the objects that were sent.
"""

from collections.abc import Collection, Iterable
from functools import cache
from typing import Any, NamedTuple

import msgspec

from accel_lab.compute.message.builtin import (
    Allocate,
    Free,
    Receive,
    Release,
    Run,
    Upload,
    Withhold,
)
from accel_lab.compute.message.bytes_cache import MOST, BytesCache
from accel_lab.compute.message.operation import Operation, operand_fields, travelling
from accel_lab.compute.message.parts import in_parts
from accel_lab.compute.message.results import results_of
from accel_lab.compute.message.unwritten import Refusal

FREE = Free.__struct_config__.tag
UPLOAD = Upload.__struct_config__.tag
RECEIVE = Receive.__struct_config__.tag
ALLOCATE = Allocate.__struct_config__.tag
RUN = Run.__struct_config__.tag
WITHHOLD = Withhold.__struct_config__.tag
RELEASE = Release.__struct_config__.tag
USUAL_BYTES = 512
OF_SEVERAL = "it is a part of a message to several devices; device.checkpoint(ref) keeps it"


class Effects(msgspec.Struct, frozen=True, gc=False):
    """What a message does to buffers; one object stands for all messages that say the same.

    Attributes:
        tag: the message's type.
        operands: the ids of the buffers that it names.
        writes: those of them that it changes.
        shares: those whose memory its result shares, or may share.
        opaque: why it cannot be run again, empty when it can.
        in_arena: whether it takes bytes from the arena, whose place is over by now.
        results: the positions of the results that it makes, from the first id on.
    """

    tag: int
    operands: tuple[int, ...]
    writes: tuple[int, ...]
    shares: tuple[int, ...]
    opaque: str
    in_arena: bool
    results: tuple[int, ...] = (0,)


class Step(msgspec.Struct, frozen=True, gc=False):
    """A message that was sent.

    Attributes:
        seq: its number on its device.
        made: the id of the buffer that it makes, of several the first; 0 for none.
        data: its bytes on the wire.
        effects: what it does to buffers.
    """

    seq: int
    made: int
    data: bytes
    effects: Effects

    @property
    def makes(self) -> tuple[int, ...]:
        """The ids of all buffers that it makes."""
        first = self.made
        if not first:
            return ()
        return tuple([first + at for at in self.effects.results])

    @property
    def tag(self) -> int:
        """Its type."""
        return self.effects.tag

    @property
    def operands(self) -> tuple[int, ...]:
        """The ids of the buffers that it names."""
        return self.effects.operands

    @property
    def is_part(self) -> bool:
        """Whether other devices had parts of it, so that it is not run again by itself."""
        return self.effects.opaque == OF_SEVERAL

    @property
    def needs(self) -> tuple[int, ...]:
        """The buffers that have to be there for it; what a part left comes from elsewhere."""
        return self.effects.writes if self.is_part else self.effects.operands

    @property
    def writes(self) -> tuple[int, ...]:
        """Those of them that it changes."""
        return self.effects.writes

    @property
    def shares(self) -> tuple[int, ...]:
        """Those whose memory its result shares, or may share."""
        return self.effects.shares

    @property
    def opaque(self) -> str:
        """Why it cannot be run again, empty when it can."""
        return self.effects.opaque

    @property
    def runs_user_code(self) -> bool:
        """Whether it runs code of the user's, which may break the context."""
        return _layouts()[self.tag].runs_user_code

    @property
    def spoils(self) -> bool:
        """Whether what it writes is not as it should be when it fails."""
        return _layouts()[self.tag].spoils

    @property
    def in_arena(self) -> bool:
        """Whether it takes bytes from the arena, whose place is over by now."""
        return self.effects.in_arena


class _Layout(NamedTuple):
    """Where a type of message keeps its operands, as indices into its array."""

    single: tuple[int, ...]
    many: tuple[int, ...]
    writes: int
    shares: int
    opaque: str
    runs_user_code: bool
    spoils: bool
    asked_by: tuple[int, ...]


class Entry(msgspec.Struct, array_like=True, gc=False):
    """A part of a record, of which only the beginning is decoded.

    A number below 1 is no request's: a marker has such a one, and what frees buffers.
    """

    seq: int
    result: Any = 0
    timeout_s: Any = None
    message: msgspec.Raw = msgspec.Raw(b"")
    spec: msgspec.Raw = msgspec.Raw(b"")


class Steps:
    """Makes the steps of a record, in which much is said again and again.

    What came before is found by its bytes, which takes a third of the time of decoding it. What
    differs in a number alone, as a factor or a seed, does the same to buffers.
    """

    def __init__(self) -> None:
        self._known = BytesCache[Effects]()
        self._alike: dict[Effects, Effects] = {}

    def step(self, entry: Entry, data: bytes) -> Step:
        """Return the step of an entry whose bytes are given."""
        said = bytes(entry.message)
        effects = self._known.get(said)
        if effects is None:
            found = effects_of(decode(said))
            if len(self._alike) >= MOST:
                self._alike.clear()
            effects = self._alike.setdefault(found, found)
            self._known.keep(said, effects)
        result = entry.result
        return Step(entry.seq, _made(result, effects) if result else 0, data, effects)


def size_of(parts: Collection[bytes]) -> int:
    """Return how many these are; one counts once more for each USUAL_BYTES that it holds."""
    return len(parts) + sum([len(part) // USUAL_BYTES for part in parts])


def changes_of(step: Step) -> tuple[int, ...]:
    """Return the buffers that are not as they should be if this fails, as `Operation.changes`."""
    if step.tag != RUN:
        return () if step.tag == UPLOAD or not step.spoils else step.writes
    return step.writes if _said_writes(decode(step.data)[3]) is not None else ()


def _said_writes(fields: list[Any]) -> list[int] | None:
    """Return the operands that a call was said to write, by their position; None if it was not."""
    _, _, _, _, _, *rest = fields
    return rest[0] if rest else None


def withholding(refusal: Refusal) -> list[Any]:
    """Return the `Withhold` of a refusal."""
    return [WITHHOLD, [refusal.id], refusal.root, refusal.failed]


def withholding_with(refusal: Refusal, sharing: Iterable[int]) -> list[list[Any]]:
    """Return each `Withhold` of a refusal, for these buffers of the same memory, too."""
    return [
        [WITHHOLD, [refusal.id, *some], refusal.root, refusal.failed]
        for some in in_parts(sharing) or [[]]
    ]


def releasing(refusals: Iterable[Refusal]) -> list[list[Any]]:
    """Return each `Release` of these refusals."""
    return [
        [RELEASE, [one.id for one in some], [one.failed for one in some]]
        for some in in_parts(refusals)
    ]


def step_of(raw: list[Any], data: bytes) -> Step:
    """Return the step of a decoded entry of the wire."""
    seq, result, _, fields, *_ = raw
    effects = effects_of(fields)
    return Step(seq, _made(result, effects), data, effects)


def _made(result: int, effects: Effects) -> int:
    """Return the id of what is made; what is there already, but not its shape, is not."""
    made = abs(result)
    return 0 if made in effects.writes else made


def effects_of(fields: list[Any]) -> Effects:
    """Return what a decoded message does."""
    tag = fields[0]
    layout = _layouts()[tag]
    operands: list[int] = [fields[i] for i in layout.single if fields[i]]
    for i in layout.many:
        operands += filter(None, fields[i] or ())
    writes = _ids(fields, layout.writes)
    shares = _ids(fields, layout.shares)
    opaque, in_arena = layout.opaque, tag in (UPLOAD, RECEIVE)
    if tag == RUN:
        _, refs, _, pure, place, *_ = fields
        changed = _said_writes(fields)
        in_arena = place is not None
        shares = tuple(refs)  # whatever it writes, it may answer with a view
        if not pure:
            writes = tuple(refs) if changed is None else tuple(refs[i] for i in changed)
            opaque = "a function that was run without pure=True made or changed it"
    results = tuple([at for at, i in enumerate(layout.asked_by) if not i or fields[i]])
    return Effects(tag, tuple(operands), writes, shares, opaque, in_arena, results)


def _ids(fields: list[Any], index: int) -> tuple[int, ...]:
    if not index or not fields[index]:
        return ()
    value = fields[index]
    return tuple(filter(None, value)) if isinstance(value, list) else (value,)


@cache
def _layouts() -> dict[int, _Layout]:
    return {kind.__struct_config__.tag: _layout(kind) for kind in travelling()}  # type: ignore[misc]


def _layout(kind: type[Operation[Any]]) -> _Layout:
    at = {name: index for index, name in enumerate(kind.__struct_fields__, 1)}
    required, optional, many = operand_fields(kind)
    results = results_of(kind)
    return _Layout(
        tuple(at[name] for name in (*required, *optional)),
        tuple(at[name] for name in many),
        at.get(kind.written, 0),
        at.get(kind.aliased, 0),
        kind.opaque or (OF_SEVERAL if kind.grouped else ""),
        kind.runs_user_code,
        kind.spoils,
        (0,) if results is None else tuple(at.get(name, 0) for name in results.asked_by),
    )


decode = msgspec.msgpack.decode
encode = msgspec.msgpack.encode
entries_of = msgspec.msgpack.Decoder(list[Entry]).decode
