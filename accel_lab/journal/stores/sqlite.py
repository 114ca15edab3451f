"""A journal in one file, which several processes may write to at once.

SQLite with a write-ahead log: what was committed survives the end of the process at any moment.
`synchronous=NORMAL` means that only a crash of the whole machine can cost the last commits, and
never what was committed before them.
"""

import contextlib
import os
import sqlite3
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from accel_lab.compute.machine.private_folder import create_private
from accel_lab.errors import JournalDamaged, JournalError, JournalUnavailable
from accel_lab.journal.stores.chain import BATCH, SCHEMA, Head, proven, require_content, whole
from accel_lab.journal.stores.group import Group
from accel_lab.journal.stores.row import of_row, row_of, weighed_of_row
from accel_lab.journal.stores.sqlite_log import damaged_frame
from accel_lab.journal.stores.store import Store, Trimmed, judge

APPLICATION = 0x41434A4C
BUSY_S = 5.0
PIECE_BYTES = 1 << 20
LOG_BYTES = 4 << 20
"""How large the log is left when it has gone into the file."""
SWITCH_ATTEMPTS = 50
TABLES = """
CREATE TABLE head (one INTEGER PRIMARY KEY CHECK (one = 1), first INTEGER, last INTEGER);
INSERT INTO head VALUES (1, 1, 0);
CREATE TABLE sessions (session TEXT PRIMARY KEY, position INTEGER);
CREATE TABLE groups (
    number INTEGER PRIMARY KEY, session TEXT, device TEXT, at REAL, count INTEGER,
    position INTEGER, entries INTEGER, generation INTEGER, cell INTEGER, keys TEXT,
    checksum INTEGER, data BLOB
);
CREATE TABLE contents (key TEXT, piece INTEGER, data BLOB, PRIMARY KEY (key, piece));
"""
COLUMNS = (
    "number, session, device, at, count, data, position, entries, generation, cell, keys, checksum"
)
_AWAY = {
    sqlite3.SQLITE_AUTH,
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_READONLY,
}


