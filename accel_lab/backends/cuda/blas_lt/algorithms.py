"""The algorithms found for products, kept on disk for each card and version of cuBLASLt.

An algorithm is 64 bytes that only the version of the library understands which made them. One that
was measured stays; others are what the library guesses. Several contexts may share the file.
"""

import json
import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from accel_lab.compute.machine.disk_cache import key_of
from accel_lab.compute.machine.private_folder import is_private, read_private

FORMAT = 1
BYTES = 64
MOST = 4096
"""So many are kept; the oldest guesses go first."""
SAVED_AFTER = 32
"""So many new ones are written at once."""


class Algorithm(NamedTuple):
    """One way to do a product.

    Attributes:
        data: what cuBLASLt takes.
        workspace_bytes: how much memory it works in.
        measured: whether it was the fastest of several, else the library's guess.
    """

    data: bytes
    workspace_bytes: int
    measured: bool = False


class Algorithms:
    """Those of one card and one version; for one thread.

    Parameters:
        folder: where the file is, and with it those of others.
        card, version: of what they are.
        most: how many are kept.
    """

    def __init__(self, folder: Path, card: str, version: int, most: int = MOST) -> None:
        self.path = folder / f"{key_of(FORMAT, card, version)}.json"
        self._known = _read(self.path)
        self._unsaved = 0
        self._most = most

    def __len__(self) -> int:
        return len(self._known)

    def get(self, key: object) -> Algorithm | None:
        """Return what was found for a product."""
        return self._known.get(key_of(key))

    def drop(self, key: object) -> None:
        """Forget one that the library does not take."""
        self._known.pop(key_of(key), None)

    def put(self, key: object, algorithm: Algorithm) -> None:
        """Keep one; those that were measured are on disk at once, others with the next save."""
        self._known[key_of(key)] = algorithm
        self._trim()
        self._unsaved += 1
        if algorithm.measured or self._unsaved >= SAVED_AFTER:
            self.save()

    def save(self) -> None:
        """Write the file anew, with what other contexts have written since."""
        if not self._unsaved:
            return
        self._unsaved = 0
        others, mine = _read(self.path), self._known
        known = {key: one for key, one in others.items() if key not in mine}
        for key, one in mine.items():
            other = others.get(key, one)
            known[key] = other if other.measured and not one.measured else one
        self._known = known
        self._trim()
        text = json.dumps({key: [one.data.hex(), *one[1:]] for key, one in self._known.items()})
        with suppress(OSError):  # then they are found anew in each process
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor, name = tempfile.mkstemp(dir=self.path.parent, suffix=".unfinished")
            with os.fdopen(descriptor, "w") as file:
                file.write(text)
            Path(name).replace(self.path)

    def _trim(self) -> None:
        """Forget the oldest where there are too many, guesses before all."""
        over = len(self._known) - self._most
        if over > 0:
            guesses = [key for key, one in self._known.items() if not one.measured]
            for key in (guesses or list(self._known))[: max(over, self._most // 2)]:
                del self._known[key]


def _read(path: Path) -> dict[str, Algorithm]:
    """Return what is in a file, unless it is damaged or others could have written it."""
    try:
        if not is_private(path.parent):
            return {}
        found: dict[str, Any] = json.loads(read_private(path))
        known = {key: Algorithm(bytes.fromhex(one[0]), *one[1:]) for key, one in found.items()}
    except (OSError, ValueError, TypeError, AttributeError, LookupError):
        return {}
    return {key: one for key, one in known.items() if _is_whole(one)}


def _is_whole(one: Algorithm) -> bool:
    sizes = len(one.data) == BYTES and type(one.workspace_bytes) is int
    return sizes and type(one.measured) is bool
