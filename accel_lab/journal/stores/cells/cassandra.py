"""A journal in a table of Apache Cassandra.

What only one writer may win is a lightweight transaction, and such cells are read serially: see
https://cassandra.apache.org/doc/latest/cassandra/developing/cql/dml.html. All else is written to
and read from a quorum.
"""

import contextlib
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from accel_lab.display.install import pip_install
from accel_lab.errors import InvalidArgument, JournalUnavailable
from accel_lab.journal.stores.cells.cell_store import PREFIX, CellStore
from accel_lab.journal.stores.cells.cells import SERIAL, Cell

PORT = 9042
CONNECT_S = 5.0
ANSWER_S = 30.0
KEYSPACE = "accel_lab"
TABLE = "journal"
OPTIONS = {"prefix", "replication"}
SCHEMA = """
CREATE KEYSPACE IF NOT EXISTS {keyspace} WITH replication =
    {{'class': 'SimpleStrategy', 'replication_factor': {replication}}};
CREATE TABLE IF NOT EXISTS {keyspace}.{table} (p text, s text, v blob, PRIMARY KEY (p, s))
    WITH CLUSTERING ORDER BY (s ASC)
"""
STATEMENTS = {
    "put": "INSERT INTO {table} (p, s, v) VALUES (?, ?, ?)",
    "put_new": "INSERT INTO {table} (p, s, v) VALUES (?, ?, ?) IF NOT EXISTS",
    "get": "SELECT v FROM {table} WHERE p = ? AND s = ?",
    "range": "SELECT s, v FROM {table} WHERE p = ? AND s > ? ORDER BY s ASC LIMIT ?",
    "last": "SELECT s, v FROM {table} WHERE p = ? AND s <= ? ORDER BY s DESC LIMIT 1",
    "keys": "SELECT s FROM {table} WHERE p = ?",
    "delete": "DELETE FROM {table} WHERE p = ? AND s = ?",
    "delete_if": "DELETE FROM {table} WHERE p = ? AND s = ? IF v = ?",
}


def cassandra_store(url: str) -> CellStore:
    """Open `cassandra://user:password@host,other:9042/KEYSPACE?replication=3&prefix=…`.

    The keyspace is made if there is none, with so many copies of each row.

    Raises:
        JournalUnavailable: the driver is not installed.
        InvalidArgument: the URL names no server.
    """
    parts = urlsplit(url)
    options = parse_qs(parts.query)
    user, _, place = parts.netloc.rpartition("@")
    hosts, _, port = place.partition(":")
    keyspace = parts.path.strip("/") or KEYSPACE
    replication = options.get("replication", ["1"])[0]
    numbers = (port or str(PORT), replication)
    if not hosts or options.keys() - OPTIONS or not all(map(str.isdecimal, numbers)):
        text = "a journal in Cassandra is cassandra://HOST:PORT/KEYSPACE, and not what was given"
        raise InvalidArgument(text)
    if not keyspace.isidentifier():
        raise InvalidArgument(f"a keyspace of Cassandra is a name, not {keyspace!r}")
    name, _, password = user.partition(":")
    cells = CassandraCells(
        hosts.split(","),
        int(port or PORT),
        keyspace,
        login=(unquote(name), unquote(password)) if name else None,
        replication=int(replication),
    )
    return CellStore(cells, options.get("prefix", [PREFIX])[0])


