"""`.safetensors`: a header in JSON, then the bytes of each array, without gaps and overlaps.

The rules are those of the format's own page (github.com/huggingface/safetensors, README).
"""

import json
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from accel_lab.compute.arrays import dtypes
from accel_lab.compute.files.box import Place
from accel_lab.compute.files.byte_source import FileBytes
from accel_lab.compute.files.npy import MOST_AXES
from accel_lab.compute.files.stored import RawArray, Stored
from accel_lab.errors import FileDamaged, InvalidArgument

MOST_HEADER_BYTES = 100_000_000
_METADATA = "__metadata__"
_NAMES = {
    "BOOL": "bool",
    "I8": "int8",
    "I16": "int16",
    "I32": "int32",
    "I64": "int64",
    "U8": "uint8",
    "U16": "uint16",
    "U32": "uint32",
    "U64": "uint64",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2",
    "BF16": "bfloat16",
    "F16": "float16",
    "F32": "float32",
    "F64": "float64",
    "C64": "complex64",
}
_CODES = {name: code for code, name in _NAMES.items()}


class Header(NamedTuple):
    """What a file says of itself.

    Attributes:
        arrays: by their names, in the order of the header.
        metadata: the texts that the writer has added.
        refused: the arrays of a dtype that no device has, and what it is.
    """

    arrays: dict[str, Stored]
    metadata: dict[str, str]
    refused: dict[str, str]


def read_safetensors(source: FileBytes) -> Header:
    """Read the header, and check that it describes every byte of the file once.

    Raises:
        FileDamaged: it does not.
    """
    name = source.name
    if source.nbytes < 8:  # noqa: PLR2004 - what the length takes
        raise FileDamaged(f"{name} has {source.nbytes} bytes: too few for a .safetensors")
    length = int.from_bytes(source.read(0, 8), "little")
    if length > min(MOST_HEADER_BYTES, source.nbytes - 8):
        text = f"{name} has {source.nbytes:,} bytes, and says that its header has {length:,}"
        raise FileDamaged(text)
    said = _parsed(source.read(8, length), name)
    metadata = said.pop(_METADATA, {})
    if type(metadata) is not dict or not all(type(text) is str for text in metadata.values()):
        raise FileDamaged(f"{name}: {_METADATA} is no table of texts")
    arrays: dict[str, Stored] = {}
    refused: dict[str, str] = {}
    places: list[tuple[int, int, str]] = []
    for key, entry in said.items():
        code, shape, (begin, end) = _entry(entry, f"{name}: {key!r}")
        places.append((begin, end, key))
        dtype = _NAMES.get(code)
        if dtype is None:
            refused[key] = f"it is of dtype {code}"
            continue
        itemsize = dtypes.itemsize(dtype)
        if math.prod(shape) * itemsize != end - begin:
            text = f"{name}: {key!r} is {code} {list(shape)}, {math.prod(shape) * itemsize:,} bytes"
            raise FileDamaged(f"{text}, and lies in {end - begin:,}")
        arrays[key] = RawArray(source, 8 + length + begin, shape, dtype)
    _require_whole(places, source.nbytes - 8 - length, name)
    return Header(arrays, metadata, refused)


def header_of(arrays: Mapping[str, tuple[Place, str]], name: str) -> tuple[bytes, list[str]]:
    """Return the beginning of a file, and the order in which its arrays follow: the widest first.

    Raises:
        InvalidArgument: the format has no such dtype or name.
    """
    for key, (_, dtype) in arrays.items():
        if dtype not in _CODES or key == _METADATA:
            text = f"{name}: {key!r} is {dtype}: a .safetensors has {', '.join(_CODES)}"
            raise InvalidArgument(f"{text}, and no array {_METADATA!r}")
    order = sorted(arrays, key=lambda key: (-dtypes.itemsize(arrays[key][1]), key))
    said, end = {}, 0
    for key in order:
        shape, dtype = arrays[key]
        begin, end = end, end + math.prod(shape) * dtypes.itemsize(dtype)
        said[key] = {"dtype": _CODES[dtype], "shape": shape, "data_offsets": (begin, end)}
    data = json.dumps(said, separators=(",", ":"), ensure_ascii=False).encode()
    data += b" " * (-len(data) % 8)
    if len(data) > MOST_HEADER_BYTES:
        raise InvalidArgument(f"{name}: {len(arrays):,} arrays are too many for one header")
    return len(data).to_bytes(8, "little") + data, order


def _parsed(data: bytes, name: str) -> dict[str, Any]:
    if not data.startswith(b"{"):
        raise FileDamaged(f"{name}: its header does not begin with {{")
    try:
        said = json.loads(data.decode(), object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise FileDamaged(f"{name}: its header cannot be read: {error}") from error
    if type(said) is not dict:
        raise FileDamaged(f"{name}: its header is no table of arrays")
    return said


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a name stands there twice")
    return made


def _entry(entry: Any, name: str) -> tuple[str, Place, tuple[int, int]]:
    """Return the dtype, the shape, and where the bytes begin and end."""
    if type(entry) is not dict or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise FileDamaged(f"{name} has no dtype, shape and data_offsets")
    code, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if type(code) is not str:
        raise FileDamaged(f"{name} has the dtype {code!r}")
    if not _are_sizes(shape) or len(shape) > MOST_AXES:
        raise FileDamaged(f"{name} has the shape {shape!r}")
    if not _are_sizes(offsets) or len(offsets) != 2 or offsets[0] > offsets[1]:  # noqa: PLR2004
        raise FileDamaged(f"{name} lies at {offsets!r}")
    return code, tuple(shape), (offsets[0], offsets[1])


def _are_sizes(given: Any) -> bool:
    return type(given) is list and all(type(n) is int and 0 <= n < 2**63 for n in given)


def _require_whole(places: list[tuple[int, int, str]], nbytes: int, name: str) -> None:
    """Refuse gaps, overlaps, and bytes that no array has."""
    at = 0
    for begin, end, key in sorted(places):
        if begin != at:
            what = "overlaps with another array" if begin < at else "leaves a gap before it"
            raise FileDamaged(f"{name}: {key!r}, at {begin:,} to {end:,}, {what}")
        at = end
    if at != nbytes:
        raise FileDamaged(f"{name} has {nbytes:,} bytes of arrays, and its header speaks of {at:,}")
