"""One line of a journal: a message as it was sent, or an outcome of one.

Entries are decoded from the bytes of the wire without any buffer: a message is named by its tag,
and an operand is the number it had. What became of a message stands later in the journal than the
message, so an entry's `outcome` is what has been read so far.
"""

from collections.abc import Iterable, Iterator, Mapping
from operator import index
from typing import Any, Literal, Protocol, TypeAlias

import msgspec

import accel_lab.libraries  # noqa: F401 - its messages are what entries hold
from accel_lab.compute.actors.fault import Inject
from accel_lab.compute.groups.place import Place
from accel_lab.compute.lineage import markers
from accel_lab.compute.lineage.markers import marker_of
from accel_lab.compute.message.builtin import Fetch, Free, Receive, Run, Upload
from accel_lab.compute.message.operation import (
    Operation,
    Spec,
    operand_fields,
    spec_text,
    travelling,
)
from accel_lab.compute.message.results import results_of
from accel_lab.display.buffer_number import MARK, short
from accel_lab.errors import Cancelled, Interrupted, JournalDamaged, JournalError
from accel_lab.journal.entries.aftermath import Aftermath
from accel_lab.libraries.jit.messages import Compile, LaunchKernel

SCHEMA = 1
_NEVER_AGAIN = {
    Inject.__name__: "it is a fault on purpose",
    Receive.__name__: Receive.opaque,
    Fetch.__name__: Fetch.opaque,
}
OF_SEVERAL = "it is a part of a message to several devices"
TAKEN_BACK = frozenset((Cancelled.__name__, Interrupted.__name__))
"""The kinds of failure that somebody asked for."""
"""The version of what a journal holds; a later one is refused by name."""

Kind: TypeAlias = Literal[
    "session",
    "message",
    "free",
    "context began",
    "context ended",
    "explained",
    "failed",
    "content",
    "result",
    "arrays",
    "checkpoint",
    "rebuilt",
]

Kernels: TypeAlias = Mapping[tuple[str, str], Mapping[int, str]]
"""The names of compiled kernels by session and device, and there by the number of the token."""

_ARRAY32 = b"\xdd"
_KINDS: dict[type, Kind] = {
    markers.ContextBegan: "context began",
    markers.ContextEnded: "context ended",
    markers.Explained: "explained",
    markers.Failed: "failed",
    markers.Content: "content",
    markers.Result: "result",
    markers.Arrays: "arrays",
    markers.Checkpoint: "checkpoint",
    markers.Rebuilt: "rebuilt",
}
_NUMBERS = {"ids", "buffers"}
"""What markers call the numbers of buffers."""
_SPECS, _PLACE = 5, 6
"""Where `Entry.raw` has the specs of several results, and a part's place."""
_groups = msgspec.msgpack.Decoder(list[list[Any]])
_parts = msgspec.msgpack.Decoder(list[msgspec.Raw])
_part = msgspec.msgpack.Decoder(list[Any])
_session = msgspec.msgpack.Decoder(dict[str, Any])


class Drained(Protocol):
    """What one drain of one device's record held, or, with an empty device, a session's facts."""

    @property
    def number(self) -> int:
        """Its place in the journal; numbers ascend."""

    @property
    def session(self) -> str:
        """The system that it is of."""

    @property
    def device(self) -> str:
        """The device's name; empty for the facts of a session."""

    @property
    def at(self) -> float:
        """When it was drained, in seconds since 1970."""

    @property
    def count(self) -> int:
        """How many parts `data` has."""

    @property
    def data(self) -> bytes:
        """The parts, each one msgpack value."""

    @property
    def generation(self) -> int:
        """The generation of the device's context where it begins."""

    @property
    def cell(self) -> int | None:
        """The notebook cell that sent what it begins with."""


