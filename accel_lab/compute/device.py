"""One device: its address stays the same when its context is replaced."""

import functools
import os
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, overload

import msgspec
import numpy.typing as npt

from accel_lab.actor.events import EventStream, Subscription
from accel_lab.actor.reply import Reply
from accel_lab.actor.unawaited import name_of as plain_name
from accel_lab.actor.unawaited import require_plain
from accel_lab.compute.arena.staging import Part
from accel_lab.compute.cells.workspace_registry import Workspaces
from accel_lab.compute.events.generation_watch import (
    GenerationWatch,
    call_with_generation,
    watch_generation,
)
from accel_lab.compute.events.tree import State
from accel_lab.compute.files.open_file import OpenFile
from accel_lab.compute.graph.graph import Graph
from accel_lab.compute.message.buffer import AccelRef, Ref
from accel_lab.compute.message.builtin import LastWrite, Ping, Run, Upload, Write
from accel_lab.compute.message.durability import Durability
from accel_lab.compute.message.handle import Handle
from accel_lab.compute.message.operation import OWN_TIMEOUT, Operation
from accel_lab.compute.message.results_reply import ResultsReply
from accel_lab.compute.message.service import in_context
from accel_lab.compute.output import cell_origin
from accel_lab.compute.process.environment import OWN, UNKNOWN, environment
from accel_lab.compute.requests.message_cache import MessageCache
from accel_lab.compute.residency.resident import Released, Resident, look, release_frames
from accel_lab.compute.suspension.suspended import Keep, Suspended
from accel_lab.compute.transfer import file_transfer
from accel_lab.compute.transfer.first_values import first_values
from accel_lab.compute.transfer.transfers import KEPT_BYTES, Array, Copied, Transfers
from accel_lab.compute.user_code.call import name_of, pack_call
from accel_lab.display.sizes import memory
from accel_lab.display.summary import as_html
from accel_lab.errors import InvalidArgument
from accel_lab.uncopied import Address

if TYPE_CHECKING:
    from accel_lab.compute.requests.outbox import Recording
    from accel_lab.compute.requests.requests import Requests
    from accel_lab.compute.supervision.context_supervisor import ContextSupervisor
    from accel_lab.compute.supervision.guests import Guests

R = TypeVar("R")
T = TypeVar("T")
P = TypeVar("P", bound=tuple[Ref[Any] | None, ...])


