"""The folder of a session: commits, contents by their hash, the journal, and the lock.

    run.lab/
        session.json      the version of the format, and who has made it
        lock              is locked by the process that has it open
        journal.sqlite    what devices were sent
        commits/000017    what each name stood for after a cell
        contents/…        arrays and texts, each named by its digest

A file appears whole, by a rename, when its bytes are on the disk. A commit is the last of all that
it names. So whatever ends the process, the newest commit can be had.
"""

import fcntl
import hashlib
import json
import os
import secrets
from collections.abc import Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import msgspec

from accel_lab.compute.machine.private_folder import create_private
from accel_lab.errors import SessionDamaged, SessionError
from accel_lab.session.store.commit import FORMAT, Commit
from accel_lab.session.store.streamed import Streamed
from accel_lab.session.store.trust import NO_SEAL, SEAL_BYTES, is_sealed, seal_of

ABOUT, LOCK, JOURNAL, COMMITS, CONTENTS = (
    "session.json",
    "lock",
    "journal.sqlite",
    "commits",
    "contents",
)
_MAGIC = b"accel_lab commit\n"
_DIGEST_BYTES = 32
_UNFINISHED = ".part"
WRITERS = 8
"""So many files are written at once; a disk takes eight in about the time of one."""
_open: set[tuple[int, int]] = set()
"""The locks of this process: the system asks only other processes."""
_left: set[tuple[int, int]] = set()
"""Those of them that are about to be given up."""

_encode = msgspec.msgpack.Encoder().encode


def key_of(data: bytes | memoryview) -> str:
    """Return the name of a content."""
    return hashlib.blake2b(data, digest_size=_DIGEST_BYTES).hexdigest()


def is_being_left(path: str | os.PathLike[str]) -> bool:
    """Whether this process has a folder open that is about to be closed."""
    with suppress(OSError):
        found = Path(path, LOCK).lstat()
        return (found.st_dev, found.st_ino) in _left
    return False