class CassandraCells:
    """Cells in a table whose partition key is `p`, and whose rows are in the order of `s`.

    Parameters:
        hosts: some of the servers; the driver finds the others.
        login: a name and a password.
        replication: how many servers have each row, where the keyspace is made.

    Raises:
        JournalUnavailable: the driver is not installed.
    """

    def __init__(
        self,
        hosts: Sequence[str],
        port: int,
        keyspace: str,
        *,
        login: tuple[str, str] | None = None,
        replication: int = 1,
    ) -> None:
        try:
            import cassandra
            import cassandra.auth
            import cassandra.cluster
        except (ImportError, RuntimeError) as error:
            # Without a compiled part, and without `asyncore`, which Python 3.12 has no more, it
            # finds no loop to run in.
            text = f"a journal in Cassandra needs cassandra-driver: {pip_install('cassandra')}"
            raise JournalUnavailable(f"{text} ({error})") from error
        self._driver: Any = cassandra
        self._errors = (cassandra.DriverException, cassandra.cluster.NoHostAvailable)
        self.name = f"cassandra://{','.join(hosts)}:{port}/{keyspace}"
        self._hosts, self._port, self._login = list(hosts), port, login
        names = {"keyspace": keyspace, "table": TABLE, "replication": replication}
        self._schema = SCHEMA.format(**names).split(";")
        table = f"{keyspace}.{TABLE}"
        self._texts = {name: text.format(table=table) for name, text in STATEMENTS.items()}
        self._lock = threading.Lock()
        self._cluster: Any = None
        self._session: Any = None
        self._prepared: dict[str, Any] = {}

    def put(self, partition: str, cells: Mapping[str, bytes]) -> None:
        """Insert cells one after another: a batch of them would be no faster, and is limited."""
        for key, value in cells.items():
            self._run("put", partition, key, value)

    def put_new(self, partition: str, key: str, value: bytes) -> bool:
        """Insert as a lightweight transaction."""
        return bool(self._run("put_new", partition, key, value).was_applied)

    def get(self, partition: str, key: str) -> bytes | None:
        """Select one."""
        row = self._run("get", partition, key).one()
        return None if row is None else bytes(row.v)

    def range(self, partition: str, above: str, limit: int) -> list[Cell]:
        """Select in order."""
        return [(row.s, bytes(row.v)) for row in self._rows("range", partition, above, limit)]

    def last(self, partition: str, most: str) -> Cell | None:
        """Select in the other order."""
        row = self._run("last", partition, most).one()
        return None if row is None else (row.s, bytes(row.v))

    def keys(self, partition: str) -> list[str]:
        """Select the keys alone."""
        return [row.s for row in self._rows("keys", partition)]

    def delete(self, partition: str, keys: Iterable[str]) -> None:
        """Delete cells one after another."""
        for key in keys:
            self._run("delete", partition, key)

    def delete_if(self, partition: str, key: str, value: bytes) -> bool:
        """Delete as a lightweight transaction."""
        return bool(self._run("delete_if", partition, key, value).was_applied)

    def close(self) -> None:
        """Close the connections."""
        with self._lock:
            cluster, self._cluster, self._session = self._cluster, None, None
            self._prepared = {}
        if cluster is not None:
            cluster.shutdown()

    def _rows(self, name: str, partition: str, *values: Any) -> list[Any]:
        with self._mapped():  # later pages are asked for here
            return list(self._run(name, partition, *values))

    def _run(self, name: str, partition: str, *values: Any) -> Any:
        with self._mapped():
            session = self._open()
            statement = self._prepared[name].bind((partition, *values))
            level = self._driver.ConsistencyLevel
            is_serial = partition.rpartition("/")[2] in SERIAL
            reads = self._texts[name].startswith("SELECT")
            statement.consistency_level = level.SERIAL if is_serial and reads else level.QUORUM
            statement.serial_consistency_level = level.SERIAL
            return session.execute(statement, timeout=ANSWER_S)

    def _open(self) -> Any:
        """Return the session; connect, and make the table, where that has not been done."""
        with self._lock:
            if self._session is not None:
                return self._session
            auth = self._driver.auth.PlainTextAuthProvider(*self._login) if self._login else None
            cluster = self._driver.cluster.Cluster(
                self._hosts,
                port=self._port,
                auth_provider=auth,
                connect_timeout=CONNECT_S,
                control_connection_timeout=CONNECT_S,
            )
            try:
                session = cluster.connect()
                for text in self._schema:
                    session.execute(text, timeout=ANSWER_S)
                self._prepared = {name: session.prepare(text) for name, text in self._texts.items()}
            except BaseException:
                cluster.shutdown()
                raise
            self._cluster, self._session = cluster, session
            return session

    @contextlib.contextmanager
    def _mapped(self) -> Iterator[None]:
        """Raise the driver's errors as ours."""
        try:
            yield
        except self._errors as error:
            raise JournalUnavailable(f"{self.name} cannot be used: {error}") from error
