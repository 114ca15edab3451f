"""Every error of accel_lab, and what a supervisor does about it.

    AccelError
    ├── InvalidArgument (ValueError)      a mistake in the call; nothing was sent
    │   └── UnsupportedDtype              the backend has no such (operation, dtype) pair
    ├── StaleRef                          the buffer belongs to a lost generation, or was freed
    ├── DependencyFailed                  an operand's message failed; the root is `__cause__`
    ├── OutOfMemory (MemoryError)         the device pool cannot hold the result
    ├── ArenaFull (MemoryError)           the host arena cannot hold the array in time
    ├── CannotKeep                        what suspending would lose; nothing changed
    ├── LibraryError                      a library call failed; that library's actor restarts
    ├── CompileError                      a kernel's source does not compile; the text is the log
    ├── UserCodeError                     a function given to `run` raised; see `__cause__`
    ├── ContextLost                       the context process is gone, with the reason
    │   ├── DeadlineExceeded (TimeoutError)   … because this request ran longer than it may
    │   └── ContextReplaced               … because somebody asked for another one
    ├── CircuitOpen                       the device lost its context too often; `reset()` it
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
    ├── DashboardUnavailable              no dashboard can be served here, and why
    └── ActorError
        ├── ActorStopped                  the addressed actor has stopped
        ├── NameTaken (ValueError)        a sibling has this name
        └── ActorFailed                   a handler raised something that is not an AccelError

The class carries its supervision directive, what the parent of the actor that raised it does, and
its remedy, what you can do.
"""

from enum import Enum
from typing import Any, Self

from accel_lab.display import failure


class Directive(Enum):
    """What a supervisor does with a failed child (OTP, Akka)."""

    RESUME = "resume"
    RESTART = "restart"
    REPLACE = "replace"
    """Restart, and count nothing: it was asked for."""
    STOP = "stop"
    ESCALATE = "escalate"


class AccelError(Exception):
    """The base of every error that accel_lab raises.

    Attributes:
        directive: what a supervisor does; where one is a case of its own, it has its own.
        taken: whether it has been raised to somebody, so that no later check repeats it.
        root: the buffer whose message failed first, or below 0 that message's number on its device;
            0 where neither is known.
        remedy: what whoever meets it can do about it; where more is known of one, it has its own.
    """

    directive: Directive = Directive.RESUME
    remedy: str = ""
    taken = False
    root = 0

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
        # Not `copy.copy`: a constructor may not take `args`. The `__new__` must be that of the
        # layout, for Python refuses MemoryError's for a class that is laid out as an Exception.
        base: Any = type(self)
        while base.__module__ != "builtins":
            base = base.__base__
        twin: Self = base.__new__(type(self), *self.args)
        twin.args = self.args
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

    remedy = "Correct the call; the text names the operand, what it is and what was expected."


class UnsupportedDtype(InvalidArgument):
    """The backend lacks this pair of (operation, dtype); the text lists the pairs it has."""

    remedy = "Convert with array.cast to one of the dtypes listed, or use the other backend."


class StaleRef(AccelError):
    """A buffer's generation is over, or it was freed; its contents are gone.

    Attributes:
        buffer: its number; 0 where that is not known, or where it is an object.
    """

    remedy = "Make it again: put or compute the buffer, or run the cell that made the object."

    def __init__(self, message: str, *, remedy: str = "", buffer: int = 0) -> None:
        super().__init__(message)
        self.buffer = buffer
        if remedy:
            self.remedy = remedy


class DependencyFailed(AccelError):
    """An operand was never produced, or not written, because its own message failed (`__cause__`).

    Attributes:
        unwritten: why an operand that was there is refused, as the context tells it.
        first: the failures of the messages that should have made or written the operand, if known.
    """

    remedy = "Look at __cause__, the first failure of the chain."
    first: tuple[AccelError, ...] = ()

    def __init__(self, text: str = "", unwritten: tuple[Any, ...] = ()) -> None:
        super().__init__(text)
        self.unwritten = unwritten

    def take(self) -> Self:
        """Note that this, and what it comes of, is raised to somebody; return what to raise."""
        found = [*self.first]
        while found:
            error = found.pop()
            if not error.taken:
                error.taken = True
                found += getattr(error, "first", ())
        return super().take()


