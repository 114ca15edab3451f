"""A session in a file, and every view drawn from it."""

import errno
import gc
import io
import json
import os
import stat
import time
import warnings
import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accel_lab import blas, views
from accel_lab.actor.events import ActorRestarted, Event
from accel_lab.compute.events.lifecycle import ContextLost, GenerationChanged, RequestFailed
from accel_lab.compute.events.samples import (
    Block,
    HealthSampled,
    MemorySampled,
    Reading,
    Slice,
    SystemEnded,
    TreeSampled,
    WorkTraced,
)
from accel_lab.compute.machine.private_folder import private_opener
from accel_lab.errors import AccelError, InvalidArgument, RecordingError
from accel_lab.system import System
from accel_lab.views import Recording
from accel_lab.views.canvas.view import CanvasView
from accel_lab.views.cells.view import CellsView
from accel_lab.views.first_minute import FirstMinuteView
from accel_lab.views.journal_view import JournalView
from accel_lab.views.lab import LabView
from accel_lab.views.past import recording as module
from accel_lab.views.past.recording import Recorder, record, retell
from accel_lab.views.scene.fact_lines import encode, header
from accel_lab.views.scene.observer import observer_of
from accel_lab.views.scene.scene import Scene
from accel_lab.views.widget.publisher import Publisher
from accel_lab.views.widget.view import View
from tests.views.made_up import Lab, lab

WAIT_S = 10.0


ELSEWHERE = (CanvasView, CellsView, FirstMinuteView, JournalView, LabView)
"""Simulations and sessions are not recorded; the others draw the position, or these and that."""


def kinds(root: type[View] = View) -> Iterator[type[View]]:
    """Yield every view of a scene that there is."""
    for kind in root.__subclasses__():
        if kind.__module__.startswith("accel_lab.views.") and not hasattr(kind, "_esm"):
            if kind not in ELSEWHERE:
                yield kind
            yield from kinds(kind)


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[System, Recording]]:
    """Record a real system: work, a failed request, a lost context, work again."""
    path = tmp_path_factory.mktemp("recorded") / "session.jsonl"
    system = System("host", name="session", results="digests")
    with views.record(system, path, rate_hz=30):
        device = system.devices[0]
        keep = []
        for size in (4, 8):
            x = device.put(np.ones((size, size), np.float32))
            keep.append(device.ask(blas.Gemm(x, x)).result())
            time.sleep(0.3)
        with pytest.raises(AccelError):
            system.inject("kill").result()
        system.ready()
        x = device.put(np.ones((3, 3), np.float32))
        keep.append(device.ask(blas.Gemm(x, x)).result())
        observer = observer_of(system)
        end = time.monotonic() + WAIT_S
        while time.monotonic() < end:
            with observer.lock:
                memory, traced = observer.scene.memory.get("cpu0"), observer.scene.traced
            if memory is not None and memory.generation == 2 and memory.blocks and traced >= 3:
                break
            device.ask(blas.Gemm(x, x)).result()
            time.sleep(0.05)
        system.close()
    yield system, Recording.open(path)
    del keep


def plain(state: Any) -> Any:
    """Return what is drawn: not whether buttons act, nor what time it is where none passes."""
    return {
        name: value
        for name, value in json.loads(json.dumps(state)).items()
        if name not in {"acts", "at"}
    }


@pytest.mark.parametrize("kind", list(kinds()), ids=lambda kind: kind.__name__)
def test_every_view_draws_the_same_from_the_file(
    session: tuple[System, Recording], kind: type[View]
) -> None:
    system, recording = session
    live, past = kind(system), kind(recording.player)
    state, now = past.sample(), live.sample()
    assert plain(state) == plain(now)
    now |= {name: state[name] for name in ("at",) if name in state}  # how long it is ago differs
    assert past.text(state) == live.text(now)
    assert past.html(state) == live.html(now)
    with live.source.lock:
        assert past.pack(recording.player.look()) == live.pack(live.source.look())


def test_the_session_that_is_drawn_has_all_there_is(session: tuple[System, Recording]) -> None:
    _, recording = session
    assert recording.whole
    assert (recording.damage, recording.dropped) == ("", 0)
    found = {type(fact) for fact in recording}
    assert {ContextLost, GenerationChanged, TreeSampled, MemorySampled, WorkTraced} <= found
    assert isinstance(recording[len(recording) - 1], SystemEnded)
    scene = recording.player.look()
    assert scene.lost["cpu0"][0] == 1
    assert scene.traced >= 3
    assert [recording[number] for number in recording.turns] == [
        fact for fact in recording if isinstance(fact, GenerationChanged)
    ]
    assert len(recording.faults) >= 1


