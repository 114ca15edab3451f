"""Reading a journal: the whole of it, the last entries, those of one kind."""

import operator
import os
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, SupportsIndex, overload

from accel_lab.display.sizes import size
from accel_lab.errors import JournalDamaged, JournalError, JournalUnavailable
from accel_lab.journal.entries.checked import check
from accel_lab.journal.entries.entry import Entry, Kind, entries_of
from accel_lab.journal.entries.index import Index
from accel_lab.journal.entries.jsonl import read_lines, write_lines
from accel_lab.journal.entries.lines import Lines, Wanted
from accel_lab.journal.entries.settled import AFTERMATH, settled
from accel_lab.journal.stores.group import Group
from accel_lab.journal.stores.memory import MemoryStore
from accel_lab.journal.stores.open_store import open_store
from accel_lab.journal.stores.sqlite import SqliteStore
from accel_lab.journal.stores.store import Store
from accel_lab.journal.writing.writer import Writer
from accel_lab.uncopied import Uncopied

JOURNAL_BYTES = 1 << 30
"""How much a journal keeps that is not in memory, when nothing else is said."""
SHOWN = 10
FLUSH_S = 10.0


class Journal(Uncopied, Sequence[Entry]):
    """The entries of a store, from the oldest that is kept; all sessions that wrote to it.

    Whatever reads first has everything committed that was sent so far, as far as that is possible.
    Reading may block for the store. A damaged journal is read up to the damage: iterating raises
    there, all else takes what stands before it, and `damage` and the text of the journal tell.

    Parameters:
        store: where the entries are.
        writer: commits this process's own, when it writes here.
        drain: has what was sent so far handed to the writer; may block.
    """

    _instead = "open its store with Journal.open(), or write its entries to a file with to_jsonl()"

    def __init__(
        self,
        store: Store,
        writer: Writer | None = None,
        drain: Callable[[], object] | None = None,
    ) -> None:
        self.store = store
        self._writer = writer
        self._drain = drain
        self._index = Index(store)
        self._damage: JournalDamaged | None = None
        self._is_forged = False

    @classmethod
    def open(cls, spec: str | Path | Store) -> "Journal":
        """Open the journal that another process wrote, or is writing.

        Raises:
            JournalUnavailable: there is none, or its server does not answer.
            JournalError: it is of a later version, or no journal.
            InvalidArgument: it names no store.
        """
        store = open_store(spec)
        if isinstance(store, SqliteStore):
            try:
                is_there = store.path.exists()
            except OSError as error:  # its name is too long, or nobody may look
                text = f"{store.path} cannot be read as a journal: {error.strerror}"
                raise _unread(text) from error
            if not is_there:
                raise _unread(f"there is no journal at {store.path}")
        with suppress(JournalDamaged):
            next(store.groups(), None)
        return cls(store)

    @classmethod
    def from_jsonl(cls, path: str | Path) -> "Journal":
        """Read a journal from JSON lines into memory.

        Raises:
            JournalError: the file is of another schema, or no journal.
        """
        store = MemoryStore(limit_bytes=None)
        journal = cls(store)
        try:
            for group, contents in read_lines(Path(path)):
                check(group)
                store.append([group], contents)
        except JournalDamaged as error:
            journal._damage = error
        except OSError as error:
            raise _unread(f"{path} cannot be read: {error}") from error
        return journal

    def to_jsonl(self, path: str | Path) -> int:
        """Write the journal and its contents as JSON lines; returns how many groups it had.

        Raises:
            JournalDamaged: it is damaged; what stands before that is in the file.
            JournalUnavailable: the file cannot be written.
        """
        self._fresh()
        beside = Path(path).with_name(f"{Path(path).name}.{os.getpid()}.part")
        try:
            beside.unlink(missing_ok=True)
            count = write_lines(self._groups(), self.store.content, beside)
            beside.replace(path)
        except JournalDamaged:
            beside.replace(path)
            raise
        except OSError as error:
            raise JournalUnavailable(f"{path} cannot be written: {error}") from error
        finally:
            beside.unlink(missing_ok=True)
        return count

    def flush(self) -> None:
        """Block until the store has everything that was sent before this call.

        Raises:
            JournalUnavailable: the store does not take it now; it is kept and tried again.
        """
        if self._drain is not None:
            self._drain()
        if self._writer is not None:
            self._writer.flush()

    @property
    def dropped(self) -> int:
        """How many entries this process has lost or forgotten: for want of room, or by policy."""
        lost = self.lost()
        if isinstance(self.store, MemoryStore):
            return lost + self.store.dropped
        return lost + (0 if self._writer is None else self._writer.trimmed)

    @property
    def bound(self) -> str:
        """Why older entries go, and which option keeps more; empty where nothing makes them go."""
        limit = None if self._writer is None else self._writer.limit_bytes
        if limit is None:
            return ""
        text = f"it keeps {size(limit)}, and System(journal_bytes=…) more"
        if isinstance(self.store, MemoryStore):
            text += f"; System(journal='FILE') keeps {size(JOURNAL_BYTES)} in a file"
        return text

    @property
    def gap(self) -> str:
        """What of it is gone, why, and which option keeps more; empty while it is whole."""
        lost = self.lost()
        forgotten = self.dropped - lost
        told = [f"{self.dropped} older ones are gone"] if self.dropped else []
        if forgotten and self.bound:
            told.append(self.bound)
        if lost and self._writer is not None:
            waited = size(self._writer.backlog_bytes)
            told.append(f"{lost} never came to its store, for which more than {waited} waited")
        return ": ".join((told[0], "; ".join(told[1:]))) if len(told) > 1 else "".join(told)

    @property
    def lost(self) -> Callable[[], int]:
        """Says how many entries have never come to the store, now and later.

        It does not keep the system alive.
        """
        writer = self._writer
        return lambda: 0 if writer is None else writer.dropped

    @property
    def damage(self) -> JournalDamaged | None:
        """What ends this journal early, or was found damaged before and is on record.

        None when it is whole as far as it has been read. Who writes it puts on record what is
        found, for whoever reads it later.
        """
        return self._damage or self._index.damage

    @property
    def own_sessions(self) -> Collection[str]:
        """The sessions of this process, whose code needs no leave to run.

        None once something was read under its name that it has not written.
        """
        if self._writer is None or self._is_forged:
            return ()
        return (self._writer.session,)

    def content(self, key: str) -> bytes | None:
        """Return the bytes of an upload or result by its key; None when they are not kept."""
        return self.store.content(key)

    def replay(self, system: Any, **options: Any) -> Any:
        """Run the journal again on a system and compare; see `journal.replay.replay.replay`."""
        from accel_lab.journal.replay.replay import replay

        return replay(self, system, **options)

    def close(self) -> None:
        """Let the store's connections go; reading opens them again."""
        self.store.close()

    def filter(
        self,
        *,
        device: str | None = None,
        name: str | None = None,
        library: str | None = None,
        kind: Kind | None = None,
        cell: int | None = None,
        failed: bool | None = None,
        after: float | None = None,
        before: float | None = None,
    ) -> Lines:
        """Return those entries that are all of this.

        Parameters:
            device: the device's name.
            name: the message's, as `Gemm`.
            library: the message's, as `blas`.
            kind: what the entry is, as `message`, `context ended`.
            cell: the notebook cell that sent it.
            failed: whether the message is known to have failed, or been lost.
            after: recorded then or later, in seconds since 1970.
            before: recorded earlier.

        Raises:
            InvalidArgument: there is no such kind; the text has those there are.
        """
        self._fresh()
        wanted = Wanted(device, name, library, kind, cell, after, before)
        found = [entry for entry in self._read() if wanted(entry)]
        # What became of a message stands behind it, so this is known only now.
        if failed is not None:
            found = [entry for entry in found if entry.failed == failed]
        return Lines(found, self._title(f"{len(found)} entries"))

    def __len__(self) -> int:
        self._fresh()
        self._index.refresh()
        return self._index.total

    def __iter__(self) -> Iterator[Entry]:
        """Yield every entry, oldest first.

        Raises:
            JournalDamaged: after everything before the damage was yielded.
        """
        self._fresh()
        yield from entries_of(self._groups())

    def settled(self) -> Iterator[Entry]:
        """Yield every entry when it is known what became of it, as iterating; forgets it behind.

        Raises:
            JournalDamaged: after everything before the damage was yielded.
        """
        return settled(self, forgets=True)

    @overload
    def __getitem__(self, index: SupportsIndex) -> Entry: ...
    @overload
    def __getitem__(self, index: "slice[int | None, int | None, int | None]") -> Lines: ...
    def __getitem__(
        self, index: "SupportsIndex | slice[int | None, int | None, int | None]"
    ) -> Entry | Lines:
        """Return one entry, or several; only the groups from there on are read."""
        total = len(self)
        if isinstance(index, slice):
            span = range(total)[index]
            return Lines(self._span(span), self._title(f"{len(span)} of {total} entries"))
        number = operator.index(index)
        if not -total <= number < total:
            raise IndexError(f"there is no entry {number} in a journal of {total}")
        (entry,) = self._span(range(total)[number : number + 1 or None])
        return entry

    def __repr__(self) -> str:
        return repr(self._last())

    def _repr_html_(self) -> str:
        """Show the last entries in a notebook."""
        return self._last()._repr_html_()

    def _last(self) -> Lines:
        try:
            lines = self[-SHOWN:]
        except JournalError as error:
            return Lines((), f"journal in {self.store.name}: {error}{self._unwritten()}")
        return lines

    def _title(self, what: str) -> str:
        text = f"journal in {self.store.name}: {what}"
        if gap := self.gap:
            text += f"; {gap}"
        if self.damage is not None:
            text += f"; it is damaged: {self.damage}"
        return text + self._unwritten()

    def _unwritten(self) -> str:
        unwritten = "" if self._writer is None else self._writer.unwritten
        return f"; {unwritten}" if unwritten else ""

    def _fresh(self) -> None:
        """Have what was sent so far committed, if the store takes it."""
        with suppress(JournalError):
            if self._drain is not None:
                self._drain()
            if self._writer is not None:
                self._writer.flush(FLUSH_S)

    def _groups(self, after: int = 0) -> Iterator[Group]:
        writer = self._writer
        try:
            for group in self.store.groups(after):
                if writer is not None and group.session == writer.session:
                    self._is_forged = self._is_forged or group not in writer.written
                yield group
        except JournalDamaged as error:
            self._index.damage = error
            if writer is not None:
                writer.found_damage(error)
            raise
        if self._damage is not None:
            raise self._damage.copy()

    def _read(self, after: int = 0, first: int = 0) -> Iterator[Entry]:
        """Yield entries up to the end or the damage."""
        try:
            yield from entries_of(self._groups(after), first, self._index.kernels)
        except JournalDamaged as error:  # also that a group does not decode
            self._index.damage = error

    def _span(self, span: range) -> list[Entry]:
        """Return the entries with these numbers; reads on to learn what became of them."""
        if not span:
            return []
        low, high = min(span[0], span[-1]), max(span[0], span[-1])
        after, first = self._index.place(low)
        read = self._read(after, first)
        found = list(islice(read, low - first, high + 1 - first))
        for _ in islice(read, AFTERMATH):
            pass
        return [found[number - low] for number in span if number - low < len(found)]


def _unread(text: str) -> JournalUnavailable:
    error = JournalUnavailable(text)
    error.remedy = "Give the path of a journal that is there and that you may read."
    return error
