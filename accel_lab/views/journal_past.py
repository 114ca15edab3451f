"""A journal as a past: its entries by number, what they are, and what became of the messages."""

import threading
from array import array
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

import msgspec

from accel_lab.compute.markers import marker_of
from accel_lab.errors import JournalDamaged
from accel_lab.journal.aftermath import Aftermath
from accel_lab.journal.entry import TAKEN_BACK, Entry, describe, entries_of
from accel_lab.journal.group import Group
from accel_lab.journal.store import Store
from accel_lab.libraries.program import Compile
from accel_lab.views.journal_facts import JournalFold, Place
from accel_lab.views.player import Line, Player

PENDING = 20_000
"""How many messages back an answer may stand: more than can be in flight."""
DECODED = 8  # groups that are kept as entries


class JournalPast:
    """The entries of a journal's store, as steps.

    The groups are kept as they lie in the store, about 100 bytes an entry.

    Attributes:
        times: when each entry was recorded, in wall seconds; never descending.
        faults, turns: which entries are failures, and which new generations.

    Parameters:
        dropped: how many entries are known to be gone already.
    """

    kind = "journal"

    def __init__(self, store: Store, *, dropped: int = 0) -> None:
        self.times = array("d")
        self.faults = array("Q")
        self.turns = array("Q")
        self.dropped = dropped
        self.damage = ""
        self.name = store.name
        self.aftermaths: dict[Place, Aftermath] = {}
        self._store = store
        self._groups: list[Group] = []
        self._starts = array("Q")
        self._last = -float("inf")
        self._reading = threading.Lock()
        self._pending: OrderedDict[tuple[str, str, int], tuple[int, str]] = OrderedDict()
        self._taken: dict[tuple[str, str, int], str] = {}  # what the last loss took along
        self._failed: dict[int, str] = {}  # which message a failure is of
        self._sent: dict[Place, array[int]] = {}
        self._answered: dict[Place, array[int]] = {}
        self._decoded: OrderedDict[int, list[Entry]] = OrderedDict()
        self._decoding = threading.Lock()
        self.read()

    @cached_property
    def player(self) -> Player:
        """Where in it the views are that draw it."""
        return Player(self)

    def __len__(self) -> int:
        return len(self.times)

    def read(self) -> None:
        """Take in what was committed since; may block for the store.

        Raises:
            JournalError: the store cannot be read, or it holds what a later version wrote.
        """
        with self._reading:
            if self.damage:
                return
            after = self._groups[-1].number if self._groups else 0
            try:
                for group in self._store.groups(after):
                    entries = list(entries_of([group], len(self.times)))
                    self._groups.append(group)
                    self._starts.append(len(self.times))
                    for entry in entries:
                        self._index(entry)
            except JournalDamaged as error:
                self.damage = str(error)

    def entries(self, steps: range) -> Iterator[Entry]:
        """Yield entries; what became of a message is known as far as the journal has been read."""
        if not steps:
            return
        first = bisect_right(self._starts, steps[0]) - 1
        beyond = bisect_left(self._starts, steps[-1] + 1)
        for index in range(first, beyond):
            for entry in self._entries_of(index):
                if steps[0] <= entry.number <= steps[-1]:
                    yield entry

    def in_flight(self, place: Place, position: int) -> int:
        """Return how many messages to a device were sent before and answered after a position."""
        sent, answered = self._sent.get(place), self._answered.get(place)
        if sent is None or answered is None:
            return 0
        return bisect_left(sent, position) - bisect_left(answered, position)

    def fold(self) -> JournalFold:
        """Return the scene before the first entry."""
        return JournalFold(self)

    def lines(self, steps: range) -> Sequence[Line]:
        """Return entries in words."""
        return [line_of(entry) for entry in self.entries(steps)]

    def _entries_of(self, index: int) -> list[Entry]:
        """Return the entries of a group, which are decoded again unless that was lately done."""
        with self._decoding:
            found = self._decoded.pop(index, None)
            if found is None:
                group = self._groups[index]
                after = self.aftermaths.get((group.session, group.device))
                read = entries_of([group], self._starts[index])
                found = [self._known(entry, after) for entry in read]
            self._decoded[index] = found
            while len(self._decoded) > DECODED:
                self._decoded.popitem(last=False)
            return found

    def _known(self, entry: Entry, after: Aftermath | None) -> Entry:
        """Return an entry with what became of it; a failure is named as what failed."""
        name = self._failed.get(entry.number, entry.name)
        if after is None and name == entry.name:
            return entry
        return msgspec.structs.replace(entry, aftermath=after or entry.aftermath, name=name)

    def _index(self, entry: Entry) -> None:
        """Note when an entry was, what it is, and for which message it is the answer."""
        number, place = entry.number, (entry.session, entry.device)
        if entry.kind == "session":
            self.name = str(entry.fields.get("system", self.name))
        elif entry.kind == "message":
            pending = self._pending
            after = self.aftermaths.setdefault(place, Aftermath())
            if entry.name == Compile.__name__:
                after.kernels[abs(entry.result)] = entry.fields["name"]
            title = self._known(entry, after).title
            pending[(*place, entry.seq)] = number, f"{title} #{entry.seq}"
            if len(pending) > PENDING:
                pending.popitem(last=False)
        elif entry.kind != "free":
            after = self.aftermaths.setdefault(place, Aftermath())
            after.take(marker_of(entry.raw))
            self._answer(entry, place)
        mark = mark_of(entry)
        if mark == "fault":
            self.faults.append(number)
        elif mark == "turn":
            self.turns.append(number)
        self._last = max(self._last, entry.at)
        self.times.append(self._last)

    def _answer(self, entry: Entry, place: Place) -> None:
        """Note for which messages an entry is the answer, and which it says that failed."""
        if entry.kind == "context ended":
            self._taken.clear()
            seqs: Sequence[int] = entry.fields["in_flight"]
        else:
            seqs = (entry.seq,) if entry.kind in ("failed", "result") else ()
        sents = self._sent.setdefault(place, array("Q"))
        for seq in seqs:
            request = *place, seq
            name = self._taken.get(request, "")
            if found := self._pending.pop(request, None):
                sent, name = found
                sents.insert(bisect_left(sents, sent), sent)
                self._answered.setdefault(place, array("Q")).append(entry.number)
            if entry.kind == "failed" and name:
                self._failed[entry.number] = name
            elif entry.kind == "context ended":
                self._taken[request] = name


