"""Calls and their answers as bytes."""

import io
from collections.abc import Callable, Iterable
from functools import partial
from itertools import zip_longest
from types import FunctionType
from typing import Any

import cloudpickle

from accel_lab.compute.arrays import jax_interop
from accel_lab.compute.arrays.torch_interop import is_whole
from accel_lab.compute.cells.global_random import by_name
from accel_lab.compute.message.buffer import Ref
from accel_lab.compute.message.service import Service
from accel_lab.compute.user_code.notebook_globals import entered
from accel_lab.compute.user_code.pickler import Pickler
from accel_lab.compute.wire import main_classes
from accel_lab.compute.wire.codec import FRAME_LIMIT, Answer, Report
from accel_lab.errors import InvalidArgument

PART_BYTES = FRAME_LIMIT // 2
NAMES_BYTES = FRAME_LIMIT // 4
_ABOUT_BYTES, _AXIS_BYTES = 64, 9  # of a buffer in an answer, and of each of its axes


def pack_call(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Ref[Any], ...], bytes]:
    """Pickle a call; buffers anywhere in it become operands.

    Raises:
        InvalidArgument: the function or an argument does not pickle.
    """
    refs: list[Ref[Any]] = []

    def place(value: Any) -> int | None:
        if not isinstance(value, Ref):
            return None
        refs.append(value)
        return len(refs) - 1

    try:
        blob = pack((function, args, kwargs), place)
    except Exception as error:
        text = f"{getattr(function, '__name__', function)!r} cannot be sent to the context: {error}"
        raise InvalidArgument(text) from error
    return tuple(refs), blob


def name_of(function: Callable[..., Any]) -> str:
    """Return what people call a function; empty for one without a name, and for what is ours."""
    while isinstance(function, partial):
        function = function.func
    name = str(getattr(function, "__name__", ""))
    ours = str(getattr(function, "__module__", "")).startswith("accel_lab.")
    return "" if ours or not name.isidentifier() else name


def pack(value: Any, place: Callable[[Any], int | None], *, whole: bool = False) -> bytes:
    """Pickle a value; what `place` gives a number stays behind, as a persistent id.

    So does the namespace of the `NotebookGlobals` that is entered, as its name: its functions take
    no copies. What stands for a `Service` of the context goes as its kind.

    Parameters:
        whole: nothing inside a tensor or a model of PyTorch's stays behind.
    """
    file = io.BytesIO()
    _Pickler(file, place, whole=whole).dump(value)
    return file.getvalue()


def unpack(data: bytes, found: Callable[[Any], Any]) -> Any:
    """Rebuild a value; `found` returns what a number, a name or a kind of `pack` stands for."""
    return _Unpickler(data, found).load()


class _Pickler(Pickler):
    def __init__(
        self, file: io.BytesIO, place: Callable[[Any], int | None], *, whole: bool
    ) -> None:
        self._home = entered()
        super().__init__(file, {} if self._home is None else self._home.spaces)
        self._place = place
        self._whole = whole

    def persistent_id(self, obj: Any) -> int | str | type[Any] | None:
        if type(obj) is Service:
            return obj.kind
        return self.space_of(obj) or self._place(obj)

    def note(self, function: FunctionType) -> None:
        if self._home is not None:
            self._home.note(function)

    def reducer_override(self, obj: Any) -> Any:
        if self._whole and is_whole(obj):
            return main_classes.loads, (cloudpickle.dumps(obj),)
        found = by_name(obj)
        if found is None and self._whole:
            found = jax_interop.reduced(obj)
        return super().reducer_override(obj) if found is None else found


class _Unpickler(main_classes.Unpickler):
    def __init__(self, data: bytes, found: Callable[[Any], Any]) -> None:
        super().__init__(io.BytesIO(data))
        self._found = found

    def persistent_load(self, pid: Any) -> Any:
        return self._found(pid)


def answer_parts(
    seq: int, data: bytes, arrays: Iterable[tuple[int, tuple[int, ...], str, int]] = ()
) -> list[Report]:
    """Cut a pickled answer to what a frame can hold, and the names of its buffers, too."""
    parts = [data[i : i + PART_BYTES] for i in range(0, len(data), PART_BYTES)]
    named: list[list[tuple[int, tuple[int, ...], str, int]]] = [[]]
    room = NAMES_BYTES
    for array in arrays:
        room -= _ABOUT_BYTES + _AXIS_BYTES * len(array[1])
        if room < 0:
            named.append([])
            room = NAMES_BYTES
        named[-1].append(array)
    both = list(zip_longest(parts, named, fillvalue=None))
    return [
        Answer(seq, part or b"", i == len(both), some or [])
        for i, (part, some) in enumerate(both, 1)
    ]
