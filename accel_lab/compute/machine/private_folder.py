"""Whether others can write to a folder, whose files are to be run."""

import os
import stat
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


def _is_safe(found: os.stat_result, owners: set[int], *, shared: bool = False) -> bool:
    if not stat.S_ISDIR(found.st_mode) or found.st_uid not in owners:
        return False
    if shared and found.st_mode & stat.S_ISVTX:
        return True
    own_group = found.st_gid == os.getegid() == os.geteuid()
    return not found.st_mode & (stat.S_IWOTH | (0 if own_group else stat.S_IWGRP))
