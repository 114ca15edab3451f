"""Which bytes of the arena the messages of a frame name: the only ones that have to travel.

A context on another machine has a copy of the arena of its own. What a message reads there is sent
before it; what it writes there comes back before its answer.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from accel_lab.compute.cluster.entries import Region
from accel_lab.compute.message.builtin import (
    TAIL_BYTES,
    Download,
    Receive,
    RestoreThing,
    Run,
    Upload,
    tail_of,
)
from accel_lab.compute.wire.codec import Answer, Done, Failure, decode_reports


class Named(NamedTuple):
    """What the messages of one frame name.

    Attributes:
        reads: what contexts read there.
        writes: what they write there, by the number of the request.
        awaits: what another device is still to write there, by the number of the request.
    """

    reads: list[Region]
    writes: dict[int, Region]
    awaits: dict[int, Region]


class _Entry(msgspec.Struct, array_like=True):
    """The begin of an entry, as `encode_entry` has it."""

    seq: int
    result: int
    timeout_s: Any
    message: msgspec.Raw


_entries = msgspec.msgpack.Decoder(list[_Entry]).decode


def _tag(kind: type[msgspec.Struct]) -> int:
    tag = kind.__struct_config__.tag
    assert isinstance(tag, int)
    return tag


def _at(kind: type[msgspec.Struct], field: str) -> int:
    """Return where a field stands in a message that travels as an array; the tag comes first."""
    return 1 + kind.__struct_fields__.index(field)


_REGIONS = {_tag(kind): _at(kind, "segment") for kind in (Upload, Download, Receive)}
"""Where three fields say which bytes; each has them in the order of a Region, if not in one row."""
_PLACES = {_tag(Run): _at(Run, "blob_at"), _tag(RestoreThing): _at(RestoreThing, "place")}
_DOWNLOAD, _RECEIVE = _tag(Download), _tag(Receive)
_NBYTES = {_tag(kind): _at(kind, "nbytes") for kind in (Upload, Download, Receive)}
_FIRST = 0x90  # of an array of up to 15, its first byte in msgpack; the tag follows as one byte


def named(frame: memoryview | bytes) -> Named:
    """Look through one frame to a context.

    Raises:
        msgspec.DecodeError: it is damaged.
    """
    found = Named([], {}, {})
    for seq, tag, region in _regions(frame):
        if tag == _DOWNLOAD:
            found.writes[seq] = region
        elif tag == _RECEIVE:
            found.awaits[seq] = region._replace(nbytes=tail_of(region.nbytes) + TAIL_BYTES)
        else:
            found.reads.append(region)
    return found


def _regions(frame: memoryview | bytes) -> Iterator[tuple[int, int, Region]]:
    for entry in _entries(frame):
        data = memoryview(entry.message)
        if data[0] & 0xF0 != _FIRST:
            continue  # of more fields than any of these has
        tag = data[1]
        if tag in _REGIONS:
            message = msgspec.msgpack.decode(data)
            segment, start = message[_REGIONS[tag] : _REGIONS[tag] + 2]
            yield entry.seq, tag, Region(segment, start, message[_NBYTES[tag]])
        elif tag in _PLACES:
            place = msgspec.msgpack.decode(data)[_PLACES[tag]]
            if place is not None:
                yield entry.seq, tag, Region(*place)


def answered(frame: memoryview | bytes) -> list[int]:
    """Return the requests that a frame from a context answers, for good.

    Raises:
        msgspec.DecodeError: it is damaged.
    """
    found: list[int] = []
    for report in decode_reports(frame):
        if isinstance(report, Done):
            found += report.seqs
        elif isinstance(report, Failure) or (isinstance(report, Answer) and report.last):
            found.append(report.seq)
    return found