class Entry(msgspec.Struct, frozen=True, eq=False):
    """One line of a journal.

    Attributes:
        number: its place among those that were read, or in the journal.
        group: the number of the group that it is in.
        session: the system that it is of.
        device: the device's name; empty for a session's facts.
        at: when it was recorded, in seconds since 1970; a message's is some milliseconds late.
        kind: what it is.
        seq: the request that it is, or is about; 0 for none.
        generation: of the context that it was sent to, or is about.
        cell: the notebook cell that sent it; None for a plain program.
        name: the message's name, as `Gemm`; a marker's kind.
        library: the message's library, as `blas`.
        fields: what it holds by name; a buffer is its number, a complex number its two parts.
        result: the number of the buffer that the message makes, of several the first; 0 for none,
            and negative where the sender did not know its shape.
        spec: the result's shape and dtype, None where the sender did not know or there is not one.
        timeout_s: how long the message might execute.
        raw: it as it was recorded, `[seq, result, timeout_s, [tag, ...], spec]`, with the specs of
            several results behind that and then a part's place, or `[tag, ...]` of a marker.
        aftermath: what has been read of the device's requests.
    """

    number: int
    group: int
    session: str
    device: str
    at: float
    kind: Kind
    seq: int
    generation: int
    cell: int | None
    name: str
    library: str
    fields: dict[str, Any]
    result: int
    spec: Spec | None
    timeout_s: float | None
    raw: list[Any]
    aftermath: Aftermath

    @property
    def message(self) -> list[Any]:
        """The message's tag and fields, as `message_of` takes them."""
        found: list[Any] = self.raw[3]
        return found

    @property
    def place(self) -> Place | None:
        """Of a part of a message to several devices that one's number, the rank and the size."""
        if self.kind != "message" or len(self.raw) <= _PLACE:
            return None
        return Place(*self.raw[_PLACE][:3])

    @property
    def operands(self) -> tuple[int, ...]:
        """The numbers of the buffers that the message names, `out` included."""
        if self.kind != "message":
            return ()
        required, optional, many = operand_fields(kind_of(self.raw[3][0]))
        values = [self.fields.get(name) for name in (*required, *optional)]
        for name in many:
            values += self.fields.get(name) or ()
        return tuple([id_ for id_ in values if id_ is not None])

    @property
    def title(self) -> str:
        """What people call it: its name, or the kernel's or function's, where that is known."""
        if self.kind == "message" and self.name == LaunchKernel.__name__:
            return self.aftermath.kernels.get(self.fields["kernel"], self.name)
        if self.kind == "message" and self.name == Run.__name__:
            return self.fields.get("called") or self.name
        return self.name

    @property
    def failed(self) -> bool:
        """Whether the message is known to have made nothing: failed, cancelled or lost."""
        return self.kind == "message" and (
            self.seq in self.aftermath.failed or self.seq in self.aftermath.lost
        )

    @property
    def failure(self) -> markers.Failed | None:
        """What the message failed with: the error's class, text and fields; None if it did not."""
        return self.aftermath.failed.get(self.seq) if self.kind == "message" else None

    @property
    def outcome(self) -> str:
        """What became of the message, as far as has been read; empty for what is no message."""
        if self.kind != "message":
            return ""
        generation = self.aftermath.lost.get(self.seq)
        if generation is not None:
            cause = self.aftermath.causes.get(generation)
            return "lost with its context" + (f": {cause}" if cause else "")
        failure = self.failure
        if failure is not None:
            if failure.kind in TAKEN_BACK:
                return failure.kind.lower()
            return f"failed: {failure.kind}: {failure.text}"
        return "ok so far"

    @property
    def content(self) -> str:
        """The key of the bytes that the message took from the arena; empty if none are kept."""
        found = self.aftermath.contents.get(self.seq)
        return found.key if found is not None else ""

    @property
    def makes(self) -> dict[int, Spec | None]:
        """The buffers that the message makes: their shapes and dtypes, None where not known."""
        if self.kind != "message" or not self.result:
            return {}
        first, results = abs(self.result), results_of(kind_of(self.raw[3][0]))
        if results is None:
            return {first: self.spec}
        specs = self.raw[_SPECS] if len(self.raw) > _SPECS else None
        specs = specs or [None] * len(results.asked_by)
        return {
            first + at: None if spec is None or None in spec[0] else Spec(tuple(spec[0]), spec[1])
            for at, (by, spec) in enumerate(zip(results.asked_by, specs, strict=True))
            if not by or self.fields[by]
        }

    @property
    def digest(self) -> markers.Result | None:
        """The digest of what the message made, None when it was not recorded, or several were."""
        return self.digests.get(0)

    @property
    def digests(self) -> dict[int, markers.Result]:
        """The digests of several results by buffer, or that of the only one by 0."""
        return self.aftermath.results.get(self.seq, {}) if self.kind == "message" else {}

    @property
    def why(self) -> str:
        """Why the message cannot be run again; empty when it can."""
        if self.kind != "message":
            return ""
        if never := _NEVER_AGAIN.get(self.name, "" if self.place is None else OF_SEVERAL):
            return never
        if self.name == Run.__name__ and not self.fields["pure"]:
            return "it is a function that was run without pure=True, so it may do something else"
        by_arena = self.name == Run.__name__ and self.fields.get("blob_at") is not None
        if self.name != Upload.__name__ and not by_arena:
            return ""
        found = self.aftermath.contents.get(self.seq)
        if found is None:
            return "its bytes were not recorded"
        return "" if found.key else found.why or "its bytes were not kept"

    @property
    def replayable(self) -> bool:
        """Whether the message can be run again, as it was marked when it was recorded."""
        return not self.why

    def __str__(self) -> str:
        return describe(self)

    def __repr__(self) -> str:
        where = f" on {self.device}" if self.device else ""
        outcome = f", {self.outcome}" if self.outcome else ""
        return f"<Entry {self.number}{where}: {describe(self)}{outcome}>"


