"""What frames name of the arena, which is all that a node gets of it."""

from typing import get_args, get_type_hints

import numpy as np

from accel_lab import System
from accel_lab.compute.cluster import named_bytes
from accel_lab.compute.cluster.entries import Region
from accel_lab.compute.cluster.named_bytes import answered, named
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.builtin import (
    TAIL_BYTES,
    CopyIn,
    Download,
    Fetch,
    Location,
    Offer,
    Put,
    Receive,
    Run,
    Sign,
    Upload,
)
from accel_lab.compute.message.operation import travelling
from accel_lab.compute.wire.codec import (
    Answer,
    Done,
    Failure,
    Output,
    Report,
    batch,
    encode_entry,
    encode_reports,
)
from accel_lab.libraries import ACTORS

CARDS_ALONE = {CopyIn, Offer, Fetch}
"""What a card reads of another process's memory, which no other machine is asked to."""


def test_every_message_that_names_bytes_is_known() -> None:
    assert ACTORS  # all libraries are loaded
    naming = {
        kind
        for kind in travelling()
        if "segment" in kind.__struct_fields__
        or any({Location, Sign} & {hint, *get_args(hint)} for hint in get_type_hints(kind).values())
    }
    tags = {kind.__struct_config__.tag for kind in naming - CARDS_ALONE}
    assert tags == {*named_bytes._REGIONS, *named_bytes._PLACES}


def test_a_frame_is_looked_through() -> None:
    with System("host") as lab:
        ref = lab.devices[0].put(np.zeros(3))
        entries = [
            encode_entry(1, 2, None, Put((1,), "uint8", b"x")),
            encode_entry(2, 0, 60.0, Upload(ref, 7, 3, 256, 1 << 20)),
            encode_entry(3, 0, None, Download(ref, 4, 512, nbytes=24)),
            encode_entry(4, 5, None, Receive((3,), "uint8", 5, 1024, 3)),
            encode_entry(5, -6, None, Run((ref,), b"", pure=False, blob_at=Location(6, 0, 99))),
            encode_entry(6, -7, None, Run((ref,), b"blob", pure=False)),
        ]
        found = named(batch(entries))
        assert isinstance(ref, AccelRef)
    assert found.reads == [Region(3, 256, 1 << 20), Region(6, 0, 99)]
    assert found.writes == {3: Region(4, 512, 24)}
    assert found.awaits == {4: Region(5, 1024, 4 + TAIL_BYTES)}


def test_what_is_answered_for_good() -> None:
    failure = Failure(7, "", "", "", {}, 0, b"")
    reports: list[Report] = [
        Done([1, 2]),
        Answer(3, b"", last=False, arrays=[]),
        Answer(4, b"", last=True, arrays=[]),
        failure,
        Output(9, "stdout", "text"),
    ]
    assert answered(encode_reports(reports)) == [1, 2, 4, 7]
