"""Every error of accel_lab, and what a supervisor does about it.

    AccelError
    ├── InvalidArgument (ValueError)      a mistake in the call; nothing was sent
    │   ├── UnsupportedDtype              the backend has no such (operation, dtype) pair
    │   ├── OutOfBounds (IndexError)      an array has no such axis, or an axis no such index
    │   └── NotAnArray (TypeError, AttributeError)   what is no array was used like one
    ├── StaleRef                          the buffer belongs to a lost generation, or was freed
    ├── DependencyFailed                  an operand's message failed; the root is `__cause__`
    ├── OutOfMemory (MemoryError)         the device pool cannot hold the result
    ├── ArenaFull (MemoryError)           the host arena cannot hold the array in time
    ├── CannotKeep                        what suspending or forking would lose
    ├── OwnerGone                         what another process shared is gone, and is not touched
    ├── LibraryError                      a library call failed; that library's actor restarts
    ├── CompileError                      a kernel's source does not compile; the text is the log
    ├── UserCodeError                     a function given to `run` raised; see `__cause__`
    ├── ContextLost                       the context process is gone, with the reason
    │   ├── DeadlineExceeded (TimeoutError)   … because this request ran longer than it may
    │   └── ContextReplaced               … because somebody asked for another one
    ├── GroupAborted                      a part of a message to several devices failed, or was late
    ├── StageFailed                       an item of a pipeline failed; see `__cause__`
    ├── CircuitOpen                       the device lost its context too often; `reset()` it
    ├── NoDevice                          no device may take a message that names none, and why
    ├── QueueFull                         the bounded queue has no room
    ├── Cancelled                         the request was cancelled
    │   └── Interrupted                   … while its function ran
    ├── SystemClosed                      the system was closed (or this process is a fork of it)
    ├── BackendUnavailable                the backend cannot run on this machine, and why
    ├── JournalError                      a journal cannot be read, kept or replayed, and why
    │   ├── JournalDamaged                … because its bytes are damaged from some entry on
    │   └── JournalUnavailable            … because its store cannot be reached or has no room
    ├── RecordingError                    a recording cannot be read, written or drawn, and why
    │   └── RecordingDamaged              … because its bytes are damaged from some line on
    ├── SessionError                      a session's folder cannot be opened or written, and why
    │   └── SessionDamaged                … because a file of it is damaged or missing, and which
    ├── FileError                         a file of arrays cannot be read or written, and why
    │   └── FileDamaged                   … because its bytes are not what it says
    ├── DashboardUnavailable              no dashboard can be served here, and why
    ├── FilmError                         a film of a simulation cannot be written, and why
    ├── TelemetryUnavailable              a package for looking from outside is missing, and which
    ├── NonFiniteResult (ArithmeticError) a watched result holds NaN or Inf, and where it came from
    └── ActorError
        ├── ActorStopped                  the addressed actor has stopped
        ├── NameTaken (ValueError)        a sibling has this name
        └── ActorFailed                   a handler raised something that is not an AccelError

The class carries its supervision directive, what the parent of the actor that raised it does, and
its remedy, what you can do. An error with attributes of its own declares them as `fields`.

Runs in both.
"""

from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

from accel_lab.display import failure
from accel_lab.errors.declared_fields import Declared, positional, rebuilt


class Directive(Enum):
    """What a supervisor does with a failed child (OTP, Akka)."""

    RESUME = "resume"
    RESTART = "restart"
    REPLACE = "replace"
    """Restart, and count nothing: it was asked for."""
    STOP = "stop"
    ESCALATE = "escalate"


class AccelError(Declared, fields=("remedy",)):
    """The base of every error that accel_lab raises.

    A subclass names its own attributes, `class SingularMatrix(AccelError, fields=("pivot",))`, and
    gives each a type and, if it has one, a default: `pivot: int = 0`. The constructor takes the
    text, and the fields by keyword. They come along wherever the error goes: through the wire from
    a context, into copies, pickles and the journal. Of a buffer in a field only its number leaves
    the context; in the process that raises the error the field holds the handle, and so its memory.

    Attributes:
        fields: the names of the attributes that travel.
        directive: what a supervisor does; where one is a case of its own, it has its own.
        taken: whether it has been raised to somebody, so that no later check repeats it.
        root: the buffer whose message failed first, or below 0 that message's number on its device;
            0 where neither is known.
        remedy: what you can do about it; one of which more is known has its own.
    """

    directive: ClassVar[Directive] = Directive.RESUME
    remedy: str = ""
    taken = False
    root = 0
    if TYPE_CHECKING:
        text: object = positional(default="", kw_only=False)

    def take(self) -> Self:
        """Note that this error, and what caused it, is raised to somebody; return what to raise."""
        error: BaseException | None = self
        while isinstance(error, AccelError) and not error.taken:
            error.taken = True
            error = error.__cause__
        return self.copy()

    def copy(self) -> Self:
        """Return the same error without a traceback, to be raised in place of one that is kept.

        An error gathers the frames that it passes, and these keep every array of whoever caught
        it. What a device or a request remembers of a failure is therefore never raised itself.
        """
        twin: Self = rebuilt(type(self), self.args)  # a constructor may not take `args`
        vars(twin).update(vars(self))
        if hasattr(self, "__notes__"):
            twin.__notes__ = list(self.__notes__)
        twin.__cause__ = self.__cause__
        twin.__context__ = self.__context__
        twin.__suppress_context__ = self.__suppress_context__
        return twin

    def _repr_html_(self) -> str:
        return failure.html(self)

    def _render_traceback_(self) -> list[str]:
        """Return what IPython prints below a failed cell."""
        return failure.of_cell(self)


