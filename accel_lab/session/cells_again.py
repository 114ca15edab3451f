"""Run the `%%gpu` cells of a folder again: what they leave in a context is no data to be kept.

Each finds the notebook's names as they were before it, from the commit behind the cell before.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np

from accel_lab import extension
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.residency.notebook_names import Namespace
from accel_lab.errors import AccelError
from accel_lab.notebook.object_ref import ObjectRef
from accel_lab.session.decoder import DEFINED, Decoder, NeedsCells, NeedsLeave
from accel_lab.session.notebook import Definitions
from accel_lab.session.store.commit import Commit
from accel_lab.telemetry.secrets import GONE

MAGIC = "%%gpu"


def gpu_cell(source: str) -> tuple[str, str] | None:
    """Return the line and the text of a `%%gpu` cell; None of another."""
    head, _, body = source.lstrip().partition("\n")
    words = head.split(maxsplit=1)
    return ("".join(words[1:]), body) if words and words[0] == MAGIC else None


class CellsAgain:
    """Runs cells in the notebook of this process, whose names are as they were when it is done.

    Attributes:
        made: what the cells have left, by the notebook's names.
        count: how many have run.
        failed: how those failed that did, the last one; some have failed before.

    Parameters:
        names: the notebook's.
        decoder: returns what decodes a commit.
    """

    def __init__(
        self, names: Namespace, decoder: Callable[[Commit], Decoder], definitions: Definitions
    ) -> None:
        self.made: dict[str, Any] = {}
        self.count = 0
        self.failed = ""
        self._bound: set[str] = set()
        self._names = names
        self._decoder = decoder
        self._definitions = definitions

    def run(self, commits: list[Commit]) -> None:
        """Run those of the cells that begin with `%%gpu`, in order; blocks until they have run."""
        saved, before = dict(self._names), None
        try:
            for commit in commits:
                if (cell := gpu_cell(commit.source)) is not None and GONE not in commit.source:
                    self._bind(before)
                    self._run(*cell)
                before = commit
        finally:
            for name in self._names.keys() - saved.keys():
                del self._names[name]
            self._names.update(saved)

    def _run(self, line: str, source: str) -> None:
        self.count += 1
        before = dict(self._names)
        try:
            extension.gpu(line, source)
        except Exception as error:  # noqa: BLE001 - the cell's own, as it was before
            self.failed = f"{type(error).__name__}: {error}"
        for name, one in self._names.items():
            if isinstance(one, AccelRef | ObjectRef) and before.get(name) is not one:
                self.made[name] = one
        for name in self.made.keys() - self._names.keys():
            del self.made[name]

    def _bind(self, before: Commit | None) -> None:
        """Bind the names as they were behind a commit."""
        if before is None:
            return
        decoder, defined = self._decoder(before), set[str]()
        for name in (self.made.keys() | self._bound) - before.names.keys():
            self._names.pop(name, None)
        self._bound.update(before.names)
        for name in before.names:
            with suppress(NeedsLeave, NeedsCells, AccelError):
                value = self.value(decoder, name)
                if value is DEFINED:
                    defined.add(name)
                else:
                    self._names[name] = value
        self._definitions.define(defined, before.definitions, self._names)
        with suppress(AccelError):
            decoder.set_randoms()

    def value(self, decoder: Decoder, name: str) -> Any:
        """Return what a name stood for: what the cells have left, where that is what it was.

        Raises:
            NeedsCells: it was an object that they have not left.
            NeedsLeave, AccelError: as `Decoder.value`.
        """
        made = self.made.get(name)
        if isinstance(made, ObjectRef) and decoder.is_object(name):
            return made
        value = decoder.value(name)
        if isinstance(made, AccelRef) and isinstance(value, AccelRef) and _are_equal(made, value):
            return made  # what the cells' objects share with it they still share
        return value


def _are_equal(one: AccelRef, other: AccelRef) -> bool:
    with suppress(AccelError):
        if one.shape == other.shape and one.dtype == other.dtype:
            a, b = (np.ascontiguousarray(ref.device.get(ref).result()) for ref in (one, other))
            return a.tobytes() == b.tobytes()
    return False