class SqliteStore(Store):
    """Keeps a journal in an SQLite file, which is made when something is first appended.

    It is made for this user alone.

    Parameters:
        path: of the file; beside it lie `-wal` and `-shm` while it is used.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path).absolute()
        self.name = str(path)
        self._lock = threading.Lock()
        self._writing: sqlite3.Connection | None = None
        self._inode = 0
        self._log_was_told = False

    def append(self, groups: Sequence[Group], contents: Mapping[str, bytes]) -> int:
        """Add groups and contents in one transaction."""
        with self._lock, self._transaction() as db:
            for key, data in contents.items():
                _put(db, key, data)
            (last,) = db.execute("SELECT last FROM head").fetchone()
            number = last
            if groups:
                session = groups[0].session
                known = db.execute(
                    "SELECT position FROM sessions WHERE session = ?", (session,)
                ).fetchone()
                done = known[0] if known else -1
                for group in groups:
                    if group.position > done:
                        number, done = number + 1, group.position
                        _insert(db, group.numbered(number))
                db.execute("INSERT OR REPLACE INTO sessions VALUES (?, ?)", (session, done))
                db.execute("UPDATE head SET last = ?", (number,))
            return int(number)

    def groups(self, after: int = 0) -> Iterator[Group]:
        """Yield what the file has, nothing when there is no file."""
        if not self.path.exists():
            return
        with contextlib.closing(self._open_to_read()) as db:
            reader = _Reader(db, self.name)
            yield from proven(reader.head, reader.batch, after)
        damage = self._log_damage()
        if damage is not None:
            raise damage

    def _log_damage(self) -> JournalDamaged | None:
        """Return what is wrong with the log that another process has left."""
        if self._writing is not None or self._log_was_told:
            return None
        frame = damaged_frame(self.path.with_name(f"{self.path.name}-wal"))
        if frame is None:
            return None
        return JournalDamaged(
            f"the log {self.name}-wal is damaged at frame {frame}: what was committed last is lost"
        )

    def content(self, key: str) -> bytes | None:
        """Return the bytes of a key; raises JournalDamaged when they are others."""
        pieces = self._pieces(key)
        return whole(key, pieces) if pieces else None

    def pieces(self, key: str) -> list[bytes]:
        """Return the bytes of a key as they are kept; none when they are not here.

        As `content`, but that nothing is joined, which the interpreter would wait for.
        """
        pieces = self._pieces(key)
        if pieces:
            require_content(key, pieces)
        return pieces

    def _pieces(self, key: str) -> list[bytes]:
        if not self.path.exists():
            return []
        with contextlib.closing(self._open_to_read()) as db:
            reader = _Reader(db, self.name)
            query = "SELECT data FROM contents WHERE key = ? ORDER BY piece"
            return [piece for (piece,) in reader.all(query, key)]

    def trim(self, keep_bytes: int) -> Trimmed:
        """Forget the oldest groups, and give their pages back to the file system."""
        with self._lock:
            with self._transaction() as db:
                weighed = [
                    weighed_of_row(row)
                    for row in db.execute(
                        "SELECT number, session, device, entries, length(data), keys FROM groups "
                        "ORDER BY number"
                    )
                ]
                sizes = dict(db.execute("SELECT key, sum(length(data)) FROM contents GROUP BY key"))
                (last,) = db.execute("SELECT last FROM head").fetchone()
                verdict = judge(weighed, sizes, last, keep_bytes)
                db.executemany(
                    "DELETE FROM groups WHERE number = ?", ((n,) for n in verdict.groups)
                )
                db.executemany("DELETE FROM contents WHERE key = ?", ((k,) for k in verdict.keys))
                if verdict.groups:
                    db.execute("UPDATE head SET first = max(first, ?)", (verdict.first,))
            if verdict.groups or verdict.keys:
                with self._mapped():  # `execute` would stop after the first page
                    self._writer().executescript("PRAGMA incremental_vacuum")
            return verdict.trimmed

    def drop_contents(self, needed: Collection[str], session: str) -> dict[str, int]:
        """Forget contents that are not needed, and that no group of this session names.

        Gives their pages back to the file system; returns their sizes in bytes by key.
        """
        with self._lock:
            with self._transaction() as db:
                sizes = dict(db.execute("SELECT key, sum(length(data)) FROM contents GROUP BY key"))
                rows = db.execute("SELECT keys FROM groups WHERE session = ?", (session,))
                named = {key for (keys,) in rows for key in keys.split()}
                gone = {key: n for key, n in sizes.items() if key not in named | {*needed}}
                db.executemany("DELETE FROM contents WHERE key = ?", ((key,) for key in gone))
            if gone:
                with self._mapped():  # `execute` would stop after the first page
                    self._writer().executescript("PRAGMA incremental_vacuum")
            return gone

    def close(self) -> None:
        """Close the file; its log goes into it."""
        with self._lock:
            self._forget()

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._mapped():
            db = self._writer()
            db.execute("BEGIN IMMEDIATE")
            try:
                yield db
                db.execute("COMMIT")
            except BaseException:
                with contextlib.suppress(sqlite3.Error):
                    db.execute("ROLLBACK")
                raise

    @contextlib.contextmanager
    def _mapped(self) -> Iterator[None]:
        """Raise SQLite's errors as ours, and connect anew after one."""
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            self._forget()
            raise _error_of(error, self.name, reading=False) from error
        except JournalError:
            self._forget()
            raise

    def _forget(self) -> None:
        db, self._writing = self._writing, None
        if db is not None:
            with contextlib.suppress(sqlite3.Error):
                db.close()

    def _writer(self) -> sqlite3.Connection:
        if self._writing is not None:
            try:
                if self.path.stat().st_ino == self._inode:
                    return self._writing
            except FileNotFoundError:
                pass
            raise JournalUnavailable(f"{self.name} was deleted, and what it held is lost")
        damage = self._log_damage()
        if damage is not None:
            self._log_was_told = True  # once; then the journal goes on after what is left
            raise damage
        with contextlib.suppress(FileExistsError):
            os.close(create_private(self.path))  # what lies beside it has its rights
        db = sqlite3.connect(
            self.path, timeout=BUSY_S, isolation_level=None, check_same_thread=False
        )
        try:
            _prepare(db, self.name)
            # Or what a killed process left in the log would stay behind what is written now.
            db.execute("PRAGMA busy_timeout = 0")
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            db.execute(f"PRAGMA busy_timeout = {int(BUSY_S * 1000)}")
        except BaseException:
            db.close()
            raise
        self._log_was_told = False
        self._writing, self._inode = db, self.path.stat().st_ino
        return db

    def _open_to_read(self) -> sqlite3.Connection:
        """Open the file to read it as it is; the log of a killed writer stays for the next one."""
        uri = self.path.as_uri()
        log = self.path.with_name(self.path.name + "-wal")
        ways = ["mode=ro", "mode=rw"] if log.exists() else ["mode=rw", "mode=ro&immutable=1"]
        for way in ways:
            try:
                db = sqlite3.connect(
                    f"{uri}?{way}",
                    uri=True,
                    timeout=BUSY_S,
                    isolation_level=None,
                    check_same_thread=False,
                )
                try:
                    # Or SQLite would not read the beginning of a file that was cut off.
                    db.execute("PRAGMA writable_schema = ON")
                    db.execute("PRAGMA schema_version").fetchone()
                except BaseException:
                    db.close()
                    raise
            except sqlite3.Error as error:
                found = error
                if _code(error) not in _AWAY:
                    break
            else:
                return db
        raise _error_of(found, self.name, reading=True) from found


