"""What stands beside the commits: where a content is, and where a session has got to."""

from typing import TypeVar

import msgspec

from accel_lab.errors import JournalDamaged

T = TypeVar("T")


class Content(msgspec.Struct, array_like=True, frozen=True):
    """Where the pieces of a content stand."""

    nbytes: int
    token: str


class Session(msgspec.Struct, array_like=True, frozen=True):
    """Where a session had got to when it began to append for the last time.

    Attributes:
        position: of its last group by then.
        seen: the key of the last commit by then.
        next: the number that was to be given next.
        tokens: name what it was going to append, at last that, and before it all that it did not
            know to be committed.
        at: when that was, in seconds since 1970.
    """

    position: int
    seen: str
    next: int
    tokens: tuple[str, ...]
    at: float


def content_of(data: bytes, name: str) -> Content:
    """Return where a content is; `name` is the store's, for the error.

    Raises:
        JournalDamaged: it was not written so.
    """
    return decoded(_content, data, name)


def session_of(data: bytes, name: str) -> Session:
    """Return where a session had got to; `name` is the store's, for the error.

    Raises:
        JournalDamaged: it was not written so.
    """
    return decoded(_session, data, name)


def decoded(decoder: msgspec.msgpack.Decoder[T], data: bytes, name: str) -> T:
    """Return what stands in a cell.

    Raises:
        JournalDamaged: it was not written so.
    """
    try:
        return decoder.decode(data)
    except msgspec.MsgspecError as error:
        raise JournalDamaged(f"a cell of {name} is not what was written: {error}") from error


encode = msgspec.msgpack.Encoder().encode
_content = msgspec.msgpack.Decoder(Content)
_session = msgspec.msgpack.Decoder(Session)
