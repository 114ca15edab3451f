"""A context that dies or fails as it starts, uploads, downloads, maps memory or is closed."""

import asyncio
import io
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import accel_lab.backends
from accel_lab import AccelRef, Device, System, array, blas
from accel_lab.actor.reply import Reply
from accel_lab.compute.events.lifecycle import CircuitClosed, CircuitOpened, ContextStarted
from accel_lab.compute.events.lifecycle import ContextLost as ContextLostEvent
from accel_lab.compute.process.spawner import ContextProcess
from accel_lab.compute.requests import reply_pump
from accel_lab.compute.requests.send_queue import SendQueue
from accel_lab.compute.wire.link import Link
from accel_lab.errors import (
    AccelError,
    ArenaFull,
    BackendUnavailable,
    CircuitOpen,
    ContextLost,
    DependencyFailed,
    InvalidArgument,
    LibraryError,
    OutOfMemory,
    QueueFull,
    SystemClosed,
)
from tests.faults.conftest import pid_of, settle, wait_for, works
from tests.faults.failing_backend.failing import PLAN
from tests.interactive import shell

WAIT = 30.0
HERE = Path(__file__).parents[1] / "failing_backend"
LARGE = np.arange(100_000.0)

Plan = Callable[[str, str], None]


@pytest.fixture(scope="module")
def plans(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return one folder for all, so that each test has the environment of the one before it."""
    return tmp_path_factory.mktemp("plans")


@pytest.fixture
def plan(nothing_left: None, monkeypatch: pytest.MonkeyPatch, plans: Path) -> Plan:
    """Make the `failing` backend available; the function says how it fails."""
    for old in plans.iterdir():
        old.unlink()
    path = [*accel_lab.backends.__path__, str(HERE)]
    monkeypatch.setattr(accel_lab.backends, "__path__", path)
    monkeypatch.setenv("PYTHONPATH", str(HERE))
    monkeypatch.setenv(PLAN, str(plans))

    def write(phase: str, words: str) -> None:
        (plans / phase).write_text(words)

    return write


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("die", "SIGKILL"),
        ("exit", "exit status 3"),
        ("RuntimeError", r"could not start \(RuntimeError: planned for open"),
    ],
)
def test_a_context_that_fails_to_start_is_started_again(plan: Plan, word: str, reason: str) -> None:
    """What waits for it waits on, in order; no generation has passed."""
    plan("open", f"{word} {word}")
    with System("failing", 1, recover="stale") as lab:
        (cpu,) = lab.devices
        assert works(cpu)
        assert cpu.generation == 1
        causes = [e.cause for e in lab.events.history(ContextLostEvent)]
        assert len(causes) == 2
        for cause in causes:
            assert re.search(reason, cause)


def test_why_a_context_did_not_start_is_told_though_its_end_is_seen_first(
    plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it has said of that lies in a socket beside the wire."""
    plan("open", "RuntimeError")
    read = ContextProcess._controlled

    def late(process: ContextProcess) -> None:
        if process.reaped or process.number > 1:
            read(process)

    monkeypatch.setattr(ContextProcess, "_controlled", late)
    with System("failing", 1, recover="stale") as lab:
        assert works(lab.devices[0])
        (lost,) = lab.events.history(ContextLostEvent)
        assert "it could not start (RuntimeError: planned for open" in lost.cause


def test_what_waits_for_a_start_is_limited_and_runs_in_order(plan: Plan, plans: Path) -> None:
    """Message 1025 is refused, or waits for room if it may."""
    plan("open", "gate")
    with closing(System("failing", 1)) as lab:
        (cpu,) = lab.devices
        x = cpu.put(np.zeros(4))
        replies = [cpu.run(_append, k, pure=False) for k in range(1024 - 1)]
        with pytest.raises(QueueFull, match="cpu0 has 1024 messages waiting and takes 1024"):
            cpu.ask(blas.Scal(x, 2.0), nowait=True)
        waited = threading.Thread(target=lambda: replies.append(cpu.run(_append, 1023)))
        waited.start()
        assert not any(reply.done for reply in replies)
        assert waited.is_alive()
        (plans / "go").touch()
        waited.join(WAIT)
        assert [len(reply.result(WAIT)) for reply in replies] == list(range(1, 1025))
        assert replies[-1].result() == list(range(1024))


def test_a_start_that_is_given_up_late_leaves_the_next_one_alone(
    plan: Plan, plans: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who has seen its wire end is slower than the supervisor of a group, which starts the next."""
    plan("open", "gate")
    with closing(System("failing", 1)) as lab:
        (supervisor,), event_loop = lab._supervisors, lab._event_loop
        assert settle(lambda: supervisor._link is not None)
        first, held = supervisor._link, list[tuple[Any, ...]]()
        assert first is not None
        here, call_soon = threading.get_ident(), event_loop.call_soon

        def late(*call: Any) -> bool:
            if threading.get_ident() == here:
                held.append(call)
                return True
            return call_soon(*call)

        with monkeypatch.context() as patch:
            patch.setattr(event_loop, "call_soon", late)
            supervisor.link_ended(first, "its wire ended")
            call_soon(supervisor.requests.connection.revive)
            assert settle(lambda: supervisor._link not in (None, first))
        for call in held:
            call_soon(*call)
        (plans / "go").touch()
        assert works(lab.devices[0])
        assert settle(lambda: supervisor.restarts == 1)


def test_memory_that_is_made_as_a_context_is_asked_for_is_told_after_its_device(
    nothing_left: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A context that heard of a segment first could not start."""
    with System("host", recover="stale") as lab:
        (cpu,) = lab.ready(WAIT).devices
        kept, bind = list[np.ndarray[Any, Any]](), ContextProcess.bind

        def late(process: ContextProcess, *said: Any) -> None:
            kept.append(lab.empty((64 << 20,), "uint8"))
            bind(process, *said)

        with monkeypatch.context() as patch:
            patch.setattr(ContextProcess, "bind", late)
            lab.inject("kill", cpu)
            assert settle(lambda: len(lab.events.history(ContextStarted)) == 2)
        (made,) = kept
        np.testing.assert_array_equal(cpu.get(cpu.put(made)).result(WAIT), made)
        assert len(lab.events.history(ContextLostEvent)) == 1


def _append(k: int) -> list[int]:
    """Write down the calls in the order in which they run; return those so far."""
    calls: list[int] = sys.__dict__.setdefault("calls", [])
    calls.append(k)
    return list(calls)


class Opens(io.StringIO):
    """Takes what is said, and opens a gate when a start is told."""

    def __init__(self, gate: Path) -> None:
        super().__init__()
        self._gate = gate

    def write(self, text: str) -> int:
        if "starting cpu0…" in text:
            self._gate.touch()
        return super().write(text)


async def awaited(reply: Reply[AccelRef]) -> None:
    await reply


@pytest.mark.parametrize("how", ["result", "ready", "await"])
def test_who_waits_for_a_slow_start_in_a_notebook_is_told(
    plan: Plan, plans: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """The context starts when that was said, and not before."""
    plan("open", "gate")
    said = Opens(plans / "go")
    monkeypatch.setattr(sys, "stderr", said)
    with shell(), closing(System("failing", 1)) as lab:
        (cpu,) = lab.devices
        if how == "ready":
            lab.ready(WAIT)
        elif how == "await":
            asyncio.run(asyncio.wait_for(awaited(cpu.put(np.ones(4))), WAIT))
        cpu.put(np.ones(4)).result(WAIT)
    assert said.getvalue() == f"accel_lab: starting {cpu.name}…\n"


def test_a_program_that_waits_for_a_start_is_told_nothing(
    plan: Plan, plans: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    plan("open", "gate")
    monkeypatch.setattr(reply_pump, "QUIET_S", 0.0)
    with closing(System("failing", 1)) as lab:
        reply = lab.devices[0].put(np.ones(4))
        with pytest.raises(TimeoutError):
            reply.result(0.1)
        (plans / "go").touch()
        reply.result(WAIT)
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("word", ["TypeError", "AttributeError", "NameError", "BackendUnavailable"])
def test_a_mistake_in_the_code_is_not_tried_four_times(plan: Plan, word: str) -> None:
    """No restart mends it: the device gives up at once, with the reason and its place."""
    plan("open", f"{word} {word} {word} {word}")
    lab = System("failing", 1)
    try:
        begun = time.perf_counter()
        with pytest.raises(BackendUnavailable, match="planned for open"):
            lab.ready(WAIT)
        assert time.perf_counter() - begun < 20.0
        (cpu,) = lab.devices
        assert settle(lambda: len(lab.events.history(CircuitOpened)) == 1)
        with pytest.raises(BackendUnavailable) as caught:
            cpu.put(LARGE)
        if word != "BackendUnavailable":
            assert f"a restart would not help: {word}: planned for open" in str(caught.value)
        plan("open", "")
        cpu.reset()
        assert works(cpu)
    finally:
        lab.close()


def test_a_start_that_always_fails_opens_the_circuit_and_a_probe_closes_it(
    plan: Plan, plans: Path
) -> None:
    """The probe is the first call after the window; while it fails the circuit stays open."""
    plan("open", "late die die")
    lab = System("failing", 1, max_restarts=1, within_s=600.0)

    def end_window() -> None:
        (supervisor,) = lab._supervisors
        supervisor._opened -= 601.0  # as if so much time had passed

    try:
        (cpu,) = lab.devices
        waiting = cpu.put(LARGE)
        (plans / "go").touch()
        with pytest.raises(CircuitOpen, match=r"then call gpu\.reset\(\)") as caught:
            waiting.result(WAIT)
        assert isinstance(caught.value.__cause__, ContextLost)
        took = []
        for _ in range(5):
            begun = time.perf_counter()
            for call in (lambda: cpu.put(LARGE), cpu.ping, lambda: array.zeros(cpu, (2,))):
                with pytest.raises(CircuitOpen):
                    call()
            took.append(time.perf_counter() - begun)
        assert min(took) < 0.1
        end_window()
        probing = cpu.put(LARGE)  # the window is over: a probe, which dies as well
        with pytest.raises(CircuitOpen):
            probing.result(WAIT)
        assert cpu.state == "circuit open"
        assert settle(lambda: len(lab.events.history(CircuitOpened)) == 2)
        assert not lab.events.history(CircuitClosed)
        end_window()
        assert works(cpu)
        assert settle(lambda: len(lab.events.history(CircuitClosed)) == 1)
        assert len(lab.events.history(ContextStarted)) == 1
    finally:
        lab.close()


@pytest.mark.parametrize("word", ["die", "exit"])
@pytest.mark.parametrize("phase", ["upload", "download"])
def test_a_context_that_dies_in_a_transfer_gives_the_arena_back(
    plan: Plan, gate: Path, phase: str, word: str
) -> None:
    """The transfer fails with the reason, its own or its operand's; the next one is right."""
    plan(phase, word)
    with System("failing", 1, recover="stale") as lab:
        (cpu,) = lab.devices
        lost = ContextLost, DependencyFailed
        cpu.run(wait_for, gate)  # until all is sent
        got = cpu.get(cpu.put(LARGE))
        gate.touch()
        with pytest.raises(lost, match="SIGKILL" if word == "die" else "exit status 3"):
            got.result(WAIT)
        np.testing.assert_array_equal(cpu.get(cpu.put(LARGE)).result(WAIT), LARGE)
        assert cpu.generation == 2
        assert settle(lambda: lab.arena().blocks == 0)


def test_memory_that_cannot_be_mapped_fails_the_transfer_alone(plan: Plan) -> None:
    """It ended the thread that beats, so that the context was lost 30 s later."""
    plan("map", "RuntimeError")
    with System("failing", 1, recover="stale") as lab:
        (cpu,) = lab.devices
        kept = cpu.put(np.ones((4, 4)))
        with pytest.raises(LibraryError, match=r"segment 1 cannot be mapped.*planned for map"):
            cpu.put(LARGE).result(WAIT)
        kept.result(WAIT)
        assert cpu.generation == 1
        time.sleep(1.5)
        assert cpu.run(int).result(WAIT) == 0
        lab.inject("kill", cpu)
        assert settle(lambda: cpu.generation == 2)
        np.testing.assert_array_equal(cpu.get(cpu.put(LARGE)).result(WAIT), LARGE)


def test_a_full_arena_is_a_typed_failure_and_passes(nothing_left: None) -> None:
    """Whatever waits for room gets ArenaFull in time; room that is given back is used."""
    with System("host", recover="stale", arena_bytes=4 << 20) as lab:
        (cpu,) = lab.devices
        held = lab.empty((3 << 20,), "uint8")
        a = array.zeros(cpu, (2 << 20,), dtype="uint8")
        with pytest.raises(ArenaFull, match=r"for 2 MiB: 3 MiB of 4 MiB are in use by 1 block \("):
            cpu.get(a, timeout_s=0.1)
        with pytest.raises(ArenaFull):
            cpu.put(np.ones(2 << 20, np.uint8), timeout_s=0.1).result(WAIT)
        assert cpu.run(int).result(WAIT) == 0
        del held
        assert (cpu.get(a).result(WAIT) == 0).all()
        assert cpu.generation == 1


def test_an_arena_that_gets_no_memory_says_so(
    nothing_left: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Small messages still work, and so does everything when there is memory again."""

    def refuse(name: str, flags: int) -> int:
        raise OSError(24, "Too many open files")

    with System("host", recover="stale") as lab:
        (cpu,) = lab.devices
        with monkeypatch.context() as patch:
            patch.setattr(os, "memfd_create", refuse)
            with pytest.raises(ArenaFull, match="Too many open files"):
                cpu.put(LARGE)
            with pytest.raises(ArenaFull, match="Too many open files"):
                lab.empty((1 << 20,))
            assert cpu.run(int).result(WAIT) == 0
        np.testing.assert_array_equal(cpu.get(cpu.put(LARGE)).result(WAIT), LARGE)


def test_a_context_without_memory_for_its_rings_uses_its_socket(
    nothing_left: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Slower, but it works."""

    def refuse(name: str, flags: int) -> int:
        raise OSError(12, "Cannot allocate memory")

    with monkeypatch.context() as patch:
        patch.setattr(os, "memfd_create", refuse)
        lab = System("host", recover="stale").ready()
    with lab:
        assert works(lab.devices[0])


def test_a_context_that_dies_as_its_system_closes_delays_nothing(nothing_left: None) -> None:
    """Nor does one that stands still."""
    for turn in range(6):
        lab = System("host", 2, recover="stale").ready()
        pids = [pid_of(lab, device) for device in lab.devices]
        slow = [device.run(time.sleep, 60) for device in lab.devices]
        os.kill(pids[turn % 2], signal.SIGSTOP if turn % 3 == 0 else signal.SIGKILL)
        begun = time.perf_counter()
        lab.close()
        assert time.perf_counter() - begun < 5.0
        for reply in slow:
            assert isinstance(reply.error, SystemClosed | ContextLost)


def corrupt_upwards() -> None:
    """Write what is no report to the wire; runs in a context."""
    import gc

    from accel_lab.compute.dispatcher.dispatcher import Dispatcher

    (service,) = (found for found in gc.get_objects() if isinstance(found, Dispatcher))
    service._reporter.send_frame(b"\xc1 no report")


def test_a_corrupt_frame_from_a_context_replaces_it(cpu: Device, gate: Path) -> None:
    """Nothing of it is believed, and everything in flight is answered."""
    cpu.run(wait_for, gate)  # until all is sent
    bad, behind = cpu.run(corrupt_upwards), cpu.run(int)
    gate.touch()
    for reply in (bad, behind):
        with pytest.raises(ContextLost, match="its wire is corrupt"):
            reply.result(WAIT)
    assert works(cpu)
    assert cpu.generation == 2


def test_a_corrupt_frame_to_a_context_replaces_it(cpu: Device, gate: Path) -> None:
    """Nothing of it is run; the context says what it got."""
    a = cpu.put(np.ones(4)).result(WAIT)
    cpu.run(wait_for, gate)  # until all is sent
    link = cpu._requests.connection.current_link
    assert link is not None
    with link._writing:
        link._write(b"\x91\xc1 no entry")
    replies: list[AccelError | None] = []
    behind = [blas.scal(a, 2.0) for _ in range(3)]
    gate.touch()
    for reply in behind:
        with pytest.raises(ContextLost, match="its wire is corrupt") as caught:
            reply.result(WAIT)
        replies.append(caught.value)
    assert works(cpu)
    assert cpu.generation == 2


@pytest.mark.parametrize("recover", ["replay", "stale"])
def test_a_system_that_is_closed_while_what_has_waited_is_sent_is_stopped(
    recover: Any, nothing_left: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The context is there by then, for whoever ends it."""
    send_to = SendQueue.send_to
    there: list[bool] = []
    opened = threading.Event()

    def close_meanwhile(queue: SendQueue, link: Link) -> None:
        assert opened.wait(WAIT)
        there.append(lab.devices[0]._requests.connection.current_link is link)
        threading.Thread(target=lab.close).start()
        time.sleep(0.2)
        send_to(queue, link)

    monkeypatch.setattr(SendQueue, "send_to", close_meanwhile)
    lab = System("host", recover=recover)
    opened.set()
    with suppress(SystemClosed):  # it may be answered before that
        lab.devices[0].ping().result(WAIT)
    lab.close()
    assert lab.devices[0].state == "stopped"
    assert there == [True]


def test_a_system_that_is_closed_before_it_is_up_leaves_nothing(nothing_left: None) -> None:
    """It does not wait for what its processes were still loading."""
    for pause_s in (0.0, 0.02, 0.05, 0.3):
        lab = System("host")
        time.sleep(pause_s)
        lab.close()
        assert lab._spawner.processes == {}
        child = lab._spawner._child
        assert child is None or child.returncode is not None


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"max_restarts": "a"}, "max_restarts is a count, 0 or more, not 'a'"),
        ({"max_restarts": -1}, "max_restarts is a count"),
        ({"within_s": 0}, "within_s is a number of seconds above 0, not 0"),
        ({"memory_bytes": 1.5}, r"memory_bytes must be positive, a number of bytes, not 1\.5"),
        ({"memory_bytes": -1}, "memory_bytes must be positive"),
        ({"arena_bytes": "a"}, "arena_bytes must be positive"),
        ({"journal_bytes": "1"}, "journal_bytes must be positive"),
        ({"timeout_s": "x"}, "timeout_s is a number of seconds"),
        ({"suspend_after_s": True}, "suspend_after_s is a number of seconds"),
        ({"devices": "x"}, "devices is a count, 0 or more, not 'x'"),
        ({"devices": 65}, "65 asks for devices that are not there: host has 64"),
        ({"devices": [0, 0]}, r"devices=\[0, 0\] names a device twice"),
        ({"strategy": 3}, "it cannot be 3"),
        ({"journal": 3}, "journal is 'memory', a path, a URL, a Store or None: 3"),
        ({"journal": "/tmp"}, "is a folder; name a file in it"),  # noqa: S108 - any there is
    ],
)
def test_a_mistaken_option_is_told_when_the_system_is_opened(
    options: dict[str, Any], text: str
) -> None:
    before = threading.active_count()
    with pytest.raises(InvalidArgument, match=text):
        System("host", **options)
    assert threading.active_count() <= before


def test_memory_may_be_given_as_people_write_it() -> None:
    lab = System("host", memory_bytes=4e9, journal=None)  # type: ignore[arg-type]
    with lab, pytest.raises(OutOfMemory) as full:
        array.zeros(lab.devices[0], (1 << 40,), "int8").result(60)
    assert full.value.free_bytes == 4_000_000_000


def test_a_spare_that_cannot_be_had_is_nothing_to_wait_for() -> None:
    """As `explain` wants one, of a system that is closed by then."""
    lab = System("host").ready()
    lab.close()
    with pytest.raises(SystemClosed), lab._spare(lab.devices[0]):
        pass
    with pytest.raises(SystemClosed):
        lab.ready(30)
    assert [node.name for node in lab.tree().children] == ["cpu0"]
