"""The device tree as a frozen snapshot: what `lab.tree()` returns and the views draw."""

from collections.abc import Iterator
from typing import Literal

import msgspec

Kind = Literal["system", "device", "context", "library", "actor"]
State = Literal[
    "starting", "running", "suspended", "restarting", "circuit open", "half-open", "stopped"
]


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """One actor at one moment, with its children.

    Attributes:
        name: unique among its siblings.
        path: the names from the root, joined by `/`.
        kind: what it is.
        state: what it is doing.
        generation: of a device or context; None elsewhere.
        mailbox: messages that wait in the kernel process.
        in_flight: messages sent and not yet answered.
        used_bytes, total_bytes: device memory; None where it has no meaning.
        restarts: how often it was restarted since the system began.
        detail: one line for people: the device's model, the last cause of a restart.
        pid: of a context's process; None elsewhere, and while there is none.
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
    children: tuple["Node", ...] = ()

    def walk(self) -> Iterator["Node"]:
        """Yield this node and all below it, parents first."""
        yield self
        for child in self.children:
            yield from child.walk()
