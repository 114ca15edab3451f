"""Zarr stores in a folder, of versions 2 and 3, read and written with the package zarr."""

import math
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from accel_lab.compute.arena.staging import CHUNK_BYTES, Part
from accel_lab.compute.arrays import dtypes
from accel_lab.compute.files.box import Box, Place, cut
from accel_lab.compute.files.stored import Stored, size_of
from accel_lab.compute.machine.memfd_mapping import Bytes
from accel_lab.display.install import pip_install
from accel_lab.errors import FileDamaged, FileError, InvalidArgument

Array = npt.NDArray[Any]
MOST_BYTES = 8 * CHUNK_BYTES
"""How large a part may be so that it is whole rows of chunks, each unpacked once."""
HEADS = ("zarr.json", ".zarray", ".zgroup")
_NO_FOLDERS = {"", ".", "..", ".zattrs", ".zmetadata", *HEADS}


class ZarrArray:
    """One array of a store.

    Attributes:
        shape: its shape.
        dtype: its dtype, by name.

    Parameters:
        array: zarr's own.

    Raises:
        InvalidArgument: no device has its dtype.
    """

    is_turned = False
    in_order = True

    def __init__(self, array: Any, name: str) -> None:
        self.shape: Place = tuple(map(int, array.shape))
        self.dtype = dtypes.canonical(array.dtype)
        self._array, self._name = array, name
        self._rows = int(array.chunks[0]) if self.shape else 1
        size_of(self.shape, self.dtype, name)

    def parts(self, box: Box) -> Iterable[Part]:
        """Give the bytes of a part, and read the first of them at once.

        Raises:
            FileDamaged: a chunk cannot be read or unpacked.
        """
        wanted = [*self._wanted(box)]
        first = self._read(wanted[0]) if wanted else None
        return self._made(wanted, first)

    def _made(self, wanted: list[tuple[slice, ...]], values: Array | None) -> Iterator[Part]:
        offset = 0
        for at, index in enumerate(wanted):
            if at or values is None:
                values = None  # before the next is read
                values = self._read(index)
            yield Part(offset, values.nbytes, partial(_fill, values))
            offset += values.nbytes

    def _wanted(self, box: Box) -> Iterator[tuple[slice, ...]]:
        itemsize = dtypes.itemsize(self.dtype)
        limit = CHUNK_BYTES // itemsize
        row = math.prod(box.counts[1:])
        if box.counts and row * self._rows * itemsize <= MOST_BYTES and box.steps[0] == 1:
            yield from self._whole_rows(box, max(1, limit // max(1, row * self._rows)))
            return
        for starts, counts in cut(box.counts, limit):
            yield tuple(map(_slice, box.starts, starts, counts, box.steps))

    def _whole_rows(self, box: Box, chunks: int) -> Iterator[tuple[slice, ...]]:
        """Cut along the first axis where the store has, so that no chunk is unpacked twice."""
        axes = zip(box.starts[1:], box.counts[1:], box.steps[1:], strict=True)
        rest = [_slice(start, 0, count, step) for start, count, step in axes]
        start, stop = box.starts[0], box.starts[0] + box.counts[0]
        while start < stop and box.size:
            end = min(stop, (start // self._rows + chunks) * self._rows)
            yield (slice(start, end), *rest)
            start = end

    def _read(self, index: tuple[slice, ...]) -> Array:
        with _damage(self._name):
            values = np.asarray(self._array[index if self.shape else ...])
            return np.ascontiguousarray(values, dtypes.numpy_dtype(self.dtype))


def read_zarr(path: Path) -> tuple[dict[str, Stored], dict[str, str], bool]:
    """Return the arrays of a store by their paths in it, those refused, and whether it is only one.

    Raises:
        FileDamaged: its metadata cannot be read.
        FileError: it is no store, or zarr is not installed.
    """
    zarr = _zarr()
    if not path.exists():
        raise FileNotFoundError(2, "No such file or directory", str(path))
    if not any((path / head).is_file() for head in HEADS):
        raise FileError(f"{path} is no folder of Zarr's: it has none of {', '.join(HEADS)}")
    arrays: dict[str, Stored] = {}
    refused: dict[str, str] = {}
    with _damage(str(path)):
        found = zarr.open(str(path), mode="r")
        is_single = isinstance(found, zarr.Array)
        members = [("arr_0", found)] if is_single else [*found.members(max_depth=None)]
    for name, array in members:
        if not isinstance(array, zarr.Array):
            continue
        try:
            with _damage(str(path)):
                arrays[name] = ZarrArray(array, f"{path}: {name!r}")
        except InvalidArgument as error:
            refused[name] = str(error)
    if is_single and refused:
        raise InvalidArgument(f"{path}: {refused['arr_0']}")
    return arrays, refused, is_single


def require_names(names: Collection[str], path: str) -> None:
    """Refuse names that are no paths in a store, each of its own.

    Raises:
        InvalidArgument: one is such, or goes through another array.
    """
    for name in names:
        folders = name.split("/")
        if "\\" in name or any(one in _NO_FOLDERS or one.startswith("__") for one in folders):
            text = f"{path}: an array is called {name!r}, which is no path in a store of Zarr's"
            raise InvalidArgument(text)
        for count in range(1, len(folders)):
            outer = "/".join(folders[:count])
            if outer in names:
                text = f"{path}: {name!r} stands in {outer!r}, which is an array and no group"
                raise InvalidArgument(text)


def make(path: Path, arrays: dict[str, tuple[Place, str]], *, is_single: bool) -> dict[str, Any]:
    """Make a store with empty arrays of zarr's, and return these.

    Raises:
        InvalidArgument: Zarr has no such dtype.
        FileError: zarr is not installed.
    """
    zarr = _zarr()
    for name, (_, dtype) in arrays.items():
        native = dtypes.numpy_dtype(dtype)
        if native.isbuiltin != 1:
            text = f"{path.name}: {name!r} is {dtype}, which is no dtype of Zarr's: cast it first"
            raise InvalidArgument(text)
    if not is_single:
        zarr.create_group(store=str(path))
    return {
        name: zarr.create_array(
            store=str(path),
            name=None if is_single else name,
            shape=shape,
            dtype=dtypes.numpy_dtype(dtype),
            chunks=_chunks(shape, dtypes.itemsize(dtype)),
        )
        for name, (shape, dtype) in arrays.items()
    }


def _chunks(shape: Place, itemsize: int) -> Place:
    """Return chunks that are the parts in which arrays are fetched."""
    for _, counts in cut(shape, CHUNK_BYTES // itemsize):
        return counts
    return tuple(max(1, extent) for extent in shape)


def _slice(start: int, offset: int, count: int, step: int) -> slice:
    first = start + offset * step
    return slice(first, first + (count - 1) * step + 1, step)


def _fill(part: Array, view: Bytes) -> None:
    np.copyto(np.ndarray(part.shape, part.dtype, buffer=view), part)


def _zarr() -> Any:
    try:
        import zarr
    except ImportError as error:
        raise FileError(f"Zarr needs the package zarr: {pip_install('files')}") from error
    return zarr


@contextmanager
def _damage(name: str) -> Iterator[None]:
    try:
        yield
    except (FileError, InvalidArgument):
        raise
    except Exception as error:  # a codec raises what it likes
        first = (str(error).splitlines() or [""])[0]
        raise FileDamaged(f"{name} cannot be read: {type(error).__name__}: {first}") from error
