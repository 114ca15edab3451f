"""The user's own NumPy or CuPy functions, run where the arrays are."""

import io
from collections.abc import Callable, Iterable
from functools import partial
from types import FunctionType
from typing import TYPE_CHECKING, Any, ClassVar

import cloudpickle
import msgspec
import numpy as np

from accel_lab.compute import holding, keeping, own_classes, printing, workspaces
from accel_lab.compute.belongings import belongings
from accel_lab.compute.buffer import AccelRef
from accel_lab.compute.failure import text_of, user_code_error
from accel_lab.compute.global_generators import by_name
from accel_lab.compute.home import entered
from accel_lab.compute.interrupts import INTERRUPTS
from accel_lab.compute.launch import Launch, LibraryActor, handles
from accel_lab.compute.operation import Operation
from accel_lab.compute.pickler import Pickler
from accel_lab.compute.stream import Storage
from accel_lab.compute.table import Buffer
from accel_lab.compute.tensors import is_whole
from accel_lab.compute.user_code_memory import SeenMemory
from accel_lab.compute.wire import FRAME_LIMIT, Answer, Report
from accel_lab.errors import Interrupted, InvalidArgument, StaleRef

if TYPE_CHECKING:
    from accel_lab.compute.context import Context

PART_BYTES = FRAME_LIMIT // 2
MARK = 1 << 52
"""In the ids of buffers that no message announces."""


class Location(msgspec.Struct, frozen=True, array_like=True):
    """Bytes in the arena."""

    segment: int
    start: int
    nbytes: int


class Run(Operation[Any], frozen=True, array_like=True, eq=False, tag=6):
    """Call a pickled function; operand `i` stands where the pickle has the persistent id `i`.

    `pure` promises that no operand is written; otherwise those count as written that `writes`
    lists by their position in `refs`, or all of them. A pickle larger than a frame lies in the
    arena, at `blob_at`. `called` is the function's name.
    """

    library: ClassVar[str] = "run"
    timeout_s: ClassVar[float | None] = None
    subject: ClassVar[str] = "called"
    refs: tuple[AccelRef, ...]
    blob: bytes
    pure: bool
    blob_at: Location | None = None
    writes: tuple[int, ...] | None = None
    called: str = ""

    def changes(self) -> tuple[AccelRef, ...]:
        """Return those that it is said to write; of the others nobody knows."""
        return tuple(self.refs[i] for i in self.writes or ())


class Ping(Operation[None], frozen=True, array_like=True, eq=False, tag=8):
    """Do nothing, and answer: what a message costs by itself."""

    library: ClassVar[str] = "run"


