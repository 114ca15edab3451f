"""A journal in a collection of MongoDB.

A write is answered when most of the servers have it, and reads see what most have:
https://www.mongodb.com/docs/manual/reference/write-concern/.
"""

import contextlib
import re
import threading
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from accel_lab.compute.lineage.content_store import key_of
from accel_lab.display.install import pip_install
from accel_lab.errors import InvalidArgument, JournalUnavailable
from accel_lab.journal.stores.cells.cell_store import CellStore
from accel_lab.journal.stores.cells.cells import Cell

CONNECT_MS = 5_000
ANSWER_MS = 30_000
AT_ONCE = 32
KEYS_AT_ONCE = 500
DATABASE = "accel_lab"


def mongodb_store(url: str) -> CellStore:
    """Open a URL of MongoDB's, `mongodb://host:27017/DATABASE`; the collection is `journal`.

    Raises:
        JournalUnavailable: PyMongo is not installed.
        InvalidArgument: the URL is none.
    """
    return CellStore(MongoDbCells(url))


class MongoDbCells:
    """Cells in a collection; a document's `_id` is its partition, a bar and its key, `v` its value.

    What was only written because it was new has the digest of that for `k`.

    Where the URL names no database it is `accel_lab`.

    Raises:
        JournalUnavailable: PyMongo is not installed.
        InvalidArgument: the URL is none.
    """

    def __init__(self, url: str, collection: str = "journal") -> None:
        try:
            import pymongo
            import pymongo.errors
            from pymongo.uri_parser import parse_uri
        except ImportError as error:
            text = f"a journal in MongoDB needs PyMongo: {pip_install('mongodb')}"
            raise JournalUnavailable(text) from error
        self._pymongo: Any = pymongo
        self._errors = pymongo.errors.PyMongoError
        try:
            parsed = parse_uri(url) if url.startswith("mongodb://") else {}
        except (self._errors, ValueError) as error:
            raise InvalidArgument(f"the journal cannot be kept there: {error}") from error
        scheme, _, rest = url.partition("://")
        place = rest.partition("?")[0].rpartition("@")[2]
        self.name = f"{scheme}://{place}"
        self._url = url
        self._database = parsed.get("database") or place.partition("/")[2] or DATABASE
        self._collection = collection
        self._lock = threading.Lock()
        self._client: Any = None

    def put(self, partition: str, cells: Mapping[str, bytes]) -> None:
        """Set documents, some at once."""
        update = self._pymongo.UpdateOne
        writes = [
            update({"_id": _id(partition, key)}, {"$set": {"v": value}}, upsert=True)
            for key, value in cells.items()
        ]
        for start in range(0, len(writes), AT_ONCE):
            with self._open() as journal:
                journal.bulk_write(writes[start : start + AT_ONCE], ordered=False)

    def put_new(self, partition: str, key: str, value: bytes) -> bool:
        """Insert: no two documents have one `_id`."""
        with self._open() as journal:
            try:
                journal.insert_one({"_id": _id(partition, key), "v": value, "k": key_of(value)})
            except self._pymongo.errors.DuplicateKeyError:
                return False
            return True

    def get(self, partition: str, key: str) -> bytes | None:
        """Find one."""
        with self._open() as journal:
            found = journal.find_one({"_id": _id(partition, key)})
            return None if found is None else bytes(found["v"])

    def range(self, partition: str, above: str, limit: int) -> list[Cell]:
        """Find in order."""
        with self._open() as journal:
            found = journal.find(_between(partition, above)).sort("_id", 1).limit(limit)
            return [(_key(one["_id"]), bytes(one["v"])) for one in found]

    def last(self, partition: str, most: str) -> Cell | None:
        """Find in the other order."""
        where = {"_id": {"$gt": _id(partition, ""), "$lte": _id(partition, most)}}
        with self._open() as journal:
            found = list(journal.find(where).sort("_id", -1).limit(1))
            return (_key(found[0]["_id"]), bytes(found[0]["v"])) if found else None

    def keys(self, partition: str) -> list[str]:
        """Find the keys alone."""
        with self._open() as journal:
            return [_key(one["_id"]) for one in journal.find(_between(partition, ""), {"_id": 1})]

    def delete(self, partition: str, keys: Iterable[str]) -> None:
        """Delete some at once."""
        ids = [_id(partition, key) for key in keys]
        for start in range(0, len(ids), KEYS_AT_ONCE):
            with self._open() as journal:
                journal.delete_many({"_id": {"$in": ids[start : start + KEYS_AT_ONCE]}})

    def delete_if(self, partition: str, key: str, value: bytes) -> bool:
        """Delete where both are so."""
        with self._open() as journal:
            where = {"_id": _id(partition, key), "k": key_of(value)}
            return bool(journal.delete_one(where).deleted_count)

    def close(self) -> None:
        """Close the connections."""
        with self._lock:
            client, self._client = self._client, None
        if client is not None:
            client.close()

    @contextlib.contextmanager
    def _open(self) -> Iterator[Any]:
        """Give the collection; raise PyMongo's errors as ours."""
        try:
            with self._lock:
                if self._client is None:
                    self._client = self._pymongo.MongoClient(
                        self._url,
                        serverSelectionTimeoutMS=CONNECT_MS,
                        connectTimeoutMS=CONNECT_MS,
                        socketTimeoutMS=ANSWER_MS,
                        appname="accel_lab",
                        w="majority",
                        readConcernLevel="majority",
                    )
                client = self._client
            yield client[self._database][self._collection]
        except self._errors as error:
            # Behind that stand its settings, and all that it knows of the servers.
            why, *_ = re.split(r" \(configured timeouts|, Timeout: ", str(error))
            raise JournalUnavailable(f"{self.name} cannot be used: {why}") from error


def _id(partition: str, key: str) -> str:
    return f"{partition}|{key}"


def _key(id_: str) -> str:
    return id_.partition("|")[2]


def _between(partition: str, above: str) -> dict[str, Any]:
    """Return what finds the keys of a partition above one; `}` is what follows a bar."""
    return {"_id": {"$gt": _id(partition, above), "$lt": f"{partition}}}"}}
