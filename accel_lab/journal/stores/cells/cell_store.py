"""A journal in a store without transactions.

Data and contents are written first, into cells that nobody looks at. The groups are there with one
cell more, the commit, which is only written where there is none: its key is the number of its first
group, so of two writers who would take the same number one is told to take the next.
"""

import secrets
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from accel_lab.errors import JournalDamaged, JournalError, JournalUnavailable
from accel_lab.journal.stores.cells.abandoned import clear
from accel_lab.journal.stores.cells.cells import PAGE, Cell, Cells, every, piece_keys, pieces_of
from accel_lab.journal.stores.cells.commit import (
    INLINE_BYTES,
    Commit,
    Fact,
    decode_commit,
    decode_facts,
    encode_facts,
    fact_of,
    group_of,
    number_key,
)
from accel_lab.journal.stores.cells.records import (
    Content,
    Session,
    content_of,
    encode,
    session_of,
)
from accel_lab.journal.stores.cells.trimming import Trimming
from accel_lab.journal.stores.chain import BATCH, SCHEMA, Head, proven, whole
from accel_lab.journal.stores.group import Group
from accel_lab.journal.stores.store import Store, Trimmed

PREFIX = "accel_lab"
ATTEMPTS = 100
APPEND_S = 600.0
"""How long what a commit would name may have been written before; much later it may be cleared."""
BRINGS = 3
_LAST = number_key(10**20 - 1)


@dataclass
class _Place:
    """Where a session has got to.

    Attributes:
        position: of its last group.
        seen: the key of the last commit.
        next: the number that is to be given next.
        open: name what it began to append before, and has not committed as far as is known.
    """

    position: int
    seen: str
    next: int
    open: tuple[str, ...] = ()


