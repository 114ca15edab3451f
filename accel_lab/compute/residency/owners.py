"""The largest owners in an OutOfMemory: messages, and the names that keep their buffers.

The context knows the messages and the names of `%%gpu` cells, the notebook knows its own names: so
the text is finished where the error arrives.
"""

from contextlib import suppress
from typing import Any, Protocol

from accel_lab.compute.message.buffer import Ref
from accel_lab.compute.residency import kept_tracebacks
from accel_lab.compute.residency.notebook_names import LIMIT_S, handles, names
from accel_lab.display.owners import told
from accel_lab.errors import OutOfMemory


class Holder(Protocol):
    """A device, as far as the owners of its memory are concerned."""

    def holds(self, ref: Ref[Any]) -> bool:
        """Whether a buffer is, or is about to be, in the current generation."""


def name_owners(error: OutOfMemory, device: Holder) -> None:
    """Add the notebook's names to what is known of the owners; any thread, never raises.

    Takes 10 ms of the processor at most where the notebook has very many names.
    """
    with suppress(Exception):  # strange as the names may be, the error itself is to arrive
        by_id = _names(device)
        kept_by = tuple(
            tuple(dict.fromkeys((*_of(ids, by_id), *known)))
            for ids, known in zip(error.owner_ids, error.kept_by, strict=True)
        )
        # Behind it may stand the lines of the user's own code.
        text, _, behind = str(error).rpartition(told(error.owners, error.kept_by))
        error.kept_by = kept_by
        error.args = (f"{text}{told(error.owners, kept_by)}{behind}",)


def _names(device: Holder) -> dict[int, list[str]]:
    """Return the names that lead to handles of a device, by buffer."""
    space = names()
    found: dict[int, list[str]] = {}
    for source in (handles(space, LIMIT_S), kept_tracebacks.handles_in_frames(space)):
        for name, ref in source:
            if ref.device is device and device.holds(ref):
                found.setdefault(ref.id, []).append(name)
    return found


def _of(ids: tuple[int, ...], by_id: dict[int, list[str]]) -> list[str]:
    return [name for id_ in ids for name in by_id.get(id_, ())]
