"""What a context does with what arrives, without a process around it."""

import ctypes
import select
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np
import pytest

from accel_lab.backends.host.device import HostBackend, HostStream
from accel_lab.compute.actors.transfer import UploadActor
from accel_lab.compute.dispatcher.reporter import Reporter
from accel_lab.compute.execution.context import Context
from accel_lab.compute.execution.launch import Launch, LibraryActor, handles
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.builtin import CopyIn, Free, Unmap
from accel_lab.compute.message.operation import NO_RESULT, Operation, Spec
from accel_lab.compute.wire.codec import (
    Crowded,
    Done,
    Failure,
    LibraryRestarted,
    Output,
    batch,
    decode_reports,
    encode_entry,
)
from accel_lab.compute.wire.transport import SocketTransport
from accel_lab.errors import InvalidArgument, LibraryError
from tests.compute.wires import Wire, service_of


class Make(Operation[AccelRef], frozen=True, array_like=True, eq=False, tag=97):
    """Make a buffer, if the handler does as it should."""

    library: ClassVar[str] = "test"
    well: bool = True
    later: bool = False
    untold: bool = False
    halfway: bool = False

    def infer(self) -> Spec:
        return Spec((2,), "float32")


class Double(Operation[AccelRef], frozen=True, array_like=True, eq=False, tag=98):
    """Read a buffer and make another."""

    library: ClassVar[str] = "test"
    x: AccelRef
    after: AccelRef | None = None

    def infer(self) -> Spec:
        return Spec((2,), "float32")


class Unheard(Operation[AccelRef], frozen=True, array_like=True, eq=False, tag=99):
    """Nothing handles this."""

    library: ClassVar[str] = "test"


class Forgetful(LibraryActor):
    """Makes nothing when told so."""

    library = "test"
    gate = threading.Event()
    gate.set()

    @handles(Make)
    def make(self, m: Make, launch: Launch) -> None:
        if m.untold:
            raise LibraryError("a code that cannot travel", code=object())  # type: ignore[arg-type]
        if m.later:
            launch.defer(self.gate.wait, lambda _: self._make(m, launch))
        else:
            self._make(m, launch)

    @handles(Double)
    def double(self, m: Double, launch: Launch) -> None:
        launch.write()[:] = launch.read(m.x) * 2

    def _make(self, m: Make, launch: Launch) -> None:
        if m.well:
            launch.write()[:] = 1
        if m.halfway:
            raise InvalidArgument("these values cannot be")


@pytest.fixture
def context(monkeypatch: pytest.MonkeyPatch) -> Iterator[Context]:
    kinds = [Make, Double, Unheard]  # other tests have messages that do not go together
    monkeypatch.setattr("accel_lab.compute.dispatcher.decoding.travelling", lambda: kinds)
    arena: Any = None
    context = Context(HostBackend(0), [Forgetful], arena, 1, {}, None)
    yield context
    context.close()


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> Iterator[Context]:
    """Return a context with room for two of these buffers, and for more on the host."""
    kinds = [Make, Double, Free]
    monkeypatch.setattr("accel_lab.compute.dispatcher.decoding.travelling", lambda: kinds)
    arena: Any = None
    context = Context(HostBackend(0), [Forgetful], arena, 1, {}, 16, 1 << 10)
    yield context
    context.close()


def serve(context: Context, *entries: bytes) -> list[Any]:
    """Serve these entries, each a frame, and return the reports."""
    return serve_frames(context, *(batch([entry]) for entry in entries))


def serve_frames(context: Context, *frames: bytes) -> list[Any]:
    """Serve these frames and return the reports."""
    wire = Wire(list(frames))
    service = service_of(wire, context)
    service.run()
    while service._deferral.begun:
        service._resume()
        service._completion.complete()
    return wire.sent


def buffer(id_: int) -> Any:
    """Return what travels as this buffer's id."""
    ref = AccelRef.__new__(AccelRef)
    ref.id = id_
    return ref


