"""A journal as a past: its entries by number, what they are, and the outcomes of the messages.

Most groups that a running system writes hold messages alone, thousands a second. Of those only the
count and the time are noted; they are decoded when somebody looks at them, or when an answer to one
of them comes.
"""

import threading
from array import array
from bisect import bisect_left, bisect_right
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property

import msgspec
import numpy as np

from accel_lab.compute.lineage.markers import Marker, SentBy, marker_of
from accel_lab.errors import JournalDamaged
from accel_lab.journal.entries.aftermath import Aftermath
from accel_lab.journal.entries.entry import (
    Entry,
    entries_of,
    messages_of,
    starts_of,
)
from accel_lab.journal.stores.group import Group
from accel_lab.journal.stores.memory import MemoryStore
from accel_lab.journal.stores.replaced import is_replaced
from accel_lab.journal.stores.store import Store
from accel_lab.libraries.jit.messages import Compile
from accel_lab.uncopied import Uncopied
from accel_lab.views.past.facts import JournalFold, Place
from accel_lab.views.past.player import Line, Player
from accel_lab.views.past.wording import Called, by_number, line_of, mark_of

PENDING = 20_000
"""How many messages back an answer may stand: more than can be in flight."""
DECODED = 8  # groups that are kept as entries
HELD_BYTES = 32 << 20
"""How much of a store outside this process is kept in it; what is older is read again."""
_HEADS = np.zeros(256, np.uint8)
"""By the tag of a marker that says more than who sends: the byte before it, an array's length."""
for _kind in Marker.__args__:
    if _kind is not SentBy:
        _HEADS[_kind.__struct_config__.tag & 0xFF] = 0x90 + len(_kind.__struct_fields__) + 1
_GONE = ("", 0, "no longer in the journal", "", "")
_COMPILE: bytes = msgspec.msgpack.encode(Compile.__struct_config__.tag)


