"""A group: what one pass over one device's record took, as a store keeps it."""

import zlib
from collections.abc import Sequence

import msgspec

FACTS_BYTES = 160
"""About what a store takes for a group beside its data, and for a content beside its bytes."""
KEY_BYTES = 40
"""About what it takes for each content that a group names."""


def weight_of(nbytes: int, keys: Sequence[str]) -> int:
    """Return what a store takes for a group of so much data that names these contents."""
    return nbytes + FACTS_BYTES + KEY_BYTES * len(keys)


class Group(msgspec.Struct, frozen=True):
    """The unit of commit: a store has all of it or nothing.

    A group with an empty device holds the facts of a session, one msgpack map; it is the first of
    its session and stays as long as any other.

    Attributes:
        number: its place in the store, from 1 and without a gap; 0 until it is appended.
        session: the system that it is of.
        device: the device's name; empty for the facts of a session.
        at: when it was gathered, in seconds since 1970.
        count: how many parts `data` has.
        data: the parts one after another, each one msgpack value.
        position: its place in its session, from 0; a gap says that groups were lost before.
        entries: how many of the parts are entries to read; the others say who sent them.
        generation: of the device's context where the group begins.
        cell: the notebook cell that sent what the group begins with.
        keys: the contents that it names, in order of appearance.
        plain: whether it is known to hold no marker but who sends; tables do not keep that.
    """

    number: int
    session: str
    device: str
    at: float
    count: int
    data: bytes
    position: int = 0
    entries: int = 0
    generation: int = 1
    cell: int | None = None
    keys: tuple[str, ...] = ()
    plain: bool = False

    @property
    def nbytes(self) -> int:
        """Its data's size in bytes."""
        return len(self.data)

    @property
    def weight(self) -> int:
        """What a store takes for it, about; what is bounded is this."""
        return weight_of(self.nbytes, self.keys)

    @property
    def identity(self) -> tuple[int, str, int]:
        """Its number, session and position: no other has these, in whichever journal."""
        return self.number, self.session, self.position

    def numbered(self, number: int) -> "Group":
        """Return it with its place in a store."""
        return msgspec.structs.replace(self, number=number)

    @property
    def checksum(self) -> int:
        """CRC-32 of everything above but `plain`."""
        facts = (
            self.number,
            self.session,
            self.device,
            self.at,
            self.count,
            self.position,
            self.entries,
            self.generation,
            self.cell,
            self.keys,
        )
        return zlib.crc32(self.data, zlib.crc32(_encode(facts)))


_encode = msgspec.msgpack.Encoder().encode