@pytest.mark.parametrize("later", [False, True], ids=["at once", "deferred"])
@pytest.mark.parametrize("result", [1, -1], ids=["announced", "shape unknown"])
def test_a_handler_that_makes_nothing_is_a_typed_failure(
    context: Context, result: int, *, later: bool
) -> None:
    """What needs the result learns it too; the next message is served."""
    spec = Make().infer() if result > 0 else None
    reports = serve(
        context,
        encode_entry(1, result, 600.0, Make(well=False, later=later), spec),
        encode_entry(2, 2, 600.0, Double(buffer(1)), spec),
        encode_entry(3, 3, 600.0, Make(), Make().infer()),
    )
    failures = {r.seq: r for r in reports if isinstance(r, Failure)}
    assert failures[1].kind == "LibraryError"
    assert "the handler of Make made nothing" in failures[1].text
    assert failures[2].kind == "DependencyFailed"
    assert failures[2].root == 1
    assert [r.seqs for r in reports if isinstance(r, Done)] == [[3]]
    assert [r.library for r in reports if isinstance(r, LibraryRestarted)] == ["test"]


@pytest.mark.parametrize("later", [False, True], ids=["at once", "deferred"])
@pytest.mark.parametrize("result", [1, -1], ids=["announced", "shape unknown"])
def test_what_is_read_of_a_result_that_fails_halfway_depends_on_it(
    context: Context, result: int, *, later: bool
) -> None:
    """It may have been read before the failure: both come in one frame."""
    spec = Make().infer() if result > 0 else None
    frame = batch(
        [
            encode_entry(1, result, 600.0, Make(halfway=True, later=later), spec),
            encode_entry(2, 2, 600.0, Double(buffer(1)), spec),
        ]
    )
    first, second = serve_frames(context, frame)
    assert (first.kind, second.kind) == ("InvalidArgument", "DependencyFailed")
    assert second.root == first.root == 1
    assert context.table.used_bytes == 0


def test_a_failure_that_cannot_be_told_is_answered(context: Context) -> None:
    """It has ended the whole context."""
    reports = serve(
        context,
        encode_entry(1, 1, 600.0, Make(untold=True), Make().infer()),
        encode_entry(2, 2, 600.0, Make(), Make().infer()),
    )
    (failure,) = (r for r in reports if isinstance(r, Failure))
    assert (failure.seq, failure.kind) == (1, "LibraryError")
    assert [r.seqs for r in reports if isinstance(r, Done)] == [[2]]


@pytest.mark.parametrize("returns", [False, True], ids=["it gives way", "it comes back"])
def test_what_a_launch_enqueues_is_waited_for_though_a_buffer_was_moved_for_its_sake(
    short: Context, *, returns: bool
) -> None:
    """The copy to the host waits for the library's stream before the launch has its work there."""
    made = [encode_entry(n, n, 600.0, Make(), Make().infer()) for n in (1, 2)]
    last = encode_entry(3, 3, 600.0, Double(buffer(1)), Make().infer())
    free = encode_entry(0, 0, None, Free([1]))
    again = encode_entry(4, 4, 600.0, Double(buffer(2)), Make().infer())
    serve(short, *made, last, *([free, again] if returns else []))
    assert short.spill.moved
    assert short.spill.returned == returns
    download = short.stream("download")
    waits = download.waits
    made_last = short.table.mention(4 if returns else 3)
    made_last.storage.read_on(download)  # type: ignore[union-attr]
    assert download.waits == waits + 1


def test_a_message_without_an_actor_is_refused_and_nothing_else(context: Context) -> None:
    """It has ended the whole context."""
    reports = serve(
        context,
        encode_entry(1, 1, 600.0, Unheard(), NO_RESULT),
        encode_entry(2, 2, 600.0, Double(buffer(1)), Make().infer()),
        encode_entry(3, 3, 600.0, Make(), Make().infer()),
    )
    failures = {r.seq: r for r in reports if isinstance(r, Failure)}
    assert failures[1].kind == "InvalidArgument"
    assert "no library actor of this context handles Unheard" in failures[1].text
    assert failures[2].kind == "DependencyFailed"
    assert [r.seqs for r in reports if isinstance(r, Done)] == [[3]]


class Crowding(Wire):
    """A notebook that frees buffers when it hears that memory is short, and else is silent."""

    def __init__(self, frames: list[bytes], ids: list[int]) -> None:
        super().__init__(frames)
        self._ids = ids
        self.collected = threading.Event()

    def send(self, payload: bytes) -> bool:
        taken = super().send(payload)
        if any(isinstance(report, Crowded) for report in decode_reports(payload)):
            self.frames.append(batch([encode_entry(0, 0, None, Free(self._ids))]))
            self.collected.set()
        return taken

    def receive(self) -> memoryview | None:
        return memoryview(self.frames.pop(0)) if self.frames else None