class InvalidArgument(AccelError, ValueError):
    """A message's operands or options do not fit; nothing was sent and nothing changed."""

    remedy = "Correct the call. The text names the operand, what it is and what was expected."


class UnsupportedDtype(InvalidArgument):
    """The backend lacks this pair of (operation, dtype); the text lists the pairs it has."""

    remedy = "Convert with array.cast to one of the dtypes listed, or use the other backend."


class OutOfBounds(InvalidArgument, IndexError):
    """An array has no such axis, or an axis no such index; nothing was sent."""

    remedy = "Axes and indices count from 0, and from -1 backwards: see ref.shape."


class NotAnArray(InvalidArgument, TypeError, AttributeError):
    """A handle of something else, as a kernel, was used as an array; nothing was sent."""

    remedy = (
        "Use its library's functions, or gpu.run(function, handle), which gets the object itself."
    )


class StaleRef(AccelError, fields=("buffer",)):
    """The buffer was freed, or lost with its generation; its contents are gone.

    Attributes:
        buffer: its number; 0 where that is not known, or where it is an object.
    """

    remedy = "Put or compute the buffer again. For an object, run the cell that made it."
    buffer: int = 0


class DependencyFailed(AccelError, fields=("unwritten",)):
    """An operand was never made, or not written, because its own message failed (`__cause__`).

    Attributes:
        unwritten: why an operand that was there is refused, as the context tells it.
        first: the failures of the messages that should have made or written the operand, if known.
    """

    remedy = "Look at __cause__: it is the first failure of the chain. Fix that one."
    unwritten: tuple[Any, ...] = ()
    first = cast("tuple[AccelError, ...]", ())

    def take(self) -> Self:
        """Note that this, and what it comes of, is raised to somebody; return what to raise."""
        found = [*self.first]
        while found:
            error = found.pop()
            if not error.taken:
                error.taken = True
                found += getattr(error, "first", ())
        return super().take()


class OutOfMemory(
    AccelError,
    MemoryError,
    fields=(
        "asked_bytes",
        "free_bytes",
        "largest_free_bytes",
        "owners",
        "owner_ids",
        "kept_by",
        "others",
        "libraries",
        "library_names",
    ),
):
    """The device has no room for a buffer.

    If a function ran out of memory itself, the text has its lines, and `__cause__` is the
    allocation's own exception when that pickles.

    Attributes:
        asked_bytes: size of the allocation that failed.
        free_bytes: what the device's pool could still give.
        largest_free_bytes: how much of that a single buffer can have for certain. On `cuda` what
            the driver has free; the rest are pieces that the pool keeps, of which CuPy does not
            tell how large they are. On `host` all that is free.
        owners: the largest owners, `(label, bytes)`, largest first.
        owner_ids: the buffers of each, by number.
        kept_by: who keeps them, as `resident` names it: names of the notebook and of `%%gpu` cells.
        others: what other processes have of the device, likewise, as far as the driver tells.
        libraries: what PyTorch, CuPy, JAX and NumPy have in `%%gpu` cells that is no buffer,
            likewise, and what allocators of theirs keep.
        library_names: the names of `%%gpu` cells that lead to it, for each.
    """

    remedy = (
        "Delete handles that you no longer need; kept_by names those of the largest owners. Or "
        "compute in parts. See asked_bytes, free_bytes, largest_free_bytes, owners and others."
    )
    asked_bytes: int = 0
    free_bytes: int = 0
    largest_free_bytes: int = 0
    owners: tuple[tuple[str, int], ...] = ()
    owner_ids: tuple[tuple[int, ...], ...] = ()
    kept_by: tuple[tuple[str, ...], ...] = ()
    others: tuple[tuple[str, int], ...] = ()
    libraries: tuple[tuple[str, int], ...] = ()
    library_names: tuple[tuple[str, ...], ...] = ()