def mark_of(entry: Entry) -> str:
    """Return "fault" for a failure, "turn" for a new generation, else nothing."""
    if entry.kind == "failed":
        return "" if entry.fields["kind"] in TAKEN_BACK else "fault"
    if entry.kind == "explained":
        return "fault"
    if entry.kind == "context began" and entry.generation > 1:
        return "turn"
    return ""


def line_of(entry: Entry) -> Line:
    """Return an entry in words."""
    words = _WORDS.get(entry.kind)
    what, outcome = (describe(entry), entry.outcome) if words is None else words(entry)
    generation = entry.generation if entry.device else 0
    return Line(entry.at, entry.device, generation, what, outcome, mark_of(entry))


def _session(entry: Entry) -> tuple[str, str]:
    facts = entry.fields
    devices = ", ".join(facts.get("devices", ()))
    return f"session of {facts.get('system')} on {facts.get('backend')}: {devices}", ""


def _ended(entry: Entry) -> tuple[str, str]:
    taken = len(entry.fields["in_flight"])
    return f"context of generation {entry.generation} ended, {taken} in flight", ""


def _failed(entry: Entry) -> tuple[str, str]:
    name = entry.name if entry.name != entry.kind else f"#{entry.seq}"
    return f"{name} failed", f"{entry.fields['kind']}: {entry.fields['text']}"


def _result(entry: Entry) -> tuple[str, str]:
    digest, shape = entry.fields["digest"], list(entry.fields["shape"])
    return f"result of #{entry.seq}: {entry.fields['dtype']}{shape}", f"digest {digest}"


def _rebuilt(entry: Entry) -> tuple[str, str]:
    buffers, messages = len(entry.fields["buffers"]), entry.fields["messages"]
    return f"{buffers} buffers were made again by {messages} messages", ""


def _ids(ids: Sequence[int]) -> str:
    return ", ".join(f"#{id_}" for id_ in ids)


_WORDS: dict[str, Callable[[Entry], tuple[str, str]]] = {
    "session": _session,
    "free": lambda entry: (f"free {_ids(entry.fields['ids'])}", ""),
    "context began": lambda entry: (
        f"context of generation {entry.generation} began, pid {entry.fields['pid']}",
        "",
    ),
    "context ended": _ended,
    "explained": lambda entry: (
        f"context of generation {entry.generation} was lost",
        entry.fields["cause"],
    ),
    "failed": _failed,
    "result": _result,
    "rebuilt": _rebuilt,
    "content": lambda entry: (f"bytes of #{entry.seq}", entry.fields["why"] or "kept"),
    "arrays": lambda entry: (
        f"answer of #{entry.seq} holds {_ids(entry.fields['ids'])}",
        "",
    ),
    "checkpoint": lambda entry: (
        f"contents of #{entry.fields['id']} after request {entry.seq}",
        "kept",
    ),
}
"""What an entry is, and what became of it or why it was; a message describes itself."""
