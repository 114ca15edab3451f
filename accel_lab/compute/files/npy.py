"""NumPy's `.npy`: a short header, then the elements (numpy.lib.format says how, versions 1 to 3).

Pickled objects are refused: to read them runs whatever they say.
"""

import ast
import re
import sys
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from accel_lab.compute.arrays import dtypes
from accel_lab.compute.files.box import Place
from accel_lab.compute.files.byte_source import ByteSource
from accel_lab.compute.files.stored import RawArray
from accel_lab.compute.machine.memfd_mapping import Bytes
from accel_lab.errors import FileDamaged, InvalidArgument

MAGIC = b"\x93NUMPY"
MOST_HEADER_BYTES = 10_000
"""As many as NumPy reads of a header that it does not trust."""
MOST_AXES = 64
UTF_8 = 3
"""The version whose header is in UTF-8."""
_KEYS = {"descr", "fortran_order", "shape"}
_PLAIN = re.compile(r"[<>|=]?[?biufc]\d{0,2}")


class Header(NamedTuple):
    """What the header of one array says.

    Attributes:
        nbytes: how long it is, its beginning included.
        swapped: whether each number has its bytes in the other order.
    """

    shape: Place
    dtype: str
    is_turned: bool
    swapped: bool
    nbytes: int


def read_npy(source: ByteSource) -> RawArray:
    """Read the header of a source that is one `.npy`.

    Raises:
        FileDamaged: it is none, or its size is another than the header says.
        InvalidArgument: its elements are objects, or of a dtype that no device has.
    """
    header = read_header(source)
    stored = RawArray(
        source,
        header.nbytes,
        header.shape,
        header.dtype,
        is_turned=header.is_turned,
        swapped=header.swapped,
    )
    nbytes = int(np.prod(header.shape, dtype=object)) * dtypes.itemsize(header.dtype)
    if source.nbytes != header.nbytes + nbytes:
        more = source.nbytes - header.nbytes - nbytes
        raise FileDamaged(f"{source.name} has {more:,} bytes more than its header speaks of")
    return stored


def read_header(source: ByteSource) -> Header:
    """Read what a source says of its array; raises as `read_npy`."""
    name = source.name
    first = _read(source, 0, 12)
    if first[:6] != MAGIC:
        raise FileDamaged(f"{name} does not begin as a .npy does")
    if first[6] not in (1, 2, 3) or first[7]:
        raise FileDamaged(f"{name} is of version {first[6]}.{first[7]} of .npy, which there is not")
    begin = 10 if first[6] == 1 else 12
    length = int.from_bytes(first[8:begin], "little")
    if length > MOST_HEADER_BYTES:
        text = f"{name} has a header of {length:,} bytes, and no plain array has over"
        raise FileDamaged(f"{text} {MOST_HEADER_BYTES:,}")
    data = _read(source, begin, length)
    try:
        said = ast.literal_eval(data.decode("utf-8" if first[6] == UTF_8 else "latin-1").strip())
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError) as error:
        raise FileDamaged(f"{name} has a header that cannot be read: {error}") from error
    if type(said) is not dict or set(said) != _KEYS:
        raise FileDamaged(f"{name} has a header without descr, fortran_order and shape")
    shape, turned = said["shape"], said["fortran_order"]
    if not _is_shape(shape) or type(turned) is not bool:
        raise FileDamaged(f"{name} has a header with the shape {shape!r}, fortran_order {turned!r}")
    dtype, swapped = _dtype(said["descr"], name)
    return Header(shape, dtype, turned, swapped, begin + length)


def header_of(shape: Place, dtype: str, name: str) -> dict[str, Any]:
    """Return what NumPy's writer of headers takes.

    Raises:
        InvalidArgument: a `.npy` has no such dtype.
    """
    native = dtypes.numpy_dtype(dtype)
    if native.kind not in "biufc" or native.isbuiltin != 1:
        text = f"{name}: a .npy has no {dtype}: save it as .safetensors, or cast it first"
        raise InvalidArgument(text)
    return {"descr": native.str, "fortran_order": False, "shape": shape}


def write_header(file: BinaryIO, shape: Place, dtype: str, name: str) -> None:
    """Write the header of an array in C order; raises as `header_of`."""
    np.lib.format.write_array_header_1_0(file, header_of(shape, dtype, name))


def _read(source: ByteSource, offset: int, nbytes: int) -> bytes:
    if offset + nbytes > source.nbytes:
        raise FileDamaged(f"{source.name} ends within its header, at byte {source.nbytes:,}")
    data: Bytes = np.empty(nbytes, np.uint8)
    source.read_into(offset, data)
    return data.tobytes()


def _is_shape(shape: object) -> bool:
    return (
        type(shape) is tuple
        and len(shape) <= MOST_AXES
        and all(type(extent) is int and 0 <= extent < 2**63 for extent in shape)
    )


def _dtype(said: object, name: str) -> tuple[str, bool]:
    """Return the dtype's name, and whether its bytes are in the other order."""
    if isinstance(said, str) and said.lstrip("<>|=").startswith("O"):
        text = f"{name} has pickled Python objects, which are not read: they can run anything"
        raise InvalidArgument(text)
    if isinstance(said, str) and _PLAIN.fullmatch(said):
        try:
            found = np.dtype(said)
        except TypeError as error:
            raise FileDamaged(f"{name} has the dtype {said!r}, which there is not") from error
        try:
            swapped = found.itemsize > 1 and (said[0] == ">") == (sys.byteorder == "little")
            return dtypes.canonical(found), swapped and said[0] in "<>"
        except InvalidArgument as error:
            raise InvalidArgument(f"{name}: {error}") from error
    raise InvalidArgument(f"{name} has the dtype {said!r}, and a device has numbers")
