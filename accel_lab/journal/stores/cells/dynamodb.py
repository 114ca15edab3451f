"""A journal in a table of Amazon DynamoDB.

Reads are consistent, and what is answered is written to three data centres: see
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/HowItWorks.ReadConsistency.html.
"""

import contextlib
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import parse_qs, urlsplit

from accel_lab.display.install import pip_install
from accel_lab.errors import InvalidArgument, JournalUnavailable
from accel_lab.journal.stores.cells.cell_store import PREFIX, CellStore
from accel_lab.journal.stores.cells.cells import Cell

CONNECT_S = 5.0
ANSWER_S = 30.0
MADE_S = 60.0
AT_ONCE = 25
"""The most writes in one BatchWriteItem; of pieces they are less than its 16 MB."""
PATIENCE = 8
OPTIONS = {"endpoint", "prefix"}


def dynamodb_store(url: str) -> CellStore:
    """Open `dynamodb://REGION/TABLE?endpoint=…&prefix=…`; the credentials are boto3's own affair.

    Raises:
        JournalUnavailable: boto3 is not installed.
        InvalidArgument: the URL names no table.
    """
    parts = urlsplit(url)
    region, table, options = parts.hostname or "", parts.path.strip("/"), parse_qs(parts.query)
    if not region or not table or options.keys() - OPTIONS or "@" in parts.netloc:
        raise InvalidArgument(f"a journal in DynamoDB is dynamodb://REGION/TABLE, not {url!r}")
    endpoint = options.get("endpoint", [None])[0]
    return CellStore(DynamoDbCells(region, table, endpoint), options.get("prefix", [PREFIX])[0])


