"""The options after `%%gpu`: a device, the names to take, whether to be quiet."""

import re
import shlex
from typing import NamedTuple

from accel_lab.errors import InvalidArgument

_COMMA = re.compile(r"\s*,\s*")
COMMAS = "names behind -o are separated by commas"
USAGE = "%%gpu [device] [-o name,…] [--quiet]"


class Options(NamedTuple):
    """What stands behind `%%gpu`.

    `meant` is what `-o` may have been meant to take, if the device stands right behind its names.
    """

    device: str | None
    names: frozenset[str] | None
    quiet: bool
    meant: str


def parse(line: str) -> Options:
    """Read what stands behind `%%gpu`.

    Raises:
        InvalidArgument: it is not as USAGE says.
    """
    device, names, quiet = None, None, False
    listed = meant = ""  # behind -o, as long as nothing else has followed
    words = iter(shlex.split(_COMMA.sub(",", line)))
    for word in words:
        if word == "--quiet":
            quiet, listed = True, ""
        elif word == "-o":
            listed = next(words, "")
            names = frozenset(name for name in listed.split(",") if name)
            if not names or not all(name.isidentifier() for name in names):
                raise InvalidArgument(f"-o takes names, separated by commas: {USAGE}")
        elif listed and device is not None and word.isidentifier():
            raise InvalidArgument(f"{COMMAS}: -o {meant or listed},{word}")
        elif word.startswith("-") or device is not None:
            raise InvalidArgument(f"{word!r} is not understood: {USAGE}")
        else:
            device = word
            meant = f"{listed},{word}" if listed and word.isidentifier() else ""
    return Options(device, names, quiet, meant)