def pack_call(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[AccelRef, ...], bytes]:
    """Pickle a call; buffers anywhere in it become operands.

    Raises:
        InvalidArgument: the function or an argument does not pickle.
    """
    refs: list[AccelRef] = []

    def place(value: Any) -> int | None:
        if not isinstance(value, AccelRef):
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

    So does the namespace of the `Home` that is entered, and its functions take no copies of it.

    Parameters:
        whole: nothing inside a tensor or a model of PyTorch's stays behind.
    """
    file = io.BytesIO()
    _Pickler(file, place, whole=whole).dump(value)
    return file.getvalue()


def unpack(data: bytes, found: Callable[[int], Any]) -> Any:
    """Rebuild a value; `found` returns what a number stands for."""
    return _Unpickler(data, found).load()


class _Pickler(Pickler):
    def __init__(
        self, file: io.BytesIO, place: Callable[[Any], int | None], *, whole: bool
    ) -> None:
        self._home = entered()
        super().__init__(file, {} if self._home is None else self._home.spaces)
        self._place = place
        self._whole = whole

    def persistent_id(self, obj: Any) -> int | str | None:
        return self.space_of(obj) or self._place(obj)

    def note(self, function: FunctionType) -> None:
        if self._home is not None:
            self._home.note(function)

    def reducer_override(self, obj: Any) -> Any:
        if self._whole and is_whole(obj):
            return own_classes.loads, (cloudpickle.dumps(obj),)
        found = by_name(obj)
        return super().reducer_override(obj) if found is None else found


class _Unpickler(own_classes.Unpickler):
    def __init__(self, data: bytes, found: Callable[[int], Any]) -> None:
        super().__init__(io.BytesIO(data))
        self._found = found

    def persistent_load(self, pid: Any) -> Any:
        return workspaces.of(pid).names if isinstance(pid, str) else self._found(pid)


def answer_parts(
    seq: int, data: bytes, arrays: Iterable[tuple[int, tuple[int, ...], str, int]] = ()
) -> list[Report]:
    """Cut a pickled answer to what a frame can hold; the last part names the buffers inside."""
    parts = [data[i : i + PART_BYTES] for i in range(0, len(data), PART_BYTES)]
    last = len(parts) - 1
    return [
        Answer(seq, part, i == last, list(arrays) if i == last else [])
        for i, part in enumerate(parts)
    ]


class RunActor(LibraryActor):
    """Runs functions one at a time on the dispatcher thread, with its stream as the current one."""

    library = "run"
    made = 0
    """How many buffers came inside answers, in this process and in those that it goes on for."""

    def __init__(self, context: "Context", lib: Any) -> None:
        super().__init__(context, lib)
        self._seen = SeenMemory(context.backend)
        workspaces.serve(context.backend, context.generation, self.stream)
        holding.serve(context)
        keeping.serve(context)

    @handles(Run)
    def run(self, m: Run, launch: Launch) -> None:
        """Call the function; its answer is a buffer, or a value with buffers inside it."""
        try:
            self._answer(self._call(m, launch), m, launch)
        finally:  # also where nothing it returns is an array
            self.context.backend.settle()

    @handles(Ping)
    def ping(self, _: Ping, __: Launch) -> None:
        """Return; the answer goes back as every other's."""

    def _call(self, m: Run, launch: Launch) -> Any:
        """Call the function; whatever it raises becomes an error of ours."""
        arrays = self._operands(m, launch)
        blob: Any = m.blob
        if m.blob_at is not None:
            at = m.blob_at
            blob = self.context.arena.view(at.segment, at.start, at.nbytes).tobytes()
        is_called = False
        try:
            climbing = self.context.backend.climbing(partial(self._make_room, launch.seq))
            with INTERRUPTS.of(launch.seq), climbing:
                workspaces.refresh()
                function, args, kwargs = unpack(blob, arrays.__getitem__)
                is_called = True
                return function(*args, **kwargs)
        except MemoryError as error:
            holding.note_failure(error)
            raise self.context.out_of_memory(_asked_bytes(error)) from error
        except KeyboardInterrupt as error:
            raise Interrupted("the function was interrupted") from error
        except BaseException as error:
            if isinstance(error, StaleRef) and not is_called:  # so nothing was changed
                raise
            self.context.raise_if_poisoned(error)
            holding.note_failure(error)
            raise user_code_error(error) from error
        finally:
            printing.finish()

    def _make_room(self, now: int, has_room: Callable[[], bool]) -> bool:
        """Make room for what the user's code allocates itself."""
        with INTERRUPTS.shield():
            return self.context.spill.make_room(has_room, now)

    def _operands(self, m: Run, launch: Launch) -> list[Any]:
        arrays = []
        for index, ref in enumerate(m.refs):
            reads = m.pure or (m.writes is not None and index not in m.writes)
            array = launch.read(ref) if reads else launch.write(ref)
            self._seen.note(ref.storage, array)
            arrays.append(self.context.backend.expose(array, ref.dtype))
        return arrays

    def _answer(self, value: Any, m: Run, launch: Launch) -> None:
        # What is an array without axes on a card is a number of NumPy's on the host.
        array = np.asarray(value) if isinstance(value, np.generic) else value
        adopted = self.context.backend.adopt(array)
        near = [ref for ref in m.refs if isinstance(ref, Buffer)]
        if adopted is not None:
            launch.shaped = self._enter(launch.result, adopted, near, launch)
            return
        arrays: list[tuple[int, tuple[int, ...], str, int]] = []
        own: dict[int, Any] = {}

        def keep(obj: Any) -> int | None:
            found = self.context.backend.adopt(obj)
            if found is None:
                return None
            if isinstance(obj, np.ndarray):  # it may be what a library's object is made of
                if not own:
                    own.update(belongings(value))
                if id(obj) not in own:
                    return None
            id_ = self._next_id()
            shape, dtype, shared = self._enter(id_, found, near, launch)
            arrays.append((id_, shape, dtype, shared))
            near.append(self.context.table.mention(id_))
            return id_

        try:
            data = pack(value, keep, whole=True)
        except BaseException as error:  # a class of the user's may even exit
            what = f"the answer, a {type(value).__name__}, does not pickle"
            text = f"{what}: {text_of(error) or type(error).__name__}"
            raise user_code_error(TypeError(text)) from error

        if launch.result:
            self.context.table.values.add(launch.result)
        launch.finish = lambda: answer_parts(launch.seq, data, arrays)

    def _enter(
        self,
        id_: int,
        adopted: tuple[Any, tuple[int, ...], str, int],
        near: list[Buffer],
        launch: Launch,
    ) -> tuple[tuple[int, ...], str, int]:
        """Enter an array; return its shape, dtype, and the buffer that it is a part of.

        That is one of `near` if it can be, or whichever has memory that a function has kept hold
        of; 0 where it has its own memory.
        """
        array, shape, dtype, nbytes = adopted
        storage: Storage | None = None
        shared = 0
        for ref in near:
            if self.context.backend.same_memory(ref.array, array):
                storage, shared = ref.storage, ref.id
                break
        if storage is None:
            storage = self._seen.storage_of(array)
            if storage is not None:  # which the function may have written to
                storage.write_on(launch.stream)
                holders = self.context.table.buffers()
                shared = min((one.id for one in holders if one.storage is storage), default=0)
        if storage is None:
            storage = Storage(launch.stream, nbytes, launch.label)
        launch.adopt(id_, array, shape, dtype, storage)
        self._seen.note(storage, array)
        return shape, dtype, shared

    def _next_id(self) -> int:
        # Marked, and with the generation: never an id of the notebook's or of another life. Less
        # than 2**53, so that a browser can count with it.
        RunActor.made += 1
        return MARK | (self.context.generation & 0xFFFFF) << 32 | RunActor.made


def _asked_bytes(error: MemoryError) -> int:
    """Return what was asked for, as far as CuPy's or NumPy's error tells; else 0."""
    return int(getattr(error, "_size", 0) or getattr(error, "_total_size", 0))