def describe(entry: Entry) -> str:
    """Return an entry for people, on one line: `Gemm(a=#1, b=#2) -> #3 float32[8, 8]`.

    A launch has the name of its kernel: `saxpy(kernel=#1, grid=[1, 1, 1], …)`.
    """
    if entry.kind != "message":
        return f"{entry.kind}({_listed(_readable(entry.fields), ())})"
    required, optional, many = operand_fields(kind_of(entry.raw[3][0]))
    text = f"{entry.title}({_listed(entry.fields, (*required, *optional, *many))})"
    made = [
        f"#{short(id_)}" if spec is None else f"#{short(id_)} {spec_text(spec)}"
        for id_, spec in entry.makes.items()
    ]
    if (place := entry.place) is not None:
        text = f"{text}, rank {place.rank} of {place.size} of group {place.group}"
    return f"{text} -> {', '.join(made)}" if made else text


def entries_of(
    groups: Iterable[Drained], first: int = 0, kernels: Kernels | None = None
) -> Iterator[Entry]:
    """Decode groups, one entry at a time; what an entry knows of its outcome grows meanwhile.

    Parameters:
        first: the number of the first entry.
        kernels: the names of those that were compiled in groups before.

    Raises:
        JournalDamaged: a group does not decode.
        JournalError: something in it is of a later version, by name.
    """
    reader = _Reader(first, kernels or {})
    for group in groups:
        yield from reader.read(group)


def messages_of(group: Drained, first: int, wanted: range) -> Iterator[Entry]:
    """Decode some entries of a group all of whose parts are messages.

    Parameters:
        first: the number of the group's first entry.
        wanted: the numbers of those to decode.

    Raises:
        JournalDamaged: the group does not decode.
        JournalError: something in it is of a later version, by name.
    """
    yield from _Reader(first, {}).pick(group, wanted)


def starts_of(group: Drained) -> Iterator[bytes]:
    """Yield the first two bytes of each part: an array's length, and a marker's tag or what else.

    Raises:
        JournalDamaged: the group does not decode.
    """
    try:
        parts = _parts.decode(_array(group))
    except (msgspec.DecodeError, OverflowError) as error:
        raise _undecodable(group, error) from error
    return (bytes(memoryview(part)[:2]) for part in parts)


def kind_of(tag: int) -> type[Operation[Any]]:
    """Return the class of a message by its tag.

    Raises:
        JournalError: no message that is imported has it.
    """
    found = _kinds.get(tag)
    if found is None:
        _kinds.update({kind.__struct_config__.tag: kind for kind in travelling()})
        found = _kinds.get(tag)
    if found is None:
        raise JournalError(
            f"the journal holds a message with tag {tag}, which no library here has: update "
            "accel_lab, or first import the library of yours that sent it"
        )
    return found


_kinds: dict[Any, type[Operation[Any]]] = {}


class _Place:
    """Where a device's record has got to."""

    def __init__(self, generation: int, cell: int | None) -> None:
        self.aftermath = Aftermath()
        self.cell = cell
        self.generation = generation