class OutOfMemory(AccelError, MemoryError):
    """The device cannot hold a buffer.

    Of a function that found no memory itself the text has its lines, and `__cause__` what the
    allocation raised, when that pickles.

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
        "Free handles (del; kept_by names those of the largest owners), or compute in parts. "
        "See asked_bytes, free_bytes, largest_free_bytes, owners and others."
    )

    def __init__(
        self,
        message: str,
        *,
        asked_bytes: int = 0,
        free_bytes: int = 0,
        largest_free_bytes: int = 0,
        owners: tuple[tuple[str, int], ...] = (),
        owner_ids: tuple[tuple[int, ...], ...] = (),
        kept_by: tuple[tuple[str, ...], ...] = (),
        others: tuple[tuple[str, int], ...] = (),
        libraries: tuple[tuple[str, int], ...] = (),
        library_names: tuple[tuple[str, ...], ...] = (),
    ) -> None:
        super().__init__(message)
        self.asked_bytes = asked_bytes
        self.free_bytes = free_bytes
        self.largest_free_bytes = largest_free_bytes
        self.owners = owners
        self.owner_ids = owner_ids
        self.kept_by = kept_by
        self.others = others
        self.libraries = libraries
        self.library_names = library_names


class ArenaFull(AccelError, MemoryError):
    """The host arena stayed full for as long as the call was willing to wait."""

    remedy = "del arrays that get or lab.empty gave, or raise System(arena_bytes=…)."


class CannotKeep(AccelError):
    """Suspending the device would lose something that cannot be kept on the host; nothing changed.

    Attributes:
        lost: why, by the name of each such thing.
    """

    remedy = "Delete or free what lost names, or give it up with suspend(drop=True)."

    def __init__(self, message: str, *, lost: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.lost = lost or {}


class LibraryError(AccelError):
    """A library refused a call while its context stayed healthy.

    Attributes:
        library: the library actor's name, as `blas`.
        code: the library's status code.
        name: the status code's name, as `CUBLAS_STATUS_EXECUTION_FAILED`.
    """

    directive = Directive.RESTART
    remedy = "Look at library, code and name; send it again if the cause is gone."

    def __init__(self, message: str, *, library: str = "", code: int = 0, name: str = "") -> None:
        super().__init__(message)
        self.library = library
        self.code = code
        self.name = name


class CompileError(AccelError):
    """The source of a kernel does not compile; the text is the compiler's, with your lines.

    Attributes:
        log: what the compiler printed.
        name: the kernel's name.
    """

    remedy = "Correct the source; log is all that the compiler printed."

    def __init__(self, message: str, *, log: str = "", name: str = "") -> None:
        super().__init__(message)
        self.log = log
        self.name = name


class UserCodeError(AccelError):
    """A function run in the context raised; `__cause__` is what it raised, when it pickles.

    Attributes:
        frames: of your own code, the innermost last, as (file, line, function, the line's text,
            [(name, value as text), …]); cut where it is long. `%debug` shows them.
    """

    remedy = "Correct your function; the text has its lines, __cause__ your exception."

    def __init__(self, message: str, *, frames: tuple[tuple[Any, ...], ...] = ()) -> None:
        super().__init__(message)
        self.frames = frames


class ContextLost(AccelError):
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
        "lab.explain() says which message did it: mend that before you repeat it. Buffers come "
        "back, unless durability says otherwise."
    )

    def __init__(
        self,
        message: str,
        *,
        generation: int = 0,
        code: int = 0,
        name: str = "",
        recent: tuple[str, ...] = (),
    ) -> None:
        super().__init__(message)
        self.generation = generation
        self.code = code
        self.name = name
        self.recent = recent


class ContextReplaced(ContextLost):
    """Somebody had the context replaced: `device.replace()`, or the stop button pressed twice.

    It counts for nothing among the losses after which a device rests.
    """

    directive = Directive.REPLACE
    remedy = "Repeat what was lost. Buffers come back, unless durability says otherwise."


class DeadlineExceeded(ContextLost, TimeoutError):
    """This request ran longer than its `timeout_s`; its context was replaced."""

    remedy = "Give it more timeout_s, or less to do; then as ContextLost."


class CircuitOpen(AccelError):
    """The device lost its context too often in a short time and no longer restarts it."""

    remedy = "Mend the cause, then device.reset()."


class QueueFull(AccelError):
    """A bounded queue had no room, at once or within the deadline the caller gave."""

    remedy = "Wait for answers before you send more, or do not ask with nowait=True."


class Cancelled(AccelError):
    """The request was cancelled: it is not run, or its result is freed when it is done."""

    remedy = "Nothing; you took it back."


class Interrupted(Cancelled):
    """The request was cancelled while its function ran, which ended with a KeyboardInterrupt.

    What the function had written by then is written, so a buffer that it may have changed cannot
    be made again from messages.
    """

    remedy = "Nothing; but what it may have changed, put there anew."


class SystemClosed(AccelError):
    """The system is closed; nothing can be sent to it."""

    remedy = "Open another System(); in a forked process, one of its own."


class BackendUnavailable(AccelError):
    """The backend cannot run here; the text says why and what to install."""

    directive = Directive.STOP
    remedy = "Install what the text says; accel-lab doctor knows more."


class JournalError(AccelError):
    """A journal cannot be opened, read, kept or replayed; the text says why."""

    remedy = "Do what the text says; a journal of a later version needs that version."


class JournalDamaged(JournalError):
    """A journal is damaged; what comes before the damage can be read."""

    remedy = "Read or export what is there, and begin another."


class JournalUnavailable(JournalError):
    """A journal's store cannot be reached, has no room, or needs a package; the text says which."""

    remedy = (
        "Start the server, make room, or install the package; a running system goes on by itself."
    )


class RecordingError(AccelError):
    """A recording of a system cannot be opened, read, written or drawn; the text says why."""

    remedy = "Do what the text says; a recording of a later version needs that version."


class RecordingDamaged(RecordingError):
    """A recording is damaged; what comes before the damage can be drawn."""

    remedy = "Look at what is there; make the recording again if you can."


class DashboardUnavailable(AccelError):
    """A dashboard cannot be served: a package is missing or the port is taken; the text says."""

    remedy = "Install what the text says, or choose another port."


class ActorError(AccelError):
    """The base of what the actor kernel itself raises."""


class ActorStopped(ActorError):
    """The addressed actor has stopped; the message is a dead letter."""

    remedy = "Ask an actor that lives."


class NameTaken(ActorError, ValueError):
    """Another live child of the same parent has this name."""

    remedy = "Choose another name."


class ActorFailed(ActorError):
    """A handler raised something that is no AccelError; the original is `__cause__`."""

    directive = Directive.RESTART
    remedy = "Look at __cause__; it is a mistake in that actor's handler."
