"""Arrays of a device written to a file, part by part; it has its name only when it is whole."""

import os
import secrets
import shutil
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt

from accel_lab.compute.arena.staging import CHUNK_BYTES
from accel_lab.compute.arrays import dtypes
from accel_lab.compute.files import columns, npy, safetensors, zarr_arrays
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
        for _, part in self.placed():
            yield part

    def placed(self) -> Iterator[tuple[Place, Array]]:
        """Give the parts, and where each begins."""
        waits: list[tuple[Place, Callable[[], Array]]] = []
        for starts, counts in cut(self.shape, CHUNK_BYTES // dtypes.itemsize(self.dtype)):
            waits.append((starts, self.ask(starts, counts)))
            if len(waits) > 1:
                first, wait = waits.pop(0)
                yield first, wait()
        for first, wait in waits:
            yield first, wait()


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
    if writer is None and path.suffix != ".zarr":
        text = f"{path.name} ends as none of the formats that are written here"
        raise InvalidArgument(f"{text}: {', '.join(WRITERS)}, .zarr")
    if is_single and path.suffix not in SINGLE:
        text = f"a {path.suffix} has arrays by their names: save({{'x': x}}, {path.name!r})"
        raise InvalidArgument(text)
    if path.suffix == ".zarr":
        _zarr(arrays, path, is_single=is_single)
        return
    if not is_single and path.suffix == ".npy":
        raise InvalidArgument(f"a .npy has one array: save(x, {path.name!r}), or save a .npz")
    assert writer is not None
    for name in arrays:
        _require_name(name, path, forbidden="\0" if path.suffix == ".npz" else "")
    writer(arrays, path)


def _require_name(name: str, path: Path, forbidden: str) -> None:
    """Refuse a name that would not be read again as it is.

    Raises:
        InvalidArgument: it is such.
    """
    try:
        name.encode()
    except UnicodeEncodeError as error:
        text = f"{path.name}: an array is called {name!r}, which is no text in UTF-8"
        raise InvalidArgument(text) from error
    if any(one in name for one in forbidden):
        text = f"{path.name}: an array is called {name!r}, and a name there has no {forbidden!r}"
        raise InvalidArgument(text)


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


def _table(arrays: Arrays, path: Path) -> None:
    """Write columns as row groups, or record batches, of as many rows as are fetched at once."""
    kinds = {name: outgoing.dtype for name, outgoing in arrays.items()}
    schema = columns.schema_of(kinds, path.name)
    lengths = {outgoing.shape for outgoing in arrays.values()}
    if len(lengths) > 1 or any(len(shape) != 1 for shape in lengths):
        shapes = ", ".join(f"{name!r} {[*outgoing.shape]}" for name, outgoing in arrays.items())
        raise InvalidArgument(f"{path.name}: columns are vectors of one length, not {shapes}")
    (rows,) = next(iter(lengths), (0,))
    widest = max((dtypes.itemsize(dtype) for dtype in kinds.values()), default=1)
    step = CHUNK_BYTES // widest
    with replaced(path) as file, columns.writer(file, schema, path.suffix) as write:
        for start in range(0, rows, step):
            count = min(step, rows - start)
            waits = {name: made.ask((start,), (count,)) for name, made in arrays.items()}
            write(columns.table_of({name: wait() for name, wait in waits.items()}, schema))


def _zarr(arrays: Arrays, path: Path, *, is_single: bool) -> None:
    path = path.resolve()
    if path.exists() and not any((path / head).is_file() for head in zarr_arrays.HEADS):
        raise FileError(f"{path} is there, and it is no store of Zarr's: it is not replaced")
    if not is_single:
        for name in arrays:
            _require_name(name, path, forbidden="\0")
        zarr_arrays.require_names(arrays, path.name)
    beside, old = beside_of(path), beside_of(path)
    told = {name: (outgoing.shape, outgoing.dtype) for name, outgoing in arrays.items()}
    if not path.parent.is_dir():
        raise FileNotFoundError(2, "No such file or directory", str(path.parent))
    try:
        try:
            made = zarr_arrays.make(beside, told, is_single=is_single)
            for name, outgoing in arrays.items():
                for starts, part in outgoing.placed():
                    ends = map(int.__add__, starts, part.shape)
                    made[name][tuple(map(slice, starts, ends)) or ...] = part
            if path.exists():
                path.rename(old)
            beside.rename(path)
        except OSError as error:
            raise FileError(f"{path} cannot be written: {error}") from error
    finally:
        shutil.rmtree(beside, ignore_errors=True)
        if path.exists():
            shutil.rmtree(old, ignore_errors=True)


SINGLE = {".npy", ".zarr"}
WRITERS: dict[str, Callable[[Arrays, Path], None]] = {
    ".npy": _npy,
    ".npz": _npz,
    ".safetensors": _safetensors,
    ".parquet": _table,
    ".arrow": _table,
    ".feather": _table,
}
