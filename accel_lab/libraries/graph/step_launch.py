"""What a handler may do for a message of a recorded program: less than for one that is sent.

Its result has its memory already, so nothing is allocated for it; what would wait for the device,
or would need the host between two launches, is refused.
"""

from typing import Any, NoReturn

from accel_lab.compute.execution.buffer_table import Buffer
from accel_lab.compute.execution.launch import Launch
from accel_lab.compute.execution.stream import Storage
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.graph.program import Message, Program, Runner


class StepLaunch(Launch):
    """The launch of one message of a program.

    Parameters:
        outer: the launch of the whole graph.
        runner: enqueues what is in it.
    """

    def __init__(self, outer: Launch, program: Program, one: Message, runner: Runner) -> None:
        super().__init__(outer.context, outer.stream, outer.seq, one.result, one.message, one.spec)
        self._program = program
        self._runner = runner

    def embed(self, program: Program) -> None:
        """Enqueue another program, which is bound, in this one's place."""
        program.run(self._runner)
        self.hold(program)

    def require_enqueued(self) -> None:
        """Refuse what its handler has left to be done on the host.

        Raises:
            InvalidArgument: it answers with a value.
        """
        if self.finish is not None:
            self._refuse("it answers with a value for the host")

    def _allocate(self, id_: int, shape: tuple[int, ...], dtype: str, name: str = "") -> Any:
        del name
        buffer = self._program.buffer(id_)
        if buffer.shape != shape or buffer.dtype != dtype:
            self._refuse(f"it made {dtype}{list(shape)}, and was recorded with {buffer!r}")
        if self._program.is_view(id_):
            name = type(self.message).__name__
            raise InvalidArgument(
                f"{name}: the strides of what the graph is given allow no view, and those of what "
                "it was recorded with did; record copy() before it"
            )
        return buffer.array

    def _take(
        self, id_: int, array: Any, shape: tuple[int, ...], dtype: str, name: str = ""
    ) -> None:
        out = self._allocate(id_, shape, dtype, name)
        if out.size:
            out[...] = array

    def _enter(
        self, id_: int, array: Any, shape: tuple[int, ...], dtype: str, storage: Storage
    ) -> None:
        """Enter a view."""
        self._program.buffer(id_).fill(array, shape, dtype, storage)

    def workspace(self, nbytes: int) -> Any:
        """Return memory to work in, which is the program's as long as its work may come again."""
        array = self.context.backend.empty((nbytes,), "uint8")
        self.hold(array)
        return array

    def hold(self, thing: Any) -> None:
        """Keep an object as long as the program's work may come again."""
        self._runner.held.append(thing)

    def keep(self, thing: Any, nbytes: int | None = None, *, result: str = "") -> None:
        """Refuse."""
        del thing, nbytes, result
        self._refuse("it makes what is no array")

    def defer(self, work: Any, then: Any) -> None:
        """Do it at once: what a graph needs is compiled with its first launch, and kept."""
        then(work())

    def poll(self, ready: Any, then: Any) -> None:
        """Refuse."""
        del ready, then
        self._refuse("it waits for what happens elsewhere")

    def blocking(self, work: Any, then: Any = None) -> None:
        """Refuse."""
        del work, then
        self._refuse("it waits for the device")

    def check(self, status: Any, judge: Any) -> None:
        """Refuse."""
        del status, judge
        self._refuse("the host judges what it has computed")

    def prepare(self, call: Any, *, reads: Any, writes: Any) -> None:
        """Do nothing: the program is what is prepared."""

    def view(self, of: AccelRef, array: Any, shape: tuple[int, ...], dtype: str) -> None:
        """Make the result a view of another of the program's buffers, where it was recorded so."""
        if not self._program.is_view(self.result):
            self._take(self.result, array, shape, dtype)
            return
        assert isinstance(of, Buffer)
        assert of.storage is not None
        self._enter(self.result, array, shape, dtype, of.storage)

    def _refuse(self, why: str) -> NoReturn:
        name = type(self.message).__name__
        raise InvalidArgument(f"{name} cannot be in a graph: {why}; do it outside the block")
