"""The user's own NumPy or CuPy functions, run where the arrays are."""

import io
import pickle
from collections.abc import Callable, Iterable
from typing import Any, ClassVar

import cloudpickle
import msgspec

from accel_lab.compute.buffer import AccelRef
from accel_lab.compute.failure import user_code_error
from accel_lab.compute.launch import Launch, LibraryActor, handles
from accel_lab.compute.operation import Operation
from accel_lab.compute.stream import Storage
from accel_lab.compute.table import Buffer
from accel_lab.compute.wire import FRAME_LIMIT, Answer, Report
from accel_lab.errors import InvalidArgument

PART_BYTES = FRAME_LIMIT // 2


class Location(msgspec.Struct, frozen=True, array_like=True):
    """Bytes in the arena."""

    segment: int
    start: int
    nbytes: int


class Run(Operation[Any], frozen=True, array_like=True, eq=False, tag=6):
    """Call a pickled function; operand `i` stands where the pickle says `Operand(i)`.

    `pure` promises that no operand is written; otherwise those count as written that `writes`
    lists by their position in `refs`, or all of them. A pickle larger than a frame lies in the
    arena, at `blob_at`.
    """

    library: ClassVar[str] = "run"
    timeout_s: ClassVar[float | None] = None
    refs: tuple[AccelRef, ...]
    blob: bytes
    pure: bool
    blob_at: Location | None = None
    writes: tuple[int, ...] | None = None


class Ping(Operation[None], frozen=True, array_like=True, eq=False, tag=8):
    """Do nothing, and answer: what a message costs by itself."""

    library: ClassVar[str] = "run"


class Operand(msgspec.Struct, frozen=True):
    """The place of a buffer among the arguments of a function."""

    index: int


def pack_call(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[AccelRef, ...], bytes]:
    """Pickle a call; its buffers become operands.

    Raises:
        InvalidArgument: the function or an argument does not pickle.
    """
    refs: list[AccelRef] = []

    def place(value: Any) -> Any:
        if isinstance(value, AccelRef):
            refs.append(value)
            return Operand(len(refs) - 1)
        return value

    call = (function, tuple(place(a) for a in args), {k: place(v) for k, v in kwargs.items()})
    try:
        blob = cloudpickle.dumps(call)
    except Exception as error:
        text = f"{getattr(function, '__name__', function)!r} cannot be sent to the context: {error}"
        raise InvalidArgument(text) from error
    return tuple(refs), blob


class _ResultPickler(cloudpickle.Pickler):  # type: ignore[misc]
    """Pickles a result; arrays of the device stay behind and become buffers."""

    def __init__(self, file: io.BytesIO, keep: Callable[[Any], int | None]) -> None:
        super().__init__(file)
        self._keep = keep

    def persistent_id(self, obj: Any) -> int | None:
        """Return the buffer's id for an array, None for everything else."""
        return self._keep(obj)


class ResultUnpickler(pickle.Unpickler):
    """Rebuilds a result in the notebook, with handles where the arrays were."""

    def __init__(self, data: bytes, handle: Callable[[int], AccelRef]) -> None:
        super().__init__(io.BytesIO(data))
        self._handle = handle

    def persistent_load(self, pid: Any) -> AccelRef:
        """Return the handle of a buffer."""
        return self._handle(pid)


def answer_parts(
    seq: int, data: bytes, arrays: Iterable[tuple[int, tuple[int, ...], str]] = ()
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
    _made = 0

    @handles(Run)
    def run(self, m: Run, launch: Launch) -> None:
        """Call the function; its answer is a buffer, or a value with buffers inside it."""
        arrays = self._operands(m, launch)
        blob: Any = m.blob
        if m.blob_at is not None:
            at = m.blob_at
            blob = self.context.arena.view(at.segment, at.start, at.nbytes).tobytes()
        try:
            function, args, kwargs = pickle.loads(blob)  # noqa: S301 - the notebook wrote it
            value = function(
                *(arrays[a.index] if isinstance(a, Operand) else a for a in args),
                **{k: arrays[v.index] if isinstance(v, Operand) else v for k, v in kwargs.items()},
            )
        except MemoryError as error:
            raise self.context.out_of_memory(0) from error
        except BaseException as error:
            self.context.raise_if_poisoned(error)
            raise user_code_error(error) from error
        self._answer(value, m, launch)

    @handles(Ping)
    def ping(self, _: Ping, __: Launch) -> None:
        """Return; the answer goes back as every other's."""

    def _operands(self, m: Run, launch: Launch) -> list[Any]:
        arrays = []
        for index, ref in enumerate(m.refs):
            reads = m.pure or (m.writes is not None and index not in m.writes)
            array = launch.read(ref) if reads else launch.write(ref)
            arrays.append(self.context.backend.expose(array, ref.dtype))
        return arrays

    def _answer(self, value: Any, m: Run, launch: Launch) -> None:
        adopted = self.context.backend.adopt(value)
        if adopted is not None:
            shape, dtype = self._enter(launch.result, adopted, m, launch)
            launch.shaped = shape, dtype
            return
        arrays: list[tuple[int, tuple[int, ...], str]] = []

        def keep(obj: Any) -> int | None:
            found = self.context.backend.adopt(obj)
            if found is None:
                return None
            id_ = self._next_id()
            arrays.append((id_, *self._enter(id_, found, m, launch)))
            return id_

        file = io.BytesIO()
        try:
            _ResultPickler(file, keep).dump(value)
        except Exception as error:
            text = f"the answer, a {type(value).__name__}, does not pickle: {error}"
            raise user_code_error(TypeError(text)) from error
        data = file.getvalue()

        launch.finish = lambda: answer_parts(launch.seq, data, arrays)

    def _enter(
        self, id_: int, adopted: tuple[Any, tuple[int, ...], str, int], m: Run, launch: Launch
    ) -> tuple[tuple[int, ...], str]:
        array, shape, dtype, nbytes = adopted
        storage: Storage | None = None
        for ref in m.refs:
            if isinstance(ref, Buffer) and self.context.backend.same_memory(ref.array, array):
                storage = ref.storage
        if storage is None:
            storage = Storage(launch.stream, nbytes, launch.label)
        launch.adopt(id_, array, shape, dtype, storage)
        return shape, dtype

    def _next_id(self) -> int:
        # Negative and marked with the generation: never an id of the notebook's or of another life.
        RunActor._made += 1
        return -((self.context.generation << 32) + RunActor._made)
