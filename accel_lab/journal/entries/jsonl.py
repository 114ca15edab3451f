"""A journal as JSON lines: for people and other programs, and back again bit for bit.

The first line names the schema. Then come groups, each a line of its own before the lines of its
parts, and contents in pieces after the first group that names them. The last line counts the
groups, so that a file that was cut off is known as such. Bytes are `{"base64": …}`, numbers that
JSON lacks `{"float": …, "bits": …}`, and maps `{"map": [[key, value], …]}`.
"""

import base64
import json
import math
import os
import struct
from collections.abc import Callable, Iterable, Iterator
from operator import index
from pathlib import Path
from typing import IO, Any

import msgspec

from accel_lab.compute.lineage.markers import marker_of
from accel_lab.compute.machine.private_folder import create_private
from accel_lab.errors import JournalDamaged, JournalError
from accel_lab.journal.entries.entry import kind_of
from accel_lab.journal.stores.chain import whole
from accel_lab.journal.stores.group import Group

SCHEMA = 1
PIECE_BYTES = 768 << 10
_ARRAY32 = b"\xdd"
_FACTS = (
    "session",
    "device",
    "at",
    "count",
    "position",
    "entries",
    "generation",
    "cell",
    "keys",
)

_NOT_WRITTEN = (
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
    struct.error,
)

_parts = msgspec.msgpack.Decoder(list[Any])
_map = msgspec.msgpack.Decoder(dict[str, Any])
_encode = msgspec.msgpack.Encoder().encode


def write_lines(groups: Iterable[Group], content: Callable[[str], bytes | None], path: Path) -> int:
    """Write a journal to a new file, which is this user's alone; returns how many groups.

    Raises:
        JournalDamaged: the journal is; what stands before the damage is in the file.
    """
    # Half a pair of UTF-16, as a text may hold it, is written as JSON spells it.
    with os.fdopen(create_private(path), "w", encoding="utf-8", errors="backslashreplace") as file:
        _write(file, {"journal": "accel_lab", "schema": SCHEMA})
        written: set[str] = set()
        count = 0
        try:
            for group in groups:
                _write_group(file, group)
                count += 1
                for key in group.keys:
                    if key not in written:
                        written.add(key)
                        _write_content(file, key, content(key))
        except JournalDamaged as error:
            _write(file, {"end": {"groups": count, "damaged": str(error)}})
            raise
        _write(file, {"end": {"groups": count}})
        return count


def read_lines(path: Path) -> Iterator[tuple[Group, dict[str, bytes]]]:
    """Yield the groups of a file, each with the contents that follow it.

    Raises:
        JournalError: it is of another schema, or no journal.
        JournalDamaged: it is cut off or changed; after everything before that was yielded.
    """
    with path.open("rb") as file:
        lines = _Numbered(file, str(path))
        head = next(lines, None)
        if head is None or head.get("journal") != "accel_lab":
            raise JournalError(f"{path} is not a journal in JSON lines")
        if head.get("schema") != SCHEMA:
            raise JournalError(
                f"{path} is of schema {head.get('schema')}; this version of accel_lab reads "
                f"{SCHEMA}"
            )
        yield from _Reading(lines).groups()


class _Numbered:
    """The lines of a file, decoded; what is wrong is told with the line's number."""

    def __init__(self, file: IO[bytes], name: str) -> None:
        self._lines = enumerate(file, 1)
        self._number = 0
        self.name = name

    def __iter__(self) -> "_Numbered":
        return self

    def __next__(self) -> dict[str, Any]:
        self._number, line = next(self._lines)
        try:
            found = json.loads(line, parse_float=_finite, parse_constant=_finite)
        except (ValueError, RecursionError) as error:
            raise self.damaged(error) from error
        if not isinstance(found, dict):
            raise self.damaged("it is no object")
        return found

    def damaged(self, why: object) -> JournalDamaged:
        """Return the error for the line that was read last."""
        return JournalDamaged(f"{self.name} is damaged at line {self._number}: {why}")


class _Reading:
    """Puts groups together from their lines."""

    def __init__(self, lines: _Numbered) -> None:
        self._lines = lines
        self._count = 0
        self._ended = False

    def groups(self) -> Iterator[tuple[Group, dict[str, bytes]]]:
        """Yield each when the next begins, for contents stand after it."""
        line = next(self._lines, None)
        while line is not None and "group" in line:
            group = self._group(line["group"])
            contents: dict[str, bytes] = {}
            damage: JournalDamaged | None = None
            try:
                line = self._contents(contents)
            except JournalDamaged as error:
                damage = error
            self._count += 1
            yield group, contents
            if damage is not None:
                raise damage
        if line is None:
            raise JournalDamaged(f"{self._lines.name} is cut off after {self._count} groups")
        end = line.get("end")
        if not isinstance(end, dict) or end.get("groups") != self._count:
            raise self._lines.damaged(f"{self._count} groups were read, and here stands {line}")
        if "damaged" in end:
            raise JournalDamaged(f"the journal in {self._lines.name} was damaged: {end['damaged']}")

    def _group(self, facts: dict[str, Any]) -> Group:
        try:
            parts = []
            for _ in range(facts["count"]):
                part = next(self._lines, None)
                if part is None:
                    raise self._lines.damaged("it is cut off")
                if ("facts" in part) == bool(facts["device"]):
                    raise self._lines.damaged("it is no part of this group")
                parts.append(_part_of(part))
            data = b"".join(parts)
            if "data" in facts:
                data = base64.b64decode(facts["data"], validate=True)
            fields = {name: facts[name] for name in _FACTS}
            return msgspec.convert(fields | {"number": self._count + 1, "data": data}, Group)
        except (*_NOT_WRITTEN, StopIteration) as error:
            raise self._lines.damaged(repr(error)) from error

    def _contents(self, contents: dict[str, bytes]) -> dict[str, Any] | None:
        """Read the contents that stand here; returns the line behind them."""
        pieces: dict[str, list[bytes]] = {}
        for line in self._lines:
            if "content" not in line:
                return line
            try:
                key, left = line["content"], line["left"]
                if "absent" in line:
                    continue
                found = pieces.setdefault(key, [])
                found.append(base64.b64decode(line["base64"], validate=True))
                if not left:
                    contents[key] = whole(key, found)
            except _NOT_WRITTEN as error:
                raise self._lines.damaged(repr(error)) from error
        return None


