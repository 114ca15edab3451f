"""A journal in a database server, through SQLAlchemy Core.

Tested with PostgreSQL; any database that SQLAlchemy knows has what is used here: three tables of
plain columns, transactions, and a row that is updated to let one writer in at a time.
"""

import contextlib
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from accel_lab.display.install import pip_install
from accel_lab.errors import InvalidArgument, JournalDamaged, JournalError, JournalUnavailable
from accel_lab.journal.stores.chain import BATCH, SCHEMA, Head, proven, whole
from accel_lab.journal.stores.group import Group
from accel_lab.journal.stores.row import of_row, row_of, weighed_of_row
from accel_lab.journal.stores.store import Store, Trimmed, judge

if TYPE_CHECKING:
    import sqlalchemy as sa

PIECE_BYTES = 256 << 10
KEYS_PER_STATEMENT = 500
DRIVERS = {
    "psycopg": 'pip install "psycopg[binary]"',
    "sqlalchemy": "pip install sqlalchemy",
}


class SqlStore(Store):
    """Keeps a journal in the tables `accel_lab_head`, `_sessions`, `_groups` and `_contents`.

    Parameters:
        url: SQLAlchemy's, as `postgresql+psycopg://user@host/database`.

    Raises:
        JournalUnavailable: SQLAlchemy or the database's driver is not installed.
        InvalidArgument: no such kind of database.
    """

    def __init__(self, url: str) -> None:
        try:
            import sqlalchemy
        except ImportError as error:
            text = f"a journal in a database needs SQLAlchemy: {pip_install('journal')}"
            raise JournalUnavailable(text) from error
        self._sa = sqlalchemy
        try:
            parsed = sqlalchemy.make_url(url)
            shown = parsed.difference_update_query(["password", "sslpassword"])
            self.name = shown.render_as_string(hide_password=True)
            self._engine = sqlalchemy.create_engine(
                parsed, pool_pre_ping=True, pool_size=2, connect_args=_patience(parsed)
            )
        except ImportError as error:
            hint = DRIVERS.get(error.name or "", f"pip install {error.name}")
            text = f"a journal at {self.name} needs the package {error.name}: {hint}"
            raise JournalUnavailable(text) from error
        except (sqlalchemy.exc.ArgumentError, ValueError) as error:
            raise InvalidArgument(f"the journal cannot be kept there: {error}") from error
        self._tables = _Tables(sqlalchemy)
        self._made = False
        self._making = threading.Lock()

    def append(self, groups: Sequence[Group], contents: Mapping[str, bytes]) -> int:
        """Add groups and contents in one transaction."""
        t = self._tables
        with self._transaction() as db:
            last = self._enter(db).last
            for key, data in contents.items():
                self._put(db, key, data)
            if not groups:
                return last
            session = groups[0].session
            known = self._sa.select(t.sessions.c.position).where(t.sessions.c.session == session)
            row = db.execute(known).one_or_none()
            done = -1 if row is None else row[0]
            number, rows = last, []
            for group in groups:
                if group.position > done:
                    number, done = number + 1, group.position
                    rows.append(row_of(group.numbered(number)))
            if rows:
                db.execute(t.groups.insert(), rows)
                db.execute(t.head.update().values(last=number))
            if row is None:
                db.execute(t.sessions.insert().values(session=session, position=done))
            else:
                where = t.sessions.c.session == session
                db.execute(t.sessions.update().where(where).values(position=done))
            return number

    def groups(self, after: int = 0) -> Iterator[Group]:
        """Yield what the tables have; a transaction for each batch, none while you look at it."""
        yield from proven(self._head, self._batch, after)

    def content(self, key: str) -> bytes | None:
        """Return the bytes of a key; raises JournalDamaged when they are others."""
        c = self._tables.contents.c
        query = self._sa.select(c.data).where(c.key == key).order_by(c.piece)
        with self._transaction() as db:
            pieces = [bytes(piece) for (piece,) in db.execute(query)]
        return whole(key, pieces) if pieces else None

    def trim(self, keep_bytes: int) -> Trimmed:
        """Forget the oldest groups; how soon the space is free is the database's business."""
        t, sa = self._tables, self._sa
        g, c = t.groups.c, t.contents.c
        with self._transaction() as db:
            head = self._enter(db)
            query = sa.select(
                g.number, g.session, g.device, g.entries, sa.func.length(g.data), g["keys"]
            ).order_by(g.number)
            weighed = [weighed_of_row(row) for row in db.execute(query)]
            total = sa.select(c.key, sa.func.sum(sa.func.length(c.data))).group_by(c.key)
            sizes = {key: int(size) for key, size in db.execute(total)}
            verdict = judge(weighed, sizes, head.last, keep_bytes)
            for some in _some(verdict.groups):
                db.execute(t.groups.delete().where(g.number.in_(some)))
            for some in _some(list(verdict.keys)):
                db.execute(t.contents.delete().where(c.key.in_(some)))
            if verdict.groups:
                db.execute(t.head.update().values(first=max(head.first, verdict.first)))
        return verdict.trimmed

    def close(self) -> None:
        """Close the connections."""
        self._engine.dispose()

    def _head(self) -> Head:
        with self._transaction() as db:
            return self._read_head(db)

    def _read_head(self, db: "sa.Connection") -> Head:
        h = self._tables.head.c
        row = db.execute(self._sa.select(h.first, h.last)).one_or_none()
        if row is None:
            raise JournalDamaged(f"the head of {self.name} is gone")
        return Head(*row)

    def _enter(self, db: "sa.Connection") -> Head:
        """Keep other writers out until the end of this transaction, and return the head."""
        t = self._tables
        db.execute(t.head.update().values(one=1))
        return self._read_head(db)

    def _batch(self, after: int) -> Iterator[tuple[Group, int]]:
        table = self._tables.groups
        query = self._sa.select(table).where(table.c.number > after)
        query = query.order_by(table.c.number).limit(BATCH)
        with self._transaction() as db:
            rows = db.execute(query).all()
        for row in rows:
            yield of_row(row, self.name)

    def _put(self, db: "sa.Connection", key: str, data: bytes) -> None:
        table = self._tables.contents
        if db.execute(self._sa.select(table.c.piece).where(table.c.key == key).limit(1)).first():
            return
        for piece, start in enumerate(range(0, max(len(data), 1), PIECE_BYTES)):
            part = data[start : start + PIECE_BYTES]
            db.execute(table.insert().values(key=key, piece=piece, data=part))

    @contextlib.contextmanager
    def _transaction(self) -> Iterator["sa.Connection"]:
        """Raise the database's errors as ours."""
        try:
            self._make()
            with self._engine.begin() as db:
                yield db
        except self._sa.exc.SQLAlchemyError as error:
            cause = getattr(error, "orig", None) or error
            text = f"{self.name} cannot be used: {cause}"
            raise JournalUnavailable(text.strip()) from error

    def _make(self) -> None:
        """Make the tables where there are none; several processes may try at once."""
        with self._making:
            if self._made:
                return
            t, sa = self._tables, self._sa
            try:
                t.metadata.create_all(self._engine)
                with self._engine.begin() as db:
                    if db.execute(sa.select(t.head.c.one)).first() is None:
                        db.execute(t.head.insert().values(one=1, schema=SCHEMA, first=1, last=0))
            except (sa.exc.IntegrityError, sa.exc.ProgrammingError):
                t.metadata.create_all(self._engine)  # another process made them just now
            with self._engine.begin() as db:
                schema = db.execute(sa.select(t.head.c.schema)).scalar_one()
            if schema != SCHEMA:
                raise JournalError(
                    f"{self.name} has a journal of schema {schema}; this version of accel_lab "
                    f"reads {SCHEMA}"
                )
            self._made = True


