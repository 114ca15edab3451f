"""What a place for journals has to do: four methods, and `close`."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from accel_lab.journal.stores.group import FACTS_BYTES, Group, weight_of
from accel_lab.uncopied import Uncopied


class Trimmed(NamedTuple):
    """What `Store.trim` forgot, and what is left.

    Attributes:
        groups: how many groups went.
        entries: how many entries these had.
        keys: the contents that went, in bytes by key.
        kept_bytes: what is left, with what tells of it.
    """

    groups: int
    entries: int
    keys: Mapping[str, int]
    kept_bytes: int


class Store(Uncopied, ABC):
    """Keeps groups in order and contents by key; every method may be called from any thread.

    It connects when it is first used, and again after its server or file was away. Every method
    may block, and raises:
        JournalUnavailable: it cannot be reached, or has no room; calling again later may do.
        JournalDamaged: it holds something that was not written so.
        JournalError: it is of a later version, or no journal.
    """

    _instead = "open another of the same file or server"

    name: str
    """What it is called in events and tables; without a password."""

    @abstractmethod
    def append(self, groups: Sequence[Group], contents: Mapping[str, bytes]) -> int:
        """Add groups of one session and contents, all or nothing; returns the last number given.

        A group whose position its session already has is left out, so that a commit of which
        nobody knows whether it happened can be repeated. Contents that are there are left alone.
        """

    @abstractmethod
    def groups(self, after: int = 0) -> Iterator[Group]:
        """Yield the groups with numbers above `after`, in order, those being appended too.

        Raises:
            JournalDamaged: after everything before the damage was yielded.
        """

    @abstractmethod
    def content(self, key: str) -> bytes | None:
        """Return the bytes of a key, None when they are not here."""

    @abstractmethod
    def trim(self, keep_bytes: int) -> Trimmed:
        """Forget the oldest groups, and contents that no group names, until so much is left.

        Contents give way first: they push no group out that fits into half of it. The facts of a
        session go with its last group. Keeps what is being appended meanwhile.
        """

    @abstractmethod
    def close(self) -> None:
        """Let connections go; a later call opens them again."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"


class Weighed(NamedTuple):
    """What deciding about a group takes.

    Attributes:
        nbytes: of its data.
        keys: the contents that it names.
    """

    number: int
    session: str
    device: str
    entries: int
    nbytes: int
    keys: tuple[str, ...]

    @property
    def weight(self) -> int:
        """What it takes, about, with what tells of it."""
        return weight_of(self.nbytes, self.keys)


class Verdict(NamedTuple):
    """What has to go from a store.

    Attributes:
        groups: their numbers.
        entries: how many entries these have.
        keys: the contents, in bytes by key.
        first: from this number on nothing goes.
        kept_bytes: what is left, with what tells of it.
    """

    groups: list[int]
    entries: int
    keys: dict[str, int]
    first: int
    kept_bytes: int

    @property
    def trimmed(self) -> Trimmed:
        """What `Store.trim` answers."""
        return Trimmed(len(self.groups), self.entries, self.keys, self.kept_bytes)


def judge(
    groups: Iterable[Weighed], contents: Mapping[str, int], last: int, keep_bytes: int
) -> Verdict:
    """Say what goes so that at most `keep_bytes` are left, the newest first.

    Groups may take what contents leave, and half of it in any case: one upload is as large as ten
    thousand messages, and what was sent can be read without it. Contents get the rest. What tells
    of groups and contents counts too, for many small ones are mostly that.

    Parameters:
        groups: all there are, in order.
        contents: sizes by key.
        last: the number of the last group.
    """
    ordered = list(groups)
    named = {key for group in ordered for key in group.keys}
    sizes = contents
    contents = {key: size + FACTS_BYTES for key, size in sizes.items()}
    wanted = sum(size for key, size in contents.items() if key in named)
    room = room_of_groups(wanted, keep_bytes)
    sessions: set[str] = set()
    taken, first = 0, last + 1
    for group in reversed(ordered):
        if not group.device:
            continue
        if taken + group.weight > (room if taken else keep_bytes):
            break
        taken += group.weight
        sessions.add(group.session)
        first = group.number
    left = [group for group in ordered if group.device and group.number >= first]
    newest = dict.fromkeys(key for group in reversed(left) for key in reversed(group.keys))
    kept = _newest(((key, contents[key]) for key in newest if key in contents), keep_bytes - taken)
    begun = {group.session for group in ordered if group.device}
    gone = [
        group
        for group in ordered
        if group.number < first
        and (group.device or (group.session in begun and group.session not in sessions))
    ]
    keys = {key: size for key, size in sizes.items() if key not in kept}
    gone_numbers = {group.number for group in gone}
    left_bytes = sum(group.weight for group in ordered if group.number not in gone_numbers)
    left_bytes += sum(size for key, size in contents.items() if key in kept)
    return Verdict(
        [group.number for group in gone],
        sum(group.entries for group in gone),
        keys,
        first,
        left_bytes,
    )


def room_of_groups(contents_bytes: int, keep_bytes: int) -> int:
    """Return how much groups may take beside so many bytes of contents."""
    return max(keep_bytes // 2, keep_bytes - contents_bytes)


def _newest(contents: Iterable[tuple[str, int]], room: int) -> set[str]:
    """Return the first of these that fit together; one that never would is passed over."""
    kept: set[str] = set()
    left = room
    for key, size in contents:
        if size > room:
            continue
        if size > left:
            break
        left -= size
        kept.add(key)
    return kept
