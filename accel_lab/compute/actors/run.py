"""The user's own NumPy or CuPy functions, run where the arrays are."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from accel_lab.actor.unawaited import UNAWAITED, discarded
from accel_lab.compute.actors.seen_memory import SeenMemory
from accel_lab.compute.cells.cell_execution import Ran
from accel_lab.compute.cells.lent_buffers import LentBuffers
from accel_lab.compute.cells.workspace_registry import Workspaces
from accel_lab.compute.execution.buffer_table import Buffer, BufferTable
from accel_lab.compute.execution.held_objects import Kept
from accel_lab.compute.execution.launch import Launch, LibraryActor, handles
from accel_lab.compute.execution.stream import Storage
from accel_lab.compute.machine.stack_frames import raised_by_user
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.builtin import Ping, Run
from accel_lab.compute.output import printing
from accel_lab.compute.residency.holdings import ContextMemory
from accel_lab.compute.user_code import post_mortem
from accel_lab.compute.user_code.call import answer_parts, pack, unpack
from accel_lab.compute.user_code.interrupts import INTERRUPTS
from accel_lab.compute.user_code.raw_handles import lending
from accel_lab.compute.user_code.users_objects import users_objects
from accel_lab.compute.wire.failure import told_with_lines, user_code_error
from accel_lab.compute.wire.text import text_of
from accel_lab.display.buffer_number import unannounced
from accel_lab.errors import Interrupted, StaleRef

if TYPE_CHECKING:
    from accel_lab.compute.execution.context import Context

COMPARED = 16


class RunActor(LibraryActor):
    """Runs functions one at a time on the dispatcher thread, with its stream as the current one."""

    library = "run"
    leads_out = True

    def __init__(self, context: "Context", lib: Any) -> None:
        super().__init__(context, lib)
        self._seen = SeenMemory(context.backend)
        self._workspaces = context.service(Workspaces)
        self._memory = context.service(ContextMemory)

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
        lent = LentBuffers(m.refs, self.context.table)
        try:
            climbing = self.context.backend.climbing(partial(self._make_room, launch.seq))
            lends = lending(self.context)
            with INTERRUPTS.of(launch.seq), climbing, lent.entered(), lends:
                self._workspaces.refresh()
                function, args, kwargs = unpack(blob, partial(self._find, arrays))
                arrays.clear()  # whoever is called may let go of them
                is_called = True
                return function(*args, **kwargs)
        except MemoryError as error:
            self._memory.note_failure(error)
            if raised_by_user(error):  # a budget of its own, say, and not the device's memory
                frames = post_mortem.frames_of(error, self._memory.bytes_of)
                raise user_code_error(error, frames) from error
            missed = self.context.out_of_memory(_asked_bytes(error))
            missed.args = (f"{missed}\n{told_with_lines(error)}",)
            raise missed from error
        except KeyboardInterrupt as error:
            raise Interrupted("the function was interrupted") from error
        except BaseException as error:
            if isinstance(error, StaleRef) and not is_called:  # so nothing was changed
                raise
            self.context.raise_if_poisoned(error)
            self._memory.note_failure(error)
            frames = post_mortem.frames_of(error, self._memory.bytes_of)
            raise user_code_error(error, frames) from error
        finally:
            lent.take_back()  # also where an interrupt has kept others from doing so
            printing.finish()

    def _find(self, arrays: list[Any], left_behind: int | str | type[Any]) -> Any:
        """Return an operand, the names of a workspace, or an object of the context."""
        if isinstance(left_behind, int):
            return arrays[left_behind]
        if isinstance(left_behind, str):
            return self._workspaces.of(left_behind).names
        return self.context.service(left_behind)

    def _make_room(self, now: int, has_room: Callable[[], bool]) -> bool:
        """Make room for what the user's code allocates itself."""
        with INTERRUPTS.shield():
            return self.context.spill.make_room(has_room, now)

    def _operands(self, m: Run, launch: Launch) -> list[Any]:
        arrays = []
        for index, ref in enumerate(m.refs):
            assert isinstance(ref, Buffer)
            reads = m.pure or (m.writes is not None and index not in m.writes)
            array = launch.read(ref) if reads else launch.write(ref)
            assert ref.storage is not None
            self._seen.note(ref.storage, array)
            is_thing = type(ref.storage) is Kept  # a function gets it as it is
            arrays.append(array if is_thing else self.context.backend.expose(array, ref.dtype))
        return arrays

    def _answer(self, value: Any, m: Run, launch: Launch) -> None:
        if type(value) in UNAWAITED:
            text = (
                f"it returned {discarded(value)}, which nobody awaits: run it with asyncio.run(…)"
            )
            raise user_code_error(TypeError(text))
        # What is an array without axes on a card is a number of NumPy's on the host.
        array = np.asarray(value) if isinstance(value, np.generic) else value
        adopted = self.context.backend.adopt(array)
        refs = [ref for ref in m.refs if isinstance(ref, Buffer) and type(ref.storage) is not Kept]
        near = _Near(self._seen, self.context.backend, self.context.table, refs)
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
                    own.update(users_objects(value))
                if id(obj) not in own:
                    return None
            id_ = self._next_id()
            shape, dtype, shared = self._enter(id_, found, near, launch)
            arrays.append((id_, shape, dtype, shared))
            near.add(self.context.table.mention(id_))
            return id_

        try:
            data = pack(value, keep, whole=True)
        except BaseException as error:  # a class of the user's may even exit
            answer = value.value if isinstance(value, Ran) else value
            what = f"the result, a {type(answer).__name__}, cannot be pickled"
            text = f"{what}: {text_of(error) or type(error).__name__}"
            raise user_code_error(TypeError(text)) from error  # raised nowhere: it has no frames

        if launch.result:
            self.context.table.values.add(launch.result)
        launch.finish = lambda: answer_parts(launch.seq, data, arrays)

    def _enter(
        self,
        id_: int,
        adopted: tuple[Any, tuple[int, ...], str, int],
        near: "_Near",
        launch: Launch,
    ) -> tuple[tuple[int, ...], str, int]:
        """Enter an array; return its shape, dtype, and the buffer that it is a part of.

        That is one of `near` if it can be, or whichever has memory that a function has kept hold
        of; 0 where it has its own memory.
        """
        array, shape, dtype, nbytes = adopted
        shared = 0
        beside = near.sharing(array)
        storage = None if beside is None else beside.storage
        if beside is not None:
            shared = beside.id
        else:
            storage = self._seen.storage_of(array)
            if storage is not None:  # which the function may have written to
                storage.write_on(launch.stream)
                shared = near.first_of(storage)
        if storage is None:
            storage = Storage(launch.stream, nbytes, launch.label)
        launch.adopt(id_, array, shape, dtype, storage)
        self._seen.note(storage, array)
        return shape, dtype, shared

    def _next_id(self) -> int:
        self.context.answered += 1
        return unannounced(self.context.generation, self.context.answered)


