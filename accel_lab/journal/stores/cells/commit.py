"""A commit: the one cell by which groups are in a journal, all of them or none."""

from collections.abc import Iterator, Sequence

import msgspec

from accel_lab.journal.stores.cells.records import decoded
from accel_lab.journal.stores.group import Group
from accel_lab.journal.stores.store import Weighed

INLINE_BYTES = 2048
"""So much data stands in the commit: as much as what tells of it, which trimming reads anyway."""


class Fact(msgspec.Struct, array_like=True, frozen=True):
    """A group without its data, which stands in other cells, and its number, which follows."""

    device: str
    at: float
    count: int
    position: int
    entries: int
    generation: int
    cell: int | None
    keys: tuple[str, ...]
    nbytes: int
    checksum: int


class Commit(msgspec.Struct, array_like=True, frozen=True):
    """Groups of one session, numbered from `first` on.

    Attributes:
        token: names the partition of their data.
        count: how many groups they are.
        position: the last one's.
        facts: of the groups; empty where that is too large for a cell, and stands with the data.
        facts_bytes: how large it is there.
        inline: the data of all groups, where that is little; else it stands in cells of its own.
    """

    first: int
    count: int
    token: str
    session: str
    position: int
    facts: bytes
    facts_bytes: int = 0
    inline: bytes | None = None

    @property
    def is_alone(self) -> bool:
        """Whether no other cells belong to it."""
        return self.inline is not None and not self.facts_bytes

    @property
    def next(self) -> int:
        """The number behind its last group."""
        return self.first + self.count

    @property
    def key(self) -> str:
        """Its place among the commits."""
        return number_key(self.first)

    def encoded(self) -> bytes:
        """Return it as it is kept."""
        return _encode(self)

    def weighed(self, facts: Sequence[Fact], first: int) -> Iterator[Weighed]:
        """Yield those of its groups that are not gone, where those below `first` are."""
        for number, fact in enumerate(facts, self.first):
            if not fact.device or number >= first:
                yield Weighed(
                    number, self.session, fact.device, fact.entries, fact.nbytes, fact.keys
                )


def number_key(number: int) -> str:
    """Return the key of a number: keys are in the order of their bytes."""
    return f"{number:020}"


def fact_of(group: Group) -> Fact:
    """Return what stands in the commit of a group that has its number."""
    return Fact(
        group.device,
        group.at,
        group.count,
        group.position,
        group.entries,
        group.generation,
        group.cell,
        group.keys,
        group.nbytes,
        group.checksum,
    )


def group_of(commit: Commit, number: int, fact: Fact, data: bytes) -> Group:
    """Return the group of a fact and its data."""
    return Group(
        number,
        commit.session,
        fact.device,
        fact.at,
        fact.count,
        data,
        fact.position,
        fact.entries,
        fact.generation,
        fact.cell,
        fact.keys,
    )


def encode_facts(facts: Sequence[Fact]) -> bytes:
    """Return facts as they are kept."""
    return _encode(facts)


def decode_facts(data: bytes, name: str) -> list[Fact]:
    """Return the facts of a commit; `name` is the store's, for the error.

    Raises:
        JournalDamaged: they were not written so.
    """
    return decoded(_facts, data, name)


def decode_commit(data: bytes, name: str) -> Commit:
    """Return a commit; `name` is the store's, for the error.

    Raises:
        JournalDamaged: it was not written so.
    """
    return decoded(_commit, data, name)


_encode = msgspec.msgpack.Encoder().encode
_commit = msgspec.msgpack.Decoder(Commit)
_facts = msgspec.msgpack.Decoder(list[Fact])