def test_what_waits_for_something_deferred_keeps_its_operands_when_garbage_is_freed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The notebook has freed them after it sent what names them."""
    monkeypatch.setattr(
        "accel_lab.compute.dispatcher.decoding.travelling", lambda: [Make, Double, Free]
    )
    arena: Any = None
    context = Context(HostBackend(0), [Forgetful], arena, 1, {}, 32)
    spec = Make().infer()
    frame = [
        *(encode_entry(n, n, 600.0, Make(), spec) for n in (1, 2, 3)),
        encode_entry(4, 4, 600.0, Make(later=True), spec),
        encode_entry(5, 5, 600.0, Double(buffer(4)), spec),  # there is no room for it
        encode_entry(6, 6, 600.0, Double(buffer(3), buffer(5)), spec),
    ]
    later = [encode_entry(0, 0, None, Free([9]))]
    wire = Crowding([batch(frame), batch(later)], [1, 2, 3])
    service = service_of(wire, context)
    wire.collected = service.collected
    monkeypatch.setattr(Forgetful, "gate", threading.Event())
    service._turn()
    service._turn()
    Forgetful.gate.set()
    while service._deferral.begun:
        service._turn()
    service._completion.complete()
    assert not [report for report in wire.sent if isinstance(report, Failure)]
    assert {seq for r in wire.sent if isinstance(r, Done) for seq in r.seqs} == set(range(1, 7))
    assert context.table.known(3) is None, "it is freed in its turn"
    context.close()


class Idle(Wire):
    """A wire on which nothing comes any more; it counts the waits that end at once.

    Attributes:
        slept: called when one does not, before it does.
    """

    def __init__(self, frames: list[bytes], slept: Callable[[], object]) -> None:
        super().__init__(frames)
        self.slept = slept
        self.awake = 0
        self.over = False

    def receive(self) -> memoryview | None:
        return memoryview(self.frames.pop(0)) if self.frames else None

    def sleep(self) -> bool:
        return True

    def wait(self, timeout_s: float | None = None, also: int = -1) -> None:
        del timeout_s
        if also < 0:
            self.over = True  # nothing is left to be done
            return
        if select.select([also], [], [], 0.0)[0]:
            self.awake += 1
            assert self.awake < 10, "the dispatcher does not sleep"
            return
        self.slept()
        assert select.select([also], [], [], 10.0)[0], "nothing has woken it"


def test_a_ring_that_comes_when_what_it_tells_of_was_taken_wakes_once(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What has finished is there before it rings, so the dispatcher may take it in between."""
    gate = threading.Event()
    monkeypatch.setattr(Forgetful, "gate", gate)
    entry = encode_entry(1, 1, 600.0, Make(later=True), Make().infer())
    wire = Idle([batch([entry])], gate.set)
    service = service_of(wire, context)
    service._turn()
    service._deferral.ring()  # of one that was taken long ago; the other has not finished
    try:
        while not wire.over:
            service._turn()
    finally:
        gate.set()
    assert wire.awake == 1


def test_no_answer_is_lost_after_an_offer_that_a_full_socket_refused() -> None:
    """Where there are no rings, and a notebook does not read for a while what is printed."""
    lower, upper = socket.socketpair()
    reporter = Reporter(SocketTransport(lower), lambda *_: None)
    offered = 0
    while reporter.offer([Output(1, "stdout", "x" * 5_000)]):
        offered += 1

    def answer() -> None:
        reporter.send([Done([7])])
        reporter.send([Done([8])])

    sender = threading.Thread(target=answer)
    sender.start()
    notebook, heard = SocketTransport(upper), list[Any]()
    until = time.monotonic() + 10.0
    while heard[-1:] != [Done([8])] and time.monotonic() < until:
        frame = notebook.receive()
        if frame is not None:
            heard += decode_reports(frame)
    sender.join()
    assert len([one for one in heard if isinstance(one, Output)]) == offered
    assert heard[offered:] == [Done([7]), Done([8])]
    lower.close()
    upper.close()


class Reader(HostBackend):
    """A host that reads another process's memory: its own, at the address that the handle is."""

    def __init__(self) -> None:
        super().__init__(0)
        self.opened: dict[bytes, int] = {}
        self.ipc_memory: list[bytes] = []
        self.closings: list[tuple[bytes, int]] = []
        self.ipc = self

    def copy_in(self, array: Any, handle: bytes, offset_bytes: int) -> None:
        if handle not in self.opened:
            self.ipc_memory.append(handle)
            self.opened[handle] = int.from_bytes(handle, "little")
        ctypes.memmove(array.ctypes.data, self.opened[handle] + offset_bytes, array.nbytes)

    def write_word(self, word: Any, value: int) -> None:
        raise NotImplementedError

    def unmap(self, handle: bytes) -> Any:
        if self.opened.pop(handle, None) is None:
            return None
        return lambda: self.closings.append((handle, threading.get_ident()))