class Folder:
    """An open folder, which no other process can open meanwhile.

    Attributes:
        path: absolute.

    Raises:
        SessionError: it is no session's, of a later version, open elsewhere, or cannot be used.
        SessionDamaged: what tells its version is damaged.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path).absolute()
        self._lock = -1
        try:
            self._require_session()
            self.path.mkdir(mode=0o700, exist_ok=True)
            self._take_lock()
            try:
                self._begin()
            except BaseException:
                self.close()
                raise
        except OSError as error:
            text = f"{self.path} cannot be used as a session: {error.strerror}"
            raise SessionError(text) from error

    @property
    def journal(self) -> Path:
        """The file of what devices were sent."""
        return self.path / JOURNAL

    def leave(self) -> None:
        """Say that it is about to be closed, by a thread that somebody may wait for."""
        if self._lock >= 0:
            found = os.fstat(self._lock)
            _left.add((found.st_dev, found.st_ino))

    def close(self) -> None:
        """Let others open it; safe to repeat."""
        if self._lock >= 0:
            lock, self._lock = self._lock, -1
            found = os.fstat(lock)
            for locks in (_open, _left):
                locks.discard((found.st_dev, found.st_ino))
            os.close(lock)

    # Contents.

    def keep(self, data: bytes | memoryview) -> str:
        """Keep bytes, and return their key; on the disk with the next commit at the latest.

        Raises:
            SessionError: they cannot be written.
        """
        key = key_of(data)
        path = self.path / CONTENTS / key
        if not path.exists():
            self._write(path, data)
        return key

    def keep_all(self, many: Sequence[bytes]) -> None:
        """Keep several, as `keep`; all of them wait little longer for the disk than one."""
        if len(many) == 1:
            self.keep(many[0])
        elif many:
            with ThreadPoolExecutor(WRITERS, thread_name_prefix="accel_lab keeps") as pool:
                list(pool.map(self.keep, many))

    def content(self, key: str) -> bytes:
        """Return the bytes of a key.

        Raises:
            SessionDamaged: they are not there, or others.
        """
        path = self.content_path(key)
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            raise _damaged(path, "it is missing") from None
        except OSError as error:
            raise SessionError(f"{path} cannot be read: {error.strerror}") from error
        if key_of(data) != key:
            raise _damaged(path, f"its {len(data)} bytes are not those that it is named by")
        return data

    def streamed(self, key: str, nbytes: int) -> Streamed:
        """Return what reads the bytes of a key a part at a time, without holding them all.

        Raises:
            SessionDamaged: that is no key.
        """
        return Streamed(self.content_path(key), nbytes, _DIGEST_BYTES)

    def require(self, key: str) -> None:
        """Refuse to go on without a content; its bytes are not looked at.

        Raises:
            SessionDamaged: it is not there.
        """
        if not (path := self.content_path(key)).exists():
            raise _damaged(path, "it is missing")

    def content_path(self, key: str) -> Path:
        """Return where a content is.

        Raises:
            SessionDamaged: that is no key.
        """
        if len(key) != 2 * _DIGEST_BYTES or not set(key) <= set("0123456789abcdef"):
            raise _damaged(self.path / COMMITS, f"a commit names the content {key!r}")
        return self.path / CONTENTS / key

    # Commits.

    @property
    def numbers(self) -> list[int]:
        """The numbers of the commits, in order."""
        names = (path.name for path in (self.path / COMMITS).iterdir())
        return sorted(int(name) for name in names if name.isdigit())

    def write(self, commit: Commit, *, seal: bool = True) -> None:
        """Write a commit, when all that it names is on the disk.

        Parameters:
            seal: whether code in it is this user's, and so may run without leave.

        Raises:
            SessionError: it cannot be written; the commits before stay.
        """
        try:
            for name in (f"{JOURNAL}-wal", JOURNAL):
                with suppress(FileNotFoundError):
                    _sync(self.path / name)
            _sync(self.path / CONTENTS)
            _sync(self.path)
        except OSError as error:
            raise SessionError(f"{self.path} cannot be written: {error.strerror}") from error
        data = _encode(commit)
        path = self.commit_path(commit.number)
        digest = hashlib.blake2b(data, digest_size=_DIGEST_BYTES).digest()
        sealed = seal_of(data) if seal else NO_SEAL
        self._write(path, b"".join((_MAGIC, digest, sealed, data)))
        _sync(path.parent)

    def read(self, number: int) -> tuple[Commit, bool]:
        """Return a commit, and whether this user has written it.

        Raises:
            SessionDamaged: it is not there, or damaged.
            SessionError: it is of a later version.
        """
        path = self.commit_path(number)
        try:
            whole = path.read_bytes()
        except FileNotFoundError:
            raise _damaged(path, "it is missing") from None
        except OSError as error:
            raise SessionError(f"{path} cannot be read: {error.strerror}") from error
        head, rest = whole[: len(_MAGIC)], whole[len(_MAGIC) :]
        digest, seal = rest[:_DIGEST_BYTES], rest[_DIGEST_BYTES : _DIGEST_BYTES + SEAL_BYTES]
        data = rest[_DIGEST_BYTES + SEAL_BYTES :]
        is_whole = digest == hashlib.blake2b(data, digest_size=_DIGEST_BYTES).digest()
        if head != _MAGIC or not is_whole:
            raise _damaged(path, f"its {len(whole)} bytes are no whole commit")
        try:
            _refuse_later(path, msgspec.msgpack.decode(data).get("format"), "")
            return msgspec.msgpack.decode(data, type=Commit), is_sealed(data, seal)
        except (msgspec.MsgspecError, AttributeError) as error:
            raise _damaged(path, f"it is no commit: {error}") from error

    def commit_path(self, number: int) -> Path:
        """Return where a commit is."""
        return self.path / COMMITS / f"{number:06}"

    def remove(self, commits: Iterable[int], needed: Collection[str]) -> tuple[int, int]:
        """Remove commits, and then contents that are not needed; return how many, and their bytes.

        What is removed is never named by what is there: the commits are gone from the disk before.

        Raises:
            SessionError: the folder cannot be written.
        """
        count = nbytes = 0
        try:
            for number in commits:
                self.commit_path(number).unlink(missing_ok=True)
            _sync(self.path / COMMITS)
            for path in (self.path / CONTENTS).iterdir():
                if path.name not in needed and path.suffix != _UNFINISHED:
                    count, nbytes = count + 1, nbytes + path.stat().st_size
                    path.unlink()
            _sync(self.path / CONTENTS)
        except OSError as error:
            raise SessionError(f"{self.path} cannot be written: {error.strerror}") from error
        return count, nbytes

    # Opening.

    def _require_session(self) -> None:
        """Refuse a folder of something else before anything is written to it."""
        if not self.path.exists():
            return
        if not self.path.is_dir():
            raise SessionError(f"{self.path} is a file; a session is a folder")
        if not (self.path / ABOUT).exists():
            ours = {LOCK, *(f.name for f in self.path.iterdir() if f.suffix == _UNFINISHED)}
            if others := sorted({file.name for file in self.path.iterdir()} - ours):
                text = f"{self.path} is no session's folder: it has {others[0]} and no {ABOUT}"
                raise SessionError(text)

    def _take_lock(self) -> None:
        """Lock the folder, as long as this process lives.

        A lock of POSIX is the process's own: a child has it not, and the system takes it from a
        process that is killed.
        """
        path = self.path / LOCK
        with suppress(FileNotFoundError):
            found = path.lstat()
            if (found.st_dev, found.st_ino) in _open:  # to close it again would give up the lock
                raise _locked(self.path, "this process")
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            pid = os.pread(file, 32, 0).decode(errors="replace").strip()
            os.close(file)
            raise _locked(self.path, f"process {pid or 'unknown'}") from None
        os.ftruncate(file, 0)
        os.pwrite(file, str(os.getpid()).encode(), 0)
        found = os.fstat(file)
        _open.add((found.st_dev, found.st_ino))
        self._lock = file

    def _begin(self) -> None:
        """Read what the folder is, or make it one."""
        about = self.path / ABOUT
        if about.exists():
            try:
                told = json.loads(about.read_bytes())
                made, by = told["format"], str(told["accel_lab"])
            except (ValueError, KeyError, TypeError) as error:
                raise _damaged(about, f"it tells no version: {error}") from error
            _refuse_later(self.path, made, by)
        for name in (COMMITS, CONTENTS):
            (self.path / name).mkdir(mode=0o700, exist_ok=True)
            for left in (self.path / name).glob(f"*{_UNFINISHED}"):  # by one that was killed
                left.unlink()
        if not about.exists():
            told = {"format": FORMAT, "accel_lab": own_version()}
            self._write(about, json.dumps(told).encode())
            _sync(self.path)

    def _write(self, path: Path, data: bytes | memoryview) -> None:
        beside = path.with_name(f"{path.name}.{secrets.token_hex(4)}{_UNFINISHED}")
        try:
            with os.fdopen(create_private(beside), "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            beside.replace(path)
        except OSError as error:
            with suppress(OSError):
                beside.unlink(missing_ok=True)
            raise SessionError(f"{path} cannot be written: {error.strerror}") from error


def own_version() -> str:
    """Return the version of accel_lab; empty where it is run from a checkout."""
    try:
        return version("accel-lab")
    except PackageNotFoundError:
        return ""


def _sync(path: Path) -> None:
    """Have a file or folder on the disk."""
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def _refuse_later(path: Path, made: object, by: str) -> None:
    if type(made) is not int or made < 1:
        raise _damaged(path, f"its format is {made!r}")
    if made > FORMAT:
        who = f", written by accel_lab {by}" if by else ""
        text = f"{path} is of format {made}{who}; this version of accel_lab reads up to {FORMAT}"
        raise SessionError(text, remedy="Update accel_lab, or open it where it was written.")


def _locked(path: Path, who: str) -> SessionError:
    remedy = "Close it there with lab.close(), or end that process."
    return SessionError(f"{path} is open in {who}", remedy=remedy)


def _damaged(path: Path, why: str) -> SessionDamaged:
    return SessionDamaged(f"{path} is damaged: {why}", path=str(path))