class Device(Address):
    """Takes messages for one device and returns the handles of their answers.

    Nothing here blocks on the device, except where it says so. Any thread may call.
    """

    _instead = "it belongs to a system of this process; open one with System() where you need it"

    def __init__(
        self,
        requests: "Requests",
        transfers: Transfers,
        supervisor: "ContextSupervisor",
        system: object,
    ) -> None:
        self.name = requests.name
        self._requests = requests
        self._outbox = requests.outbox
        self._transfers = transfers
        self._supervisor = supervisor
        self._system = system  # a device in use keeps its system open
        self.notes: weakref.WeakKeyDictionary[object, Any] = weakref.WeakKeyDictionary()
        """What others know of it, by who knows it; for as long as both live."""
        cell_origin.stoppable.add(requests.stop_button)

    @property
    def requests(self) -> "Requests":
        """What it was asked, for other devices of its system."""
        return self._requests

    def is_beside(self, other: "Device") -> bool:
        """Whether another device is of the same system, whose host memory both can reach."""
        return self._system is other._system  # noqa: SLF001 - its own class's

    @property
    def guests(self) -> "Guests":
        """What stands in its system's tree beside the devices."""
        system: Any = self._system  # of a floor above
        guests: Guests = system.guests
        return guests

    @property
    def events(self) -> EventStream:
        """What happens to the devices of its system, as `lab.events`."""
        return self._supervisor.events

    @property
    def generation(self) -> int:
        """The number of the context that answers now, from 1; it grows when one is lost."""
        return self._requests.connection.generation

    @property
    def state(self) -> State:
        """What the device is doing."""
        return self._requests.connection.state

    @property
    def timeout_s(self) -> float | None:
        """How long a message may execute that has no time of its own; None for ever.

        It can be set: to a number of seconds, for what is sent from then on. What is less than
        60 s has each message watched by itself, which slows down a flood of small ones.
        """
        return self._outbox.timeout_s

    @timeout_s.setter
    def timeout_s(self, timeout_s: float | None) -> None:
        self._outbox.timeout_s = timeout_s

    @property
    def in_flight(self) -> int:
        """How many messages are sent and not answered, those that wait to be begun, too."""
        return self._requests.in_flight

    @property
    def outstanding(self) -> int:
        """How many messages have no answer, those that wait for a context, too; reads the wire."""
        requests = self._requests
        link = requests.connection.current_link
        if link is not None and requests.answers.pending:
            requests.flush()
            link.drain()
        return self.unanswered

    @property
    def unanswered(self) -> int:
        """How many messages have no answer that was read; reads nothing itself."""
        requests = self._requests
        return len(requests.answers.pending) + requests.withdrawn

    @property
    def free_bytes(self) -> int | None:
        """How much of its memory is free, as told each second; None before its first context."""
        health = self._supervisor.health
        return None if health.total_bytes is None else health.total_bytes - health.used_bytes

    @property
    def capability(self) -> float:
        """Its compute capability, as 9.0; 0 where there is none, and before its first context."""
        return self._supervisor.health.capability

    @property
    def limit_bytes(self) -> int | None:
        """What the buffers of its next context may take; None for all. `memory.limit` sets both."""
        return self._supervisor.limit_bytes

    @limit_bytes.setter
    def limit_bytes(self, nbytes: int | None) -> None:
        self._supervisor.limit_bytes = nbytes

    def probe(self) -> None:
        """Try a context where the circuit has been open for long enough; returns at once."""
        self._supervisor.wake()

    @property
    def last_number(self) -> int:
        """The number of the message that was sent last, as views show it; 0 before the first."""
        return self._requests.last_number

    @property
    def first_unanswered(self) -> int | None:
        """The number of the oldest message that has no answer yet."""
        return self._requests.first_unanswered()

    @overload
    def ask(
        self, message: Operation[AccelRef], *, timeout_s: float | None = ..., nowait: bool = ...
    ) -> AccelRef: ...
    @overload
    def ask(
        self, message: Operation[Handle[T]], *, timeout_s: float | None = ..., nowait: bool = ...
    ) -> Handle[T]: ...
    @overload
    def ask(  # type: ignore[overload-overlap]  # a tuple of buffers is answered at once
        self, message: Operation[P], *, timeout_s: float | None = ..., nowait: bool = ...
    ) -> P: ...
    @overload
    def ask(
        self, message: Operation[R], *, timeout_s: float | None = ..., nowait: bool = ...
    ) -> Reply[R]: ...

    def ask(
        self,
        message: Operation[Any],
        *,
        timeout_s: float | None = OWN_TIMEOUT,
        nowait: bool = False,
    ) -> Any:
        """Send a message and return the handle of its answer.

        A message with several results returns a NamedTuple of handles: `q, r = gpu.ask(QR(a))`.
        They are done together, and they fail together.

        Parameters:
            timeout_s: how long it may execute before the context is replaced; waiting in a
                queue does not count. When not given it is the message's own, or, where that is
                the default, the device's; None is for ever.
            nowait: raise QueueFull rather than wait when 8192 messages are in flight, or 1024
                wait for a context.

        Raises:
            InvalidArgument: operands or options do not fit; nothing was sent.
            StaleRef: an operand is of a lost generation.
            QueueFull: no room in time.
            CircuitOpen: the device rests after too many losses.
            SystemClosed: its system is closed.
        """
        if not isinstance(message, Operation):
            text = f"ask() takes a message, as blas.Gemm(a, b), not a {type(message).__name__}"
            raise InvalidArgument(text)
        reply = self._outbox.send(message, timeout_s, nowait=nowait)
        return reply.handles if type(reply) is ResultsReply else reply

    def ask_of(
        self,
        kind: type[Operation[R]],
        made_of: tuple[Any, ...],
        make: Callable[..., Operation[R]],
        timeout_s: float | None,
        repeats: MessageCache,
    ) -> Reply[R]:
        """Send the message that `make(*made_of)` returns, as `ask` does.

        It is not made again where the very same objects have been sent before, as in a loop.

        Parameters:
            kind: the type of message, which answers with no buffer.
            made_of: all that it depends on.
            make: always the same for these `repeats`.
            repeats: what was sent so before.
        """
        return self._outbox.send_made(kind, made_of, make, timeout_s, repeats)

    def tell(self, message: Operation[Any], *, nowait: bool = False) -> None:
        """Send a message whose answer nobody waits for; a failure reaches `lab.check()`."""
        self._outbox.tell(message, nowait=nowait)

    def put(
        self, array: npt.ArrayLike, *, timeout_s: float = 60.0, non_blocking: bool = False
    ) -> AccelRef:
        """Copy an array to the device; return its buffer at once.

        A buffer of another device of the same system is copied when that device comes to it, by the
        way that `lab.topology` says; the copy can be used at once. It blocks for its shape, where
        only the device knows that; one of another system is fetched first, which blocks.

        NumPy's and PyTorch's, and arrays on a card that this process's own CuPy, PyTorch, Numba
        or JAX has made (`__cuda_array_interface__`). The array is copied when this returns; one
        from `lab.empty` is not, it is read-only until the upload is done. Blocks for the host copy
        and, up to `timeout_s`, for room in the arena.

        An array on a card is waited for on its stream. When it is large the device's context reads
        it there (`cudaIpcGetMemHandle`), and this blocks until that is done; small ones, and memory
        that no other process can read, go by the host. The context keeps what it reads there open
        for the next put: when the array is gone, its memory is back in its pool a moment later.

        Parameters:
            non_blocking: whether not to wait for such a reading; until the buffer is done the array
                must not change. It may be deleted. The first put from an allocation waits even so,
                for only then is known whether the device can read it. Of no effect on other arrays.

        Raises:
            InvalidArgument: the dtype is not one of `compute.dtypes`, or the array is sparse,
                masked, or of CUDA that is in error.
            ArenaFull: no room in time.
            TimeoutError: the device did not come to the array on the card in time.
            OutOfMemory: it has no room for what it would read on the card.
        """
        return self._transfers.put(array, timeout_s, non_blocking=non_blocking)

    def copy_of(
        self, ref: AccelRef, *, timeout_s: float = 60.0, kept_bytes: int = KEPT_BYTES
    ) -> Copied:
        """Copy a buffer of another device of the system, as `put` does; return how it goes, too.

        Parameters:
            kept_bytes: how large it may be for the record to keep its contents.
        """
        return self._transfers.copy_of(ref, timeout_s, kept_bytes=kept_bytes)

    def get(self, ref: AccelRef, *, timeout_s: float = 60.0) -> Reply[Array]:
        """Ask for a buffer's contents: a NumPy array that outlives the context and the system.

        Blocks, up to `timeout_s`, for room in the arena.
        """
        return self._transfers.get(ref, timeout_s)

    def load(
        self,
        path: str | os.PathLike[str],
        names: Iterable[str] | None = None,
        *,
        timeout_s: float = 60.0,
    ) -> Any:
        """Read a file's arrays and upload them: one buffer for a `.npy`, else a dict by names.

        It is `.npy`, `.npz`, `.safetensors`, `.parquet`, `.arrow`, `.feather` or `.zarr`. The bytes
        are read into the arena, a part at a time, while the parts before are uploaded. An array in
        Fortran's order arrives transposed, as a view, and bytes in the other order are turned. What
        is loaded is kept for a loss as what is `put`. Blocks until all is read.

        Parameters:
            names: which arrays; all of them when not given.

        Raises:
            FileDamaged: the file is not what it says, or was changed meanwhile; nothing is loaded.
            FileError: it cannot be read, or needs a package.
            InvalidArgument: it has no such name, or what no device can hold.
            OSError: it is not there, or may not be read.
            ArenaFull: no room in time.
        """
        return file_transfer.load(self._transfers, path, names, timeout_s)

    def open_file(self, path: str | os.PathLike[str], *, timeout_s: float = 60.0) -> OpenFile:
        """Open a file of arrays and read nothing yet: `file["x"][1000:2000]` loads that part.

        Raises:
            AccelError, OSError: as `load`.
        """
        return file_transfer.open_file(self._transfers, path, timeout_s)

    def save(
        self,
        arrays: AccelRef | Mapping[str, AccelRef],
        path: str | os.PathLike[str],
        *,
        timeout_s: float = 60.0,
    ) -> None:
        """Write a buffer, or several by names, to a file of the format that its name says.

        It is written part by part, beside a file that is there, and takes its place when it is
        whole. Blocks for what was sent before and until the file is on the disk.

        Raises:
            InvalidArgument: no such format, or it has no such dtype.
            FileError: the disk is full, or a package is missing.
            OSError: there is no such folder, or nothing may be written there.
            AccelError: what a buffer failed with.
        """
        file_transfer.save(arrays, path, timeout_s)

    def first_values(self, ref: AccelRef) -> list[tuple[str, str]]:
        """Return the first and last values of a buffer as (what, text), or why there are none.

        They are fetched only if it is done and nothing else is sent. Blocks 0.25 s at most.
        """
        return first_values(ref, self, self._transfers)

    def run(
        self,
        function: Callable[..., Any],
        *operands: Any,
        pure: bool = False,
        writes: tuple[Ref[Any], ...] | None = None,
        timeout_s: float | None = None,
        called: str | None = None,
        **options: Any,
    ) -> Any:
        """Call `function` inside the context, with its arrays where refs were given.

        Buffers among the arguments arrive as the backend's arrays (NumPy, CuPy). An array in the
        answer stays on the device and comes back as an AccelRef; everything else is pickled. The
        handle is an operand at once; it fails there if the answer turns out to be no array.

        Parameters:
            pure: promise that no operand is written, and that the answer depends on nothing but
                the arguments: it may then be run again after a fault.
            writes: the operands that it writes; all of them when not given.
            timeout_s: how long it may run; None for ever.
            called: what views, errors and the journal call it; its own name when not given.

        Raises:
            InvalidArgument: the function or an argument does not pickle, or `writes` names what
                is no operand, or the function is an `async def`.
        """
        _require_plain(function)
        refs, blob = pack_call(function, operands, options)
        places = None if writes is None else _places(writes, refs, pure=pure)
        name = name_of(function) if called is None else called
        return self._run(Run(refs, blob, pure, None, places, name), timeout_s)

    @overload
    def function(self, function: Callable[..., Any], /) -> Callable[..., Any]: ...
    @overload
    def function(
        self, function: None = ..., /, *, pure: bool = ..., timeout_s: float | None = ...
    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]: ...

    def function(
        self,
        function: Callable[..., Any] | None = None,
        /,
        *,
        pure: bool = False,
        timeout_s: float | None = None,
    ) -> Callable[..., Any]:
        """Decorate a function: each call of it runs in the context, as `run` does.

        A call returns the handle of its answer and does not block. The function itself stays at
        `__wrapped__`. `@gpu.function` alone does, and `@gpu.function(pure=True)` with options.

        Parameters:
            pure: as in `run`, of every call.
            timeout_s: how long a call may run; None for ever.
        """

        def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
            _require_plain(function)

            @functools.wraps(function)
            def call(*operands: Any, **options: Any) -> Any:
                refs, blob = pack_call(function, operands, options)
                message = Run(refs, blob, pure, called=name_of(function))
                return self._run(message, timeout_s)

            return call

        return decorate if function is None else decorate(function)

    def graph(self, **operands: Any) -> Graph:
        """Return a graph that records a block: `with gpu.graph(x=x) as g: …`, then `g.launch()`.

        Parameters:
            operands: buffers and numbers that launches may change, by name.

        Raises:
            InvalidArgument: one is neither, or is a buffer of another device.
        """
        return Graph(self, operands)

    @property
    def recording(self) -> "Recording | None":
        """The block that this thread records, if it does."""
        recording = self._outbox.recording
        return recording if recording is not None and recording.is_here else None

    @property
    def is_apart(self) -> bool:
        """Whether code there finds the files of another machine."""
        return self._supervisor.environment is OWN

    def settle(self, *, exact: bool = False) -> None:
        """Have code find there what it finds here: the folder, `sys.path` and the environment.

        What the context knows already is not said again. `run` does it by itself.

        Parameters:
            exact: do without the variables, too, that a new context has of its own.
        """
        supervisor = self._supervisor
        here, told = environment(), supervisor.environment
        if self.is_apart:
            return
        exact = exact and not told.exact
        if here[:3] == told[:3] and not exact:
            return
        changed = exact or here.variables != told.variables
        # First, for a context that is lost meanwhile is replaced by one that knows less.
        supervisor.environment = here._replace(exact=changed or told.exact)
        try:
            if here[:2] != told[:2]:
                self._tell(Workspaces.settle, here.folder, here.path)
            if changed:  # a journal has no business with what is secret
                self._tell(Workspaces.take_over, dict(os.environ), recorded=False)
        except BaseException:
            supervisor.environment = UNKNOWN
            raise

    def _tell(self, function: Callable[..., None], *known: Any, recorded: bool = True) -> None:
        """Have the context take over something of the notebook's; does not wait for that."""
        refs, blob = pack_call(function, (in_context(Workspaces), *known), {})
        message = Run(refs, blob, pure=False, called=function.__name__)
        self._transfers.run(message, None, recorded=recorded)

    def _run(self, message: Run, timeout_s: float | None) -> Any:
        self.settle()
        return self._transfers.run(message, timeout_s)

    def put_parts(
        self,
        shape: tuple[int, ...],
        dtype: str,
        parts: Callable[[], Iterable[Part]],
        *,
        timeout_s: float = 60.0,
    ) -> AccelRef:
        """Upload an array of which each part is written straight into the arena, as it is read.

        Parameters:
            parts: gives them all in C order, to be filled one after the other; called again where
                the context was lost on the way.

        Raises:
            AccelError: as `put`.
            Exception: what a part raises.
        """
        return self._transfers.fill(shape, dtype, parts, timeout_s, in_order=True)

    def repeat(
        self,
        message: Operation[Any],
        timeout_s: float | None,
        data: Sequence[bytes] | None = None,
        key: str = "",
    ) -> Reply[Any]:
        """Send a message that was sent before, as it was; for a record that is run again.

        Parameters:
            data: the bytes that the message took from the arena then, in pieces.
            key: their key, where that was proven; "" has it found.

        Raises:
            AccelError: as `ask`.
        """
        if isinstance(message, Upload):
            return self._transfers.upload(message, data or (), timeout_s, key)
        if isinstance(message, Run):
            call = message
            if data is not None:
                call = msgspec.structs.replace(message, blob=b"".join(data), blob_at=None)
            return self._transfers.run(call, timeout_s)
        return self._outbox.send(message, timeout_s)

    def ping(self) -> Reply[None]:
        """Send a message that does nothing; its answer has gone all the way and back.

        It waits for the messages before it to be taken up, not for the device to compute them.
        """
        return self.ask(Ping())

    def holds(self, ref: Ref[Any]) -> bool:
        """Whether a buffer is, or is about to be, in the current generation; never blocks."""
        return self._requests.handles.holds(ref)

    def durability(self, ref: Ref[Any]) -> Durability:
        """Return what a fault would do to a buffer, and why; see `AccelRef.durability`."""
        if not ref.is_valid:
            why = self._requests.handles.why_lost(ref)
            return Durability("lost on fault", f"it is gone{f': {why}' if why else ''}")
        recovery = self._supervisor.recovery
        if recovery is None:
            return Durability("lost on fault", 'its system has recover="stale"')
        return recovery.durability(ref.id)

    def durability_now(self, ref: Ref[Any]) -> Durability | None:
        """Return what a fault would do to a buffer; None where a moment is too short to tell.

        That is after about 20 ms: bytes are being copied for the record, or it is long.
        """
        recovery = self._supervisor.recovery
        if not ref.is_valid or recovery is None:
            return self.durability(ref)
        return recovery.durability_now(ref.id)

    def last_write(self, ref: AccelRef) -> Reply[Write]:
        """Ask what wrote a buffer last; see `AccelRef.last_write`."""
        return self.ask(LastWrite(ref))

    def checkpoint(self, ref: Ref[Any], *, timeout_s: float = 60.0) -> Reply[None]:
        """Keep a copy of a buffer's contents on the host, as they are after what was sent before.

        After a fault it is made of those, and no message before is run again for it. Blocks, up
        to `timeout_s`, for room in the arena. The reply is done when the copy is safe, and fails
        with OutOfMemory when what may be kept is used up.

        Raises:
            InvalidArgument: the system does not make buffers again (`recover="stale"`).
        """
        return self._transfers.checkpoint(ref, timeout_s)

    @overload
    def watch(self, callback: None = ...) -> GenerationWatch: ...
    @overload
    def watch(self, callback: Callable[[int], object]) -> Subscription: ...

    def watch(
        self, callback: Callable[[int], object] | None = None
    ) -> GenerationWatch | Subscription:
        """Follow the device's generation: each new one means that what it held before is gone.

        Without a callback: `async for generation in gpu.watch(): ...`, in any asyncio loop. It
        gives the generations after this call, only the newest if the loop is slower, and ends when
        the system closes.

        Parameters:
            callback: called with each new generation from now on, in the thread that supervises:
                it must be quick and must not wait. `close()` what this returns to end that.
        """
        events = self._supervisor.events
        if callback is not None:
            return call_with_generation(events, self.name, callback)
        return watch_generation(events, self.name, ended=self.state == "stopped")

    def take_back(self) -> None:
        """Take back what the cell that runs has sent and is not done, as `Reply.cancel` does."""
        self._requests.cancellation.cancel_of(cell_origin.current())

    def stop(self) -> int:
        """Take back whatever was sent and is not done, whoever sent it; return how many requests.

        Each is answered with Cancelled. A function of the user's that runs is interrupted; a kernel
        that runs goes on to its end, and `replace` ends it. Any thread; returns at once.
        """
        return len(self._requests.cancellation.cancel_all())

    def replace(self) -> None:
        """Replace the context, whatever it is doing; what is in flight gets ContextReplaced.

        For a kernel or a function that does not come back. It counts for nothing among the losses
        after which a device rests. What waits for a context that is starting stays in line, and a
        line below the cell says so. Returns at once.
        """
        done = self._supervisor.replace("it was replaced on demand")
        if not done and (state := self.state) in ("starting", "restarting"):
            text = f"{self.name} is {state}: there is no context to replace yet; "
            cell_origin.current().say(f"{text}queued messages stay queued.")

    def suspend(
        self, *, drop: bool = False, timeout_s: float | None = None, keep: Keep = "memory"
    ) -> Suspended:
        """Give the hardware back, and keep on the host what the device holds.

        Waits for what was sent before, copies every buffer and pickles the objects of `%%gpu`
        cells; then the context's process ends, which is no fault: nothing restarts, the generation
        stays. The next message, or `resume()`, starts a context with all of it under the same
        handles. What is sent meanwhile waits. A device that is suspended stays so, and one whose
        circuit is open has nothing to give back. Blocks; any thread.

        With `keep="process"` the process is kept, and stands still: what does not pickle is there
        afterwards, too, as generators, open files and threads. On `cuda` the driver moves the
        memory of the card to the host (CUDA's checkpoint), which takes two to four times as long.

        Parameters:
            drop: give up what cannot be kept: objects that do not pickle, buffers for which the
                host has no room. Otherwise that is refused before anything is lost.
            timeout_s: how long to wait for what runs; None for ever.
            keep: "memory" or "process".

        Returns:
            Suspended: how much waits on the host, what was dropped, and which way was gone.

        Raises:
            CannotKeep: something would be lost; nothing changed. `lost` names it.
            ContextLost: the context was lost meanwhile; the device comes back as after any loss.
            TimeoutError: not in time; nothing changed.
            SystemClosed: its system is closed.
        """
        return self._supervisor.suspension.suspend(timeout_s, drop=drop, keep=keep)

    def resume(self, *, timeout_s: float = 120.0) -> None:
        """Start a context for a suspended device, with all that was kept; blocks until it is up.

        Raises:
            OutOfMemory: the hardware has no room for it any more; it stays suspended.
            AccelError: the device takes no messages, and why.
            TimeoutError: not in time; it goes on coming back.
        """
        self._supervisor.suspension.resume(timeout_s)

    def reset(self) -> None:
        """Close an open circuit: start a context on probation. Returns at once."""
        self._supervisor.reset()

    @property
    def resident(self) -> Resident:
        """What the device holds, as a table: each buffer and object with its size and its keepers.

        It is as after all that was sent before. Blocks until the context has answered; one that is
        busy for 2 s is looked at while it works, and what is not known then is said. Rows are freed
        or dropped: `gpu.resident[0].free()`, `gpu.resident["model"].drop()`.

        Raises:
            AccelError: the device takes no messages.
        """
        return look(self, self._supervisor)

    def release_frames(self) -> Released:
        """Give back what only the variables of failed functions hold; returns how much that was.

        The last error and those that have a name keep their texts, and `%tb` its lines, but in
        their functions no variable has a value any more. In the context all functions that have
        failed are emptied, and garbage is collected on both sides. Blocks for the context.

        Raises:
            AccelError: the device takes no messages.
        """
        return release_frames(self, self._supervisor)

    def __repr__(self) -> str:
        load = self._requests.load()
        running, waiting = sum(load.running.values()), sum(load.waiting.values())
        behind = f", {waiting} waiting" if waiting else ""
        return (
            f"<Device {self.name}, {self.state}, generation {self.generation}, "
            f"{running} in flight{behind}>"
        )

    def _repr_html_(self) -> str:
        supervisor, health = self._supervisor, self._supervisor.health
        load = self._requests.load()
        lines = [
            ("state", self.state),
            ("generation", str(self.generation)),
            ("memory", f"{memory(health.used_bytes, health.total_bytes)} in use"),
            ("in flight", f"{sum(load.running.values()):,}"),
        ]
        if waiting := sum(load.waiting.values()):
            lines.append(("waiting", f"{waiting:,}"))
        if supervisor.restarts:
            lines.append(("restarts", str(supervisor.restarts)))
        if supervisor.cause is not None:
            lines.append(("last loss", str(supervisor.cause)))
        return as_html(f"Device {self.name}{f': {health.model}' if health.model else ''}", lines)