class _Reader:
    """Reads one open file."""

    def __init__(self, db: sqlite3.Connection, name: str) -> None:
        self._db = db
        self._name = name
        with self._mapped():
            _check(db, name)

    def all(self, query: str, *values: Any) -> list[Any]:
        """Return every row; raises what is wrong with the file."""
        with self._mapped():
            return self._db.execute(query, values).fetchall()

    def head(self) -> Head:
        """Return what the file must have."""
        rows = self.all("SELECT first, last FROM head")
        if len(rows) != 1 or not all(isinstance(number, int) for number in rows[0]):
            raise JournalDamaged(f"the head of {self._name} is damaged")
        return Head(*rows[0])

    def batch(self, after: int) -> Iterator[tuple[Group, int]]:
        """Yield some groups; row by row where they cannot all be read."""
        query = f"SELECT {COLUMNS} FROM groups WHERE number > ? ORDER BY number LIMIT ?"  # noqa: S608
        try:
            rows = self.all(query, after, BATCH)
        except JournalDamaged:
            yield from self._one_by_one(query, after)
            return
        for row in rows:
            yield of_row(row, self._name)

    def _one_by_one(self, query: str, after: int) -> Iterator[tuple[Group, int]]:
        for _ in range(BATCH):
            rows = self.all(query, after, 1)
            if not rows:
                return
            group = of_row(rows[0], self._name)
            yield group
            after = group[0].number

    @contextlib.contextmanager
    def _mapped(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise _error_of(error, self._name, reading=True) from error


def _insert(db: sqlite3.Connection, group: Group) -> None:
    query = f"INSERT INTO groups ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"  # noqa: S608
    db.execute(query, tuple(row_of(group).values()))


def _put(db: sqlite3.Connection, key: str, data: bytes) -> None:
    """Store bytes in pieces, because the interpreter stands still while one is copied."""
    if db.execute("SELECT 1 FROM contents WHERE key = ? LIMIT 1", (key,)).fetchone():
        return
    view = memoryview(data)
    for piece, start in enumerate(range(0, max(len(data), 1), PIECE_BYTES)):
        db.execute(
            "INSERT INTO contents VALUES (?, ?, ?)",
            (key, piece, view[start : start + PIECE_BYTES]),
        )


def _prepare(db: sqlite3.Connection, name: str) -> None:
    """Make a new file a journal, or see that an old one is."""
    db.execute(f"PRAGMA busy_timeout = {int(BUSY_S * 1000)}")
    if _has_tables(db):
        _check(db, name)
    else:
        db.execute("PRAGMA auto_vacuum = INCREMENTAL")
    db.execute("PRAGMA journal_mode = WAL").fetchone()
    db.execute("PRAGMA synchronous = NORMAL")
    db.execute(f"PRAGMA journal_size_limit = {LOG_BYTES}")  # or it stays as large as it ever was
    db.execute("PRAGMA cell_size_check = ON")
    db.execute("BEGIN IMMEDIATE")
    try:
        if not _has_tables(db):
            for statement in TABLES.split(";"):
                db.execute(statement)
            db.execute(f"PRAGMA application_id = {APPLICATION}")
            db.execute(f"PRAGMA user_version = {SCHEMA}")
        _check(db, name)
        db.execute("COMMIT")
    except BaseException:
        with contextlib.suppress(sqlite3.Error):
            db.execute("ROLLBACK")
        raise


def _has_tables(db: sqlite3.Connection) -> bool:
    (count,) = db.execute("SELECT count(*) FROM sqlite_master").fetchone()
    return bool(count)


def _check(db: sqlite3.Connection, name: str) -> None:
    (application,) = db.execute("PRAGMA application_id").fetchone()
    (schema,) = db.execute("PRAGMA user_version").fetchone()
    tables = {table for (table,) in db.execute("SELECT name FROM sqlite_master")}
    if not tables:
        raise JournalDamaged(f"{name} is cut off: it has no tables")
    if application != APPLICATION and not {"head", "groups", "contents"} <= tables:
        raise JournalError(f"{name} is a database of something else, not a journal")
    if schema > SCHEMA or schema < 1:
        raise JournalError(
            f"{name} is a journal of schema {schema}; this version of accel_lab reads {SCHEMA}"
        )


def _code(error: BaseException) -> int:
    return int(getattr(error, "sqlite_errorcode", 0) or 0) & 0xFF


def _error_of(error: BaseException, name: str, *, reading: bool) -> JournalError:
    code = _code(error)
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB) or (reading and code not in _AWAY):
        return JournalDamaged(f"{name} is damaged: {error}")
    return JournalUnavailable(f"{name} cannot be used: {error}")
