"""Stores of every kind, empty, and the servers of those that need one."""

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from accel_lab.journal.stores.memory import MemoryStore
from accel_lab.journal.stores.sqlite import SqliteStore
from accel_lab.journal.stores.store import Store
from tests.conftest import require
from tests.journal.servers import Postgres, Redis, running

KINDS = ("memory", "sqlite", "sql on sqlite", "postgres", "redis")
_names = itertools.count(1)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    require("postgres")
    with running(server := Postgres()):
        yield server


@pytest.fixture(scope="session")
def redis() -> Iterator[Redis]:
    require("redis")
    with running(server := Redis()):
        yield server


def new_store(kind: str, folder: Path, request: pytest.FixtureRequest) -> Store:
    """Make a store that nobody has used."""
    if kind == "memory":
        return MemoryStore()
    if kind == "sqlite":
        return SqliteStore(folder / f"{next(_names)}.journal")
    from accel_lab.journal.stores.redis import RedisStore
    from accel_lab.journal.stores.sql import SqlStore

    if kind == "sql on sqlite":
        return SqlStore(f"sqlite:///{folder}/{next(_names)}.db")
    if kind == "redis":
        return RedisStore(request.getfixturevalue("redis").url, prefix=f"test{next(_names)}")
    server = request.getfixturevalue("postgres")
    schema = f"test{next(_names)}"
    import sqlalchemy as sa

    engine = sa.create_engine(server.url)
    with engine.begin() as db:
        db.execute(sa.text(f"CREATE SCHEMA {schema}"))
    engine.dispose()
    return SqlStore(f"{server.url}?options=-csearch_path%3D{schema}")


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    made = new_store(request.param, tmp_path, request)
    yield made
    made.close()
