"""What stands beside the commits: where a content is, and where a session has got to."""

import msgspec


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


encode = msgspec.msgpack.Encoder().encode
content_of = msgspec.msgpack.Decoder(Content).decode
session_of = msgspec.msgpack.Decoder(Session).decode
