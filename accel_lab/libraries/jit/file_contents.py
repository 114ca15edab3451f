"""What files hold, for the keys of what is made of them."""

import hashlib
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

Known = tuple[int, int, int, int]


def sums_of(paths: Iterable[str]) -> list[tuple[str, str]]:
    """Return each path with the checksum of its contents, empty where nothing can be read.

    A file is read again when its size, its inode or one of its times has changed.
    """
    return [(path, _sum(path, known) if (known := _look(path)) else "") for path in paths]


def newest_ns(paths: Iterable[str]) -> int:
    """Return when the youngest of these files was changed, in ns of the clock on the wall."""
    return max((known[2] for path in paths if (known := _look(path))), default=0)


def _look(path: str) -> Known | None:
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return found.st_size, found.st_ino, max(found.st_mtime_ns, found.st_ctime_ns), found.st_mtime_ns


@lru_cache(maxsize=4096)
def _sum(path: str, known: Known) -> str:
    del known
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError:
        return ""
