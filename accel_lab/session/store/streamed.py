"""A content that is read a part at a time, and proven when all of it was.

So an array goes from the disk straight into the arena, while the parts before are on their way to
the device, and takes no memory of its own here.
"""

import hashlib
import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from accel_lab.compute.arena.staging import CHUNK_BYTES, Part
from accel_lab.compute.machine.memfd_mapping import Bytes
from accel_lab.errors import SessionDamaged, SessionError


class Streamed:
    """Reads one content.

    Parameters:
        path: of its file, which is named by its digest.
        nbytes: how many there should be.
        digest_bytes: the length of the digest.
    """

    def __init__(self, path: Path, nbytes: int, digest_bytes: int) -> None:
        self._path = path
        self._nbytes = nbytes
        self._digest_bytes = digest_bytes
        self._digest = ""

    def parts(self) -> Iterator[Part]:
        """Yield its parts, which are to be filled one after the other; from the beginning again.

        Raises:
            SessionDamaged: it is not there, or not so long.
            SessionError: it cannot be read.
        """
        self._digest, made = "", hashlib.blake2b(digest_size=self._digest_bytes)
        try:
            file = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            raise self._damaged("it is missing") from None
        except OSError as error:
            raise self._unread(error) from error
        try:
            if (size := os.fstat(file).st_size) != self._nbytes:
                raise self._damaged(f"it has {size} bytes, and its array {self._nbytes}")
            for offset in range(0, self._nbytes, CHUNK_BYTES):
                length = min(CHUNK_BYTES, self._nbytes - offset)
                yield Part(offset, length, partial(self._read, file, offset, made))
        finally:
            os.close(file)
        self._digest = made.hexdigest()

    def require_whole(self) -> None:
        """Refuse what was read, unless it is what the file is named by.

        Raises:
            SessionDamaged: it is not.
        """
        if self._digest != self._path.name:
            text = f"its {self._nbytes} bytes are not those that it is named by"
            raise self._damaged(text)

    def _read(self, file: int, offset: int, made: Any, view: Bytes) -> None:
        filled = 0
        try:
            while filled < view.nbytes:
                got = os.preadv(file, [view[filled:].data], offset + filled)
                if not got:
                    raise self._damaged(f"it ends at byte {offset + filled}")
                filled += got
        except OSError as error:
            raise self._unread(error) from error
        made.update(view.data)

    def _damaged(self, why: str) -> SessionDamaged:
        return SessionDamaged(f"{self._path} is damaged: {why}", path=str(self._path))

    def _unread(self, error: OSError) -> SessionError:
        return SessionError(f"{self._path} cannot be read: {error.strerror}")
