"""Files that are expensive to make, kept on disk between processes.

An entry is a folder of a few files, named by a key. It appears at once, by a rename, so that any
number of processes may use one cache; its files stay where they are, fit to be loaded or read by a
debugger. Damage is found by checksums, and the least recently used entries go when there are too
many bytes. What an entry holds is run, so only what this user has written counts, in a folder to
which nobody else can write.
"""

import hashlib
import json
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from accel_lab.compute.machine.private_folder import create_private, is_private, read_private

LIMIT_BYTES = 1 << 30
INDEX = "index.json"
_UNFINISHED = ".unfinished-"
_UNFINISHED_AFTER_S = 3600.0
_KEY_LENGTH = 40


def cache_folder() -> Path:
    """Return where the user's caches are: `ACCEL_LAB_CACHE`, or `accel_lab` in the XDG folder.

    For a user without a home it is in the folder for temporary files.
    """
    if given := os.environ.get("ACCEL_LAB_CACHE"):
        return Path(given)
    if given := os.environ.get("XDG_CACHE_HOME"):
        return Path(given) / "accel_lab"
    try:
        return Path.home() / ".cache" / "accel_lab"
    except RuntimeError:  # no HOME, and the user is in no table of users, as in a container
        return _folder_without_home(Path(tempfile.gettempdir()) / f"accel_lab-{os.geteuid()}")


def _folder_without_home(folder: Path) -> Path:
    """Make a folder that is this user's alone; another one where that is somebody else's."""
    with suppress(FileExistsError):
        folder.mkdir(0o700)
    found = folder.lstat()
    is_ours = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()
    if is_ours and not found.st_mode & 0o077:
        return folder
    return Path(tempfile.mkdtemp(prefix="accel_lab-"))


def key_of(*parts: object) -> str:
    """Return the key of what is made of these parts, each told by its `repr`."""
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:_KEY_LENGTH]


class DiskCache:
    """Entries of one kind in one folder; any thread and any process.

    Attributes:
        folder: where the entries are; made with the first one.
        hits, misses, damaged: how often `get` found an entry, none, or one that it dropped.
    """

    def __init__(self, folder: Path, limit_bytes: int = LIMIT_BYTES) -> None:
        self.folder = folder
        self.limit_bytes = limit_bytes
        self.hits = 0
        self.misses = 0
        self.damaged = 0

    def path(self, key: str) -> Path:
        """Return the folder of an entry, which need not exist."""
        return self.folder / key

    def get(self, key: str) -> dict[str, bytes] | None:
        """Return the files of an entry by name, or None; a damaged entry is removed.

        What others could have written is not looked at.
        """
        entry = self.path(key)
        try:
            if entry.exists() and not is_private(entry):
                self.misses += 1
                return None
            sums = json.loads(read_private(entry / INDEX))
            files = {name: read_private(entry / name) for name in sums}
            intact = all(_sum(data) == sums[name] for name, data in files.items())
        except FileNotFoundError:
            intact = not entry.exists()  # without an index it is damaged; else there is none
            files = {}
        except PermissionError:
            self.misses += 1
            return None
        except (OSError, ValueError, TypeError):
            intact, files = False, {}
        if not intact:
            self.damaged += 1
            self._remove(entry)
        if not intact or not files:
            self.misses += 1
            return None
        self.hits += 1
        with suppress(OSError):  # another process may just have evicted it; we have read it
            os.utime(entry)
        return files

    def put(self, key: str, files: Mapping[str, bytes], *, anew: bool = False) -> Path:
        """Enter files under a key and return their folder; the first of two entries stays.

        Parameters:
            anew: whether they take the place of an entry that is there.

        Raises:
            OSError: the folder cannot be written to, or others can write to it, too.
        """
        self._make()
        if not is_private(self.folder):
            raise PermissionError(f"others can write to {self.folder}, or replace it")
        temporary = Path(tempfile.mkdtemp(prefix=_UNFINISHED, dir=self.folder))
        try:
            for name, data in files.items():
                _write(temporary / name, data)
            sums = {name: _sum(data) for name, data in files.items()}
            _write(temporary / INDEX, json.dumps(sums).encode())
            if anew:
                self._remove(self.path(key))
            with suppress(FileExistsError):
                self._publish(temporary, self.path(key))
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
        self.trim(keep=key)
        return self.path(key)

    @contextmanager
    def workplace(self) -> Iterator[Path]:
        """Make an empty folder to work in, and remove it; beside the entries if that may be."""
        try:
            self._make()
            beside = self.folder if is_private(self.folder) else None
            folder = Path(tempfile.mkdtemp(prefix=_UNFINISHED, dir=beside))
        except OSError:
            folder = Path(tempfile.mkdtemp(prefix="accel_lab-"))
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def trim(self, *, keep: str = "") -> None:
        """Remove the least recently used entries, but not `keep`, until the rest is in bounds."""
        ages: list[tuple[float, int, Path]] = []
        now = time.time()
        with suppress(FileNotFoundError):
            for entry in self.folder.iterdir():
                with suppress(OSError):  # another process has removed it meanwhile
                    used = entry.stat().st_mtime
                    if not entry.name.startswith(_UNFINISHED):
                        size = sum(file.stat().st_size for file in entry.iterdir())
                        ages.append((used, size, entry))
                    elif now - used > _UNFINISHED_AFTER_S:
                        shutil.rmtree(entry, ignore_errors=True)
        total = sum(size for _, size, _ in ages)
        for _, size, entry in sorted(ages):
            if total <= self.limit_bytes:
                return
            if entry.name != keep:
                self._remove(entry)
                total -= size

    def _make(self) -> None:
        """Make the folder, and those of ours above it, for this user alone."""
        for folder in reversed([self.folder, *self.folder.parents]):
            if not folder.exists():
                folder.mkdir(mode=0o700, exist_ok=True)

    def _publish(self, temporary: Path, entry: Path) -> None:
        try:
            temporary.rename(entry)
        except OSError:
            if not entry.is_dir():
                raise
            raise FileExistsError(entry) from None

    def _remove(self, entry: Path) -> None:
        """Take an entry away at once, so that nobody finds half of it."""
        with suppress(OSError):
            grave = Path(tempfile.mkdtemp(prefix=_UNFINISHED, dir=self.folder))
            with suppress(OSError):
                entry.rename(grave / entry.name)
            shutil.rmtree(grave, ignore_errors=True)


def _write(path: Path, data: bytes) -> None:
    with os.fdopen(create_private(path), "wb") as file:
        file.write(data)


def _sum(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
