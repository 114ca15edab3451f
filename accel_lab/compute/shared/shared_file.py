"""Files without a name that other processes of the same user open while their owner lives.

Who has one open holds a lock on it, which goes with its process however that ends. So the owner
knows whether anybody has, and what it has given back nobody opens.
"""

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from accel_lab.compute.machine.memfd_mapping import Mapping
from accel_lab.errors import InvalidArgument, OwnerGone
from accel_lab.uncopied import Uncopied

_ENDED = {"Z", "X"}
_NAME = "accel_lab shared"
_LOOKS, _LOOK_S = 200, 1e-3
_OPENS, _OPENS_NOT = 0o777, 0o700
"""The mode of a file that others may open, and of one that is given back; the owner still may."""


class Place(NamedTuple):
    """Where a file is found.

    Attributes:
        pid: its owner.
        began: when that began, in the kernel's ticks: a number may be another process's by now.
        fd, inode: which of its files.
    """

    pid: int
    began: int
    fd: int
    inode: int


class SharedFile(Uncopied):
    """A file of this process.

    Attributes:
        place: by which others open it.

    Raises:
        MemoryError: the system gives no descriptor, or no memory.
    """

    _instead = "send its place"
    fd = -1

    def __init__(self, nbytes: int) -> None:
        self._nbytes, pid = max(nbytes, 1), os.getpid()
        with _no_memory():
            self.fd = os.memfd_create(_NAME, os.MFD_CLOEXEC)
            os.fchmod(self.fd, _OPENS)
            os.ftruncate(self.fd, self._nbytes)
            inode = os.fstat(self.fd).st_ino
            self.place = Place(pid, _began(pid) or 0, self.fd, inode)

    def map(self) -> Mapping:
        """Map all of it.

        Raises:
            MemoryError: the system refuses that.
        """
        with _no_memory():
            return Mapping(self.fd, self._nbytes)

    def close(self) -> bool:
        """Have nobody open it any more; return False where somebody has it open, and it stays."""
        if self.fd < 0:
            return True
        if os.getpid() != self.place.pid:  # a forked child's copy: the file is its parent's
            self._drop()
            return True
        os.fchmod(self.fd, _OPENS_NOT)  # who has opened it and has no lock yet sees that
        try:
            fcntl.flock(self.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        self._drop()
        return True

    def is_open(self) -> bool:
        """Whether another has it open; any thread."""
        try:  # by another opening: a lock of this one would be undone in the middle of `close`
            fd = os.open(f"/proc/self/fd/{self.fd}", os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(fd)
        return False

    def _drop(self) -> None:
        fd, self.fd = self.fd, -1
        os.close(fd)

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            if self.fd >= 0:
                self._drop()


class OpenedFile(Uncopied):
    """A file of another process, which is not given back before this is gone.

    Raises:
        OwnerGone: its owner is gone, or has given it back.
        InvalidArgument: it is another user's.
    """

    _instead = "open it there, too"
    fd = -1

    def __init__(self, place: Place) -> None:
        self.place = place
        self.require_owner()
        flags = os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK
        try:
            self.fd = os.open(f"/proc/{place.pid}/fd/{place.fd}", flags)
        except (FileNotFoundError, ProcessLookupError):
            raise self._given_back() from None
        except OSError as error:
            self.require_owner()
            text = f"what process {place.pid} shares cannot be opened here: {error}"
            raise InvalidArgument(text) from error
        name = str(Path(f"/proc/self/fd/{self.fd}").readlink())
        if os.fstat(self.fd).st_ino != place.inode or not name.startswith(f"/memfd:{_NAME}"):
            raise self._given_back()
        self._lock()
        self.require_owner()

    def _lock(self) -> None:
        for _ in range(_LOOKS):
            if self._is_given_back():
                break
            with contextlib.suppress(BlockingIOError):  # the owner looks whether it is open
                fcntl.flock(self.fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
                if not self._is_given_back():
                    return
            time.sleep(_LOOK_S)
        raise self._given_back()

    def _is_given_back(self) -> bool:
        return os.fstat(self.fd).st_mode & _OPENS != _OPENS

    def require_owner(self) -> None:
        """Refuse what belongs to a process that has ended.

        Raises:
            OwnerGone: it has.
            InvalidArgument: it is another user's.
        """
        pid, began, *_ = self.place
        try:
            found = _began(pid)
        except PermissionError as error:
            raise InvalidArgument(f"process {pid} is another user's") from error
        if found != began:
            raise OwnerGone(f"process {pid}, which shared this, has ended", pid=pid)

    def _given_back(self) -> OwnerGone:
        pid = self.place.pid
        return OwnerGone(f"process {pid} does not share this any more", pid=pid)

    def close(self) -> None:
        """Let go of it; a second call is fine."""
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self.close()


@contextlib.contextmanager
def _no_memory() -> Iterator[None]:
    """Raise MemoryError for what the system refuses meanwhile."""
    try:
        yield
    except OSError as error:
        raise MemoryError(f"no memory that can be shared: {error}") from error


def _began(pid: int) -> int | None:
    """Return when a process began; None where there is none, or it has ended."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The name of the program stands in parentheses and may hold anything.
    fields = status.rpartition(")")[2].split()
    return None if fields[0] in _ENDED else int(fields[19])
