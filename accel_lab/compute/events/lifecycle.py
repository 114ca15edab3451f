"""What happens to devices, as facts on the event stream."""

from accel_lab.actor.events import Event


class ContextStarted(Event, frozen=True):
    """A context process is up."""

    device: str
    generation: int
    pid: int
    seconds: float


class ContextLost(Event, frozen=True):
    """A context process is gone; `cause` says why, `in_flight` how many requests it took along.

    `recent` is what it ran last, the newest last; empty when it ended without a word. `code` is the
    driver's (700 …), else 0; `name` is the code's, or a signal's, or empty. `asked` says that it
    was replaced because somebody asked for that: no fault.
    """

    device: str
    generation: int
    cause: str
    in_flight: int
    recent: tuple[str, ...] = ()
    code: int = 0
    name: str = ""
    asked: bool = False


class GenerationChanged(Event, frozen=True):
    """The buffers of `before` are gone; new ones belong to `after`."""

    device: str
    before: int
    after: int


class BuffersRebuilt(Event, frozen=True):
    """What a lost context held was rebuilt, by rerunning messages.

    `requests` are the numbers of those that were in flight when it was lost and were run again,
    too; `lost` counts the buffers that could not be made.
    """

    device: str
    generation: int
    buffers: int
    lost: int
    messages: int
    requests: tuple[int, ...]
    seconds: float


class DeviceSuspended(Event, frozen=True):
    """A device has given its hardware back; what it held is kept on the host.

    `lost` names what could not be kept and was to be dropped; `keep` is as in `suspend`.
    """

    device: str
    generation: int
    buffers: int
    objects: int
    nbytes: int
    lost: tuple[str, ...]
    seconds: float
    keep: str = "memory"


class DeviceResumed(Event, frozen=True):
    """A suspended device has a context again, with all that was kept.

    `seconds` is from the new context's start; `lost` says what could not be brought back, and why.
    """

    device: str
    generation: int
    buffers: int
    objects: int
    nbytes: int
    lost: tuple[str, ...]
    seconds: float


class SuspensionFailed(Event, frozen=True):
    """An idle device was not suspended, or a suspended one could not resume yet."""

    device: str
    cause: str


class ContextExited(Event, frozen=True):
    """A context process has been reaped; `status` is a signal's name or an exit status."""

    device: str
    generation: int
    pid: int
    status: str


class LibraryRestarted(Event, frozen=True):
    """A library's actor was replaced inside its context."""

    device: str
    library: str
    cause: str
    restarts: int


class CircuitOpened(Event, frozen=True):
    """A device lost its context too often and fails every request until it is reset."""

    device: str
    cause: str


class CircuitClosed(Event, frozen=True):
    """A device works again after its circuit was open."""

    device: str


class CopyInserted(Event, frozen=True):
    """`lab.auto_copy` had an operand that `source` has copied to `device` for a `message`.

    `way` is how it went, as `lab.topology` names it.
    """

    device: str
    source: str
    way: str
    nbytes: int
    message: str
    cell: int | None


class RequestFailed(Event, frozen=True):
    """A request failed and nobody was waiting for it."""

    device: str
    message: str
    error: str
    cell: int | None


class OutputPrinted(Event, frozen=True):
    """Code in a context printed text."""

    device: str
    stream: str
    text: str
    cell: int | None