def _require_plain(function: Callable[..., Any]) -> None:
    instead = "no event loop runs there; send a def that calls asyncio.run(…)"
    require_plain(function, f"the function {plain_name(function)}", instead)


def _places(
    writes: tuple[Ref[Any], ...], refs: tuple[Ref[Any], ...], *, pure: bool
) -> tuple[int, ...]:
    """Return where the written operands stand among all of them."""
    if pure:
        text = "a pure function writes nothing: give pure=True or writes=, not both"
        raise InvalidArgument(text)
    if isinstance(writes, Ref):
        text = "writes= is a tuple of operands: writes=(x,), not writes=x"
        raise InvalidArgument(text)
    for ref in writes:
        if not any(ref is other for other in refs):
            text = f"writes= names {ref!r}, which is no operand of the call"
            raise InvalidArgument(text)
    return tuple(i for i, ref in enumerate(refs) if any(ref is written for written in writes))


def device_first(device: Device) -> Device:
    """Return the device that is the first argument of what makes something out of nothing.

    Raises:
        InvalidArgument: it is none.
    """
    if not isinstance(device, Device):
        text = f"a device comes first, as lab.devices[0] or accel_lab.gpu, and not {device!r}"
        raise InvalidArgument(text)
    return device


def device_of(ref: Ref[Any]) -> Device:
    """Return the device of an operand, for the functions beside messages.

    Raises:
        InvalidArgument: it is neither an AccelRef nor a Handle.
    """
    if not isinstance(ref, Ref):
        kind = type(ref).__name__
        text = f"an operand must be an AccelRef, not a {kind}; put() it on a device first"
        raise InvalidArgument(text)
    return ref.device
