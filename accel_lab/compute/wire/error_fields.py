"""The declared fields of an error, on their way to another process and into the journal.

Each travels by itself, so that one that cannot does not keep back the others: it arrives as its
repr, and the error's note says so. A buffer travels as its number. Texts are cleaned of what no
encoding has, as those of exceptions are.
"""

import io
import pickle
from collections.abc import Iterator
from typing import Any

import cloudpickle
import msgspec

from accel_lab.compute.message.buffer import Ref
from accel_lab.compute.wire import main_classes
from accel_lab.compute.wire.codec import FRAME_LIMIT, Field
from accel_lab.compute.wire.text import NAME_LIMIT, TEXT_LIMIT, fitting, repr_of
from accel_lab.errors import AccelError
from accel_lab.errors.declared_fields import fields_of, undeclared

_PLAIN = (type(None), bool, int, float, complex, str, bytes)
_JOURNAL_BYTES = 1 << 10
"""How much of a field a journal keeps."""
_FIELD_LIMIT = FRAME_LIMIT
_INT_BITS = 64
_DEPTH = 8


class _TooLarge(Exception):
    """A value takes more room than it has."""


class _File(io.BytesIO):
    def __init__(self, most: int) -> None:
        super().__init__()
        self._left = most

    def write(self, data: Any, /) -> int:
        self._left -= len(memoryview(data).cast("B"))
        if self._left < 0:
            raise _TooLarge
        return super().write(data)


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, Ref):
            return int, (obj.id,)
        return super().reducer_override(obj)


def dumps(value: Any, most: int) -> bytes:
    """Pickle a value; a buffer in it as its number.

    Raises:
        BaseException: it does not pickle, or takes more than `most` bytes.
    """
    file = _File(most)
    _Pickler(file).dump(value)
    return file.getvalue()


def pack_fields(error: AccelError, most: int) -> tuple[dict[str, Field], list[str]]:
    """Return the fields of an error in about `most` bytes, and what has to be told of others."""
    notes = [
        f"its {name} stayed behind: {type(error).__name__} does not declare it among its fields"
        for name in undeclared(error)
    ]
    return _pack(fields_of(error), most), notes