class _Tables:
    """The tables as SQLAlchemy describes them."""

    def __init__(self, sa: Any) -> None:
        self.metadata = sa.MetaData()
        blob = sa.LargeBinary(2**32 - 1)
        name = sa.String(255)

        def table(name: str, *columns: Any) -> Any:
            return sa.Table(f"accel_lab_{name}", self.metadata, *columns)

        def number(name: str, **options: Any) -> Any:
            return sa.Column(name, sa.BigInteger, autoincrement=False, **options)

        self.head = table(
            "head",
            number("one", primary_key=True),
            number("schema"),
            number("first"),
            number("last"),
        )
        self.sessions = table(
            "sessions", sa.Column("session", name, primary_key=True), number("position")
        )
        self.groups = table(
            "groups",
            number("number", primary_key=True),
            sa.Column("session", name),
            sa.Column("device", name),
            sa.Column("at", sa.Double),
            number("count"),
            sa.Column("data", blob),
            number("position"),
            number("entries"),
            number("generation"),
            number("cell", nullable=True),
            sa.Column("keys", sa.Text),
            number("checksum"),
        )
        self.contents = table(
            "contents",
            sa.Column("key", sa.String(64), primary_key=True),
            number("piece", primary_key=True),
            sa.Column("data", blob),
        )


def _some(items: list[Any]) -> Iterator[list[Any]]:
    for start in range(0, len(items), KEYS_PER_STATEMENT):
        yield items[start : start + KEYS_PER_STATEMENT]


def _patience(url: "sa.URL") -> dict[str, Any]:
    """Give up on a server that does not answer, in seconds (the second in milliseconds)."""
    if url.get_driver_name() != "psycopg":
        return {}
    limits = {"connect_timeout": 5, "tcp_user_timeout": 10_000, "keepalives_idle": 10}
    return {name: limit for name, limit in limits.items() if name not in url.query}
