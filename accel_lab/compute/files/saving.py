"""Arrays of a device written to a file, part by part; it has its name only when it is whole."""

import os
import secrets
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt

from accel_lab.compute.arena.staging import CHUNK_BYTES
from accel_lab.compute.arrays import dtypes
from accel_lab.compute.files import npy, safetensors
from accel_lab.compute.files.box import Place, cut
from accel_lab.errors import FileError, InvalidArgument

Array = npt.NDArray[Any]
Ask = Callable[[Place, Place], Callable[[], Array]]


class Outgoing(NamedTuple):
    """An array that is to be written.

    Attributes:
        ask: asks for a part, from `starts` on and of these `counts`; returns what waits for it.
    """

    shape: Place
    dtype: str
    ask: Ask

    def parts(self) -> Iterator[Array]:
        """Give all of it in C order; the next part is on its way while one is written."""
        waits: list[Callable[[], Array]] = []
        for starts, counts in cut(self.shape, CHUNK_BYTES // dtypes.itemsize(self.dtype)):
            waits.append(self.ask(starts, counts))
            if len(waits) > 1:
                yield waits.pop(0)()
        for wait in waits:
            yield wait()


Arrays = Mapping[str, Outgoing]


def save(arrays: Arrays, path: Path, *, is_single: bool) -> None:
    """Write arrays to a file whose name says the format; one that is there is replaced at the end.

    Parameters:
        is_single: whether it is one array without a name.

    Raises:
        InvalidArgument: no such format, or the format has no such array.
        FileError: there is no room, or a package is missing.
        OSError: no such folder, or nothing may be written there.
    """
    writer = WRITERS.get(path.suffix)
    if writer is None:
        text = f"{path.name} ends as none of the formats that are written here"
        raise InvalidArgument(f"{text}: {', '.join(WRITERS)}")
    if is_single and path.suffix not in SINGLE:
        text = f"a {path.suffix} has arrays by their names: save({{'x': x}}, {path.name!r})"
        raise InvalidArgument(text)
    if not is_single and path.suffix == ".npy":
        raise InvalidArgument(f"a .npy has one array: save(x, {path.name!r}), or save a .npz")
    writer(arrays, path)


@contextmanager
def replaced(path: Path) -> Iterator[BinaryIO]:
    """Give a file to write to, which takes the place of `path` if nothing fails.

    Raises:
        FileError: its disk is full, or fails.
        OSError: no such folder, or nothing may be written there.
    """
    path = path.resolve()
    if path.is_dir():
        raise FileError(f"{path} is a folder")
    beside = beside_of(path)
    file = beside.open("xb")
    try:
        try:
            with file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            beside.replace(path)
        except OSError as error:
            raise FileError(f"{path} cannot be written: {error}") from error
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def beside_of(path: Path) -> Path:
    """Return a name that nobody has, in the same folder."""
    return path.with_name(f".{path.name[:100]}.{secrets.token_hex(4)}.part")


def write_parts(file: Any, outgoing: Outgoing) -> None:
    """Write the bytes of an array in C order."""
    for part in outgoing.parts():
        file.write(np.ascontiguousarray(part).reshape(-1).view(np.uint8).data)


def _npy(arrays: Arrays, path: Path) -> None:
    (outgoing,) = arrays.values()
    npy.header_of(outgoing.shape, outgoing.dtype, path.name)
    with replaced(path) as file:
        npy.write_header(file, outgoing.shape, outgoing.dtype, path.name)
        write_parts(file, outgoing)


def _npz(arrays: Arrays, path: Path) -> None:
    for name, outgoing in arrays.items():
        npy.header_of(outgoing.shape, outgoing.dtype, f"{path.name}: {name!r}")
    with replaced(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, outgoing in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                npy.write_header(member, outgoing.shape, outgoing.dtype, name)  # type: ignore[arg-type]
                write_parts(member, outgoing)


def _safetensors(arrays: Arrays, path: Path) -> None:
    told = {name: (outgoing.shape, outgoing.dtype) for name, outgoing in arrays.items()}
    header, order = safetensors.header_of(told, path.name)
    with replaced(path) as file:
        file.write(header)
        for name in order:
            write_parts(file, arrays[name])


SINGLE = {".npy"}
WRITERS: dict[str, Callable[[Arrays, Path], None]] = {
    ".npy": _npy,
    ".npz": _npz,
    ".safetensors": _safetensors,
}