def _pack(values: dict[str, Any], most: int) -> dict[str, Field]:
    """Return values that fit together, the smallest whole and the largest shortened."""
    packed: dict[str, Field] = {}
    large: list[str] = []
    for name, value in values.items():
        try:
            clean = _clean(value)
            data = dumps(clean, most)
            packed[name] = Field(data, "" if _is_plain(clean) else repr_of(value))
        except _TooLarge:
            large.append(name)
        except BaseException as why:  # noqa: BLE001 - a class of the user's may even exit
            packed[name] = _as_repr(name, value, f"a {type(value).__name__} does not pickle", why)
    while (left := most - sum(len(one.data) for one in packed.values())) < 0:
        large.append(max(packed, key=lambda name: len(packed[name].data)))
        del packed[large[-1]]
    for name in large:
        packed[name] = _shortened(name, values[name], left // len(large))
    return packed


def unpack_fields(fields: dict[str, Field]) -> tuple[dict[str, Any], list[str]]:
    """Return the values of fields that have arrived, and what has to be told of them."""
    values: dict[str, Any] = {}
    notes = [field.note for field in fields.values() if field.note]
    for name, field in fields.items():
        try:
            values[name] = main_classes.loads(field.data)
        except Exception as why:  # noqa: BLE001 - its class may do anything
            values[name] = field.spare
            notes.append(f"its {name} is a repr: it cannot be loaded here: {repr_of(why)}")
    return values, notes


def travelling(error: BaseException, most: int) -> BaseException:
    """Return an error to be pickled: of ours one whose attributes all pickle, others as they are.

    What it has beside its fields may come along here.
    """
    if not isinstance(error, AccelError):
        return error
    twin = error.copy()
    values = fields_of(error) | {name: vars(error)[name] for name in undeclared(error)}
    for name, field in _pack(values, most).items():
        vars(twin)[name] = _Packed(field)
        if field.note:
            twin.add_note(field.note)
    return twin


class _Packed:
    """A field inside a pickled error: it is loaded with it, or else is its repr."""

    def __init__(self, field: Field) -> None:
        self._field = field

    def __reduce__(self) -> tuple[Any, ...]:
        return _loaded, (self._field.data, self._field.spare)


def _loaded(data: bytes, spare: str) -> Any:
    try:
        return main_classes.loads(data)
    except Exception:  # noqa: BLE001 - its class may do anything
        return spare


def plain_fields(error: AccelError) -> dict[str, Any]:
    """Return the fields of an error as a journal keeps them: numbers, texts, lists of such.

    Of a long text the middle is left out, of a long list the first; anything else is its repr.
    """
    return {name: _journalled(value) for name, value in fields_of(error).items()}


def _journalled(value: Any) -> Any:
    try:
        plain = _as_plain(_clean(value), _DEPTH)
        if _length(plain) <= _JOURNAL_BYTES:
            return plain
        if isinstance(plain, str):
            return fitting(plain, _JOURNAL_BYTES)
        return _last_of(plain) if isinstance(plain, list) else repr_of(plain)
    except Exception:  # noqa: BLE001 - a list may hold itself, and a class of the user's do anything
        return repr_of(value)


def _last_of(values: list[Any]) -> list[Any]:
    """Return as many elements as fit, with their texts cut."""
    kept: list[Any] = []
    left = _JOURNAL_BYTES
    for one in reversed(values):
        short = _clean(one, _JOURNAL_BYTES // 8)
        left -= _length(short)
        if left < 0:
            break
        kept.insert(0, short)
    return kept


def _length(plain: Any) -> int:
    return len(msgspec.msgpack.encode(plain))


def _as_plain(value: Any, depth: int) -> Any:
    if isinstance(value, Ref):
        return value.id
    if isinstance(value, bool | float | str | None):
        return value
    if isinstance(value, int) and value.bit_length() < _INT_BITS:
        return value
    if depth and isinstance(value, list | tuple | set | frozenset):
        return [_as_plain(one, depth - 1) for one in value]
    if depth and isinstance(value, dict):
        return {
            str(key) if isinstance(key, str | int) else repr_of(key): _as_plain(one, depth - 1)
            for key, one in value.items()
        }
    return repr_of(value)


def _as_repr(name: str, value: Any, said: str, why: BaseException | None = None) -> Field:
    note = f"its {name} is a repr: {said}"
    if why is not None:
        note += f": {fitting(repr_of(why), NAME_LIMIT)}"
    return Field(pickle.dumps(repr_of(value)), "", note)


def _shortened(name: str, value: Any, most: int) -> Field:
    """Return what fits of a value: a text without its middle, of a list the last."""
    if isinstance(value, str):
        return Field(pickle.dumps(fitting(value, min(TEXT_LIMIT, most))))
    if type(value) in (list, tuple):
        kept, left = [], most
        for one in _newest(value):
            try:
                data = dumps(one, left)
            except BaseException:  # noqa: BLE001 - it is too large, or its class exits
                break
            kept.append(one)
            left -= len(data)
        kept.reverse()
        if kept:
            note = f"of its {name} the last {len(kept)} of {len(value)} came along"
            spare = "" if _is_plain(kept) else repr_of(kept)
            return Field(dumps(type(value)(kept), _FIELD_LIMIT), spare, note)
    return _as_repr(name, value, f"a {type(value).__name__} of this size does not travel")


def _newest(values: Any) -> Iterator[Any]:
    """Yield the elements, the last first, with their texts cut."""
    for one in reversed(values):
        yield _clean(one, NAME_LIMIT)


def _clean(value: Any, most: int = TEXT_LIMIT) -> Any:
    """Return a value whose texts can be encoded, and have at most this many bytes."""
    if type(value) is str:
        return fitting(value, most)
    if type(value) in (list, tuple):
        return type(value)([_clean(one, most) for one in value])
    if type(value) is dict:
        return {_clean(key, most): _clean(one, most) for key, one in value.items()}
    return value


def _is_plain(value: Any) -> bool:
    """Whether any process can load a value: it holds no object of somebody's class."""
    if type(value) in (list, tuple, set, frozenset):
        return all(map(_is_plain, value))
    if type(value) is dict:
        return all(_is_plain(key) and _is_plain(one) for key, one in value.items())
    return type(value) in _PLAIN or isinstance(value, Ref)
