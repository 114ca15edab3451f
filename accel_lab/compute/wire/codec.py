"""The bytes between a notebook and a context process.

Both directions are a stream of frames, each one msgpack array. To the context it holds entries,
each encoded once when it is sent; from the context it holds reports. A buffer travels as
its id; nothing larger than a frame travels here, that is what the arena is for.
"""

from typing import Any, TypeAlias

import msgspec

from accel_lab.compute.arrays.named_dtype import NamedDType
from accel_lab.compute.groups.place import Place
from accel_lab.compute.message.buffer import Ref
from accel_lab.compute.message.operation import NO_RESULT, Spec, Specs
from accel_lab.compute.message.unwritten import Refusal
from accel_lab.display.sizes import compared
from accel_lab.errors import AccelError, InvalidArgument

FRAME_LIMIT = 1 << 20
_ARRAY32 = b"\xdd"
_ARRAY_OF_ONE = b"\x91"


class Done(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """These requests have completed, with the results they had announced."""

    seqs: list[int]


class Shaped(msgspec.Struct, frozen=True, array_like=True, tag=2):
    """A result whose shape only the context could tell has arrived.

    `shares` is the buffer whose memory it is a part of, as a rule an operand: 0 where it has its
    own, -1 where the context does not know. `several` has the shape and dtype of each of several.
    """

    seq: int
    shape: tuple[int, ...]
    dtype: str
    shares: int = -1
    several: list[tuple[tuple[int, ...], str] | None] = []


class Answer(msgspec.Struct, frozen=True, array_like=True, tag=3):
    """A pickled value, in parts of at most half a frame; `arrays` are some of the buffers in it."""

    seq: int
    part: bytes
    last: bool
    arrays: list[tuple[int, tuple[int, ...], str, int]]


class Field(msgspec.Struct, frozen=True, array_like=True):
    """One field of an error.

    Attributes:
        data: its value, pickled.
        spare: what it is where that cannot be loaded; empty if it always can.
        note: what became of it on its way; empty if it is what it was.
    """

    data: bytes
    spare: str = ""
    note: str = ""


class Failure(msgspec.Struct, frozen=True, array_like=True, tag=4):
    """A request failed.

    Attributes:
        kind: the name of the error's class.
        fields: the fields that it declares.
        root: the buffer that failed first.
        cause: what the error came of, pickled.
        withheld: the buffers that it should have written.
        base: the name of its class in `accel_lab.errors`, or of the nearest base there.
        kind_data: its class, pickled; empty where that is `base`.
        notes: what did not come along.
    """

    seq: int
    what: str
    kind: str
    text: str
    fields: dict[str, Field]
    root: int
    cause: bytes
    withheld: tuple[int, ...] = ()
    base: str = ""
    kind_data: bytes = b""
    notes: list[str] = []


class Poisoned(msgspec.Struct, frozen=True, array_like=True, tag=5):
    """The context is beyond repair and says why and what it ran last, before it is replaced."""

    code: int
    name: str
    text: str
    recent: list[str]


class Output(msgspec.Struct, frozen=True, array_like=True, tag=6):
    """Text that a request printed."""

    seq: int
    stream: str
    text: str


class LibraryRestarted(msgspec.Struct, frozen=True, array_like=True, tag=7):
    """A library actor was replaced inside the context."""

    library: str
    cause: str
    restarts: int


class Born(msgspec.Struct, frozen=True, array_like=True, tag=8):
    """The context is up: its process, what it drives, and its library actors.

    `streams` has each library's stream, the priority that was asked for it and what it has.
    """

    pid: int
    model: str
    total_bytes: int
    libraries: list[str]
    capability: float = 0.0
    streams: dict[str, tuple[str, int, int]] = {}


class Crowded(msgspec.Struct, frozen=True, array_like=True, tag=9):
    """Memory is short: free what nobody can reach, and say so."""


class Lifted(msgspec.Struct, frozen=True, array_like=True, tag=11):
    """What was refused of memory that is gone."""

    refusals: list[Refusal]


class Began(msgspec.Struct, frozen=True, array_like=True, tag=12):
    """A part of a message to several devices is being executed."""

    seq: int


class Ready(msgspec.Struct, frozen=True, array_like=True, tag=13):
    """Such a part is done, and waits for word of the others; its answer follows that.

    The rest is as in `Shaped`; `dtype` is empty where the notebook knew all of it.
    """

    seq: int
    shape: tuple[int, ...] = ()
    dtype: str = ""
    shares: int = -1
    several: list[tuple[tuple[int, ...], str] | None] = []


class Display(msgspec.Struct, frozen=True, array_like=True, tag=10):
    """A part of what a request displays, from number 0 on; `compute.displays` joins them."""

    seq: int
    number: int
    count: int
    part: bytes


Report: TypeAlias = (
    Done
    | Shaped
    | Answer
    | Failure
    | Poisoned
    | Output
    | LibraryRestarted
    | Born
    | Crowded
    | Display
    | Lifted
    | Began
    | Ready
)


def _to_wire(value: Any) -> Any:
    if type(value) is NamedDType:
        return str(value)
    if isinstance(value, Ref):
        return value.id
    if isinstance(value, complex):
        return [value.real, value.imag]
    text = f"a message cannot carry a {type(value).__name__}"
    raise InvalidArgument(text)


_encoder = msgspec.msgpack.Encoder(enc_hook=_to_wire)
_reports = msgspec.msgpack.Decoder(list[Report])


def encode_entry(
    seq: int,
    result: int,
    timeout_s: float | None,
    message: Any,
    spec: Spec | Specs | msgspec.Raw | None = None,
    place: Place | None = None,
) -> bytes:
    """Encode one request as an array of these five; the results of one with several are a sixth.

    The seventh is its place in a message to several devices.

    A result of 0 is none; a negative one asks for the shape that the notebook could not infer. Of
    several it is the first. `spec` is the result that the notebook has inferred, or `NO_RESULT`, as
    where there are several; None where the context has to infer and check.

    Parameters:
        message: a message, or the bytes of one as `msgspec.Raw`; `spec` likewise.

    Raises:
        InvalidArgument: a field cannot travel, or the message is larger than a frame.
    """
    try:
        if place is not None:
            several = spec if type(spec) is tuple else None
            alone = spec if several is None else NO_RESULT
            data = _encoder.encode((seq, result, timeout_s, message, alone, several, place))
        elif type(spec) is tuple:
            data = _encoder.encode((seq, result, timeout_s, message, NO_RESULT, spec))
        else:
            data = _encoder.encode((seq, result, timeout_s, message, spec))
    except AccelError:
        raise
    except (TypeError, ValueError, OverflowError) as error:
        text = f"{type(message).__name__} cannot be sent: {error}"
        raise InvalidArgument(text) from error
    if len(data) > FRAME_LIMIT - 64:
        write = compared(len(data), FRAME_LIMIT)
        name, taken, most = type(message).__name__, write(len(data)), write(FRAME_LIMIT)
        text = f"{name} takes {taken}; a message has at most {most}"
        raise InvalidArgument(text)
    return data


def encode_message(message: Any) -> bytes:
    """Encode a message, or what it makes, as `encode_entry` does; one that was sent before."""
    return _encoder.encode(message)


def batch(parts: list[bytes]) -> bytes:
    """Join encoded entries to one frame."""
    if len(parts) == 1:
        return _ARRAY_OF_ONE + parts[0]
    return b"".join((_ARRAY32, len(parts).to_bytes(4, "big"), *parts))


def encode_reports(reports: list[Report]) -> bytes:
    """Encode reports to one frame."""
    return _encoder.encode(reports)


def decode_reports(payload: memoryview | bytes) -> list[Report]:
    """Decode one frame from a context; raises msgspec.DecodeError when it is damaged."""
    return _reports.decode(payload)