class JournalPast(Uncopied):
    """The entries of a journal's store, as steps.

    Attributes:
        times: when each entry was recorded, in wall seconds; never descending.
        faults, turns: which entries are failures, and which new generations.
        gaps: before which entries others of their session are gone.
        losses: which of the failures are a context's; the others are of single requests.
        dropped: how many entries are known to be gone.
        bound: why they go, and what keeps more of them.
        forgotten: how many of them were here.
        unread: why what follows cannot be read in this process; empty when it can.

    Parameters:
        dropped: how many entries are known to be gone already.
        own: whether this process writes it, so that what it holds need not be proven.
        lost: says how many entries have never come to the store.
        bound: why entries go, and what keeps more of them; empty where that is not known.
    """

    kind = "journal"

    def __init__(
        self,
        store: Store,
        *,
        dropped: int = 0,
        own: bool = False,
        lost: Callable[[], int] = lambda: 0,
        bound: str = "",
    ) -> None:
        self.times = array("d")
        self.faults = array("Q")
        self.turns = array("Q")
        self.losses = array("Q")
        self.gaps = array("Q")
        self._reached: dict[str, int] = {}  # of each session, the position of its last group
        self.dropped = dropped
        self.bound = bound
        self.damage = ""
        self.unread = ""
        self.name = store.name
        self.aftermaths: dict[Place, Aftermath] = {}
        self._store = store
        self._dropped_there = store.dropped if isinstance(store, MemoryStore) else 0
        self.forgotten = 0
        self._named = 0  # so many entries at the beginning keep their numbers
        self._own = own
        self._lost = lost
        self._lost_before = lost()
        self._groups: list[Group] = []
        self._begin = 0  # the first group of the journal that is in the store now
        self._starts = array("Q")
        self._plain = bytearray()  # of each group, whether all its parts are messages
        self._unread: dict[Place, deque[int]] = {}  # whose messages may still be answered
        self._emptied = 0  # so many groups have no data here
        self._held_bytes = 0
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
            before, self._lost_before = self._lost_before, self._lost()
            self.dropped += self._lost_before - before
            try:
                for group in self._store.groups(self._beyond()):
                    self._take(group)
            except JournalDamaged as error:
                self.damage = str(error)

    def _beyond(self) -> int:
        """Return behind which group to read on.

        That is 0 where another journal has taken the place of this one.
        """
        if self._begin == len(self._groups):
            return 0
        last = self._groups[-1].number
        if is_replaced(self._store, last, self._was_read):
            self._begin = len(self._groups)
            return 0
        return last

    def _was_read(self, group: Group) -> bool:
        """Whether this journal has a group of the store, which is no later than its last."""
        at = bisect_left(self._groups, group.number, self._begin, key=lambda one: one.number)
        return self._groups[at].identity == group.identity

    def _take(self, group: Group) -> None:
        """Take in the next group."""
        start = len(self.times)
        if group.position > self._reached.get(group.session, -1) + 1:
            self.gaps.append(start)
        self._reached[group.session] = max(group.position, self._reached.get(group.session, 0))
        says_more = not (self._own and group.device) or _says_more(group)
        entries = list(entries_of([group], start)) if says_more else []
        self._groups.append(group)
        self._starts.append(start)
        self._plain.append(not says_more and group.entries == group.count)
        self._hold(group.nbytes)
        for entry in entries:
            self._index(entry)
        if not says_more:
            place = group.session, group.device
            self._unread.setdefault(place, deque()).append(len(self._groups) - 1)
            self._last = max(self._last, group.at)
            self.times.extend(array("d", [self._last]) * group.entries)

    def _hold(self, nbytes: int) -> None:
        """Count what is held, and let go of the oldest that the store can give again."""
        self._held_bytes += nbytes
        if isinstance(self._store, MemoryStore):
            return  # it is the store's own memory
        while self._held_bytes > HELD_BYTES and self._emptied < len(self._groups) - 1:
            group = self._groups[self._emptied]
            self._held_bytes -= group.nbytes
            self._groups[self._emptied] = msgspec.structs.replace(group, data=b"")
            self._emptied += 1

    def forget(self) -> None:
        """Forget what a store of this process has forgotten; the numbers of the others fall.

        Blocks while it is read. Nobody may look meanwhile.
        """
        with self._reading, self._decoding:
            self._forget()

    def keep(self, count: int) -> None:
        """Never forget so many entries at the beginning, whose numbers are told to somebody."""
        self._named = count

    def again(self) -> "JournalPast":
        """Return another past of the same journal; blocks while it is read.

        Raises:
            JournalError: it cannot be read.
        """
        gone = self._store.dropped if isinstance(self._store, MemoryStore) else 0
        dropped = self.dropped + gone - self._dropped_there
        return JournalPast(
            self._store, dropped=dropped, own=self._own, lost=self._lost, bound=self.bound
        )

    def _forget(self) -> None:
        store = self._store
        if not isinstance(store, MemoryStore) or store.dropped == self._dropped_there:
            return
        self._dropped_there = store.dropped
        there = store.numbers()
        gone = [
            start >= self._named and group.number not in there
            for group, start in zip(self._groups, self._starts, strict=True)
        ]
        while True in gone:
            head = gone.index(True)
            beyond = gone.index(False, head) if False in gone[head:] else len(gone)
            self._remove(head, beyond)
            del gone[head:beyond]

    def _remove(self, head: int, beyond: int) -> None:
        """Forget some groups, one after another."""
        first = self._starts[head]
        count = (self._starts[beyond] if beyond < len(self._starts) else len(self.times)) - first
        self._decoded.clear()
        del self._groups[head:beyond], self._plain[head:beyond], self._starts[head:beyond]
        del self.times[first : first + count]
        for at in range(head, len(self._starts)):
            self._starts[at] -= count
        gone = range(first, first + count)
        marked = (self.faults, self.turns, self.losses, self.gaps)
        for numbers in (*marked, *self._sent.values(), *self._answered.values()):
            numbers[:] = array("Q", _renumbered(numbers, gone))
        failed = [(number, name) for number, name in self._failed.items() if number not in gone]
        self._failed = {_fallen(number, gone): name for number, name in failed}
        pending = [(key, sent) for key, sent in self._pending.items() if sent[0] not in gone]
        self._pending = OrderedDict(
            (key, (_fallen(number, gone), name)) for key, (number, name) in pending
        )
        for unread in self._unread.values():
            fallen = [i - beyond + head for i in unread if i >= beyond]
            unread.clear()
            unread.extend(fallen)
        if head < len(self._starts):
            self.gaps = array("Q", sorted({*self.gaps, self._starts[head]}))
        self.dropped += count
        self.forgotten += count

    def entries(self, steps: range) -> Iterator[Entry]:
        """Yield entries but those that are gone from the store.

        What became of a message is known as far as the journal has been read.
        """
        if not steps:
            return
        first = bisect_right(self._starts, steps[0]) - 1
        beyond = bisect_left(self._starts, steps[-1] + 1)
        for index in range(first, beyond):
            group, start = self._groups[index], self._starts[index]
            wanted = range(max(steps[0], start), min(steps[-1] + 1, start + group.entries))
            some = self._plain[index] and len(wanted) < group.entries // 2
            if some and index not in self._decoded:
                after = self.aftermaths.get((group.session, group.device))
                read = messages_of(self._whole(index), start, wanted)
                yield from [self._known(entry, after) for entry in read]
                continue
            for entry in self._entries_of(index):
                if entry.number in wanted:
                    yield entry

    def _whole(self, index: int) -> Group:
        """Return a group with its data, which may have to be read again; without any part if gone.

        Its entries keep their numbers then, for somebody looks.
        """
        group = self._groups[index]
        if group.data or not group.count:
            return group
        found = next(self._store.groups(group.number - 1), None)
        if found is not None and found.identity == group.identity:
            return found
        gone = self._groups[index] = msgspec.structs.replace(group, count=0)
        self.dropped += group.entries
        return gone

    def in_flight(self, place: Place, position: int) -> int:
        """Return how many messages to a device were sent before and answered after a position."""
        sent, answered = self._sent.get(place), self._answered.get(place)
        if sent is None or answered is None:
            return 0
        return bisect_left(sent, position) - bisect_left(answered, position)

    def fold(self) -> JournalFold:
        """Return the scene before the first entry."""
        return JournalFold(self)

    def lines(self, steps: range, called: Called = by_number) -> Sequence[Line]:
        """Return entries in words, in which `called` names the buffers."""
        there = {entry.number: line_of(entry, called) for entry in self.entries(steps)}
        return [there.get(number) or Line(self.times[number], *_GONE) for number in steps]

    def _entries_of(self, index: int) -> list[Entry]:
        """Return the entries of a group, which are decoded again unless that was lately done."""
        with self._decoding:
            found = self._decoded.pop(index, None)
            if found is None:
                group = self._whole(index)
                after = self.aftermaths.get((group.session, group.device))
                read = entries_of([group] if group.count else [], self._starts[index])
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
            after = self.aftermaths.setdefault(place, Aftermath())
            if entry.name == Compile.__name__:
                after.kernels[abs(entry.result)] = entry.fields["name"]
            self._send(self._known(entry, after), place)
        elif entry.kind != "free":
            after = self.aftermaths.setdefault(place, Aftermath())
            after.take(marker_of(entry.raw))
            self._answer(entry, place)
        mark = mark_of(entry)
        if mark == "fault":
            self.faults.append(number)
            if entry.kind == "explained":
                self.losses.append(number)
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
        if seqs:
            self._catch_up(place)
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

    def _catch_up(self, place: Place) -> None:
        """Note what was sent to a device in groups that nobody has looked at."""
        unread, count = self._unread.pop(place, deque()), 0
        recent: list[int] = []
        while unread and count < PENDING:
            recent.append(unread.pop())
            count += self._groups[recent[-1]].entries
        for index in reversed(recent):
            for entry in self._entries_of(index):
                if entry.kind == "message":
                    self._send(entry, place)

    def _send(self, entry: Entry, place: Place) -> None:
        pending = self._pending
        pending[(*place, entry.seq)] = entry.number, f"{entry.title} #{entry.seq}"
        if len(pending) > PENDING:
            pending.popitem(last=False)


def _says_more(group: Group) -> bool:
    """Whether a group has a marker, or may have a kernel's name."""
    if _COMPILE in group.data:
        return True
    if group.plain:
        return False
    found = np.frombuffer(group.data, np.uint8)
    heads = _HEADS[found[1:]]
    # Most of what looks as a marker is a number, or of an array.
    return bool((heads == found[:-1])[heads != 0].any()) and any(
        _HEADS[start[1]] == start[0] for start in starts_of(group)
    )


def _renumbered(numbers: Iterable[int], gone: range) -> Iterator[int]:
    """Yield what is left of some numbers of entries when some entries are gone."""
    return (_fallen(number, gone) for number in numbers if number not in gone)


def _fallen(number: int, gone: range) -> int:
    return number if number < gone.start else number - len(gone)
