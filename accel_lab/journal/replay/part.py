"""The part of a journal that is to be replayed."""

from array import array
from collections.abc import Iterable, Iterator
from itertools import islice
from operator import index
from typing import Protocol, SupportsIndex, TypeAlias, runtime_checkable

from accel_lab.compute.graph.messages import RecordGraph
from accel_lab.compute.message.builtin import Run
from accel_lab.errors import JournalDamaged, JournalError
from accel_lab.journal.entries.entry import Entry
from accel_lab.journal.entries.settled import settled
from accel_lab.journal.replay.prelude import Place, place_of
from accel_lab.journal.replay.repeat import Recorded
from accel_lab.libraries.jit.messages import Compile

CODE = frozenset(kind.__name__ for kind in (Run, Compile, RecordGraph))

HELD = 20_000
"""Of a journal of at most so many entries they are held."""

Where: TypeAlias = SupportsIndex | Entry | None


@runtime_checkable
class Settling(Protocol):
    """A journal that makes its entries anew whenever it is read."""

    def settled(self) -> Iterator[Entry]:
        """Yield the entries, each when it is known what became of it."""


class Reading:
    """The entries of a journal up to its damage, to be gone through more than once.

    Those of a short journal are held. A longer one is read again each time, so that memory does not
    grow with it.

    Attributes:
        damage: what ends it early; empty where nothing does.
        devices: the names of those that it has.
    """

    def __init__(self, journal: Recorded) -> None:
        self._journal = journal
        self._held: list[Entry] | None = []
        self._groups = array("Q")  # as they were read first, each once
        self._count = 0
        self.damage = ""
        self.devices: set[str] = set()
        for entry in self._first():
            self._count += 1
            self.devices.add(entry.device)
            if not self._groups or self._groups[-1] != entry.group:
                self._groups.append(entry.group)
            if self._held is not None:
                self._held.append(entry)
                if self._count > HELD:
                    self._held = None
        self.devices.discard("")

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Entry]:
        """Yield the entries, each when it is known what became of it.

        Raises:
            JournalError: the journal has forgotten some that it had.
        """
        return iter(self._held) if self._held is not None else self._again()

    def _first(self) -> Iterator[Entry]:
        try:
            yield from self._settled()
        except JournalDamaged as error:
            self.damage = str(error)

    def _settled(self) -> Iterator[Entry]:
        journal = self._journal
        return (
            journal.settled() if isinstance(journal, Settling) else settled(journal, forgets=False)
        )

    def _again(self) -> Iterator[Entry]:
        at = -1
        for entry in islice(self._settled(), self._count):
            if at < 0 or entry.group != self._groups[at]:
                at += 1
                if at >= len(self._groups) or entry.group != self._groups[at]:
                    raise JournalError(
                        f"the journal forgot entries before {entry.number} while they were "
                        "replayed: replay it on another System than the one that writes it, or "
                        "give that one more journal_bytes"
                    )
            yield entry

    def position(self, where: Where, default: int) -> int:
        """Return the position of an entry.

        Raises:
            JournalError: there is no such entry.
        """
        if where is None:
            return default
        if not isinstance(where, Entry):
            number, count = index(where), self._count
            if not -count <= number <= count:  # behind the last, nothing is left to run
                raise JournalError(f"there is no entry {number} in a journal of {count}")
            return number + count if number < 0 else number
        for at, entry in enumerate(self):
            if entry.number == where.number:
                return at
        raise JournalError(f"entry {where.number} is not in the part of the journal that was given")


def read(journal: Recorded) -> tuple[list[Entry], str]:
    """Return the entries of a journal up to its damage, and what that is, if there is any."""
    entries: list[Entry] = []
    try:
        entries.extend(journal)
    except JournalDamaged as error:
        return entries, str(error)
    return entries, ""


def refuse_code(entries: Iterable[Entry], journal: Recorded) -> None:
    """Raise JournalError if there is code among these that another process recorded."""
    own = journal.own_sessions
    first, count = None, 0
    for entry in entries:
        if entry.name in CODE and entry.session not in own:
            first, count = first or entry, count + 1
    if first is not None:
        raise JournalError(
            f"the journal has code of another process, in {count} messages from entry "
            f"{first.number} ({first.name}) on; if you trust it, give allow_code=True"
        )


def outlasting(entries: Iterable[Entry]) -> dict[int, set[int]]:
    """Return which buffers are named again after a loss, by the number of its entry.

    What was made again after a loss is named.
    """
    found: dict[int, set[int]] = {}
    losses: dict[Place, list[int]] = {}
    live: dict[Place, dict[int, int]] = {}  # how many losses were before it was named
    for entry in entries:
        place = place_of(entry)
        if entry.kind == "context ended":
            found[entry.number] = set()
            losses.setdefault(place, []).append(entry.number)
            continue
        ours, known = losses.get(place, []), live.setdefault(place, {})
        if entry.kind == "free":
            for id_ in entry.fields["ids"]:
                known.pop(id_, None)
            continue
        named = entry.fields["buffers"] if entry.kind == "rebuilt" else entry.operands
        for id_ in named:
            for number in ours[known.get(id_, 0) :]:
                found[number].add(id_)
        made = entry.fields["ids"] if entry.kind == "arrays" else entry.makes
        known.update(dict.fromkeys(named, len(ours)))
        for id_ in made:
            known.setdefault(id_, len(ours))
    return found
