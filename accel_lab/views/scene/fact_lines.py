"""Facts as lines of JSON: how a recording keeps them, and how a feed sends them.

The first line is a header, `{"accel_lab": "recording", "schema": 1, "name": "lab"}`. Each line
after it is one fact: an object with the name of its type and its fields by name. An exception in a
fact travels as the name of its class and its text, and comes back as a `Retold`.
"""

from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from accel_lab.actor.events import Event
from accel_lab.errors import InvalidArgument, RecordingDamaged, RecordingError
from accel_lab.views.scene.scene import NEWS_TYPES, SAMPLE_TYPES

SCHEMA = 1
"""The version of what a line holds; a later one is refused by name."""

TYPES: dict[str, type[Event]] = {kind.__name__: kind for kind in (*NEWS_TYPES, *SAMPLE_TYPES)}
"""What has a line, by name."""


class Retold(Exception):
    """An exception of another process or time: its class is named as that one's, its text too."""


class Stamp(NamedTuple):
    """What can be told of a line without reading all of it.

    `device` and `generation` are empty and 0 for a fact that is of none.
    """

    kind: type[Event]
    at: float
    device: str
    generation: int


class _Header(msgspec.Struct):
    accel_lab: str = ""
    schema: int = 0
    name: str = ""


class _Line(msgspec.Struct):
    type: str
    at: float
    device: str = ""
    generation: int = 0


def header(name: str) -> bytes:
    """Return the first line of what is told of a system of this name."""
    return _text.encode({"accel_lab": "recording", "schema": SCHEMA, "name": _sent(name)}) + b"\n"


def read_header(line: bytes) -> str:
    """Return the system's name out of a first line.

    Raises:
        RecordingError: it is of a later schema, or no first line.
    """
    try:
        found = _headers.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        found = _Header()
    if found.accel_lab != "recording":
        raise RecordingError("it is not a recording of accel_lab")
    if found.schema > SCHEMA:
        raise RecordingError(
            f"it is of schema {found.schema}, and this version of accel_lab reads up to {SCHEMA}"
        )
    return found.name


def encode(fact: Event) -> bytes:
    """Return a fact as one line, its end included; any thread.

    Raises:
        InvalidArgument: a fact of this type has no line; the text has those that have.
    """
    name = type(fact).__name__
    if TYPES.get(name) is not type(fact):
        raise InvalidArgument(f"a {name} cannot be recorded; there are {', '.join(TYPES)}")
    try:
        body = _text.encode(fact)
    except UnicodeEncodeError:  # half of a character, as in the name of a file
        body = _text.encode(sendable(msgspec.to_builtins(fact, enc_hook=_told)))
    return b'{"type":"%s",%s\n' % (name.encode(), body[1:])


def decode(line: bytes) -> Event:
    """Return the fact of a line; any thread.

    Raises:
        RecordingError: it is of a type that this version does not know, by name.
        RecordingDamaged: it was not written so.
    """
    kind = stamp(line).kind
    try:
        return _decoders[kind].decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise RecordingDamaged(f"{kind.__name__} does not read: {error}") from error


def stamp(line: bytes) -> Stamp:
    """Return what a line tells of, without reading the rest of it.

    Raises:
        RecordingError: it is of a type that this version does not know, by name.
        RecordingDamaged: it was not written so.
    """
    try:
        found = _lines.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise RecordingDamaged(f"it holds no fact: {error}") from error
    kind = TYPES.get(found.type)
    if kind is None:
        raise RecordingError(
            f"it holds a {found.type!r}, which this version of accel_lab does not know: it is of a "
            "later version"
        )
    return Stamp(kind, found.at, found.device, found.generation)


def sendable(value: Any) -> Any:
    """Return a plain value whose texts UTF-8 has: half of a character is named by its number."""
    if isinstance(value, str):
        return _sent(value)
    if isinstance(value, list | tuple):
        return [sendable(one) for one in value]
    if isinstance(value, dict):
        return {name: sendable(one) for name, one in value.items()}
    return value


def _told(value: Any) -> Any:
    if isinstance(value, BaseException):
        return [type(value).__name__, _sent(str(value))]
    raise NotImplementedError(f"a fact with a {type(value).__name__} cannot be told")


def _retold(expected: type, value: Any) -> Any:
    if expected is not BaseException:
        raise NotImplementedError
    name, text = value
    return _named(str(name))(str(text))


@lru_cache(maxsize=256)
def _named(name: str) -> type[Retold]:
    """Return the class that bears a name, so that it is drawn as the one it is told of."""
    return type(name if name.isidentifier() else "Retold", (Retold,), {"__module__": __name__})


def _sent(text: str) -> str:
    """Return a text that UTF-8 has."""
    return text.encode("utf-8", "backslashreplace").decode()


_text = msgspec.json.Encoder(enc_hook=_told)
_headers = msgspec.json.Decoder(_Header)
_lines = msgspec.json.Decoder(_Line)
_decoders = {kind: msgspec.json.Decoder(kind, dec_hook=_retold) for kind in TYPES.values()}
