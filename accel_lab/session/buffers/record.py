"""The messages of one device in one session, found by their numbers in a folder's journal."""

import hashlib
import os
from collections import deque
from collections.abc import Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import msgspec

from accel_lab.compute.lineage.recorded_message import decode
from accel_lab.errors import AccelError, JournalDamaged, JournalError, SessionDamaged, SessionError
from accel_lab.journal.entries.entry import kind_of
from accel_lab.journal.replay.part import CODE
from accel_lab.journal.stores.sqlite import SqliteStore
from accel_lab.session.store.commit import Recipe, Send

THREADS = min(8, max(2, (os.cpu_count() or 1) // 2))
"""How many threads read contents."""
_parts = msgspec.msgpack.Decoder(list[msgspec.Raw]).decode
_ARRAY = b"\xdd"  # msgpack's array with a length of 32 bits


def digest_of(messages: list[bytes]) -> str:
    """Return the digest of messages as they were sent."""
    made = hashlib.blake2b(digest_size=32)
    for data in messages:
        made.update(len(data).to_bytes(8, "little"))
        made.update(data)
    return made.hexdigest()


class Records:
    """What was sent in the sessions of a folder; read when it is first asked for.

    Parameters:
        store: the folder's journal.
    """

    def __init__(self, store: SqliteStore) -> None:
        self._store = store
        self._read: dict[tuple[str, str], dict[int, bytes]] = {}
        self._until: dict[tuple[str, str], int] = {}  # the last group that was read for a place

    def messages(self, recipe: Recipe) -> list[bytes]:
        """Return the messages of a recipe, in order.

        Raises:
            SessionDamaged: some are not there, or others.
            SessionError: the journal cannot be read.
        """
        place = recipe.session, recipe.device
        known = self._read.setdefault(place, {})
        numbers = [step.seq for step in recipe.steps if isinstance(step, Send)]
        if not known.keys() >= set(numbers):  # what was sent since is read on
            self._read_on(*place, known)
        missing = [number for number in numbers if number not in known]
        if missing:
            raise self._damaged(f"message {missing[0]} of {recipe.device} is not in it any more")
        found = [known[number] for number in numbers]
        if digest_of(found) != recipe.digest:
            raise self._damaged(f"the messages of {recipe.device} are not those that were sent")
        return found

    def contents(self, keys: Sequence[str]) -> Generator[list[bytes]]:
        """Yield the bytes that messages took from the arena, in pieces, in the order of the keys.

        Some threads read and prove a few ahead, where there are several.

        Raises:
            SessionDamaged: the next are not there, or others.
            SessionError: the journal cannot be read.
        """
        if len(keys) == 1:
            yield self._content(keys[0])
        if len(keys) <= 1:
            return
        with ThreadPoolExecutor(THREADS, thread_name_prefix="accel_lab reads") as pool:
            ahead: deque[Future[list[bytes]]] = deque()
            for key in keys:
                ahead.append(pool.submit(self._content, key))
                if len(ahead) > THREADS:
                    yield ahead.popleft().result()
            while ahead:
                yield ahead.popleft().result()

    def _content(self, key: str) -> list[bytes]:
        try:
            data = self._store.pieces(key)
        except JournalError as error:
            raise self._error(error) from error
        if not data:
            raise self._damaged(f"the bytes that are kept as {key} are not in it any more")
        return data

    def _read_on(self, session: str, device: str, found: dict[int, bytes]) -> None:
        try:
            for group in self._store.groups(self._until.get((session, device), 0)):
                self._until[session, device] = group.number
                if (group.session, group.device) == (session, device):
                    whole = _ARRAY + group.count.to_bytes(4, "big") + group.data
                    for part in map(bytes, _parts(whole)):
                        raw: Any = decode(part)
                        if raw[0] > 0:
                            found[raw[0]] = part
        except JournalError as error:
            # What stands before the damage may be enough.
            if not isinstance(error, JournalDamaged) or not found:
                raise self._error(error) from error
        except (msgspec.DecodeError, IndexError, TypeError) as error:
            raise self._damaged(f"a group of {device} does not decode: {error}") from error

    def _damaged(self, why: str) -> SessionDamaged:
        path = str(self._store.path)
        return SessionDamaged(f"{path} is damaged: {why}", path=path)

    def _error(self, error: AccelError) -> SessionError:
        if isinstance(error, JournalDamaged):
            return self._damaged(str(error))
        return SessionError(str(error))


def runs_code(raw: list[Any]) -> bool:
    """Whether a message runs or compiles what the user has written."""
    return kind_of(raw[3][0]).__name__ in CODE
