"""Files of this user alone, in folders to which nobody else can write: what is run, or secret."""

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path


def is_private(folder: Path) -> bool:
    """Whether a folder is this user's, and nobody else can put something in its place.

    It must not be a link. Whoever may write to a folder above it may replace it, unless that is a
    shared one where only owners do (sticky), as /tmp. A group of the user's own name and number,
    as many systems give to each user, is nobody else.
    """
    try:
        if not _is_safe(os.lstat(folder), {os.geteuid()}):
            return False
        above = folder.resolve(strict=True).parents
        return all(_is_safe(one.stat(), {os.geteuid(), 0}, shared=True) for one in above)
    except OSError:
        return False


def read_private(path: Path) -> bytes:
    """Return the bytes of a file that is this user's and to which nobody else can write.

    Raises:
        PermissionError: it is another's, others can write to it, or it is a link or no file.
        OSError: it cannot be read, or is not there.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise PermissionError(f"{path} is a link") from error
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        is_own = stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid()
        if not is_own or _others_write(found):
            raise PermissionError(f"others can write to {path}")
        return file.read()


def create_private(path: Path) -> int:
    """Make a file that this user alone can read and write, and return its descriptor.

    Raises:
        FileExistsError: it is there.
        OSError: it cannot be made.
    """
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)


def private_opener(path: str, flags: int) -> int:
    """Open a file for `open(…, opener=)`, so that this user alone can read and write it.

    One that is there is made so, too, if it is this user's; a device or a pipe stays what it is.

    Raises:
        OSError: it cannot be opened.
    """
    descriptor = os.open(path, flags | os.O_CLOEXEC, 0o600)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        with suppress(PermissionError):
            os.fchmod(descriptor, 0o600)
    return descriptor


def _is_safe(found: os.stat_result, owners: set[int], *, shared: bool = False) -> bool:
    if not stat.S_ISDIR(found.st_mode) or found.st_uid not in owners:
        return False
    if shared and found.st_mode & stat.S_ISVTX:
        return True
    return not _others_write(found)


def _others_write(found: os.stat_result) -> bool:
    own_group = found.st_gid == os.getegid() == os.geteuid()
    return bool(found.st_mode & (stat.S_IWOTH | (0 if own_group else stat.S_IWGRP)))