class ArenaFull(AccelError, MemoryError):
    """The host arena stayed full for as long as the call was willing to wait."""

    remedy = "Delete arrays that get or lab.empty gave, or raise System(arena_bytes=…)."


class CannotKeep(AccelError, fields=("lost",)):
    """Suspending the device, or forking its system, would lose something; nothing changed.

    Attributes:
        lost: why, by the name of each such thing.
    """

    remedy = (
        'Delete or free what lost names, keep all with suspend(keep="process"), or give it up with '
        "suspend(drop=True)."
    )
    lost: dict[str, str]


class OwnerGone(AccelError, fields=("pid",)):
    """What another process shared is gone, with it or because it gave it back; it is not touched.

    Attributes:
        pid: the process.
    """

    remedy = "Have it exported again, by the process that has it now."
    pid: int = 0


class LibraryError(AccelError, fields=("library", "code", "name")):
    """A library refused a call while its context stayed healthy.

    Attributes:
        library: the library actor's name, as `blas`.
        code: the library's status code.
        name: the status code's name, as `CUBLAS_STATUS_EXECUTION_FAILED`.
    """

    directive = Directive.RESTART
    remedy = "Look at library, code and name. Send it again once the cause is gone."
    library: str = ""
    code: int = 0
    name: str = ""


class CompileError(AccelError, fields=("log", "name")):
    """The source of a kernel does not compile; the text is the compiler's, with your lines.

    Attributes:
        log: what the compiler printed.
        name: the kernel's name.
    """

    remedy = "Correct the source. log has all that the compiler printed."
    log: str = ""
    name: str = ""


class UserCodeError(AccelError, fields=("frames",)):
    """A function run in the context raised; `__cause__` is its exception, when that pickles.

    Attributes:
        frames: of your own code, the innermost last, as (file, line, function, the line's text,
            [(name, value as text), …]); cut where it is long. `%debug` shows them.
    """

    remedy = "Correct your function. The text has its lines, and __cause__ is its exception."
    frames: tuple[tuple[Any, ...], ...] = ()


class ContextLost(AccelError, fields=("generation", "code", "name", "recent")):
    """The context process is gone and with it the buffers of its generation.

    Attributes:
        generation: the generation that was lost.
        code: the driver's code for a poisoned context (700 …), else 0.
        name: the code's name, or the signal's (`SIGKILL`), or what else ended it.
        recent: what the context ran last, the newest last, as "Gemm #12 on blas"; empty when it
            ended without a word.
    """

    directive = Directive.RESTART
    remedy = (
        "lab.explain() names the message that crashed it. Fix that before you run it again. Your "
        "buffers are rebuilt (see durability)."
    )
    generation: int = 0
    code: int = 0
    name: str = ""
    recent: tuple[str, ...] = ()


class ContextReplaced(ContextLost):
    """Somebody had the context replaced: `device.replace()`, or the stop button pressed twice.

    It counts for nothing among the losses after which a device rests.
    """

    directive = Directive.REPLACE
    remedy = "Run again what was lost. Your buffers are rebuilt (see durability)."


class DeadlineExceeded(ContextLost, TimeoutError):
    """This request ran longer than its `timeout_s`; its context was replaced."""

    remedy = (
        "Raise its timeout_s, or give it less to do. Your buffers are rebuilt (see durability)."
    )


class GroupAborted(
    AccelError, fields=("rank", "device", "reason", "missing", "unfinished", "waited_s")
):
    """A part of a message to several devices failed or was late; all its parts were aborted.

    What a part failed with is `__cause__`.

    Attributes:
        rank: whose part failed first; -1 where none did, as after its deadline.
        device: where that was.
        reason: why it was aborted.
        missing: the ranks whose part had not begun by then.
        unfinished: those whose part had begun, and was not done.
        waited_s: how long that was after the first part began; 0 where none had.
    """

    remedy = "Look at reason, and at what the devices of the missing ranks were doing."
    rank: int = -1
    device: str = ""
    reason: str = ""
    missing: tuple[int, ...] = ()
    unfinished: tuple[int, ...] = ()
    waited_s: float = 0.0


class StageFailed(AccelError, fields=("stage", "item", "runs")):
    """An item of a pipeline could not be computed; what its stage failed with is `__cause__`.

    Attributes:
        stage: the name of the stage; "source" where the next item could not be read.
        item: the item's number in the source, from 0.
        runs: how often it was run.
    """

    remedy = "Look at __cause__. stage(…, on_error='skip') leaves such items out."
    stage: str = ""
    item: int = 0
    runs: int = 1


