"""Open the store that a path or a URL names."""

import os
from importlib import import_module
from pathlib import Path

from accel_lab.errors import InvalidArgument, JournalUnavailable
from accel_lab.journal.stores.memory import MemoryStore
from accel_lab.journal.stores.sqlite import SqliteStore
from accel_lab.journal.stores.store import Store

_STORES = "accel_lab.journal.stores"
OPENERS = {
    "redis": (f"{_STORES}.redis", "RedisStore"),
    "rediss": (f"{_STORES}.redis", "RedisStore"),
    "unix": (f"{_STORES}.redis", "RedisStore"),
    "dynamodb": (f"{_STORES}.cells.dynamodb", "dynamodb_store"),
    "mongodb": (f"{_STORES}.cells.mongodb", "mongodb_store"),
    "mongodb+srv": (f"{_STORES}.cells.mongodb", "mongodb_store"),
    "cassandra": (f"{_STORES}.cells.cassandra", "cassandra_store"),
}
"""By the scheme of a URL, where what opens it is found; SQLAlchemy knows all others."""
SQL = (f"{_STORES}.sql", "SqlStore")


def open_store(spec: str | Path | Store) -> Store:
    """Return the store that a specification names; connects to nothing yet.

    `memory` is this process's memory; `redis://host:6379/0` a Redis server;
    `dynamodb://region/table`, `mongodb://host/database` and `cassandra://host/keyspace` are those;
    `postgresql+psycopg://user@host/database` and the like a database, as SQLAlchemy names it;
    anything else is the path of an SQLite file.

    Raises:
        JournalUnavailable: a package is missing; says which.
        InvalidArgument: it names no store.
    """
    if isinstance(spec, Store):
        return spec
    if isinstance(spec, Path):
        return SqliteStore(spec)
    if not isinstance(spec, str):
        text = f"a journal is 'memory', a path, a URL or a Store, not of type {type(spec).__name__}"
        raise InvalidArgument(text)
    if not spec:
        raise InvalidArgument("a journal is 'memory', a path, a URL or a Store, not nothing")
    if spec == "memory":
        return MemoryStore()
    scheme, separator, _ = spec.partition("://")
    if not separator:
        return SqliteStore(spec)
    module, name = OPENERS.get(scheme, SQL)
    opened: Store = getattr(import_module(module), name)(spec)
    return opened


def store_for(journal: str | Path | Store) -> Store:
    """Return the store that a journal is to be kept in; a mistyped path is a mistake now.

    Raises:
        JournalUnavailable: as `open_store`, or the file or its folder may not be written.
        InvalidArgument: it names no store, or an SQLite file that there cannot be.
    """
    if not isinstance(journal, str | Path | Store):
        raise InvalidArgument(f"journal is 'memory', a path, a URL, a Store or None: {journal!r}")
    store = open_store(journal)
    if isinstance(store, SqliteStore):
        try:
            is_in_folder, is_folder = store.path.parent.is_dir(), store.path.is_dir()
        except OSError as error:  # its name is too long, or nobody may look
            text = f"journal={str(journal)!r} cannot be written: {error.strerror}"
            raise InvalidArgument(text) from error
        if not is_in_folder:
            text = f"journal={str(journal)!r}: there is no folder {store.path.parent}"
            raise InvalidArgument(text)
        if is_folder:
            raise InvalidArgument(f"journal={str(journal)!r} is a folder; name a file in it")
        _require_writable(store.path, journal)
    return store


def _require_writable(path: Path, journal: str | Path | Store) -> None:
    """Refuse a file that may not be written; SQLite makes others beside it, in its folder."""
    for place in (path.parent, *([path] if path.exists() else [])):
        if not os.access(place, os.W_OK, effective_ids=os.access in os.supports_effective_ids):
            what = "folder" if place == path.parent else "file"
            text = f"journal={str(journal)!r}: this process may not write to the {what} {place}"
            error = JournalUnavailable(text)
            error.remedy = "Name a file that you may write, or keep the journal in memory."
            raise error
