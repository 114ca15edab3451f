"""What code in a context displays, on its way to its cell: as IPython's own, in order with text.

A context pickles it, for it may be anything that a front end takes; the notebook publishes it.
"""

import base64
import sys
from typing import Any, NamedTuple, TypeAlias

import cloudpickle

from accel_lab.compute.wire import main_classes
from accel_lab.compute.wire.codec import FRAME_LIMIT, Display, Report

PART_BYTES = FRAME_LIMIT // 2


class Shown(NamedTuple):
    """Data by MIME type, as `DisplayPublisher.publish` takes it."""

    data: dict[str, Any]
    metadata: dict[str, Any]
    transient: dict[str, Any]
    update: bool = False


class Cleared(NamedTuple):
    """Clear the cell's output: now, or when there is something new."""

    wait: bool


Act: TypeAlias = Shown | Cleared


def packed(act: Act) -> bytes:
    """Return it as bytes.

    Raises:
        Exception: it does not pickle.
    """
    data: bytes = cloudpickle.dumps(act)
    return data


def parts_of(seq: int, data: bytes) -> list[Report]:
    """Cut a packed act to what frames can hold."""
    cut = [data[start : start + PART_BYTES] for start in range(0, len(data), PART_BYTES)]
    return [Display(seq, number, len(cut), part) for number, part in enumerate(cut)]


class Gathering:
    """Joins the parts that come over one wire; one an interrupt has cut short is forgotten."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def take(self, display: Display) -> Act | None:
        """Take the next part; return the whole after the last.

        Raises:
            Exception: it holds what only the context can import.
        """
        if display.number == 0:
            self._parts.clear()
        self._parts.append(display.part)
        if display.number + 1 < display.count or len(self._parts) < display.count:
            return None
        data = b"".join(self._parts)
        self._parts.clear()
        act: Act = main_classes.loads(data)
        return act


def publish(act: Act) -> None:
    """Show it below the cell that runs; outside a notebook, print its text."""
    interactive = sys.modules.get("IPython")
    shell = interactive.get_ipython() if interactive is not None else None
    if isinstance(act, Cleared):
        if shell is not None:
            shell.display_pub.clear_output(act.wait)
        return
    data = {
        mime: base64.b64encode(value).decode() if isinstance(value, bytes) else value
        for mime, value in act.data.items()
    }
    if shell is not None:
        shell.display_pub.publish(data, act.metadata, transient=act.transient, update=act.update)
    elif "text/plain" in data:
        sys.stdout.write(f"{data['text/plain']}\n")
