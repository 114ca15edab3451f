"""A journal in a Redis server: a stream of groups, and a key for each content.

How much of it survives the end of the server is the server's setting (`appendonly`), not ours.
"""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from accel_lab.display.install import pip_install
from accel_lab.errors import InvalidArgument, JournalDamaged, JournalError, JournalUnavailable
from accel_lab.journal.stores.chain import BATCH, SCHEMA, Head, proven, whole
from accel_lab.journal.stores.group import Group
from accel_lab.journal.stores.store import Store, Trimmed, Verdict, Weighed, judge

if TYPE_CHECKING:
    import redis
    from redis.client import Pipeline

T = TypeVar("T")
PREFIX = "accel_lab"
ATTEMPTS = 100
CONNECT_S = 5.0
ANSWER_S = 30.0
_encode = msgspec.msgpack.Encoder().encode
_facts = msgspec.msgpack.Decoder(Group)
_weighed = msgspec.msgpack.Decoder(Weighed)


class RedisStore(Store):
    """Keeps a journal under keys that begin with a prefix.

    `:head` is a hash of what there is, `:groups` the stream, `:weights` a hash of what each group
    weighs, `:sizes` one of the contents' sizes, `:content:…` the contents. A change is one
    MULTI … EXEC that only happens if nobody else changed the head meanwhile.

    Parameters:
        url: as `redis://host:6379/0`.
        prefix: of the keys; one journal for each.

    Raises:
        JournalUnavailable: redis-py is not installed.
        InvalidArgument: the URL is none.
    """

    def __init__(self, url: str, prefix: str = PREFIX) -> None:
        try:
            import redis
            from redis.backoff import NoBackoff
            from redis.retry import Retry
        except ImportError as error:
            text = f"a journal in Redis needs redis-py: {pip_install('journal')}"
            raise JournalUnavailable(text) from error
        self._redis = redis
        try:
            self._client: redis.Redis = redis.Redis.from_url(
                url,
                socket_connect_timeout=CONNECT_S,
                socket_timeout=ANSWER_S,
                retry=Retry(NoBackoff(), 1),
            )
        except ValueError as error:
            raise InvalidArgument(f"the journal cannot be kept there: {error}") from error
        self.name = _without_password(url)
        self._prefix = prefix

    def append(self, groups: Sequence[Group], contents: Mapping[str, bytes]) -> int:
        """Add groups and contents in one MULTI."""

        def change(pipe: Any) -> int:
            head = self._head(pipe)
            sizes = self._key("sizes")
            new = [key for key in contents if not pipe.hexists(sizes, key)]
            number = head.last
            there: dict[Any, Any] = {"schema": SCHEMA, "first": head.first}
            if groups:
                session = groups[0].session
                done = int(_answer(pipe.hget(self._key("head"), f"session {session}")) or -1)
            pipe.multi()
            for key in new:
                pipe.set(self._key(f"content:{key}"), contents[key])
                pipe.hset(sizes, key, str(len(contents[key])))
            for group in groups:
                if group.position <= done:
                    continue
                number, done = number + 1, group.position
                there[f"session {session}"] = done
                self._add(pipe, group.numbered(number))
            pipe.hset(self._key("head"), mapping=there | {"last": number})
            return number

        return self._change(change)

    def groups(self, after: int = 0) -> Iterator[Group]:
        """Yield what the stream has, in batches."""

        def head() -> Head:
            with self._mapped():
                return self._head(self._client)

        yield from proven(head, self._batch, after)

    def content(self, key: str) -> bytes | None:
        """Return the bytes of a key; raises JournalDamaged when they are others."""
        with self._mapped():
            data = _answer(self._client.get(self._key(f"content:{key}")))
        return None if data is None else whole(key, [data])

    def trim(self, keep_bytes: int) -> Trimmed:
        """Forget the oldest groups."""

        def change(pipe: Any) -> Verdict:
            head = self._head(pipe)
            weights = _answer(pipe.hgetall(self._key("weights")))
            weighed = sorted(_weighed.decode(weight) for weight in weights.values())
            sizes = {
                key.decode(): int(size)
                for key, size in _answer(pipe.hgetall(self._key("sizes"))).items()
            }
            verdict = judge(weighed, sizes, head.last, keep_bytes)
            pipe.multi()
            for number in verdict.groups:
                pipe.xdel(self._key("groups"), f"{number}-0")
                pipe.hdel(self._key("weights"), str(number))
            for key in verdict.keys:
                pipe.delete(self._key(f"content:{key}"))
                pipe.hdel(self._key("sizes"), key)
            if verdict.groups:
                first = max(head.first, verdict.first)
                pipe.hset(self._key("head"), "first", str(first))
            return verdict

        return self._change(change).trimmed

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _key(self, name: str) -> str:
        return f"{self._prefix}:{name}"

    def _add(self, pipe: "Pipeline", group: Group) -> None:
        facts = msgspec.structs.replace(group, data=b"")
        weighed = Weighed(
            group.number, group.session, group.device, group.entries, group.nbytes, group.keys
        )
        fields: dict[Any, Any] = {
            "facts": _encode(facts),
            "data": group.data,
            "checksum": str(group.checksum),
        }
        pipe.xadd(self._key("groups"), fields, id=f"{group.number}-0")
        pipe.hset(self._key("weights"), str(group.number), _encode(weighed))

    def _head(self, client: "redis.Redis | Pipeline") -> Head:
        found = _answer(client.hmget(self._key("head"), ["schema", "first", "last"]))
        if found == [None, None, None]:
            return Head(1, 0)
        try:
            schema, first, last = map(int, found)
        except (TypeError, ValueError) as error:
            raise JournalDamaged(f"the head of {self.name} is damaged: {found}") from error
        if schema != SCHEMA:
            raise JournalError(
                f"{self.name} has a journal of schema {schema}; this version of accel_lab reads "
                f"{SCHEMA}"
            )
        return Head(first, last)

    def _batch(self, after: int) -> Iterator[tuple[Group, int]]:
        with self._mapped():
            rows = _answer(self._client.xrange(self._key("groups"), min=f"({after}-0", count=BATCH))
        for place, fields in rows:
            number = int(place.partition(b"-")[0])
            try:
                facts = _facts.decode(fields[b"facts"])
                group = msgspec.structs.replace(facts, number=number, data=fields[b"data"])
                checksum = int(fields[b"checksum"])
            except (KeyError, ValueError) as error:
                text = f"group {number} of {self.name} is not what was written: {error!r}"
                raise JournalDamaged(text) from error
            yield group, checksum

    def _change(self, change: Callable[[Any], T]) -> T:
        """Do what `change` queues, again if somebody else came first."""
        with self._mapped():
            for _ in range(ATTEMPTS):
                pipe: Any
                with self._client.pipeline() as pipe:
                    pipe.watch(self._key("head"))
                    answer = change(pipe)
                    try:
                        pipe.execute()
                    except self._redis.WatchError:
                        continue
                    return answer
        raise JournalUnavailable(f"{self.name} is written to by too many at once")

    @contextlib.contextmanager
    def _mapped(self) -> Iterator[None]:
        """Raise redis-py's errors as ours."""
        try:
            yield
        except self._redis.RedisError as error:
            raise JournalUnavailable(f"{self.name} cannot be used: {error}") from error


def _answer(value: Any) -> Any:
    """Return an answer; redis-py types each as one that may have to be awaited."""
    return value


def _without_password(url: str) -> str:
    scheme, _, rest = url.partition("://")
    place, _, query = rest.partition("?")
    host = place.rpartition("@")[2]
    options = "&".join(one for one in query.split("&") if not one.startswith("password="))
    return f"{scheme}://{host}?{options}" if options else f"{scheme}://{host}"
