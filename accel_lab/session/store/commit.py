"""What a session had at one moment: its names, as plain data that tells how to have them again."""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

FORMAT = 1
"""The version of what a folder holds."""


_KEYS: dict[Any, int] = {
    **dict.fromkeys(("text", "bytes", "bytearray", "large"), 0),
    **dict.fromkeys(("array", "number"), 3),
    **dict.fromkeys(("made", "kept"), 4),
}
"""Where an object has the key of a content, by the word that it begins with."""


class Send(msgspec.Struct, frozen=True, array_like=True, tag="send"):
    """Send a message of the record again; `key` is of the bytes that it took from the arena."""

    seq: int
    key: str


class Put(msgspec.Struct, frozen=True, array_like=True, tag="put"):
    """Make a buffer of what was kept of it, as a `Checkpoint` of the record says."""

    id: int
    key: str
    shape: tuple[int, ...]
    dtype: str
    axes: tuple[int, ...]


class Recipe(msgspec.Struct, frozen=True):
    """What makes buffers again that may share memory, in order.

    Attributes:
        session: in which the messages were recorded.
        device: to which they were sent.
        digest: of the bytes of the messages.
    """

    session: str
    device: str
    steps: list[Send | Put]
    digest: str


class Commit(msgspec.Struct, frozen=True):
    """The names of a notebook after one of its cells.

    Attributes:
        number: counts the commits of a folder, from 1.
        cell: the number of the cell behind which it was made; None of a program.
        source: the cell's text, without what looks like a secret.
        at: when, in seconds since 1970.
        names: what each name stands for, as `Encoder` says.
        objects: what several names may stand for, by position.
        randoms: where the global random generators of the process were.
        definitions: the key of the text that defines a function or a class, by name.
        lost: why a name is not kept.
        session: of the journal.
        format: the version of this.
    """

    number: int
    cell: int | None
    source: str
    at: float
    names: dict[str, Any]
    objects: list[Any]
    randoms: Any
    definitions: dict[str, str]
    lost: dict[str, str]
    session: str
    format: int = FORMAT

    @property
    def contents(self) -> set[str]:
        """The keys of all contents that it names."""
        return {*self.definitions.values(), *(key for _, key in self.keyed)}

    @property
    def keyed(self) -> Iterator[tuple[str, str]]:
        """The keys of contents that its nodes name, each with the word of the node."""
        return keyed([*self.objects, *self.names.values(), self.randoms])

    def __repr__(self) -> str:
        where = "" if self.cell is None else f" after cell {self.cell}"
        lost = "".join(f"\n  not kept: {name}: {why}" for name, why in self.lost.items())
        return f"<Commit {self.number}{where}: {names_of(self.names)}>{lost}"


def keyed(nodes: list[Any]) -> Iterator[tuple[str, str]]:
    """Yield the keys of contents that nodes name, each with the word of its node."""
    ahead = list(nodes)
    while ahead:
        node = ahead.pop()
        if isinstance(node, list) and node:
            word, *parts = node
            at = _KEYS.get(word, len(parts)) if isinstance(word, str) else len(parts)
            key = parts[at] if at < len(parts) else None
            if isinstance(key, str):
                yield word, key
            elif word not in ("o", "made", "kept"):
                ahead += parts


def names_of(names: Mapping[str, object]) -> str:
    """Return how many names these are, and which, as far as that is short."""
    few = 12
    listed = ", ".join(sorted(names)[:few])
    more = ", …" if len(names) > few else ""
    count = f"{len(names)} name{'' if len(names) == 1 else 's'}"
    return f"{count}: {listed}{more}" if names else count
