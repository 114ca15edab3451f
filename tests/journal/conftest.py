"""Stores of every kind, empty, and the servers of those that need one."""

import itertools
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from weakref import WeakKeyDictionary

import pytest

from accel_lab.journal.stores.memory import MemoryStore
from accel_lab.journal.stores.open_store import open_store
from accel_lab.journal.stores.sqlite import SqliteStore
from accel_lab.journal.stores.store import Store
from tests.conftest import require
from tests.journal.servers import Dynalite, Elsewhere, Mongo, Moto, Postgres, Redis, running

SERVERS = ("postgres", "redis", "dynamodb", "dynalite", "mongodb", "cassandra")
KINDS = ("memory", "sqlite", "sql on sqlite", *SERVERS)
URLS = WeakKeyDictionary[Store, str]()
"""Where the stores of servers without transactions are."""
_names = itertools.count(1)
_RUN = f"test_{secrets.token_hex(4)}_"

# boto3 signs what it sends; who acts as DynamoDB here asks for no more.
os.environ.setdefault("AWS_ACCESS_KEY_ID", "nobody")
os.environ.setdefault("AWS_SECRET_ACCESS_KEY", "nothing")


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


@pytest.fixture(scope="session")
def dynamodb() -> Iterator[Moto]:
    require("moto")
    with running(server := Moto()):
        yield server


@pytest.fixture(scope="session")
def dynalite() -> Iterator[Dynalite]:
    require("dynalite")
    with running(server := Dynalite()):
        yield server


@pytest.fixture(scope="session")
def mongodb() -> Iterator[Mongo | Elsewhere]:
    if address := os.environ.get("ACCEL_LAB_MONGODB"):
        yield Elsewhere(address)
        return
    require("mongodb")
    with running(server := Mongo()):
        yield server


@pytest.fixture(scope="session")
def cassandra() -> Elsewhere:
    """A server cannot be had from a package index: these tests run where one's address is given."""
    require("cassandra")
    return Elsewhere(os.environ["ACCEL_LAB_CASSANDRA"])


def new_store(kind: str, folder: Path, request: pytest.FixtureRequest) -> Store:
    """Make a store that nobody has used."""
    if kind == "memory":
        return MemoryStore()
    if kind == "sqlite":
        return SqliteStore(folder / f"{next(_names)}.journal")
    if kind in ("dynamodb", "dynalite", "mongodb", "cassandra"):
        url = request.getfixturevalue(kind).url(f"{_RUN}{next(_names)}")
        store = open_store(url)
        URLS[store] = url
        return store
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
