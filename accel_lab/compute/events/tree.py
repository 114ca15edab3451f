"""The device tree as a frozen snapshot: what `lab.tree()` returns and the views draw."""

from collections.abc import Iterator
from typing import Any, Literal

import msgspec

from accel_lab.display.sizes import memory
from accel_lab.display.table import as_html, as_tree

COLUMNS = ("Actor", "State", "Generation", "Mailbox", "In flight", "Memory", "Restarts", "Detail")
HEADS = ("Actor", "State", "Gen", "Mailbox", "In flight", "Memory", "Restarts")
"""Of the columns as text, which is no wider than a terminal; a detail stands below its row."""
NUMBERS = {"Mailbox", "In flight", "Restarts"}

Kind = Literal["system", "device", "context", "library", "actor"]
State = Literal[
    "starting",
    "running",
    "suspended",
    "restarting",
    "circuit open",
    "half-open",
    "stopped",
    "not recorded",
]
"""The last is of the past alone, where nothing says what it was doing."""


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """One actor at one moment, with its children.

    Attributes:
        name: unique among its siblings.
        path: the names from the root, joined by `/`.
        kind: what it is.
        state: what it is doing.
        generation: of a device or context; None elsewhere.
        mailbox: messages that wait: their context has not begun them, or an actor's own. Those of
            all below it count, too.
        in_flight: messages that their context has begun and not yet answered.
        used_bytes, total_bytes: device memory; None where it has no meaning.
        restarts: how often it was restarted since the system began.
        detail: one line for people: the device's model, the last cause of a restart.
        pid: of a context's process; None elsewhere, and while there is none.
        stream: on which a library enqueues; others may have the same.
        kept: what the host has of a system or of a device, beside its memory, as (what, bytes).
    """

    name: str
    path: str
    kind: Kind
    state: State
    generation: int | None = None
    mailbox: int = 0
    in_flight: int = 0
    used_bytes: int | None = None
    total_bytes: int | None = None
    restarts: int = 0
    detail: str = ""
    pid: int | None = None
    stream: str = ""
    kept: tuple[tuple[str, int], ...] = ()
    children: tuple["Node", ...] = ()

    def walk(self) -> Iterator["Node"]:
        """Yield this node and all below it, parents first."""
        yield self
        for child in self.children:
            yield from child.walk()

    def __repr__(self) -> str:
        """Draw it and all below it as an indented tree in aligned columns."""
        rows = ((branch, node.name, *_cells(node)) for branch, node in _drawn(self, "", ""))
        return "\n".join(as_tree(HEADS, rows, NUMBERS))

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:  # noqa: FBT001 - IPython calls it
        del cycle
        printer.text(repr(self))

    def _repr_html_(self) -> str:
        rows = ((node.path, *_cells(node)) for node in self.walk())
        return as_html(f"{self.name}: {self.state}", COLUMNS, rows)


def _drawn(node: Node, branch: str, indent: str) -> Iterator[tuple[str, Node]]:
    """Yield each actor with what is drawn before its name."""
    yield branch, node
    for child in node.children:
        begins, goes_on = ("└─ ", "   ") if child is node.children[-1] else ("├─ ", "│  ")
        yield from _drawn(child, indent + begins, indent + goes_on)


def _cells(node: Node) -> tuple[str, ...]:
    """What stands in each column after the name."""
    return (
        node.state,
        "" if node.generation is None else f"g{node.generation}",
        str(node.mailbox),
        str(node.in_flight),
        memory(node.used_bytes, node.total_bytes),
        str(node.restarts),
        node.detail,
    )