def _write(file: IO[str], line: dict[str, Any]) -> None:
    file.write(json.dumps(line, ensure_ascii=False, allow_nan=False))
    file.write("\n")


def _write_group(file: IO[str], group: Group) -> None:
    facts = {name: getattr(group, name) for name in _FACTS}
    try:
        parts = list(_lines_of(group, facts))
    except _NOT_WRITTEN as error:
        raise JournalDamaged(f"group {group.number} does not decode: {error}") from error
    _write(file, {"group": facts})
    for part in parts:
        _write(file, part)


def _lines_of(group: Group, facts: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the parts of a group; what these do not tell is added to its facts."""
    if not group.device:
        known = _map.decode(group.data)
        yield {"facts": {name: _plain(value) for name, value in known.items()}}
        return
    raws = _parts.decode(_ARRAY32 + group.count.to_bytes(4, "big") + group.data)
    if b"".join(map(_encode, raws)) != group.data:  # whoever wrote it has another encoder
        facts["data"] = base64.b64encode(group.data).decode()
    yield from map(_line_of, raws)


def _line_of(raw: list[Any]) -> dict[str, Any]:
    """Return a part with its fields by name, as far as this version knows them."""
    if raw[0] < 0:
        try:
            marker = marker_of(raw)
        except msgspec.ValidationError:
            return {"marker": raw[0], "fields": [_plain(value) for value in raw[1:]]}
        names = type(marker).__struct_fields__
        name = type(marker).__name__
        return {"marker": raw[0], "name": name, "fields": _named(names, raw[1:])}
    seq, result, timeout_s, (tag, *values), spec, *several = raw
    line: dict[str, Any] = {"seq": seq, "result": result, "tag": tag}
    try:
        kind = kind_of(tag)
    except JournalError:
        line["fields"] = [_plain(value) for value in values]
    else:
        line |= {"message": kind.__name__, "library": kind.library}
        line["fields"] = _named(kind.__struct_fields__, values)
    line |= {"spec": _plain(spec), "timeout_s": _plain(timeout_s)}
    return line | ({"several": _plain(several[0])} if several else {})


def _named(names: tuple[str, ...], values: list[Any]) -> Any:
    if len(values) > len(names):
        return [_plain(value) for value in values]
    return {name: _plain(value) for name, value in zip(names, values, strict=False)}


def _part_of(line: dict[str, Any]) -> bytes:
    """Return the bytes of a part."""
    if "facts" in line:
        return _encode({name: _back(value) for name, value in line["facts"].items()})
    fields = line["fields"]
    values = [_back(value) for value in (fields.values() if isinstance(fields, dict) else fields)]
    if "marker" in line:
        return _encode([index(line["marker"]), *values])
    seq, result = index(line["seq"]), index(line["result"])
    timeout_s, spec = _back(line["timeout_s"]), _back(line["spec"])
    several = [_back(line["several"])] if "several" in line else []
    return _encode([seq, result, timeout_s, [line["tag"], *values], spec, *several])


def _write_content(file: IO[str], key: str, data: bytes | None) -> None:
    if data is None:
        _write(file, {"content": key, "left": 0, "absent": True})
        return
    for start in range(0, max(len(data), 1), PIECE_BYTES):
        piece = data[start : start + PIECE_BYTES]
        left = len(data) - start - len(piece)
        text = base64.b64encode(piece).decode()
        _write(file, {"content": key, "left": left, "base64": text})


def _plain(value: Any) -> Any:
    """Return a decoded msgpack value as JSON has it."""
    if isinstance(value, bytes):
        return {"base64": base64.b64encode(value).decode()}
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if isinstance(value, dict):
        return {"map": [[_plain(key), _plain(one)] for key, one in value.items()]}
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": repr(value), "bits": struct.pack(">d", value).hex()}  # a NaN has a payload
    return value


def _finite(text: str) -> float:
    """Return a number as it is written; others than finite ones are, in another way."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is no number that is written so")
    return number


def _back(value: Any) -> Any:
    """Undo `_plain`."""
    if isinstance(value, list):
        return [_back(one) for one in value]
    if isinstance(value, dict):
        kind, found = next(iter(value.items()))
        if kind == "base64":
            return base64.b64decode(found, validate=True)
        if kind == "float":
            (number,) = struct.unpack(">d", bytes.fromhex(value["bits"]))
            return number
        return {_back(key): _back(one) for key, one in found}
    return value
