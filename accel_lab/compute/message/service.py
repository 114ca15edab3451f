"""Stand-ins in a call for objects that the context has: its cells, its memory, its files.

A function that is called in a context has it from its arguments, and looks for no context itself:
`device.run(Workspaces.drop, in_context(Workspaces), …)`.
"""

from typing import Any, NamedTuple, TypeVar, cast

S = TypeVar("S")


class Service(NamedTuple):
    """Stands for the one object of this kind that a context has; travels as the kind alone."""

    kind: type[Any]


def in_context(kind: type[S]) -> S:
    """Return what is the context's own object of this kind when the call gets there."""
    return cast("S", Service(kind))
