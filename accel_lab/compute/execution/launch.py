"""One operation in flight, and the actor that enqueues it.

A library's handler only enqueues. `Launch` has checked the operands before it runs, orders its
stream after whatever they wait for, allocates the result, and takes everything back when the
handler raises: a call that fails to launch creates nothing.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, TypeVar

from accel_lab.actor.unawaited import name_of, require_plain
from accel_lab.compute.execution.buffer_table import Buffer
from accel_lab.compute.execution.prepared_launch import Prepared
from accel_lab.compute.execution.stream import Storage, Stream
from accel_lab.compute.execution.worker import Worker
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.operation import Operation, Spec
from accel_lab.errors import LibraryError

if TYPE_CHECKING:
    from accel_lab.compute.execution.context import Context
    from accel_lab.compute.execution.tracer import Trace

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")


def handles(kind: type[Operation[Any]]) -> Callable[[F], F]:
    """Mark a method of a library actor as the handler of one message type."""

    def mark(method: F) -> F:
        require_plain(method, f"the handler {name_of(method)}", "write def")
        method.__handles__ = kind  # type: ignore[attr-defined]
        return method

    return mark


def handled_by(actor: type["LibraryActor"]) -> dict[type[Operation[Any]], str]:
    """Return the names of the methods that handle messages, by message type.

    Raises:
        TypeError: two methods handle the same message type.
    """
    found: dict[type[Operation[Any]], str] = {}
    for kind in reversed(actor.__mro__):
        for name, method in vars(kind).items():
            message = getattr(method, "__handles__", None)
            if message is not None and found.setdefault(message, name) != name:
                raise TypeError(
                    f"{actor.__name__} handles {message.__name__} twice: in {found[message]} and "
                    f"in {name}"
                )
    return found


def handlers_of(
    actor: "LibraryActor",
) -> dict[type[Operation[Any]], Callable[[Any, "Launch"], Any]]:
    """Return the bound handlers of a library actor by message type."""
    return {message: getattr(actor, name) for message, name in handled_by(type(actor)).items()}


class Later(NamedTuple):
    """What a handler has left to be done beside the dispatcher.

    Attributes:
        way: the method of `Launch` by which it did.
        work: what other threads do.
        then: finishes the launch with what `work` returned.
        life: how often the library's actor had been replaced.
    """

    way: Literal["defer", "poll", "blocking"]
    work: Callable[..., Any]
    then: Callable[[Any], object]
    life: int = 0


class Launch:
    """What a handler may do with the context for one message."""

    # What few launches have; a class attribute costs the others nothing.
    finish: Callable[[], Any] | None = None
    shaped: tuple[tuple[int, ...], str] | tuple[tuple[int, ...], str, int] | None = None
    deferred: Later | None = None
    made: list[int] | None = None
    trace: "Trace | None" = None
    comes_again: bool = False
    """Whether the same message, without a result, came before: it may be worth preparing."""
    prepared: Prepared | None = None
    soon_s: float = 0.0
    """For how long the end of its work is worth being looked for without sleeping."""

    def __init__(
        self,
        context: "Context",
        stream: Stream,
        seq: int,
        result: int,
        message: Operation[Any],
        spec: Spec | None,
    ) -> None:
        self.context = context
        self.stream = stream
        self.seq = seq
        self.result = result
        self.message = message
        self.spec = spec
        stream.operations += 1

    def read(self, ref: Any) -> Any:
        """Return an operand's array, ordered after its last write."""
        ref.storage.read_on(self.stream)
        return ref.array

    def write(self, ref: Any = None) -> Any:
        """Return the array to write: `ref`, else the message's `out`, else a new result."""
        if ref is None:
            ref = getattr(self.message, "out", None)
            if ref is None:
                return self.empty()
        ref.storage.write_on(self.stream)
        return ref.array

    def empty(self) -> Any:
        """Allocate the result that `infer` announces and return its array.

        Raises:
            OutOfMemory: the pool cannot hold it.
        """
        spec = self.spec or self.message.infer()
        assert spec is not None
        array, nbytes = self.context.allocate(spec.shape, spec.dtype, self.seq)
        storage = Storage(self.stream, nbytes, self.label)
        self._enter(self.result, array, spec.shape, spec.dtype, storage)
        return array

    def take(self, array: Any) -> None:
        """Make the result an array that was allocated for it, and is written on this stream."""
        spec = self.spec or self.message.infer()
        assert spec is not None
        storage = Storage(self.stream, array.nbytes, self.label)
        self._enter(self.result, array, spec.shape, spec.dtype, storage)

    def view(self, of: AccelRef, array: Any, shape: tuple[int, ...], dtype: str) -> None:
        """Make the result a view: it shares the storage of `of`, hazards included."""
        assert isinstance(of, Buffer)
        assert self.message.aliased, f"{type(self.message).__name__} does not say what it aliases"
        assert of.storage is not None
        self._enter(self.result, array, shape, dtype, of.storage)

    def adopt(
        self, id_: int, array: Any, shape: tuple[int, ...], dtype: str, storage: Storage
    ) -> None:
        """Enter an array that a user's function made."""
        self._enter(id_, array, shape, dtype, storage)

    def keep(self, thing: Any, nbytes: int, kind: str) -> None:
        """Make the result a thing that is no array: a compiled kernel, a plan.

        Its token has the shape () and `kind` where an array has its dtype, as `infer` announces.
        `read` of it returns the thing.
        """
        self._enter(self.result, thing, (), kind, Storage(self.stream, nbytes, self.label))
        self.context.table.mention(self.result).made_by = self.message

    def defer(self, work: Callable[[], T], then: Callable[[T], None]) -> None:
        """Have `work`, which may block, called on another thread, and return at once.

        Afterwards `then` gets its value on the dispatcher thread and finishes the launch: it
        allocates the result and may enqueue. What either raises is the request's failure. Until
        then messages wait that name the result or what this one writes, or write what it reads;
        all others pass. For work of the processor, as a compilation: it has no stream.
        """
        self.deferred = Later("defer", work, then)

    def poll(self, ready: Callable[[], bool], then: Callable[[], object]) -> None:
        """Have `then` finish the launch once `ready` says that something has happened elsewhere.

        As `defer`, for what only waits: however many wait, they hold up no work. `ready` is called
        again and again, on another thread, and returns at once.
        """
        self.deferred = Later("poll", ready, lambda _: then())

    def blocking(
        self, work: Callable[[Worker], T], then: Callable[[T], object] = lambda _: None
    ) -> None:
        """Have `work` call what blocks on the device, on a thread with a stream of its own.

        As `defer`, for a vendor's calls that synchronize, and for what takes long on the host.
        Take the arrays first, with `read` and `write`: what these wait for is before the work on
        its stream, and what the work enqueues there is before all that this launch's stream does
        later. `worker.handle(make)` is a vendor's handle for that stream.
        """
        life = self.context.restarts[self.message.library]
        self.deferred = Later("blocking", work, then, life)

    def rejoin(self, event: Any = None) -> None:
        """Take up the launch again after what was done beside the dispatcher.

        Other messages have used the stream meanwhile, and others have waited for those: what this
        one names is noted as used by now.

        Parameters:
            event: fires when what another stream does for it is done.
        """
        stream = self.stream
        if event is not None:
            stream.native.wait(event)
        stream.operations += 1
        for storage in self.made_storages():
            storage.write_on(stream)
        written = self.message.overwrites()
        for ref in self.message.operands():
            storage = ref.storage
            if storage is not None:
                (storage.write_on if ref in written else storage.read_on)(stream)

    def prepare(
        self,
        call: Callable[[], object] | None,
        *,
        reads: tuple[AccelRef, ...],
        writes: tuple[AccelRef, ...],
    ) -> None:
        """Have `call` enqueue what was just enqueued whenever the very same message comes again.

        Only for a message without a result that `comes_again`.

        Parameters:
            call: knows addresses, and keeps no array; what it raises is the request's failure.
                None leaves it to the handler.
            reads, writes: every operand of the message.
        """
        if call is None:
            return
        context, library = self.context, self.message.library
        changes = context.table.changes
        self.prepared = Prepared(
            call, self.stream, reads, writes, context.restarts, library, changes
        )

    def learn_shape(self) -> None:
        """Tell the notebook the result's shape and dtype, which it could not infer.

        Raises:
            LibraryError: the handler has made none.
        """
        made = self.context.table.mention(self.result)
        if made.storage is None:
            raise self._no_result("a result")
        self.shaped = made.shape, made.dtype

    def require_result(self) -> None:
        """Refuse a handler that has returned without the result that its message announces.

        Raises:
            LibraryError: with the result that was announced.
        """
        spec = self.spec or self.message.infer()
        if spec is not None and spec.dtype and self.result:
            raise self._no_result(f"{spec.dtype}{list(spec.shape)}")

    def _no_result(self, announced: str) -> LibraryError:
        kind, library = type(self.message).__name__, self.message.library
        text = f"{library}: the handler of {kind} made nothing, and {kind} announces {announced}"
        return LibraryError(text, library=library, name="NO_RESULT")

    def abandon(self) -> None:
        """Forget what this launch entered, but for the result's name: others may have read that."""
        table = self.context.table
        for id_ in self.made or ():
            if id_ == self.result:
                table.leave(table.mention(id_))
            else:
                table.free(id_)

    def made_storages(self) -> list[Storage]:
        """Return the memory of what it has entered."""
        buffers = [self.context.table.mention(id_) for id_ in self.made or ()]
        return [buffer.storage for buffer in buffers if buffer.storage is not None]

    @property
    def label(self) -> str:
        """Who owns what this launch allocates, for people."""
        message = self.message
        title = message.title if message.subject else type(message).__name__  # most have none
        return f"{title} #{self.seq}"

    def _enter(
        self, id_: int, array: Any, shape: tuple[int, ...], dtype: str, storage: Storage
    ) -> None:
        storage.used = self.seq
        self.context.table.fill(id_, array, shape, dtype, storage)
        if self.made is None:
            self.made = []
        self.made.append(id_)


class LibraryActor:
    """Owns one library's handles, plans and stream inside a context.

    Its handlers run on the context's dispatcher thread, enqueue and return. A `LibraryError`
    raised by one replaces this actor, and only it, with a fresh instance.
    """

    library: ClassVar[str]

    def __init__(self, context: "Context", lib: Any) -> None:
        self.context = context
        self.lib = lib
        self.stream = context.stream(self.library)

    def statistics(self) -> Mapping[str, int]:
        """Return counters for people, as {"plans": 3}; any thread, so it only reads."""
        return {}

    def trim(self) -> None:
        """Give back device memory that is held for later use, as plans; may wait for the device."""
        trim = getattr(self.lib, "trim", None)
        if trim is not None:
            trim()

    def forget_addresses(self) -> None:
        """Forget where buffers lie: one has lost its memory, and may come back elsewhere."""

    def close(self) -> None:
        """Release the library's handles."""
        close = getattr(self.lib, "close", None)
        if close is not None:
            close()
