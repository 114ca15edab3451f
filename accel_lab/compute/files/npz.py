"""NumPy's `.npz`: a zip archive with one `.npy` for each array, packed or not."""

import lzma
import struct
import threading
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from accel_lab.compute.files.byte_source import FileBytes
from accel_lab.compute.files.npy import read_npy
from accel_lab.compute.files.stored import Stored
from accel_lab.compute.machine.memfd_mapping import Bytes
from accel_lab.errors import FileDamaged, InvalidArgument

MOST_PACKED = {zipfile.ZIP_STORED: 1, zipfile.ZIP_DEFLATED: 1032}
"""Into how many bytes one can be unpacked at most, by the way it was packed."""
SKIPPED_BYTES = 64 << 10
_FAILURES = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    EOFError,
    IndexError,
    KeyError,
    NotImplementedError,
    OSError,
    OverflowError,
    RuntimeError,
    ValueError,
)


class MemberBytes:
    """The bytes of one member of an archive, unpacked; any thread, one at a time.

    What is read from its beginning to its end is compared with its checksum.
    """

    in_order = True

    def __init__(self, archive: "Archive", member: zipfile.ZipInfo) -> None:
        self.name = f"{archive.name}: {member.filename}"
        self.nbytes = member.file_size
        self._archive, self._member = archive, member
        self._lock = threading.Lock()
        self._stream: IO[bytes] | None = None
        self._at = 0

    def read_into(self, offset: int, view: Bytes) -> None:
        """Fill the view with the bytes from `offset` on.

        Raises:
            FileDamaged: they cannot be unpacked, or the checksum is another.
        """
        with self._lock, damage(self.name):
            if self._stream is None or self._at > offset:
                self._rewind()
            while self._at < offset:
                self._take(memoryview(bytearray(min(SKIPPED_BYTES, offset - self._at))))
            self._take(view.data)
            if self._at == self.nbytes:
                self._rewind()

    def _rewind(self) -> None:
        if self._stream is not None:
            self._stream.close()
        self._stream, self._at = self._archive.zip.open(self._member), 0

    def _take(self, view: memoryview) -> None:
        assert self._stream is not None
        filled = 0
        while filled < len(view):
            got = self._stream.readinto(view[filled:])  # type: ignore[attr-defined]
            if not got:
                raise FileDamaged(f"{self.name} ends at byte {self._at:,}, within an array")
            filled += got
            self._at += got


class Archive:
    """A zip archive of arrays.

    Attributes:
        arrays: by their names, in the archive's order.
        refused: the members that are no array of numbers, and why.

    Raises:
        FileDamaged: it is none, or names an array twice, or unpacks into what it cannot.
    """

    def __init__(self, source: FileBytes) -> None:
        self.name = source.name
        self.arrays: dict[str, Stored] = {}
        self.refused: dict[str, str] = {}
        with damage(self.name):
            file = source.reopened()
            try:
                self.zip = zipfile.ZipFile(file)
            except BaseException:
                file.close()
                raise
            self._file = file
            try:
                for member in self.zip.infolist():
                    self._add(member)
            except BaseException:
                self.close()
                raise

    def close(self) -> None:
        """Close the archive; a second call does nothing."""
        self.zip.close()
        self._file.close()

    def _add(self, member: zipfile.ZipInfo) -> None:
        key = member.filename.removesuffix(".npy")
        if key in self.arrays or key in self.refused:
            raise FileDamaged(f"{self.name} has {member.filename} twice")
        if key == member.filename:
            self.refused[key] = "it is no .npy"
            return
        most = MOST_PACKED.get(member.compress_type)
        if most is None:
            self.refused[key] = f"it is packed in way {member.compress_type} of zip"
            return
        if member.file_size > most * member.compress_size:
            text = f"{self.name}: {member.filename} has {member.compress_size:,} bytes, and says"
            raise FileDamaged(f"{text} that they unpack into {member.file_size:,}")
        try:
            self.arrays[key] = read_npy(MemberBytes(self, member))
        except InvalidArgument as error:
            self.refused[key] = str(error)


@contextmanager
def damage(name: str) -> Iterator[None]:
    """Turn whatever `zipfile` raises at a damaged archive into FileDamaged."""
    try:
        yield
    except (FileDamaged, InvalidArgument):
        raise
    except _FAILURES as error:
        text = f"{name} is no archive that can be read: {type(error).__name__}: {error}"
        raise FileDamaged(text) from error