class _Near:
    """The buffers of which what a function answers may be a part: its operands, then its answers.

    Those that share memory have one storage, so only those of it are compared; and of very many
    the first, for the others are parts of the same.
    """

    def __init__(
        self, seen: SeenMemory, backend: Any, table: BufferTable, refs: Iterable[AccelRef]
    ) -> None:
        self._seen = seen
        self._backend = backend
        self._table = table
        self._by_storage: dict[Storage | None, list[Buffer]] = {}
        self._elsewhere: list[Buffer] = []  # of which nobody knows where they lie
        self._first: dict[Storage | None, int] | None = None
        for ref in refs:
            self.add(ref)

    def add(self, buffer: AccelRef) -> None:
        """Enter one."""
        assert isinstance(buffer, Buffer)
        if not self._seen.knows(buffer.storage):
            self._elsewhere.append(buffer)
            return
        same = self._by_storage.setdefault(buffer.storage, [])
        if len(same) < COMPARED:
            same.append(buffer)
        if self._first is not None:
            first = self._first.get(buffer.storage, buffer.id)
            self._first[buffer.storage] = min(first, buffer.id)

    def sharing(self, array: Any) -> Buffer | None:
        """Return the first that shares an element with an array."""
        same: Sequence[Buffer] = self._by_storage.get(self._seen.storage_of(array), ())
        for one in (*same, *self._elsewhere):
            if one.storage is None:
                continue  # a cell has let go of it
            if self._backend.same_memory(one.array, array):
                return one
        return None

    def first_of(self, storage: Storage) -> int:
        """Return the smallest id of the buffers that have a storage; 0 if none has."""
        if self._first is None:
            self._first = {}
            for one in sorted(self._table.buffers(), key=lambda one: -one.id):
                self._first[one.storage] = one.id
        return self._first.get(storage, 0)


def _asked_bytes(error: MemoryError) -> int:
    """Return what was asked for, as far as CuPy's or NumPy's error tells; else 0."""
    return int(getattr(error, "_size", 0) or getattr(error, "_total_size", 0))
