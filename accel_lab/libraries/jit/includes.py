"""Which files a source may include, read off its text: for compilers that do not tell."""

import re
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import NamedTuple

_SPLICE = re.compile(r"\\[ \t]*\r?\n")
_INCLUDE = re.compile(
    r"(?:#\s*include(?:_next)?|__has_include(?:_next)?\s*\()\s*(?P<open>[\"<]?)(?P<name>[^\">\n]*)"
)


class Includes(NamedTuple):
    """What was found.

    Attributes:
        paths: of the files, and where one would be found before them that is not there now.
        whole: whether these are all: a macro after `#include` may stand for any.
    """

    paths: list[str]
    whole: bool


def includes_of(
    texts: Iterable[str], known: Collection[str], folders: Collection[str], settled: Iterable[str]
) -> Includes:
    """Follow the includes of texts through the files on disk.

    Parameters:
        known: names that stand for no files.
        folders: where a relative name is looked for, in this order.
        settled: where it is looked for after that; what is there is not followed.
    """
    settled = tuple(settled)
    found: dict[str, None] = {}
    whole = True
    ahead: list[tuple[str, str]] = [(text, "") for text in texts]
    while ahead:
        text, folder = ahead.pop()
        for include in _INCLUDE.finditer(_SPLICE.sub("", text)):
            name = include["name"]
            whole = whole and bool(include["open"])
            if not include["open"] or name in known:
                continue
            for path in _candidates(name, (folder, *folders, *settled)):
                is_new = path not in found
                found[path] = None
                if Path(path).is_file():
                    if is_new and not path.startswith(settled):
                        ahead.append((_text(path), str(Path(path).parent)))
                    break
    return Includes(sorted(found), whole)


def _candidates(name: str, folders: Iterable[str]) -> list[str]:
    """Return where a compiler looks for a name, in order."""
    return [name] if name.startswith("/") else [f"{one}/{name}" for one in folders if one]


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