def test_a_device_that_reads_no_other_processes_memory_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """There is nothing to close then, and that is answered."""
    monkeypatch.setattr("accel_lab.compute.dispatcher.decoding.travelling", lambda: [CopyIn, Unmap])
    arena: Any = None
    context = Context(HostBackend(0), [UploadActor], arena, 1, {}, None)
    copy = CopyIn((2,), "float32", b"handle", 0)
    reports = serve(
        context,
        encode_entry(1, 1, 600.0, copy, copy.infer()),
        encode_entry(2, 0, 600.0, Unmap(b"handle"), NO_RESULT),
    )
    (failed,) = [one for one in reports if isinstance(one, Failure)]
    assert (failed.seq, failed.kind) == (1, "InvalidArgument")
    assert "reads no memory of another process" in failed.text
    assert [one.seqs for one in reports if isinstance(one, Done)] == [[2]]
    context.close()


def test_memory_that_is_copied_in_is_open_until_it_is_unmapped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is closed beside the dispatcher; closing what is not open is answered, too."""
    monkeypatch.setattr("accel_lab.compute.dispatcher.decoding.travelling", lambda: [CopyIn, Unmap])
    theirs = np.arange(8, dtype="float32")
    handle, backend = theirs.ctypes.data.to_bytes(8, "little"), Reader()
    arena: Any = None
    context = Context(backend, [UploadActor], arena, 1, {}, None)
    copies = [CopyIn((2, 2), "float32", handle, 16), CopyIn((3,), "float32", handle, 0)]
    entries = [encode_entry(n, n, 600.0, m, m.infer()) for n, m in enumerate(copies, 1)]
    unmap = [encode_entry(n, 0, 600.0, Unmap(handle), NO_RESULT) for n in (3, 4)]
    reports = serve(context, *entries, *unmap)
    assert sorted(seq for r in reports if isinstance(r, Done) for seq in r.seqs) == [1, 2, 3, 4]
    assert backend.ipc_memory == [handle]
    assert [closed for closed, _ in backend.closings] == [handle]
    assert backend.closings[0][1] != threading.get_ident()
    theirs[:] = -1
    assert context.table.mention(1).array.tolist() == [[4, 5], [6, 7]]
    assert context.table.mention(2).array.tolist() == [0, 1, 2]
    context.close()


class Slow(HostStream):
    """A stream that is done 3 ms after it was first asked."""

    done_at = 0.0

    def done(self) -> bool:
        self.done_at = self.done_at or time.perf_counter() + 0.003
        return time.perf_counter() > self.done_at

    def reached(self, event: Any) -> bool:
        del event
        return self.done()


@pytest.mark.parametrize(("spin_s", "slept"), [(0.0, 1), (1e-4, 0)])
def test_what_takes_a_known_moment_is_not_slept_for(
    monkeypatch: pytest.MonkeyPatch, spin_s: float, slept: int
) -> None:
    """Where there are no cores to spin on, another thread waits for it as for all that is long."""
    monkeypatch.setattr("accel_lab.compute.dispatcher.decoding.travelling", lambda: [CopyIn])
    backend, stream = Reader(), Slow()
    monkeypatch.setattr(backend, "native_stream", lambda: stream)
    theirs = np.zeros(1 << 20, np.uint8)
    message = CopyIn(theirs.shape, "uint8", theirs.ctypes.data.to_bytes(8, "little"), 0)
    arena: Any = None
    context = Context(backend, [UploadActor], arena, 1, {}, None)
    monkeypatch.setattr("accel_lab.compute.actors.transfer.soon_s", lambda _: 30.0)
    wire = Wire([batch([encode_entry(1, 1, 600.0, message, message.infer())])])

    def receive() -> memoryview | None:
        if wire.frames:
            return memoryview(wire.frames.pop(0))
        if any(isinstance(report, Done) for report in wire.sent):
            raise EOFError
        return None

    monkeypatch.setattr(wire, "receive", receive)
    service = service_of(wire, context, spin_s=spin_s)
    service.run()
    assert service._completion._completer._submitted == slept
    context.close()