class Still(Publisher):
    """A publisher whose thread never runs."""

    def _run(self) -> None:
        pass


@pytest.fixture(autouse=True)
def still(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have nothing looked at beside what a test looks at; `session` is made before."""
    monkeypatch.setattr(module, "PUBLISHER", Still())


class Live:
    """A made-up lab with a recording that the test takes every step of."""

    def __init__(self, path: Path, limit_bytes: int = 1 << 20) -> None:
        self.lab: Lab = lab(devices=1)
        self.recording = record(self.lab, path, rate_hz=0.001, limit_bytes=limit_bytes)
        self.observer = observer_of(self.lab)

    def look(self) -> None:
        with self.observer.lock:
            self.observer.look()

    def end(self) -> Recording:
        self.recording.close()
        return Recording.open(self.recording.path)


@pytest.fixture
def live(tmp_path: Path) -> Live:
    return Live(tmp_path / "made-up.jsonl")


def facts_of(recording: Recording, kind: type[Event]) -> list[Event]:
    return [fact for fact in recording if isinstance(fact, kind)]


def test_what_is_as_it_was_is_written_once_and_at_the_end(live: Live) -> None:
    for _ in range(50):
        live.look()
    live.lab.devices[0].in_flight = 3
    for _ in range(50):
        live.look()
    recording = live.end()
    trees = facts_of(recording, TreeSampled)
    loads = [tree.root.children[0].in_flight for tree in trees if isinstance(tree, TreeSampled)]
    assert loads == [0, 3, 3]
    assert trees[-1].at > trees[-2].at
    assert recording.times[-1] == live.observer.scene.at


def test_when_a_memory_was_last_seen_stands_before_the_end(live: Live) -> None:
    for at in (1.0, 2.0, 3.0):
        seen = MemorySampled(
            device="gpu0", generation=1, used_bytes=0, total_bytes=None, blocks=(), at=at
        )
        live.lab.seen = [seen]
        live.look()
    live.lab.closed = True
    recording = live.end()
    assert [fact.at for fact in facts_of(recording, MemorySampled)] == [1.0, 3.0]
    assert isinstance(recording[len(recording) - 1], SystemEnded)


def test_what_was_seen_before_stands_at_the_beginning(live: Live, tmp_path: Path) -> None:
    live.lab.events.publish(RequestFailed(device="gpu0", message="Gemm", error="no", cell=3))
    block = Block((1,), 0, 64, "Put #1", "float32", (16,))
    for generation in (1, 2):
        live.lab.seen = [
            MemorySampled(
                device="gpu0",
                generation=generation,
                used_bytes=64 * generation,
                total_bytes=None,
                blocks=(block,) * generation,
            ),
            WorkTraced(
                device="gpu0",
                generation=generation,
                done=(Slice(generation, "Gemm", "blas", "kernel", 1.0, 2.0),),
                running=(Slice(9, "Gemm", "blas", "kernel", 2.0, None),),
                dropped=generation,
            ),
        ]
        live.look()
    with record(live.lab, tmp_path / "later.jsonl"):
        pass
    mine = vars(live.observer.scene)
    later = vars(Recording.open(tmp_path / "later.jsonl").player.look())
    assert {name: later[name] for name in mine} == mine


def test_a_scene_is_retold_with_its_readings_and_its_end() -> None:
    scene = Scene()
    scene.add(HealthSampled(source="gpu0", model="x", readings=(Reading("load", 3.0),), at=1.0))
    scene.add(SystemEnded(name="lab", at=2.0))
    twin = Scene()
    for fact in retell(scene):
        twin.add(fact)
    assert vars(twin) == vars(scene)


def test_a_recording_ends_with_its_lab_by_itself(live: Live) -> None:
    live.lab.closed = True
    live.look()
    assert Recording.open(live.recording.path).whole
    assert live.observer.followers == []
    live.recording.close()
    assert "goes on" not in repr(live.recording)


def test_nobody_looks_before_the_beginning_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What another thread's look brought meanwhile would be lost."""
    source = lab(devices=1)
    lock, flush = observer_of(source).lock, Recorder._flush
    could_look: list[bool] = []

    def try_to_look() -> None:
        could_look.append(lock.acquire(blocking=False))
        if could_look[-1]:
            lock.release()

    def flush_meanwhile(recorder: Recorder) -> None:
        with ThreadPoolExecutor(1) as other:
            other.submit(try_to_look).result()
        flush(recorder)

    monkeypatch.setattr(Recorder, "_flush", flush_meanwhile)
    recording = record(source, tmp_path / "begun.jsonl")
    assert could_look == [False]
    recording.close()


def test_a_recording_of_what_has_ended_is_not_kept(tmp_path: Path) -> None:
    source = lab(devices=1)
    source.closed = True
    recording = record(source, tmp_path / "ended.jsonl")
    assert recording.whole
    assert recording._recorder is not None
    recorder = weakref.ref(recording._recorder)
    del recording
    gc.collect()
    assert recorder() is None


def test_a_recording_that_grows_can_be_read_meanwhile(live: Live) -> None:
    reader = Recording.open(live.recording.path)
    before = len(reader)
    assert not reader.whole
    live.lab.events.publish(GenerationChanged(device="gpu0", before=1, after=2))
    live.look()
    live.recording.close()
    reader.read()
    assert reader.whole
    assert len(reader) > before
    assert list(reader.turns) == [
        n for n in range(len(reader)) if isinstance(reader[n], GenerationChanged)
    ]


def test_a_recording_that_is_begun_again_leaves_the_first_to_whoever_has_it(live: Live) -> None:
    """As when the cell that records is run twice."""
    recorder = live.recording._recorder
    assert recorder is not None
    for number in range(50):
        live.lab.devices[0].in_flight = number + 1
        recorder.publish(0.0)
    live.recording.read()
    path, before = live.recording.path, len(live.recording)
    second = record(live.lab, path, rate_hz=0.001)
    live.lab.events.publish(GenerationChanged(device="gpu0", before=1, after=2))
    live.look()
    live.recording.close()
    second.close()
    for recording in (live.recording, second, Recording.open(path)):
        assert (recording.damage, recording.whole) == ("", True)
        assert facts_of(recording, GenerationChanged)
    assert len(live.recording) > before > len(second)


def test_a_recording_at_a_rate_that_cannot_be_replaces_nothing(live: Live) -> None:
    recording = live.end()
    with pytest.raises(ValueError, match="positive rate"):
        record(live.lab, recording.path, rate_hz=0)
    assert list(Recording.open(recording.path)) == list(recording)
    assert live.observer.followers == []


def test_a_recording_that_is_stopped_while_it_begins_follows_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flush, source = Recorder._flush, lab(devices=1)

    def stop(_: Recorder) -> None:
        monkeypatch.setattr(Recorder, "_flush", flush)
        raise KeyboardInterrupt

    monkeypatch.setattr(Recorder, "_flush", stop)
    with pytest.raises(KeyboardInterrupt):
        record(source, tmp_path / "stopped.jsonl")
    assert observer_of(source).followers == []


def test_a_recording_that_nobody_will_look_for_follows_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise RuntimeError("can't start new thread")

    source = lab(devices=1)
    monkeypatch.setattr(Still, "add", refuse)
    with pytest.raises(RuntimeError, match="thread"):
        record(source, tmp_path / "unseen.jsonl")
    assert observer_of(source).followers == []


def test_a_full_file_keeps_what_happens_and_counts_what_is_left_out(tmp_path: Path) -> None:
    live = Live(tmp_path / "small.jsonl", limit_bytes=16 << 10)
    for number in range(100):
        live.lab.devices[0].in_flight = number + 1
        live.look()
    samples = live.recording.dropped
    assert samples > 0
    live.lab.events.publish(GenerationChanged(device="gpu0", before=1, after=2))
    live.look()
    for _ in range(200):
        live.lab.events.publish(GenerationChanged(device="gpu0", before=2, after=3))
        live.look()
    recording = live.end()
    assert recording.path.stat().st_size <= 16 << 10
    assert recording.whole
    assert recording.dropped == live.recording.dropped > samples + 100
    kept = facts_of(recording, GenerationChanged)
    assert kept[0] == GenerationChanged(device="gpu0", before=1, after=2, at=kept[0].at)
    assert f"{recording.dropped} were left out" in repr(recording)


def test_a_limit_that_holds_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="at least 16 KiB, not 100 B"):
        record(lab(), tmp_path / "a", limit_bytes=100)


