"""Where the feeds of this user's processes are: sockets in a folder that nobody else can enter.

A socket is named for its process and the moment that process began, `PID-TICKS.sock`, so that a
later process of the same number is not taken for it.
"""

import contextlib
import os
import socket
import stat
import struct
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, Self

_PEER = struct.Struct("3i")  # pid, uid, gid


class Name(NamedTuple):
    """Whose a socket is.

    Attributes:
        pid: of the process.
        began: when it began, in clock ticks since the machine did.
    """

    pid: int
    began: int

    @classmethod
    def of(cls, pid: int) -> Self | None:
        """Return the name of the process that has this number now; None if there is none."""
        began = _began(pid)
        return None if began is None else cls(pid, began)

    @classmethod
    def read(cls, file: str) -> Self | None:
        """Return whose socket a file is; None if it is no such file."""
        pid, _, began = file.removesuffix(".sock").partition("-")
        if not (file.endswith(".sock") and pid.isdecimal() and began.isdecimal()):
            return None
        return cls(int(pid), int(began))

    @property
    def file(self) -> str:
        """What its socket is called."""
        return f"{self.pid}-{self.began}.sock"

    @property
    def lives(self) -> bool:
        """Whether the process still runs; one that nobody has waited for yet does not."""
        return _began(self.pid) == self.began


def folders() -> list[Path]:
    """Return where feeds may be, the preferred place first; none need exist.

    Both are looked at: a shell and a notebook do not always agree on the environment.
    """
    runtime = Path(os.environ.get("XDG_RUNTIME_DIR", ""))
    mine = Path(tempfile.gettempdir()) / f"accel_lab-{os.geteuid()}"
    return [runtime / "accel_lab", mine] if runtime.is_absolute() else [mine]


def make() -> int:
    """Make the folder if need be; return a descriptor of the first that is safe.

    Raises:
        OSError: none can be made, or others can enter them; the text says which and why.
    """
    errors: list[str] = []
    for folder in folders():
        try:
            with contextlib.suppress(FileExistsError):
                folder.mkdir(0o700)
            return enter(folder)
        except OSError as error:
            errors.append(str(error))
    raise OSError("; ".join(errors))


def enter(folder: Path) -> int:
    """Return a descriptor of a folder that belongs to this user alone.

    What is reached through it stays in that folder, whatever its path leads to later; and a path
    of any length will do, where that of a socket has 107 bytes.

    Raises:
        OSError: it is not there, another's, a link, or others can enter it.
    """
    entered = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW)
    found = os.fstat(entered)
    if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o077:
        os.close(entered)
        mode = stat.S_IMODE(found.st_mode)
        raise PermissionError(
            f"{folder} must be this user's alone, with mode 0700; it has mode {mode:04o} and "
            f"belongs to user {found.st_uid}"
        )
    return entered


def path(entered: int, name: Name) -> str:
    """Return the path of a socket in a folder that was entered."""
    return f"/proc/self/fd/{entered}/{name.file}"


def names(entered: int) -> Iterator[Name]:
    """Yield the names of the sockets in a folder that was entered."""
    for file in Path(f"/proc/self/fd/{entered}").iterdir():
        name = Name.read(file.name)
        if name is not None:
            yield name


def remove(entered: int, name: Name) -> None:
    """Remove a socket, unless somebody else has."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(name.file, dir_fd=entered)


def sweep(entered: int) -> None:
    """Remove the sockets of processes that have ended without a word; never blocks."""
    for name in names(entered):
        with contextlib.suppress(OSError):  # gone, too many ask it, or nobody may tell
            # A process in another namespace seems dead, but answers: only who does not is.
            if not name.lives and not _answers(entered, name):
                remove(entered, name)


def is_mine(peer: socket.socket) -> bool:
    """Whether the process at the other end of a connection was this user's when it connected."""
    credentials = peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size)
    _, user, _ = _PEER.unpack(credentials)
    return bool(user == os.geteuid())


def _answers(entered: int, name: Name) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK) as asking:
        try:
            asking.connect(path(entered, name))
        except ConnectionRefusedError:
            return False
        return True


def _began(pid: int) -> int | None:
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The name of the program stands in parentheses and may hold anything.
    fields = status.rpartition(")")[2].split()
    return None if fields[0] in {"Z", "X"} else int(fields[19])