class _Reader:
    """Reads groups in order."""

    def __init__(self, first: int, kernels: Kernels) -> None:
        self._places: dict[tuple[str, str], _Place] = {}
        self._kernels = kernels
        self._count = first

    def read(self, group: Drained) -> Iterator[Entry]:
        """Decode one group."""
        name = group.session, group.device
        place = self._places.get(name)
        if place is None:
            place = self._places[name] = _Place(group.generation, group.cell)
            place.aftermath.kernels.update(self._kernels.get(name, {}))
        try:
            if not group.device:
                yield self._session(group, place)
                return
            parts = _groups.decode(_array(group))
        except (msgspec.DecodeError, OverflowError) as error:
            raise _undecodable(group, error) from error
        for raw in parts:
            entry = self._checked(raw, group, place)
            if entry is not None:
                yield entry

    def pick(self, group: Drained, wanted: range) -> Iterator[Entry]:
        """Decode some of a group of messages."""
        first, place = self._count, _Place(group.generation, group.cell)
        self._count = wanted.start
        try:
            raws = _parts.decode(_array(group))[wanted.start - first : wanted.stop - first]
            parts = [_part.decode(raw) for raw in raws]
        except (msgspec.DecodeError, OverflowError) as error:
            raise _undecodable(group, error) from error
        for raw in parts:
            entry = self._checked(raw, group, place)
            assert entry is not None
            yield entry

    def _checked(self, raw: list[Any], group: Drained, place: _Place) -> Entry | None:
        try:
            return self._entry(raw, group, place)
        except (IndexError, TypeError, ValueError) as error:
            text = f"group {group.number} of {group.device} holds no entry: {error!r}"
            raise JournalDamaged(text) from error

    def _session(self, group: Drained, place: _Place) -> Entry:
        facts = _session.decode(group.data)
        schema = facts.get("schema", SCHEMA)
        if not isinstance(schema, int) or schema > SCHEMA:
            raise JournalError(
                f"the journal is of schema {schema}, and this version of accel_lab reads up to "
                f"{SCHEMA}: it was written by {facts.get('accel_lab', 'a later version')}"
            )
        return self._new(group, place, "session", raw=[], fields=facts)

    def _entry(self, raw: list[Any], group: Drained, place: _Place) -> Entry | None:
        """Return what a part is; None for one that only tells who sent the next."""
        if raw[0] < 0:
            return self._marker(raw, group, place)
        seq, result, timeout_s, (tag, *values), spec, *_ = raw
        kind = kind_of(tag)
        names = kind.__struct_fields__
        if len(values) > len(names):
            raise JournalError(
                f"the journal holds a {kind.__name__} with {len(values)} fields, and this version "
                f"of accel_lab knows {len(names)} of them: {', '.join(names)}"
            )
        if kind is Compile:
            place.aftermath.kernels[abs(result)] = str(values[1])
        shaped = Spec(tuple(map(index, spec[0])), spec[1]) if spec and spec[1] else None
        return self._new(
            group,
            place,
            "free" if kind is Free else "message",
            raw=raw,
            fields=dict(zip(names, values, strict=False)),
            seq=seq,
            name=kind.__name__,
            library=kind.library,
            result=result,
            spec=shaped,
            timeout_s=timeout_s,
        )

    def _marker(self, raw: list[Any], group: Drained, place: _Place) -> Entry | None:
        try:
            marker = marker_of(raw)
        except msgspec.ValidationError as error:
            raise JournalError(
                f"the journal holds a marker with tag {raw[0]}, which this version of accel_lab "
                f"does not read: {error}"
            ) from error
        if isinstance(marker, markers.SentBy):
            place.cell = marker.cell
            return None
        place.aftermath.take(marker)
        generation = getattr(marker, "generation", place.generation)
        if isinstance(marker, markers.ContextBegan):
            place.generation = marker.generation
        elif isinstance(marker, markers.ContextEnded):
            place.generation = marker.generation + 1
        return self._new(
            group,
            place,
            _KINDS[type(marker)],
            raw=raw,
            fields=msgspec.structs.asdict(marker),
            seq=getattr(marker, "seq", 0),
            at=getattr(marker, "at", group.at),
            generation=generation,
        )

    def _new(
        self,
        group: Drained,
        place: _Place,
        kind: Kind,
        *,
        raw: list[Any],
        fields: dict[str, Any],
        seq: int = 0,
        at: float | None = None,
        generation: int | None = None,
        name: str = "",
        library: str = "",
        result: int = 0,
        spec: Spec | None = None,
        timeout_s: float | None = None,
    ) -> Entry:
        number, self._count = self._count, self._count + 1
        return Entry(
            number,
            group.number,
            group.session,
            group.device,
            group.at if at is None else at,
            kind,
            seq,
            place.generation if generation is None else generation,
            place.cell,
            name or kind,
            library,
            fields,
            result,
            spec,
            timeout_s,
            raw,
            place.aftermath,
        )


def _array(group: Drained) -> bytes:
    """Return a group's parts as one msgpack array."""
    return _ARRAY32 + group.count.to_bytes(4, "big") + group.data


def _undecodable(group: Drained, error: Exception) -> JournalDamaged:
    what = f"group {group.number} of {group.device or 'a session'}"
    return JournalDamaged(f"{what} does not decode: {error}")


def _readable(fields: dict[str, Any]) -> dict[str, Any]:
    """Return a marker's fields, in which long numbers of buffers are as people read them."""
    return {
        name: [_short(id_) for id_ in value]
        if name in _NUMBERS and isinstance(value, list)
        else _short(value)
        if name == "id"
        else value
        for name, value in fields.items()
    }


def _short(number: Any) -> Any:
    return short(number) if isinstance(number, int) and number >= MARK else number


def _listed(fields: dict[str, Any], operands: tuple[str, ...]) -> str:
    return ", ".join(
        f"{name}={_shown(value, operand=name in operands)}"
        for name, value in fields.items()
        if not (value is None or value in ([], {}, "") or name == "called")
    )


def _shown(value: Any, *, operand: bool) -> str:
    if operand and isinstance(value, int):
        return f"#{short(value)}"
    if operand and isinstance(value, list):
        return ", ".join(f"#{short(id_)}" for id_ in value)
    if isinstance(value, bytes):
        return f"<{len(value)} bytes>"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."  # noqa: PLR2004 - a line of a table