def test_a_place_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match="cannot be written"):
        record(lab(), tmp_path / "no" / "folder")


@pytest.mark.filterwarnings("ignore:/dev/full can no longer be written")
def test_a_disk_that_is_full_is_refused() -> None:
    source = lab(devices=1)
    with pytest.raises(RecordingError, match=r"cannot be written: .*No space left"):
        record(source, "/dev/full")
    assert observer_of(source).followers == []


class Full(io.FileIO):
    """A file on a disk without room."""

    def write(self, _: Any, /) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_disk_that_fills_up_is_told_and_the_views_go_on(live: Live) -> None:
    recorder = live.recording._recorder
    assert recorder is not None
    with warnings.catch_warnings(record=True) as warned, recorder._file:
        warnings.simplefilter("always")
        recorder._file = Full(live.recording.path)
        live.lab.devices[0].in_flight = 5
        recorder.publish(0.0)
        live.lab.devices[0].in_flight = 6
        recorder.publish(0.0)
    assert [str(one.message).partition(": ")[0] for one in warned] == [
        f"{live.recording.path} can no longer be written"
    ]
    assert live.recording.dropped >= 1  # the second tree, and a reading if one fell due
    assert views.tree(live.lab).sample()["root"]["children"][0]["in_flight"] == 6
    with pytest.raises(RecordingError, match=r"was not written: .*No space left"):
        live.recording.close()


