"""What a device's record holds beside the messages themselves.

A record is a sequence of msgpack arrays. One that begins with a number ≥ 0 is an entry of the
wire, `[seq, result, timeout_s, message, spec]`, with seq 0 for the freeing of buffers. One that
begins with a number < 0 is a marker, one of those below. Fields are only ever appended.
"""

from typing import Any, Self, TypeAlias

import msgspec

from accel_lab.compute.arrays.named_dtype import plain_name
from accel_lab.compute.wire.error_fields import plain_fields
from accel_lab.errors import AccelError, ContextLost, ContextReplaced


class SentBy(msgspec.Struct, frozen=True, array_like=True, tag=-1):
    """The entries that follow were sent by this cell; None stands for a plain program."""

    cell: int | None
    at: float


class ContextBegan(msgspec.Struct, frozen=True, array_like=True, tag=-2):
    """The context of `generation` is up; messages may have waited for it."""

    generation: int
    at: float
    pid: int


class ContextEnded(msgspec.Struct, frozen=True, array_like=True, tag=-3):
    """A context was lost; `in_flight` are the requests that had no answer.

    What follows was sent to the next generation. An `Explained` tells why, when that is known.
    One that is `closed` was not lost: its system was closed.
    """

    generation: int
    at: float
    in_flight: list[int]
    closed: bool = False


class Failed(msgspec.Struct, frozen=True, array_like=True, tag=-4):
    """A request failed, so it made and changed nothing.

    Attributes:
        kind: the name of the error's class.
        fields: what the error declares, as `plain_fields` has it.
    """

    seq: int
    kind: str
    text: str
    fields: dict[str, Any] = {}

    @classmethod
    def of(cls, seq: int, error: AccelError) -> Self:
        """Return what is recorded of a request that failed with an error."""
        return cls(seq, type(error).__name__, str(error), plain_fields(error))


class Content(msgspec.Struct, frozen=True, array_like=True, tag=-5):
    """The bytes that a request took from the arena are kept under `key`.

    An empty key says that they are not kept, and `why`.
    """

    seq: int
    key: str
    why: str = ""


class Result(msgspec.Struct, frozen=True, array_like=True, tag=-6):
    """The digest of what a request made, and the key of its bytes, empty when not recorded.

    `id` is the buffer where a message has several results, else 0.
    """

    seq: int
    digest: str
    key: str
    shape: tuple[int, ...]
    dtype: str
    id: int = 0


class Arrays(msgspec.Struct, frozen=True, array_like=True, tag=-7):
    """The answer of a function held these buffers, which no message announces.

    `shares` has, for each, the buffer whose memory it is a part of, 0 where it has its own.
    """

    seq: int
    ids: list[int]
    shares: list[int] = []


class Checkpoint(msgspec.Struct, frozen=True, array_like=True, tag=-8):
    """The contents of a buffer after request `seq` are kept under `key`, in C order.

    In memory its `axes` follow each other in this order, from the longest strides to the shortest;
    without any it is in C order. `kind` makes such memory, as `Storage` has it.
    """

    id: int
    seq: int
    key: str
    shape: tuple[int, ...]
    dtype: str
    axes: tuple[int, ...] = ()
    kind: str = ""


class Rebuilt(msgspec.Struct, frozen=True, array_like=True, tag=-9):
    """The buffers of a lost generation were made again by running messages again.

    `requests` are the numbers of those that had been in flight and were run again, too.
    """

    generation: int
    at: float
    buffers: list[int]
    messages: int
    seconds: float
    requests: list[int] = []


class Explained(msgspec.Struct, frozen=True, array_like=True, tag=-10):
    """Why the context of `generation` was lost: the driver's code and name, or a signal's.

    Attributes:
        fields: what the error declares beside these, as `plain_fields` has it.
        asked: whether somebody had it replaced.
    """

    generation: int
    cause: str
    code: int
    name: str
    fields: dict[str, Any] = {}
    asked: bool = False

    @classmethod
    def of(cls, error: ContextLost) -> Self:
        """Return what is recorded of the error that a context was lost with."""
        fields = plain_fields(error)
        beside = {name: fields[name] for name in fields if name not in cls.__struct_fields__}
        asked = isinstance(error, ContextReplaced)
        return cls(error.generation, str(error), error.code, error.name, beside, asked)


Marker: TypeAlias = (
    SentBy
    | ContextBegan
    | ContextEnded
    | Failed
    | Content
    | Result
    | Arrays
    | Checkpoint
    | Rebuilt
    | Explained
)

encode_marker = msgspec.msgpack.Encoder(enc_hook=plain_name).encode


def marker_of(raw: list[object]) -> Marker:
    """Return the marker of a decoded array that begins with a negative number.

    Raises:
        msgspec.ValidationError: it is none that this version knows.
    """
    marker: Marker = msgspec.convert(raw, Marker)
    return marker
