"""One operation in flight, and the actor that enqueues it.

A library's handler only enqueues. `Launch` has checked the operands before it runs, orders its
stream after whatever they wait for, allocates the result, and takes everything back when the
handler raises: a call that fails to launch creates nothing.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, TypeVar

from accel_lab.actor.unawaited import name_of, require_plain
from accel_lab.compute.execution.buffer_table import Buffer
from accel_lab.compute.execution.held_objects import Kept
from accel_lab.compute.execution.prepared_launch import Prepared
from accel_lab.compute.execution.stream import SpecialMemory, SpecialStorage, Storage, Stream
from accel_lab.compute.execution.worker import Worker
from accel_lab.compute.groups.group import Group
from accel_lab.compute.message.buffer import AccelRef, Ref
from accel_lab.compute.message.operation import (
    Operation,
    PartialSpec,
    Spec,
    Specs,
    answered_handle,
    inferred,
)
from accel_lab.compute.message.results import Results, ids_of, results_of
from accel_lab.errors import AccelError, LibraryError

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


def label_of(message: Operation[Any], seq: int) -> str:
    """Return who owns what a message allocates, for people."""
    title = message.title if message.subject else type(message).__name__  # most have none
    return f"{title} #{seq}"


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
    allocated_on: Stream | None = None
    """The stream to whose pool the memory of what is taken returns, if it is another."""
    shaped: tuple[Any, ...] | None = None
    """What is told of the result, or of several, whose shape the notebook does not know."""
    deferred: Later | None = None
    made: list[int] | None = None
    trace: "Trace | None" = None
    comes_again: bool = False
    """Whether the same message, without a result, came before: it may be worth preparing."""
    prepared: Prepared | None = None
    checks: list[tuple[Any, Callable[[Any], AccelError | None]]] | None = None
    """What decides about it, and what judges that."""
    soon_s: float = 0.0
    """For how long the end of its work is worth being looked for without sleeping."""
    group: Group | None = None
    """What it knows of the other parts, if it is one of a message to several devices."""
    at_once: bool = False
    """Whether it is answered as soon as it is enqueued: its answer waits for no stream."""
    once: bool = False
    """Whether it uses what is gone the next time: a workspace, or an object that it holds."""

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
        stream.seq, stream.kind = seq, type(message)

    @property
    def is_decided_later(self) -> bool:
        """Whether it may be undone when its work is done: by a status, or with its group."""
        return self.checks is not None or self.group is not None

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

    def empty(self, shape: tuple[int, ...] | None = None) -> Any:
        """Allocate the result that `infer` announces and return its array.

        Parameters:
            shape: its extents, where `infer` leaves some to the device.

        Raises:
            LibraryError: that is not the shape which was announced.
            OutOfMemory: the pool cannot hold it.
        """
        spec = self._one()
        shape = self._shape(spec, shape)
        return self._allocate(self.result, shape, spec.dtype)

    def empties(self, **shapes: tuple[int, ...]) -> Any:
        """Allocate the results that `infer` announces; return their arrays as they are announced.

        One that is not asked for is None. Where the message has an `out`, it is that which is
        written.

        Parameters:
            shapes: the extents of those where `infer` leaves some to the device, by name.

        Raises:
            LibraryError: one is not of the shape which was announced.
            OutOfMemory: the pool cannot hold one; none is made then.
        """
        outs = getattr(self.message, "out", None)
        if outs is not None:
            return type(outs)(*(None if ref is None else self.write(ref) for ref in outs))
        results, specs = self._several()
        arrays: list[Any] = []
        for at, (name, spec) in enumerate(zip(results.kind._fields, specs, strict=True)):
            if spec is None or results.of[at] is not None:  # what is no array is kept
                arrays.append(None)
                continue
            shape = self._shape(spec, shapes.get(name), name)
            arrays.append(self._allocate(self.result + at, shape, spec.dtype, name))
        return results.kind(*arrays)

    def take(self, array: Any) -> None:
        """Make the result an array that was allocated for it, and is written on this stream."""
        spec = self._one()
        self._take(self.result, array, self._shape(spec, tuple(array.shape)), spec.dtype)

    def take_all(self, *arrays: Any) -> None:
        """Make the results arrays as `take` does; None for one that is not asked for."""
        results, specs = self._several()
        fields = results.kind._fields
        for at, (name, spec, array) in enumerate(zip(fields, specs, arrays, strict=True)):
            if spec is not None and results.of[at] is None:
                shape = self._shape(spec, tuple(array.shape), name)
                self._take(self.result + at, array, shape, spec.dtype, name)

    def _one(self) -> Spec | PartialSpec:
        spec = self.spec or self.message.infer()
        assert isinstance(spec, Spec | PartialSpec), f"{self.message!r} has no single result"
        return spec

    def _several(self) -> tuple[Results, Specs]:
        results, specs = results_of(type(self.message)), inferred(self.message)
        assert results is not None, f"{type(self.message).__name__} has no several results"
        return results, specs  # type: ignore[return-value]

    def _shape(
        self, spec: Spec | PartialSpec, shape: tuple[int, ...] | None, name: str = ""
    ) -> tuple[int, ...]:
        """Return the shape of a result, which fits what was announced.

        Raises:
            LibraryError: it does not.
        """
        if shape is None:
            if isinstance(spec, Spec):
                return spec.shape
            known = tuple(extent for extent in spec.shape if extent is not None)
            if len(known) == len(spec.shape):
                return known
            raise self._no_result(f"{spec.dtype}{list(spec.shape)}")
        fits = len(shape) == len(spec.shape) and all(
            extent in (None, made) for extent, made in zip(spec.shape, shape, strict=True)
        )
        if fits:
            return shape
        kind, library = type(self.message).__name__, self.message.library
        made, announced = f"{name or 'a result'} of {list(shape)}", list(spec.shape)
        text = f"{library}: the handler of {kind} made {made}, and {kind} announces {announced}"
        raise LibraryError(text, library=library, name="WRONG_SHAPE")

    def _allocate(self, id_: int, shape: tuple[int, ...], dtype: str, name: str = "") -> Any:
        array, nbytes = self.context.allocate(shape, dtype, self.seq)
        label = f"{self.label}.{name}" if name else self.label
        self._enter(id_, array, shape, dtype, Storage(self.stream, nbytes, label))
        return array

    def _take(
        self, id_: int, array: Any, shape: tuple[int, ...], dtype: str, name: str = ""
    ) -> None:
        label = f"{self.label}.{name}" if name else self.label
        storage = Storage(self.allocated_on or self.stream, array.nbytes, label)
        storage.write_on(self.stream)
        self._enter(id_, array, shape, dtype, storage)

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

    def take_special(self, memory: SpecialMemory) -> Any:
        """Make the result the array at the begin of such memory, and return it."""
        spec = self._one()
        shape = self._shape(spec, None)
        array = memory.array(shape, spec.dtype)
        storage = SpecialStorage(self.stream, memory, self.label, self.context.held)
        self._enter(self.result, array, shape, spec.dtype, storage)
        return array

    def keep(self, thing: Any, nbytes: int | None = None, *, result: str = "") -> None:
        """Make the result a thing that is no array: a compiled kernel, a plan, a state.

        `read` of its handle returns the thing, and so does `write`. If it has a `close`, that is
        called once on the dispatcher thread, behind the last use of it on any stream.

        Parameters:
            nbytes: how much it takes on the device; if not given it says so itself by `nbytes`, an
                attribute or a method, which is asked again after each message that writes it.
            result: which of several results it is.

        Raises:
            LibraryError: the message announces no handle there.
            TypeError: it does not say how much it takes.
        """
        id_, kind = self._handle(result)
        kept = self._keep(id_, thing, nbytes, kind, self.message.library)
        if not result and not self.message.operands():
            kept.again = self.message
        if not result:
            self.shaped = kept.told, kind, 0

    def restored(self, thing: Any, nbytes: int | None, kind: str, library: str) -> None:
        """Make the result a thing that a library has made of a checkpoint."""
        self._keep(self.result, thing, nbytes, kind, library)

    def _keep(self, id_: int, thing: Any, nbytes: int | None, kind: str, library: str) -> Kept:
        context, changed = self.context, self.context.table.changed.add
        kept = Kept(self.stream, thing, nbytes, self.label, library, context.held, changed)
        self._enter(id_, thing, (), kind, kept)
        return kept

    def _look(self) -> None:
        """Refuse here what the notebook could not look at, as a shape unknown when it was sent.

        Raises:
            InvalidArgument: the operands do not fit.
        """
        if self.spec is None:
            inferred(self.message)

    def _handle(self, result: str) -> tuple[int, str]:
        """Return the id of a handle that the message makes, and of what it is.

        Raises:
            LibraryError: it makes no such.
        """
        self._look()
        kind = type(self.message)
        results, of = results_of(kind), answered_handle(kind)
        if results is None and of is not None and not result:
            return self.result, of.__name__
        if results is not None and result in results.kind._fields:
            at = results.kind._fields.index(result)
            if (one := results.of[at]) is not None and at in results.made(self.message):
                return self.result + at, one.__name__
        library, which = self.message.library, f"{result!r} " if result else ""
        text = f"{library}: the handler of {kind.__name__} keeps a thing, and it makes no handle "
        raise LibraryError(f"{text}{which}".rstrip(), library=library, name="NO_HANDLE")

    def defer(self, work: Callable[[], T], then: Callable[[T], None]) -> None:
        """Have `work`, which may block, called on another thread, and return at once.

        Afterwards `then` gets its value on the dispatcher thread and finishes the launch: it
        allocates the result and may enqueue. What either raises is the request's failure. Until
        then messages wait that name the result or what this one writes, or write what it reads;
        all others pass. For work of the processor, as a compilation: it has no stream.

        Raises:
            InvalidArgument: the operands do not fit, which the notebook could not see.
        """
        self._look()
        self.deferred = Later("defer", work, then)

    def poll(self, ready: Callable[[], bool], then: Callable[[], object]) -> None:
        """Have `then` finish the launch once `ready` says that something has happened elsewhere.

        As `defer`, for what only waits: however many wait, they hold up no work. `ready` is called
        again and again, on another thread, and returns at once. Where the group is aborted of which
        this is a part, nobody is asked any more, and the launch fails with that.
        """
        if self.group is not None:
            ready = self.group.until_aborted(ready)
        self.deferred = Later("poll", ready, lambda _: then())

    def blocking(
        self, work: Callable[[Worker], T], then: Callable[[T], object] = lambda _: None
    ) -> None:
        """Have `work` call what blocks on the device, on a thread with a stream of its own.

        As `defer`, for a vendor's calls that synchronize, and for what takes long on the host.
        Take the arrays first, with `read` and `write`: what these wait for is before the work on
        its stream, and what the work enqueues there is before all that this launch's stream does
        later. `worker.handle(make)` is a vendor's handle for that stream.

        Raises:
            InvalidArgument: the operands do not fit, which the notebook could not see.
        """
        self._look()
        life = self.context.restarts[self.message.library]
        self.deferred = Later("blocking", work, then, life)

    def workspace(self, nbytes: int) -> Any:
        """Return device memory to work in, as an array of bytes; nothing is cleared.

        It belongs to this launch until the handler, or a `then`, returns: the next launch on the
        stream gets the same memory. What one of them takes does not overlap.

        Raises:
            LibraryError: this is work beside the dispatcher, which has `worker.workspace`.
            OutOfMemory: the pool cannot hold it.
        """
        self.once = True
        scratch, library = self.context.scratch, self.message.library
        return scratch.take(nbytes, self.seq, self.stream, library)

    def hold(self, thing: Any) -> None:
        """Keep an object until this launch's stream is behind the launch; any thread.

        For what the device reads or writes while it works, as an array of the host or a vendor's
        descriptor. It is dropped on the dispatcher thread, and also where the launch fails.
        """
        self.once = True
        self.context.held.add(self.seq, self.stream, thing)

    def check(self, status: Any, judge: Callable[[Any], AccelError | None]) -> None:
        """Have a status that the work writes decide whether it has done what it should.

        It comes back behind the work; nothing stops for it. Until then whatever leaves the device
        waits if it depends on this launch. If it fails, so does all that depends on it; its
        library's actor goes on. Such a launch is not prepared.

        Parameters:
            status: a small array of the device, as LAPACK's `info` or an overflow flag.
            judge: gets its values as a NumPy array; returns None, or the error that this
                request fails with. It runs on the dispatcher thread.
        """
        self.checks = [*(self.checks or ()), (status, judge)]

    def rejoin(self, event: Any = None, home: Stream | None = None) -> None:
        """Take up the launch again after what was done beside the dispatcher.

        Other messages have used the stream meanwhile, and others have waited for those: what this
        one names is noted as used by now.

        Parameters:
            event: fires when what another stream does for it is done.
            home: that stream, on which its arrays were allocated.
        """
        self.allocated_on = home
        stream = self.stream
        if event is not None:
            stream.native.wait(event)
        stream.operations += 1
        stream.seq, stream.kind = self.seq, type(self.message)
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
        reads: tuple[Ref[Any], ...],
        writes: tuple[Ref[Any], ...],
    ) -> None:
        """Have `call` enqueue what was just enqueued whenever the very same message comes again.

        Only for a message without a result that `comes_again`; one that takes a workspace or
        holds an object is left to the handler, for these may be gone by then.

        Parameters:
            call: knows addresses, and keeps no array; what it raises is the request's failure.
                None leaves it to the handler.
            reads, writes: every operand of the message.
        """
        if call is None or self.once:
            return
        context, library = self.context, self.message.library
        changes = context.table.changes
        self.prepared = Prepared(
            call, self.stream, reads, writes, context.restarts, library, changes, type(self.message)
        )

    def learn_shape(self) -> None:
        """Tell the notebook the shape and dtype of what it could not infer.

        Raises:
            LibraryError: the handler has made none.
        """
        if results_of(type(self.message)) is not None:
            self._learn_shapes()
            return
        made = self.context.table.mention(self.result)
        if made.storage is None:
            raise self._no_result("a result")
        self.shaped = made.shape, made.dtype

    def _learn_shapes(self) -> None:
        self._require_all()
        results, mention = self._several()[0], self.context.table.mention
        told: list[Any] = [None] * len(results.asked_by)
        for at in results.made(self.message):
            made = mention(self.result + at)
            storage = made.storage
            told[at] = storage.told if type(storage) is Kept else made.shape, made.dtype
        self.shaped = (), "", -1 if self.message.aliased else 0, told

    def require_result(self) -> None:
        """Refuse a handler that has returned without the result that its message announces.

        Raises:
            LibraryError: with the result that was announced.
        """
        if (results := results_of(type(self.message))) is not None:
            if any(results.of):  # how large is told of what is no array
                self._learn_shapes()
            else:
                self._require_all()
            return
        spec = self.spec or inferred(self.message)
        if isinstance(spec, Spec) and spec.dtype and self.result:
            raise self._no_result(f"{spec.dtype}{list(spec.shape)}")

    def _require_all(self) -> None:
        mention = self.context.table.mention
        for at, id_ in enumerate(self.ids):
            if mention(id_).storage is None:
                raise self._no_result(f"{len(self.ids)} results, and not number {at + 1}")

    def _no_result(self, announced: str) -> LibraryError:
        kind, library = type(self.message).__name__, self.message.library
        text = f"{library}: the handler of {kind} made nothing, and {kind} announces {announced}"
        return LibraryError(text, library=library, name="NO_RESULT")

    def begin_anew(self) -> None:
        """Take back what a handler has begun that refuses the message: another handles it."""
        self.abandon()
        self.made = self.deferred = self.checks = self.shaped = self.prepared = None
        vars(self).pop("finish", None)

    def abandon(self) -> None:
        """Forget what this launch entered, but for the result's name: others may have read that."""
        table = self.context.table
        for id_ in self.made or ():
            if id_ not in self.ids:
                table.free(id_)
            elif (buffer := table.known(id_)) is not None:
                table.leave(buffer)

    def made_storages(self) -> list[Storage]:
        """Return the memory of what it has entered."""
        buffers = [self.context.table.mention(id_) for id_ in self.made or ()]
        return [buffer.storage for buffer in buffers if buffer.storage is not None]

    @property
    def ids(self) -> tuple[int, ...]:
        """The ids of the buffers that it makes."""
        return ids_of(self.message, self.result)

    @property
    def label(self) -> str:
        """Who owns what this launch allocates, for people; of several results each has its name."""
        return label_of(self.message, self.seq)

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
    leads_out: ClassVar[bool] = False
    """Whether its messages take what they read out of the device: they wait for verdicts."""
    fusable: ClassVar[Mapping[type[Operation[Any]], Callable[[Any, Spec], Any]]] = {}
    """Messages that are functions of each element, with what says the `Parts` of one, or None."""

    def __init__(self, context: "Context", lib: Any) -> None:
        self.context = context
        self.lib = lib
        self.stream = context.stream(self.library)
        self.runs = self.fused_messages = 0
        """How many pieces of work were made of several messages, and of how many."""

    def statistics(self) -> Mapping[str, int]:
        """Return counters for people, as {"plans": 3}; any thread, so it only reads.

        They are what the backend's part of the library counts, if it has `statistics`.
        """
        statistics = getattr(self.lib, "statistics", None)
        counted = {} if statistics is None else statistics()
        if not self.fusable:
            return counted
        return {"fused messages": self.fused_messages, "pieces of these": self.runs, **counted}

    def give_way(self) -> bool:
        """Give back the part of what is held for later that was used longest ago.

        Whether there was any: it is called until there is room or nothing is left. May wait for the
        device.
        """
        give_way = getattr(self.lib, "give_way", None)
        return bool(give_way is not None and give_way())

    def trim(self) -> None:
        """Give back device memory that is held for later use, as plans; may wait for the device."""
        self.context.scratch.trim(self.stream)
        trim = getattr(self.lib, "trim", None)
        if trim is not None:
            trim()

    def restore(self, kind: str, made_of: Any) -> Any:
        """Return a thing that is what it was when its `checkpoint` returned this.

        What that had as arrays of the device are such arrays again.

        Raises:
            LibraryError: the backend's part of the library has no `restore`.
        """
        restore = getattr(self.lib, "restore", None)
        if restore is None:
            text = f"{self.library} has no restore, and so makes no {kind} of a checkpoint"
            raise LibraryError(text, library=self.library, name="NO_RESTORE")
        return restore(kind, made_of)

    def memory_of(self, kind: str, nbytes: int, now: int) -> SpecialMemory:
        """Make memory as its `kind` says, of which the first `nbytes` are in use.

        Parameters:
            now: the message for which; what it names stays where it is.

        Raises:
            LibraryError: this library makes none.
            OutOfMemory: there is no room for it.
        """
        del nbytes, now
        text = f"{self.library} has no memory_of, and so makes no memory {kind!r}"
        raise LibraryError(text, library=self.library, name="NO_MEMORY_OF")

    def forget_addresses(self) -> None:
        """Forget where buffers lie: one has lost its memory, and may come back elsewhere."""

    def close(self) -> None:
        """Release the library's handles."""
        close = getattr(self.lib, "close", None)
        if close is not None:
            close()