def lines(tmp_path: Path, *parts: bytes) -> Path:
    path = tmp_path / "lines.jsonl"
    path.write_bytes(b"".join(parts))
    return path


FACT = encode(GenerationChanged(device="gpu0", before=1, after=2, at=5.0))
FAULT = encode(ActorRestarted(path="a", cause=ValueError("x"), attempt=1, delay_s=0, at=4.0))


def test_times_never_descend(tmp_path: Path) -> None:
    recording = Recording.open(lines(tmp_path, header("lab"), FACT, FAULT, FACT))
    assert list(recording.times) == [5.0, 5.0, 5.0]
    assert (list(recording.faults), list(recording.turns)) == ([1], [0, 2])


@pytest.mark.parametrize("tail", [FACT[:-9], b"\x00\xff\n", b"{}\n" + FACT, b'{"end":7}\n'])
def test_a_damaged_tail_is_read_up_to_the_damage(tmp_path: Path, tail: bytes) -> None:
    recording = Recording.open(lines(tmp_path, header("lab"), FACT, FAULT, tail))
    assert len(recording) == 2
    assert recording.damage
    assert f"it is damaged: {recording.damage}" in repr(recording)
    assert recording.player.look().counted == 2


def test_a_file_that_lost_some_of_its_facts_says_so(tmp_path: Path) -> None:
    end = b'{"end":{"facts":3,"dropped":0}}\n'
    recording = Recording.open(lines(tmp_path, header("lab"), FACT, end))
    assert recording.damage == "it had 3 facts, and 1 are here"


def test_a_line_longer_than_what_is_read_at_once_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("accel_lab.views.past.recording.PIECE_BYTES", 16)
    recording = Recording.open(lines(tmp_path, header("lab"), FACT, FAULT))
    assert (len(recording), recording.damage) == (2, "")


def test_a_later_type_or_schema_is_refused_by_name(tmp_path: Path) -> None:
    later = b'{"type":"CoffeeMade","at":1}\n'
    with pytest.raises(RecordingError, match=r"lines\.jsonl: it holds a 'CoffeeMade'"):
        Recording.open(lines(tmp_path, header("lab"), FACT, later))
    head = header("lab").replace(b'"schema":1', b'"schema":2')
    with pytest.raises(RecordingError, match="schema 2"):
        Recording.open(lines(tmp_path, head))
    with pytest.raises(RecordingError, match="cannot be read"):
        Recording.open(tmp_path / "absent")


def test_there_is_no_fact_beyond_the_last(tmp_path: Path) -> None:
    recording = Recording.open(lines(tmp_path, header("lab"), FACT))
    with pytest.raises(IndexError, match="no fact 1 in a recording of 1"):
        recording[1]


def test_every_fact_has_words(session: tuple[System, Recording]) -> None:
    _, recording = session
    said = recording.lines(range(len(recording)))
    assert len(said) == len(recording)
    by_type = {line.what.partition("(")[0] for line in said}
    assert by_type == {type(fact).__name__ for fact in recording}
    (lost,) = [line for line in said if line.what.startswith("ContextLost")]
    assert lost.mark == "fault"
    assert "SIGKILL" in lost.outcome


def test_a_recording_is_its_users_alone(tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    path.write_text("another's")
    path.chmod(0o644)
    before = os.umask(0)
    try:
        record(lab(), path).close()
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with path.open("a"), open(path, "wb", opener=private_opener):
        assert path.stat().st_size == 0
    path.chmod(0o644)
    with open(path, "ab", opener=private_opener):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with open("/dev/null", "wb", opener=private_opener):
        assert stat.S_IMODE(Path("/dev/null").stat().st_mode) == 0o666
