"""A file of arrays that is open: their names, and each array, of which parts are read."""

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Self

from accel_lab.compute.arrays import dtypes
from accel_lab.compute.arrays.named_dtype import NamedDType, named
from accel_lab.compute.files.box import Box, box_of, whole
from accel_lab.compute.files.formats import Contents, contents_of
from accel_lab.compute.files.stored import Stored
from accel_lab.display.sizes import size
from accel_lab.errors import FileError, InvalidArgument
from accel_lab.uncopied import Uncopied

Fill = Callable[[Stored, Box], Any]
"""Sends a part of an array to a device; returns its buffer."""


class FileArray(Uncopied):
    """An array of an open file. An index reads and uploads that part alone: `array[1000:2000]`.

    Attributes:
        name: its name in the file.
        shape: its shape.
        dtype: its dtype.
    """

    def __init__(self, file: "OpenFile", name: str, stored: Stored) -> None:
        self.name, self.shape = name, stored.shape
        self.dtype: NamedDType = named(stored.dtype)
        self._file, self._stored = file, stored

    @property
    def ndim(self) -> int:
        """How many axes it has."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """How many elements it has."""
        return whole(self.shape).size

    @property
    def nbytes(self) -> int:
        """How many bytes they are on a device."""
        return self.size * dtypes.itemsize(str(self.dtype))

    def load(self) -> Any:
        """Read and upload all of it; return its buffer.

        Raises:
            FileDamaged: the file is not what its header says, or was changed meanwhile.
            FileError: it cannot be read, or was closed.
        """
        return self._file.part(self._stored, whole(self.shape))

    def __getitem__(self, index: Any) -> Any:
        """Read and upload a part, named by ints, slices and `...`; return its buffer.

        Raises:
            FileDamaged, FileError: as `load`.
            InvalidArgument: the index has something else, or a step below 1.
            OutOfBounds: there is no such axis, or no such place on it.
        """
        return self._file.part(self._stored, box_of(index, self.shape))

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("an array without axes has no length")
        return self.shape[0]

    # Python would make one from the length and the items: an upload for each.
    __iter__ = None

    def __repr__(self) -> str:
        return f"<FileArray {self.name!r} {self.dtype} {list(self.shape)}, {size(self.nbytes)}>"


class OpenFile(Uncopied, Mapping[str, FileArray]):
    """The arrays of a file by their names; each is read when a part of it is asked for.

    Close it, or use it in a `with`. What was loaded stays.

    Attributes:
        path: where the file is.
        refused: what is there and cannot be loaded, and why, by name.
        metadata: the texts that a `.safetensors` has beside its arrays.
        is_single: whether it is one array without a name, as a `.npy`; it is `arr_0` here.

    Parameters:
        fill: sends a part to the device.
    """

    def __init__(self, path: str | os.PathLike[str], fill: Fill) -> None:
        try:
            self.path = Path(path)
        except TypeError as error:
            raise InvalidArgument(f"a path is a text or a Path, not {path!r}") from error
        require_path(self.path)
        self._fill = fill
        self._contents: Contents | None = None
        self._contents = found = contents_of(self.path)
        self.refused, self.metadata = found.refused, found.metadata
        self.is_single = found.is_single
        self._arrays = {name: FileArray(self, name, array) for name, array in found.arrays.items()}

    def part(self, stored: Stored, box: Box) -> Any:
        """Read and upload a part of one of its arrays; raises as `FileArray.load`."""
        contents = self._contents
        if contents is None:
            raise FileError(f"{self.path} was closed")
        contents.require_unchanged()
        turned = box.reversed() if stored.is_turned else box
        made = self._fill(stored, turned)
        contents.require_unchanged()
        if stored.is_turned and len(box.kept) > 1:
            made = made.transpose()
        return made

    def close(self) -> None:
        """Close the file; a second call does nothing."""
        contents, self._contents = self._contents, None
        if contents is not None:
            contents.close()

    def __getitem__(self, name: str) -> FileArray:
        if name in self._arrays:
            return self._arrays[name]
        if name in self.refused:
            raise InvalidArgument(f"{self.path}: {name!r} cannot be loaded: {self.refused[name]}")
        raise KeyError(name)

    def __contains__(self, name: object) -> bool:
        return name in self._arrays

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = " (closed)" if self._contents is None else ""
        return f"<OpenFile {self.path}{state}: {', '.join(map(repr, self._arrays))}>"


def require_path(path: Path) -> None:
    """Refuse a path that no file has.

    Raises:
        InvalidArgument: it has a character 0.
    """
    if "\0" in str(path):
        raise InvalidArgument(f"a path has no character 0, and {str(path)!r} has one")