class CircuitOpen(AccelError):
    """The device lost its context too often in a short time and no longer restarts it."""

    remedy = "Fix the cause, then call device.reset()."


class NoDevice(AccelError, fields=("why",)):
    """No device may take a message that names none.

    Attributes:
        why: the reason of each device, by its name.
    """

    remedy = "Look at why: reset a device, free memory, or ask for less."
    why: dict[str, str]


class QueueFull(AccelError):
    """A bounded queue had no room, at once or within the deadline the caller gave."""

    remedy = "Wait for answers before you send more, or leave out nowait=True."


class Cancelled(AccelError):
    """The request was cancelled: it does not run, or its result is freed when it is done."""

    remedy = "Nothing to do: it was cancelled on request."


class Interrupted(Cancelled):
    """The request was cancelled while its function ran; the function got a KeyboardInterrupt.

    What the function had written by then is written. So a buffer that it may have changed cannot
    be rebuilt from messages.
    """

    remedy = "Put or compute again the buffers that the function may have changed."


class SystemClosed(AccelError):
    """The system is closed; nothing can be sent to it."""

    remedy = "Open another System(). A forked process opens its own."


class BackendUnavailable(AccelError):
    """The backend cannot run here; the text says why and what to install."""

    directive = Directive.STOP
    remedy = "Install what the text says. accel-lab doctor checks the machine."


class JournalError(AccelError):
    """A journal cannot be opened, read, kept or replayed; the text says why."""

    remedy = "Do what the text says. A journal of a later version needs that version."


class JournalDamaged(JournalError):
    """A journal is damaged; what comes before the damage can be read."""

    remedy = "Read or export what is there, and begin another journal."


class JournalUnavailable(JournalError):
    """A journal's store cannot be reached, has no room, or needs a package; the text says which."""

    remedy = "Start the server, make room, or install the package. A running system then continues."


class RecordingError(AccelError):
    """A recording of a system cannot be opened, read, written or drawn; the text says why."""

    remedy = "Do what the text says. A recording of a later version needs that version."


class RecordingDamaged(RecordingError):
    """A recording is damaged; what comes before the damage can be drawn."""

    remedy = "Draw what is there. Record again if you can."


class SessionError(AccelError):
    """A session's folder cannot be opened, written or restored; the text says why."""

    remedy = "Do what the text says. A session of a later version needs that version."


class SessionDamaged(SessionError, fields=("path",)):
    """A file of a session's folder is damaged or missing.

    Attributes:
        path: which.
    """

    remedy = "Bring the file back from a copy, or open an earlier commit: open(folder, commit=n)."
    path: str = ""


class FileError(AccelError):
    """A file of arrays cannot be opened, read or written; the text says why."""

    remedy = "Do what the text says. A package that is missing is installed by the command there."


class FileDamaged(FileError):
    """A file of arrays is damaged, cut short or changing; nothing of it was loaded."""

    remedy = "Get or write the file again. The text says what is wrong with it, and where."


class DashboardUnavailable(AccelError):
    """A dashboard cannot be served: a package is missing or the port is taken; the text says."""

    remedy = "Install what the text says, or choose another port."


class FilmError(AccelError):
    """A film of a simulation cannot be written: something is missing, or failed; the text says."""

    remedy = "Install what the text says, or record to another file."


class TelemetryUnavailable(AccelError):
    """A package that is needed to look at a system from outside is missing; the text names it."""

    remedy = "Install the package that the text names."


class NonFiniteResult(
    AccelError,
    ArithmeticError,
    fields=("message", "operand", "nans", "infs", "cell", "place"),
):
    """A result holds NaN or Inf while `lab.watch_finite()` watches; the text says where.

    Attributes:
        message: what made it, as "Gemm #12".
        operand: the first operand that was not finite either; empty where all were, or there is
            none.
        nans, infs: how many elements of the result are.
        cell: the number of the notebook's cell that sent the message; 0 of a program.
        place: the file and the line that sent it.
    """

    remedy = "Look at the line that the text names, and at the operand if it names one."
    message: str = ""
    operand: str = ""
    nans: int = 0
    infs: int = 0
    cell: int = 0
    place: str = ""


class ActorError(AccelError):
    """The base of what the actor kernel itself raises."""


class ActorStopped(ActorError):
    """The addressed actor has stopped; the message is a dead letter."""

    remedy = "Send to an actor that runs."


class NameTaken(ActorError, ValueError):
    """Another live child of the same parent has this name."""

    remedy = "Choose another name."


class ActorFailed(ActorError):
    """A handler raised something that is no AccelError; the original is `__cause__`."""

    directive = Directive.RESTART
    remedy = "Look at __cause__: it is a mistake in that actor's handler."
