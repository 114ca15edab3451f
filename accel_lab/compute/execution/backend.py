"""What a backend provides to a context process, and what the notebook may know of it."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from types import ModuleType
from typing import Any, NamedTuple, Protocol

from accel_lab.compute.execution.stream import NativeStream
from accel_lab.compute.execution.tracer import Clock
from accel_lab.compute.streams.strategies import Strategy
from accel_lab.errors import AccelError

MakeRoom = Callable[[Callable[[], bool]], bool]
"""Climbs the ladder of `Spill` until the function that it is given finds room; whether it has."""


class Poison(Exception):
    """The device context is beyond repair.

    Attributes:
        code: the driver's code, as 700.
        name: the code's name, as `CUDA_ERROR_ILLEGAL_ADDRESS`.
    """

    def __init__(self, code: int, name: str, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.name = name


class Peak(NamedTuple):
    """How much memory was held while something ran.

    Attributes:
        before_bytes, most_bytes: at its begin, and at most.
        kind: what was counted, in a word: "resident" memory of the process, or memory "in use".
    """

    before_bytes: int
    most_bytes: int
    kind: str


class Memory(Protocol):
    """The memory of a device: what is free, what can be had, and where an array lies.

    Attributes:
        total_bytes: all that it has.
    """

    total_bytes: int

    def empty(self, shape: tuple[int, ...], dtype: str) -> Any:
        """Allocate on the active stream's pool; raises MemoryError or the vendor's own error."""

    def free_bytes(self) -> int:
        """Return what an allocation could still get; any thread."""

    def largest_free_bytes(self) -> int:
        """Return how much of what is free a single block can have for certain; any thread."""

    def trim(self) -> None:
        """Give the device what the pool holds unused."""

    def idle_bytes(self) -> int:
        """Return what the pool holds unused; any thread."""

    def others(self) -> tuple[tuple[str, int], ...]:
        """Return what other processes have of the device, `(name, bytes)`, as far as is known."""

    def is_whole(self, array: Any) -> bool:
        """Whether an array has memory of the pool by itself, which is free when it is gone.

        And whether it is in C order: it can be copied without more memory, and comes back as it
        was.
        """

    def address(self, array: Any) -> int | None:
        """Return where an array begins on the device, None for what is no array; any thread."""

    def watch_peak(self) -> Callable[[], Peak | None]:
        """Begin to watch how much memory is held at most.

        What this returns ends that, and tells; None where it cannot be known.
        """


class Streams(Protocol):
    """The order of a device's work, and its time.

    One stream is active: libraries and copies enqueue there. User code may leave another current,
    so there are two ways back, one without and one with what it enqueued elsewhere.
    """

    @property
    def most_priority(self) -> int:
        """The highest priority that a stream can have; 0 where there are none."""

    def native_stream(self, priority: int = 0) -> NativeStream:
        """Create a stream. Of two that have work, that of the higher priority is begun first."""

    def wait_by(self, strategy: Strategy) -> None:
        """Have threads wait for events of all streams that way; before any does."""

    def user_stream(self) -> NativeStream:
        """Return the stream on which user code runs: the one that it has by default elsewhere."""

    def worker_stream(self) -> NativeStream:
        """Create a stream for the calling thread, which is not the dispatcher's, and never is.

        The device is current on that thread from now on, and the stream whenever it is activated,
        which changes nothing for the dispatcher's.
        """

    def clock(self) -> Clock:
        """Return the clock of this device."""

    def settle(self) -> None:
        """Have the active stream current again, after what user code has left current on it.

        Does not block.
        """

    def join(self) -> None:
        """Have the active stream wait for what user code has enqueued elsewhere; does not block.

        That is the stream that it left current, and every stream with which the device's default
        one is in step; not what it left behind on another.
        """


class Copies(Protocol):
    """The way between host memory and a device."""

    def host_memory(self, nbytes: int) -> Any:
        """Return host memory fit for fast copies, a uint8 array; raises MemoryError."""

    def pinned(self) -> tuple[int, int, int, int, int]:
        """Return how much host memory is page-locked, as `PinnedState` has it; any thread."""

    def upload(self, array: Any, offset_bytes: int, source: Any) -> None:
        """Copy host bytes into an array's memory, in order on the active stream.

        `source` is a uint8 array in the arena (read until the stream gets there) or `bytes`
        (read before this returns).
        """

    def download(self, array: Any, target: Any) -> None:
        """Copy an array in C order into a uint8 arena view, in order on the active stream."""

    def map_segment(self, view: Any) -> None:
        """Make an arena segment (a uint8 array) fit for fast copies; any thread."""

    def unmap_segment(self, view: Any) -> None:
        """Undo `map_segment`."""


class IpcCopies(Protocol):
    """The way from memory that another process has on the same device."""

    def copy_in(self, array: Any, handle: bytes, offset_bytes: int) -> None:
        """Fill a contiguous array from another process's memory, in order on the active stream.

        That memory stays open until `unmap`.

        Raises:
            InvalidArgument: it cannot be read.
        """

    def write_word(self, word: Any, value: int) -> None:
        """Have the device write four bytes of the arena, in order on the active stream.

        Does nothing where it cannot.
        """

    def unmap(self, handle: bytes) -> Callable[[], None] | None:
        """Forget another process's memory, of which no copy is under way; None if it is not open.

        What this returns closes it, in any thread, and may block.
        """


class PeerMemory(Protocol):
    """The way between the memory of two devices, each with a context of its own."""

    def export(self, array: Any) -> tuple[bytes, int] | None:
        """Return the handle of an array's allocation and the array's place there, in bytes.

        None where no other process can open it, and for an array that is not contiguous.
        """

    def copy_peer(self, array: Any, handle: bytes, offset_bytes: int) -> Callable[[], None]:
        """Fill a contiguous array from what another context has exported, maybe of another device.

        In order on the active stream. What this returns closes that memory, in any thread, when the
        copy is done, and may block.

        Raises:
            InvalidArgument: it cannot be opened here.
        """


class Mirrors(Protocol):
    """Arrays of NumPy's in the place of one message's, for a backend that the host helps out."""

    @property
    def nbytes(self) -> int:
        """How much was copied, to the host and back."""

    def of(self, array: Any) -> Any:
        """Return a copy of an array of the device, always the same; a thing as it is.

        Copies of arrays that overlap do so, too. Waits for the device.
        """

    def blank(self, array: Any) -> Any:
        """Return memory like that of an array, with nothing in it."""

    def made(self, mirror: Any) -> Any:
        """Return a new array of the device with these elements; raises MemoryError."""

    def write(self, array: Any, mirror: Any) -> None:
        """Copy elements to an array of the device."""


class UserCode(Protocol):
    """What code of the user's has of a device, and what of its own it gives back.

    Attributes:
        arrays: the module of its arrays, NumPy or CuPy, as a user's code imports it.
    """

    arrays: ModuleType

    def suit_environment(self) -> None:
        """Set what suits libraries of the user's here in `os.environ`, unless the user has."""

    def expose(self, array: Any, dtype: str) -> Any:
        """Return the array as the user's own code expects it."""

    def adopt(self, value: Any) -> tuple[Any, tuple[int, ...], str, int] | None:
        """Return (array, shape, dtype, bytes) when the value is an array of this device."""

    def same_memory(self, left: Any, right: Any) -> bool:
        """Whether two arrays share memory."""

    def climbing(self, make_room: MakeRoom) -> AbstractContextManager[None]:
        """Have the allocations of user code that runs meanwhile ask for room before they fail."""


class Backend(Memory, Streams, Copies, UserCode, Protocol):
    """A device of one vendor, opened in a context process; used by its dispatcher thread.

    Attributes:
        model: what it is called.
        capability: its compute capability, as 9.0; 0 where there is no such thing.
        libraries: what makes the libraries that it has, by name.
        ipc: the way from other processes' memory; None where there is none.
        peers: the way to and from other devices' memory; None where there is none.
    """

    model: str
    capability: float
    libraries: dict[str, Callable[[], Any]]
    ipc: IpcCopies | None
    peers: PeerMemory | None

    def unkept(self) -> str:
        """Return why this process cannot be kept while its device is away; "" where it can."""

    def explain(self, error: BaseException, library: str) -> AccelError | Poison:
        """Translate what a library raised; the one place where foreign codes are mapped."""

    def fault(self, kind: str) -> None:
        """Cause a real fault of this device: poison, hang or library."""