class CellStore(Store):
    """Keeps a journal in partitions whose names begin with a prefix.

    `/commits` are the groups that there are, `/contents` where the contents are, `/first` the
    number below which groups are gone, `/sessions` where each session has got to, `/data/…` and
    `/content/…` the bytes that one call of `append` brought.
    """

    def __init__(self, cells: Cells, prefix: str = PREFIX) -> None:
        self._cells = cells
        self.name = cells.name
        self._prefix = prefix
        self._is_known = False
        self._lock = threading.Lock()

    def append(self, groups: Sequence[Group], contents: Mapping[str, bytes]) -> int:
        """Add groups and contents; the commit is one cell."""
        self._require_schema(make=True)
        token, began = secrets.token_hex(8), time.monotonic()
        if not groups:
            self._bring(token, contents)
            return self._head().last
        session = groups[0].session
        place = self._begin(session, token)
        self._bring(token, contents)
        new: list[Group] = []
        for group in groups:
            if group.position > (new[-1].position if new else place.position):
                new.append(group)
        if new:
            place.next = self._commit(place, token, session, new, began)
        for open_ in place.open:  # its number is another's by now: it never will be committed
            clear(self._cells, self._in, open_)
        for _ in range(BRINGS):  # another may have forgotten what was there already
            if not self._bring(token, contents):
                break
        return place.next - 1

    def groups(self, after: int = 0) -> Iterator[Group]:
        """Yield what the commits name."""
        self._require_schema(make=False)
        yield from proven(self._head, self._batch, after)

    def content(self, key: str) -> bytes | None:
        """Return the bytes of a key; raises JournalDamaged when they are others."""
        self._require_schema(make=False)
        known = self._cells.get(self._in("contents"), key)
        if known is None:
            return None
        place = content_of(known, self.name)
        found = self._pieces(f"content/{place.token}", key, place.nbytes)
        if found is None and self._cells.get(self._in("contents"), key) != known:
            return None  # it was forgotten meanwhile
        return whole(key, [found or b""])

    def trim(self, keep_bytes: int) -> Trimmed:
        """Forget the oldest groups, and what nobody has finished to append an hour ago."""
        self._require_schema(make=False)
        commits = self._commits()
        trimming = Trimming(self._cells, self._in, commits, [self._facts(c) for c in commits])
        return trimming.trim(self._first(), keep_bytes)

    def close(self) -> None:
        """Close the connections."""
        self._cells.close()

    def _in(self, partition: str) -> str:
        return f"{self._prefix}/{partition}"

    def _require_schema(self, *, make: bool) -> None:
        with self._lock:
            if self._is_known:
                return
            mine = str(SCHEMA).encode()
            if make:
                self._cells.put_new(self._in("head"), "schema", mine)
            found = self._cells.get(self._in("head"), "schema")
            if found not in (None, mine):
                raise JournalError(
                    f"{self.name} has a journal of schema {found!r}; this version of accel_lab "
                    f"reads {SCHEMA}"
                )
            self._is_known = found is not None

    # Appending.

    def _begin(self, session: str, token: str) -> _Place:
        """Find out where a session has got to, and note what it is going to append."""
        sessions = self._in("sessions")
        known = self._cells.get(sessions, session)
        tokens: tuple[str, ...] = ()
        if known is None:
            last = self._cells.last(self._in("commits"), _LAST)
            commit = None if last is None else decode_commit(last[1], self.name)
            place = _Place(-1, *(("", 1) if commit is None else (commit.key, commit.next)))
        else:
            was = session_of(known, self.name)
            place = _Place(was.position, was.seen, was.next, was.tokens)
            self._follow(place, session)
            if was.tokens[-1] in place.open:
                tokens = place.open
        note = Session(place.position, place.seen, place.next, (*tokens, token), time.time())
        self._cells.put(sessions, {session: encode(note)})
        return place

    def _follow(self, place: _Place, session: str) -> None:
        """Take in the commits since."""
        for _, data in every(self._cells, self._in("commits"), place.seen):
            commit = decode_commit(data, self.name)
            place.seen, place.next = commit.key, commit.next
            if commit.session == session:
                place.position = max(place.position, commit.position)
            if commit.token in place.open:
                place.open = tuple(open_ for open_ in place.open if open_ != commit.token)

    def _commit(
        self, place: _Place, token: str, session: str, groups: list[Group], began: float
    ) -> int:
        """Write data, and then the commit; returns the number behind the last group."""
        inline: bytes | None = None
        if sum(group.nbytes for group in groups) <= INLINE_BYTES:
            inline = b"".join(group.data for group in groups)
        else:
            data: dict[str, bytes] = {}
            for index, group in enumerate(groups):
                data |= pieces_of(str(index), group.data)
            self._cells.put(self._in(f"data/{token}"), data)
        for _ in range(ATTEMPTS):
            first = place.next
            numbered = [group.numbered(number) for number, group in enumerate(groups, first)]
            facts = encode_facts([fact_of(group) for group in numbered])
            apart = pieces_of("facts", facts)
            position = groups[-1].position
            commit = Commit(first, len(groups), token, session, position, facts, 0, inline)
            if len(apart) > 1:
                self._cells.put(self._in(f"data/{token}"), apart)
                commit = msgspec.structs.replace(commit, facts=b"", facts_bytes=len(facts))
            if time.monotonic() > began + APPEND_S:
                raise JournalUnavailable(f"{self.name} took longer than {APPEND_S:g} s")
            if self._cells.put_new(self._in("commits"), commit.key, commit.encoded()):
                return commit.next
            # A client that tried twice may be told of its own: then it has been written.
            found = self._cells.get(self._in("commits"), commit.key)
            if found is not None and decode_commit(found, self.name).token == token:
                return commit.next
            self._follow(place, session)
            if place.position >= groups[0].position:
                # What was sent before, and not answered, came after all.
                left = [group for group in groups if group.position > place.position]
                if left:
                    return self._commit(place, token, session, left, began)
                place.open = (*place.open, token)
                return place.next
        raise JournalUnavailable(f"{self.name} is written to by too many at once")

    def _bring(self, token: str, contents: Mapping[str, bytes]) -> bool:
        """Write the contents that are not there; says whether there were such."""
        some = False
        for key, data in contents.items():
            if self._cells.get(self._in("contents"), key) is not None:
                continue
            some = True
            partition, pieces = self._in(f"content/{token}"), pieces_of(key, data)
            self._cells.put(partition, pieces)
            place = encode(Content(len(data), token))
            is_mine = self._cells.put_new(self._in("contents"), key, place)
            if not is_mine and self._cells.get(self._in("contents"), key) != place:
                self._cells.delete(partition, pieces)  # another was faster
        return some

    # Reading.

    def _first(self) -> int:
        found = self._cells.last(self._in("first"), _LAST)
        return 1 if found is None else int(found[0])

    def _head(self) -> Head:
        found = self._cells.last(self._in("commits"), _LAST)
        last = 0 if found is None else decode_commit(found[1], self.name).next - 1
        return Head(self._first(), last)

    def _commits(self) -> list[Commit]:
        commits = every(self._cells, self._in("commits"))
        return [decode_commit(data, self.name) for _, data in commits]

    def _facts(self, commit: Commit) -> list[Fact]:
        if not commit.facts_bytes:
            return decode_facts(commit.facts, self.name)
        found = self._pieces(f"data/{commit.token}", "facts", commit.facts_bytes)
        return [] if found is None else decode_facts(found, self.name)

    def _batch(self, after: int) -> Iterator[tuple[Group, int]]:
        """Yield some groups of the commits from that on which has the next number."""
        first, count = self._first(), 0
        for commit in self._commits_from(after + 1):
            facts = self._facts(commit)
            wanted = [
                (number, fact)
                for number, fact in enumerate(facts, commit.first)
                if number > after and (not fact.device or number >= first)
            ]
            pieces = self._data(commit, facts) if wanted else {}
            for number, fact in wanted:
                group = self._group(commit, number, fact, pieces)
                if group is not None:
                    yield group, fact.checksum
                    count += 1
            if count >= BATCH:
                return

    def _commits_from(self, number: int) -> Iterator[Commit]:
        """Yield the commit that has a number, and those behind it."""
        commits, begin = self._in("commits"), ""
        found = self._cells.last(commits, number_key(number))
        if found is not None:
            begin = found[0]
            yield decode_commit(found[1], self.name)
        for _, data in every(self._cells, commits, begin):
            yield decode_commit(data, self.name)

    def _data(self, commit: Commit, facts: Sequence[Fact]) -> dict[str, bytes]:
        """Return the pieces of a commit's data."""
        if commit.inline is None:
            return dict(every(self._cells, self._in(f"data/{commit.token}")))
        pieces: dict[str, bytes] = {}
        start = 0
        for index, fact in enumerate(facts):
            pieces |= pieces_of(str(index), commit.inline[start : start + fact.nbytes])
            start += fact.nbytes
        return pieces

    def _group(
        self, commit: Commit, number: int, fact: Fact, pieces: Mapping[str, bytes]
    ) -> Group | None:
        """Return a group; None where it has been forgotten meanwhile."""
        keys = piece_keys(str(number - commit.first), fact.nbytes)
        found = [pieces[key] for key in keys if key in pieces]
        if len(found) == len(keys):
            return group_of(commit, number, fact, b"".join(found))
        if number < self._first() or self._cells.get(self._in("commits"), commit.key) is None:
            return None
        raise JournalDamaged(f"group {number} of {self.name} has lost its data")

    def _pieces(self, partition: str, name: str, nbytes: int) -> bytes | None:
        """Return what stands in pieces, None where one is missing."""
        keys, found = piece_keys(name, nbytes), list[Cell]()
        while len(found) < len(keys):
            above = found[-1][0] if found else f"{name}."
            page = self._cells.range(self._in(partition), above, min(PAGE, len(keys) - len(found)))
            if not page or not page[0][0].startswith(f"{name}."):
                return None
            found += page
        return b"".join(data for _, data in found)
