"""The formats of files, told by the end of their names, and what each reader finds."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from accel_lab.compute.files.byte_source import FileBytes
from accel_lab.compute.files.columns import Table, read_arrow, read_parquet
from accel_lab.compute.files.npy import read_npy
from accel_lab.compute.files.npz import Archive
from accel_lab.compute.files.safetensors import read_safetensors
from accel_lab.compute.files.stored import Stored
from accel_lab.compute.files.zarr_arrays import read_zarr
from accel_lab.errors import InvalidArgument

ONLY = "arr_0"
"""What an array is called that stands alone in its file; NumPy's name for it."""


class Contents(NamedTuple):
    """What a reader has found in a file.

    Attributes:
        arrays: by their names.
        refused: what is there and cannot be loaded, and why.
        metadata: texts beside the arrays.
        require_unchanged: refuses what was read if the file was changed meanwhile.
        close: gives back what reading holds.
        is_single: whether it is one array, without a name.
    """

    arrays: dict[str, Stored]
    refused: dict[str, str]
    metadata: dict[str, str]
    require_unchanged: Callable[[], None]
    close: Callable[[], None]
    is_single: bool = False


def contents_of(path: Path) -> Contents:
    """Open a file and read what it says of its arrays.

    Raises:
        FileDamaged: its header is no such header, or speaks of what is not there.
        FileError: it cannot be read, or needs a package.
        InvalidArgument: its name ends as that of no format here, or it has no numbers.
        OSError: it is not there, or may not be read.
    """
    reader = READERS.get(path.suffix)
    if reader is None:
        raise InvalidArgument(unknown(path))
    return reader(path)


def unknown(path: Path) -> str:
    """Say which formats there are."""
    return f"{path.name} ends as none of the formats that are read here: {', '.join(READERS)}"


def _npy(path: Path) -> Contents:
    source = FileBytes(path)
    try:
        arrays: dict[str, Stored] = {ONLY: read_npy(source)}
    except BaseException:
        source.close()
        raise
    return Contents(arrays, {}, {}, source.require_unchanged, source.close, is_single=True)


def _npz(path: Path) -> Contents:
    source = FileBytes(path)
    try:
        archive = Archive(source)
    except BaseException:
        source.close()
        raise

    def close() -> None:
        archive.close()
        source.close()

    return Contents(archive.arrays, archive.refused, {}, source.require_unchanged, close)


def _safetensors(path: Path) -> Contents:
    source = FileBytes(path)
    try:
        arrays, metadata, refused = read_safetensors(source)
    except BaseException:
        source.close()
        raise
    return Contents(arrays, refused, metadata, source.require_unchanged, source.close)


def _columns(read: Callable[[FileBytes], Table], path: Path) -> Contents:
    source = FileBytes(path)
    try:
        arrays, refused, close_reader = read(source)
    except BaseException:
        source.close()
        raise

    def close() -> None:
        close_reader()
        source.close()

    return Contents(arrays, refused, {}, source.require_unchanged, close)


def _zarr(path: Path) -> Contents:
    arrays, refused, is_single = read_zarr(path)
    # Each chunk is a file of its own, and other programs may add to them.
    return Contents(arrays, refused, {}, _nothing, _nothing, is_single=is_single)


def _nothing() -> None:
    """Do nothing."""


READERS: dict[str, Callable[[Path], Contents]] = {
    ".npy": _npy,
    ".npz": _npz,
    ".safetensors": _safetensors,
    ".parquet": partial(_columns, read_parquet),
    ".arrow": partial(_columns, read_arrow),
    ".feather": partial(_columns, read_arrow),
    ".zarr": _zarr,
}