class DynamoDbCells:
    """Cells in a table whose keys are `p`, the partition, and `s`; made if there is none.

    Parameters:
        endpoint: the address of another server than Amazon's, as `http://127.0.0.1:8000`.

    Raises:
        JournalUnavailable: boto3 is not installed.
        InvalidArgument: there is no such region, or the endpoint is none.
    """

    def __init__(self, region: str, table: str, endpoint: str | None = None) -> None:
        try:
            import boto3
            import botocore.exceptions
            from botocore.config import Config
        except ImportError as error:
            text = f"a journal in DynamoDB needs boto3: {pip_install('dynamodb')}"
            raise JournalUnavailable(text) from error
        self.name = f"dynamodb://{region}/{table}" + (f" at {endpoint}" if endpoint else "")
        self._errors = (botocore.exceptions.BotoCoreError, botocore.exceptions.ClientError)
        self._refused = botocore.exceptions.ClientError
        config = Config(
            connect_timeout=CONNECT_S,
            read_timeout=ANSWER_S,
            retries={"mode": "standard", "total_max_attempts": 3},
        )
        try:
            self._client: Any = boto3.client(
                "dynamodb", region_name=region, endpoint_url=endpoint, config=config
            )
        except (*self._errors, ValueError) as error:
            raise InvalidArgument(f"the journal cannot be kept there: {error}") from error
        self._table = table
        self._is_made = False
        self._making = threading.Lock()

    def put(self, partition: str, cells: Mapping[str, bytes]) -> None:
        """Write cells, some at once."""
        self._write(
            [
                {"PutRequest": {"Item": {**_key(partition, key), "v": {"B": value}}}}
                for key, value in cells.items()
            ]
        )

    def put_new(self, partition: str, key: str, value: bytes) -> bool:
        """Put with a condition."""
        item = {**_key(partition, key), "v": {"B": value}}
        condition = "attribute_not_exists(p)"
        with self._mapped():
            self._make()
            return self._if(self._client.put_item, Item=item, ConditionExpression=condition)

    def get(self, partition: str, key: str) -> bytes | None:
        """Get, consistently."""
        with self._mapped(), self._nothing_without_a_table():
            found = self._client.get_item(
                TableName=self._table, Key=_key(partition, key), ConsistentRead=True
            )
            return bytes(found["Item"]["v"]["B"]) if "Item" in found else None
        return None

    def range(self, partition: str, above: str, limit: int) -> list[Cell]:
        """Query; an answer ends after 1 MB, and goes on."""
        found: list[Cell] = []
        condition, values = _above(partition, above)
        for item in self._query(condition, values, limit):
            found.append((item["s"]["S"], bytes(item["v"]["B"])))
            if len(found) == limit:
                break
        return found

    def last(self, partition: str, most: str) -> Cell | None:
        """Query backwards."""
        values = {":p": {"S": partition}, ":s": {"S": most}}
        query = self._query("p = :p AND s <= :s", values, 1, ScanIndexForward=False)
        return next(((item["s"]["S"], bytes(item["v"]["B"])) for item in query), None)

    def keys(self, partition: str) -> list[str]:
        """Query the keys alone."""
        condition, values = _above(partition, "")
        query = self._query(condition, values, None, ProjectionExpression="s")
        return [item["s"]["S"] for item in query]

    def delete(self, partition: str, keys: Iterable[str]) -> None:
        """Delete cells, some at once."""
        self._write([{"DeleteRequest": {"Key": _key(partition, key)}} for key in keys])

    def delete_if(self, partition: str, key: str, value: bytes) -> bool:
        """Delete with a condition."""
        with self._mapped():
            self._make()
            return self._if(
                self._client.delete_item,
                Key=_key(partition, key),
                ConditionExpression="v = :v",
                ExpressionAttributeValues={":v": {"B": value}},
            )

    def close(self) -> None:
        """Do nothing: connections that are not used end by themselves."""

    def _if(self, write: Any, **options: Any) -> bool:
        """Write with a condition; whether it was met."""
        try:
            write(TableName=self._table, **options)
        except self._refused as error:
            if _code(error) != "ConditionalCheckFailedException":
                raise
            return False
        return True

    def _query(
        self, condition: str, values: dict[str, Any], limit: int | None, **options: Any
    ) -> Iterator[dict[str, Any]]:
        asked = {"TableName": self._table, "ConsistentRead": True, **options}
        asked |= {"KeyConditionExpression": condition, "ExpressionAttributeValues": values}
        if limit is not None:
            asked["Limit"] = limit
        while True:
            page: dict[str, Any] = {}
            with self._mapped(), self._nothing_without_a_table():
                page = self._client.query(**asked)
            yield from page.get("Items", ())
            if "LastEvaluatedKey" not in page:
                return
            asked["ExclusiveStartKey"] = page["LastEvaluatedKey"]

    def _write(self, requests: list[dict[str, Any]]) -> None:
        for start in range(0, len(requests), AT_ONCE):
            with self._mapped():
                self._make()
                self._write_some(requests[start : start + AT_ONCE])

    def _write_some(self, left: list[dict[str, Any]]) -> None:
        for attempt in range(PATIENCE):
            answer = self._client.batch_write_item(RequestItems={self._table: left})
            left = answer.get("UnprocessedItems", {}).get(self._table, [])
            if not left:
                return
            time.sleep(0.05 * 2**attempt)
        raise JournalUnavailable(f"{self.name} cannot be used: it takes no more writes now")

    def _make(self) -> None:
        """Make the table where there is none; several processes may try at once."""
        with self._making:
            if self._is_made:
                return
            with contextlib.suppress(self._client.exceptions.ResourceInUseException):
                if not self._is_there():
                    self._client.create_table(
                        TableName=self._table,
                        BillingMode="PAY_PER_REQUEST",
                        KeySchema=[
                            {"AttributeName": "p", "KeyType": "HASH"},
                            {"AttributeName": "s", "KeyType": "RANGE"},
                        ],
                        AttributeDefinitions=[
                            {"AttributeName": name, "AttributeType": "S"} for name in "ps"
                        ],
                    )
            until = time.monotonic() + MADE_S
            while self._is_there() != "ACTIVE":
                if time.monotonic() > until:
                    raise JournalUnavailable(f"{self.name} was not made within {MADE_S:g} s")
                time.sleep(0.1)
            self._is_made = True

    def _is_there(self) -> str:
        """Return the table's state, empty where there is none."""
        with self._nothing_without_a_table():
            found = self._client.describe_table(TableName=self._table)
            return str(found["Table"]["TableStatus"])
        return ""

    @contextlib.contextmanager
    def _nothing_without_a_table(self) -> Iterator[None]:
        try:
            yield
        except self._refused as error:
            if _code(error) != "ResourceNotFoundException":
                raise
            self._is_made = False

    @contextlib.contextmanager
    def _mapped(self) -> Iterator[None]:
        """Raise botocore's errors as ours."""
        try:
            yield
        except self._errors as error:
            if _code(error) == "ResourceNotFoundException":
                self._is_made = False  # it was deleted; the next attempt makes another
            raise JournalUnavailable(f"{self.name} cannot be used: {error}") from error


def _key(partition: str, key: str) -> dict[str, Any]:
    return {"p": {"S": partition}, "s": {"S": key}}


def _above(partition: str, above: str) -> tuple[str, dict[str, Any]]:
    values = {":p": {"S": partition}}
    if not above:  # no key is empty, and nothing may be compared with one
        return "p = :p", values
    return "p = :p AND s > :s", values | {":s": {"S": above}}


def _code(error: BaseException) -> str:
    response: dict[str, Any] = getattr(error, "response", None) or {}
    return str(response.get("Error", {}).get("Code", ""))
