"""Batches of entries as bytes, and back: data of known types, so that reading runs nothing."""

import struct
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import msgspec
import numpy as np

from accel_lab.compute.cluster.entries import (
    Down,
    End,
    Exited,
    Fill,
    Forked,
    Frame,
    Heard,
    Kill,
    Printed,
    Take,
    Tell,
    Unloadable,
    Up,
)

Part: TypeAlias = bytes | memoryview

_KINDS: tuple[Any, ...] = (
    Take,
    Tell,
    Frame,
    Fill,
    End,
    Kill,
    Forked,
    Heard,
    Printed,
    Exited,
    Unloadable,
)
_NUMBERS = {kind: number for number, kind in enumerate(_KINDS)}
_FILL = _NUMBERS[Fill]
_LENGTH = struct.Struct("<I")

_encode = msgspec.msgpack.Encoder().encode
_pairs = msgspec.msgpack.Decoder(list[tuple[int, msgspec.Raw]])
_place = msgspec.msgpack.Decoder(tuple[int, int, int])
_decoders = [None if kind is Fill else msgspec.msgpack.Decoder(kind) for kind in _KINDS]


def encode(entries: Iterable[Down | Up]) -> list[Part]:
    """Return a batch in parts: what it says, then the bytes of its fills, not copied."""
    said: list[tuple[int, Any]] = []
    parts: list[Part] = []
    for entry in entries:
        number = _NUMBERS[type(entry)]
        if isinstance(entry, Fill):
            said.append((number, (entry.segment, entry.start, entry.data.nbytes)))
            parts.append(entry.data.data)
        else:
            said.append((number, entry))
    head = _encode(said)
    return [_LENGTH.pack(len(head)) + head, *parts]


def decode(data: bytes) -> Sequence[Any]:
    """Return the entries of a batch; fills are views of the data.

    Raises:
        msgspec.DecodeError, ValueError: it is no batch.
    """
    view = memoryview(data)
    at = _LENGTH.size + _LENGTH.unpack_from(view)[0]
    found: list[Any] = []
    for number, raw in _pairs.decode(view[_LENGTH.size : at]):
        decoder = _decoders[number]
        if decoder is not None:
            found.append(decoder.decode(raw))
            continue
        segment, start, nbytes = _place.decode(raw)
        found.append(Fill(segment, start, np.frombuffer(view, np.uint8, nbytes, at)))
        at += nbytes
    return found
