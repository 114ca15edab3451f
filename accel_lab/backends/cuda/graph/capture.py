"""One capture of a program, or of some of its steps: the graph, and which step made which nodes."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import cupy

from accel_lab.backends.cuda.graph import driver
from accel_lab.backends.cuda.graph.branches import Teller, conditional
from accel_lab.compute.execution.launch import Launch
from accel_lab.compute.execution.stream import Stream
from accel_lab.errors import AccelError, InvalidArgument
from accel_lab.libraries.graph.program import Fork, Message, Program
from accel_lab.libraries.graph.step_launch import StepLaunch

if TYPE_CHECKING:
    from accel_lab.backends.cuda.device.device import CudaDevice

Step = Message | Fork
Nodes = list[tuple[int, int]]
"""Nodes with their types."""
_ALLOWED = {driver.KERNEL, driver.MEMCPY, driver.MEMSET, driver.EMPTY, driver.CONDITIONAL}
_CAPTURE_ERRORS = range(900, 909)


class Part(NamedTuple):
    """What one step of a program has become.

    Attributes:
        nodes: those that it has made outside of branches.
        held: what they work with.
    """

    nodes: Nodes
    held: list[Any]


class Captured:
    """A graph; it is given back with its last reference.

    Attributes:
        graph: its address.
        parts: what each step has become, by the step's number.
    """

    def __init__(self, graph: int, parts: dict[int, Part]) -> None:
        self.graph = graph
        self.parts = parts

    def __del__(self) -> None:
        if hasattr(self, "graph"):
            driver.destroy_graph(self.graph)


class CaptureStreams:
    """The streams that are captured, one for each depth of branches; nothing runs on them."""

    def __init__(self, device: "CudaDevice") -> None:
        self.teller = Teller(device)
        self._device = device
        self._streams: list[Stream] = []

    def at(self, depth: int) -> Stream:
        """Return the stream for so many branches in each other."""
        while len(self._streams) <= depth:
            self._streams.append(Stream("graph", self._device.native_stream()))
        return self._streams[depth]


class CapturedLaunch(StepLaunch):
    """The launch of a message that is captured; what it may not do is refused by its name."""

    def __init__(
        self, outer: Launch, program: Program, one: Message, capture: "Capture", stream: Stream
    ) -> None:
        super().__init__(outer, program, one, capture)
        self.stream = stream
        self._capture = capture

    def require_enqueued(self) -> None:
        """Refuse what it has captured that would not be the same when it is launched again.

        Raises:
            InvalidArgument: there is such.
        """
        super().require_enqueued()
        why = self._capture.look()
        if why:
            self._refuse(why)


class Capture:
    """Captures steps of a program; used once.

    Parameters:
        outer: the launch for which.
        pool: where they take what they work with.

    Attributes:
        held: what has to live as long as the graph, of the step at hand.
    """

    runs_user_code = True

    def __init__(self, outer: Launch, program: Program, streams: CaptureStreams, pool: Any) -> None:
        self.held: list[Any] = []
        self._outer = outer
        self._program = program
        self._streams = streams
        self._pool = pool
        self._depth = 0
        self._name = "a message"
        self._seen: set[int] = set()
        self._fresh: Nodes = []

    def run(self, steps: Sequence[tuple[int, Step]]) -> Captured:
        """Return the graph of these steps, each with its number.

        Raises:
            InvalidArgument: one of them cannot be captured.
            OutOfMemory: there is no room for what they work with.
        """
        parts: dict[int, Part] = {}

        def enqueue() -> None:
            for number, step in steps:
                self._program.run_steps([step], self)
                self.look()
                parts[number] = Part(self._fresh, self.held)
                self._fresh, self.held = [], []

        with cupy.cuda.using_allocator(self._pool.malloc):
            graph = self._captured(enqueue, None)
        return Captured(graph, parts)

    def look(self) -> str:
        """Note which nodes are new; return why one of them cannot be in a graph."""
        graph, _ = driver.captured(self._stream.ptr)
        for node in driver.nodes_of(graph):
            if node in self._seen:
                continue
            self._seen.add(node)
            kind = driver.type_of(node)
            if not self._depth:
                self._fresh.append((node, kind))
            if kind not in _ALLOWED:
                return f"it enqueues {driver.KINDS.get(kind, 'what is no kernel')} on cuda"
            if kind == driver.MEMCPY and driver.touches_host(driver.parameters_of(node, kind)):
                return "it copies between the host and the device on cuda"
        return ""

    def launch(self, program: Program, one: Message) -> CapturedLaunch:
        """Return the launch of a message."""
        self._name = type(one.message).__name__
        return CapturedLaunch(self._outer, program, one, self, self._streams.at(self._depth))

    def fork(self, fork: Fork, run: Callable[[Sequence[Any]], None]) -> None:
        """Capture a branch: what tells its condition, the node, and each body."""
        teller, context = self._streams.teller, driver.current_context()
        graph, _ = driver.captured(self._stream.ptr)
        handle = driver.condition_of(graph, context)
        teller.enqueue(fork.condition.array, handle, is_number=fork.kind == "switch")
        bodies = conditional(self._stream.ptr, fork.kind, len(fork.bodies), handle, context)
        self.look()
        for body, steps in zip(bodies, fork.bodies, strict=True):
            self._depth += 1
            try:
                self._captured(partial(self._body, fork, steps, run, handle), body)
            finally:
                self._depth -= 1

    def _body(self, fork: Fork, steps: Any, run: Any, handle: int) -> None:
        run(steps)
        if fork.kind == "while":
            self._streams.teller.enqueue(fork.condition.array, handle, is_number=False)

    @property
    def _stream(self) -> Any:
        return self._streams.at(self._depth).native

    def _captured(self, enqueue: Callable[[], None], into: int | None) -> int:
        """Return the graph of what is enqueued; a failure ends the capture and leaves none."""
        stream = self._stream
        with self._on(stream):
            if into is None:
                driver.begin_capture(stream.ptr)
            else:
                driver.begin_capture_into(stream.ptr, into)
            try:
                enqueue()
            except BaseException as error:
                _abandon(stream.ptr, is_own=into is None)
                raise _named(self._name, error) from error
            return driver.end_capture(stream.ptr)

    @contextmanager
    def _on(self, stream: Any) -> Iterator[None]:
        """Have a stream active meanwhile."""
        backend: Any = self._outer.context.backend
        before = backend.active
        stream.activate()
        try:
            yield
        finally:
            before.activate()


def _abandon(stream: int, *, is_own: bool) -> None:
    try:
        graph = driver.end_capture(stream)
    except Exception:  # noqa: BLE001 - it was invalid, and the first error tells why
        return
    if is_own and graph:
        driver.destroy_graph(graph)


def _named(name: str, error: BaseException) -> BaseException:
    """Return what a capture fails with: what CuPy and the driver refuse is no fault of theirs.

    CuPy raises a RuntimeError of its own, or the driver's for a stream that is captured.
    """
    if isinstance(error, AccelError | MemoryError) or not isinstance(error, RuntimeError):
        return error
    if getattr(error, "status", None) in (None, *_CAPTURE_ERRORS):
        return InvalidArgument(f"{name} cannot be in a graph on cuda: {error}")
    return error
