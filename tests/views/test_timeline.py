"""The timeline without a browser."""

import os
import re
import signal
import struct
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel_lab import Device, System, array, jit, views
from accel_lab.actor.events import Event
from accel_lab.compute.events.lifecycle import ContextStarted, GenerationChanged
from accel_lab.compute.events.samples import (
    CellRun,
    NotebookSampled,
    Slice,
    SystemEnded,
    Work,
    WorkTraced,
)
from accel_lab.errors import ContextLost, ContextReplaced, UserCodeError
from accel_lab.views.chrome_trace import chrome_trace
from accel_lab.views.past.recording import retell
from accel_lab.views.scene.fact_lines import decode, encode
from accel_lab.views.scene.fault_mark import LONGEST
from accel_lab.views.scene.recap import recap
from accel_lab.views.scene.scene import SLICES, Scene
from accel_lab.views.scene.tally import PACKED, tally
from accel_lab.views.timeline import MARKED, TimelineView, duration
from tests.conftest import require
from tests.views.made_up import lab
from tests.views.test_tree import Table
from tests.views.work import CASE, Recorded, case_scene, tree, work

WAIT = 20.0


def view_of(scene: Scene) -> TimelineView:
    return TimelineView(Recorded(scene))


def traced(generation: int, *, at: float = 1000.0, done: Any = (), running: Any = ()) -> WorkTraced:
    return WorkTraced(
        device="gpu0", generation=generation, done=tuple(done), running=tuple(running), at=at
    )


def unpack(packed: bytes) -> tuple[int, int, "np.ndarray[tuple[int, int], np.dtype[np.float64]]"]:
    """Return the first number, the count, and the columns."""
    numbers = np.frombuffer(packed, "<f8")
    count = int(numbers[1])
    return int(numbers[0]), count, numbers[2 : 2 + 4 * count].reshape(4, -1)


def test_a_scene_becomes_the_state_and_the_columns_of_the_case() -> None:
    scene = case_scene()
    state = view_of(scene).fold(scene)
    assert state.pop("at") == scene.at == 1001.25
    assert state == CASE["state"]
    assert view_of(scene).pack(scene) == struct.pack("<18d", *CASE["columns"])


def test_a_live_system_has_no_moment_in_its_state_so_an_idle_one_does_not_change() -> None:
    source = lab(devices=2)
    view = TimelineView(source)
    first = view.sample()
    assert "at" not in first
    assert first == view.sample()
    assert first["devices"] == ["gpu0", "gpu1"]


def test_a_line_a_stream_says_count_share_of_the_span_and_the_longest() -> None:
    scene = case_scene()
    text = view_of(scene).text(view_of(scene).fold(scene))
    assert text.splitlines() == [
        "lab: 4 slices in 750 ms, 1 generation change, 1 fault, 2 slices never seen",
        "Stream       Done    Busy  Longest  Running",
        "gpu0/upload     1  33.3 %   250 ms",
        "gpu0/blas       2  50.0 %   250 ms",
        "gpu1/blas       1   8.3 %  62.5 ms",
        "gpu1/run        0   0.0 %           ▶ Run #8 for 500 ms",
    ]


def test_the_text_is_at_most_eighty_columns_wide_and_says_how_the_cells_went() -> None:
    scene = case_scene()
    cells = [CellRun(n, "x", 1000.0 + n / 10, 1000.05 + n / 10, "done") for n in range(7)]
    cells += [CellRun(7, "x", 1000.75, 1001.0, "failed"), CellRun(8, "spin()", 1001.0, None)]
    scene.add(NotebookSampled(cells=tuple(cells), at=1001.25))
    name = "a_kernel_with_a_name_of_some_length"
    running = [Slice(n, name, "jit", "kernel", 1000.0, None) for n in (1, 2)]
    scene.add(traced(1, running=running))
    scene.add(traced(2, at=1001.0))
    scene.add(traced(2, running=[Slice(n, name, "jit", "kernel", 1000.0, None) for n in (3, 4)]))
    view = view_of(scene)
    lines = view.text(view.fold(scene)).splitlines()
    assert max(map(len, lines)) <= 80
    text = " ".join(" ".join(lines).split())
    assert "[7] failed after 250 ms" in text
    assert "[8] running for 250 ms" in text
    assert "[0]" not in text, "the newest alone"
    assert "gpu0/jit: ⊗ a_kernel_with_a_name_of_some_length #2 after 1 s, and 1 earlier" in text
    assert any(line.startswith("gpu0/jit") and line.endswith("…") for line in lines)
    assert "Cells: " in view.html(view.fold(scene))


def test_the_table_says_the_same_and_shows_names_as_text() -> None:
    scene = case_scene()
    scene.add(work("<b>", [Slice(1, "Gemm", "blas", "kernel", 1000.25, 1000.5)]))
    table = Table(view_of(scene).html(view_of(scene).fold(scene)))
    assert table.rows[0][0].startswith("lab: 5 slices in 750 ms")
    assert table.rows[3] == ["gpu0/blas", "2", "50.0 %", "250 ms", ""]
    assert table.rows[-1][0] == "<b>/blas"
    assert table.attributes == {"scope"}


def test_nothing_seen_and_closed_say_so() -> None:
    scene = Scene()
    assert view_of(scene).text(view_of(scene).fold(scene)) == (
        "system: 0 slices, no work was seen yet"
    )
    scene.add(work("gpu0", running=[Slice(1, "Gemm", "blas", "kernel", 1.0, None)]))
    scene.add(SystemEnded(name="lab"))
    state = view_of(scene).fold(scene)
    assert state["running"] == []
    assert state["closed"] is True
    assert view_of(scene).text(state).splitlines()[0].endswith("(closed)")


def test_work_that_overlaps_on_a_stream_is_busy_once() -> None:
    scene = Scene()
    spans = [(0.0, 2.0), (1.0, 3.0), (1.5, 2.5), (5.0, 6.0)]
    scene.add(work("gpu0", [Slice(i, "Run", "run", "function", *s) for i, s in enumerate(spans)]))
    (row,) = tally(scene).rows
    assert (row.count, row.busy, row.longest) == (4, 4.0, 2.0)


def test_what_was_running_when_a_context_was_lost_ends_there() -> None:
    """A minute-long kernel leaves a bar; what came to its end in time is not said to be lost."""
    scene = Scene()
    running = [
        Slice(n, name, "jit", "kernel", 1000.0, None) for n, name in enumerate(("spin", "x"))
    ]
    scene.add(traced(1, at=1001.0, running=running))
    done = Slice(1, "x", "jit", "kernel", 1000.0, 1001.5)
    scene.add(traced(2, at=1056.0, done=[done]))
    spin = Slice(0, "spin", "jit", "kernel", 1000.0, 1056.0, lost=True)
    assert [one for _, _, one in scene.slices] == [done, spin]
    view = view_of(scene)
    state = view.fold(scene)
    assert state["works"] == [[0, "x", "kernel"], [0, "spin", "kernel", True]]
    (row,) = state["rows"]
    assert (row["count"], row["busy"], row["longest"]) == (1, 56.0, 1.5)
    assert row["lost"] == {"count": 1, "last": "spin #0", "seconds": 56.0}
    head, columns, line = view.text(state).splitlines()
    assert head.endswith("1 ended with its context")
    assert columns.endswith("Running  Ended with its context")
    assert line.endswith("⊗ spin #0 after 56 s")
    assert "<td>⊗ spin #0 after 56 s</td>" in view.html(state)
    told = [event for event in chrome_trace(scene)["traceEvents"] if event["ph"] == "X"]
    assert [event["args"] for event in told] == [{"seq": 1}, {"seq": 0, "lost": True}]


def test_what_is_given_up_in_order_is_not_said_to_be_lost() -> None:
    scene = Scene()
    scene.add(traced(1, running=[Slice(0, "spin", "jit", "kernel", 1000.0, None)]))
    scene.add(traced(1))
    assert not scene.slices
    assert not scene.running["gpu0"]


def test_an_answer_of_the_old_context_that_comes_late_hides_no_loss() -> None:
    """It may be read when the generation has changed already."""
    scene = Scene()
    spin = Slice(0, "spin", "jit", "kernel", 1000.0, None)
    scene.add(traced(1, running=[spin]))
    scene.add(traced(2, at=1005.0, running=[spin]))
    scene.add(traced(2, at=1005.1))
    ((_, _, one),) = scene.slices
    assert (one.lost, one.end) == (True, 1005.1)


@pytest.mark.parametrize("tell", [recap, retell])
def test_a_scene_that_is_told_anew_has_the_same_losses(
    tell: Callable[[Scene], Iterator[Event]],
) -> None:
    scene = Scene()
    scene.add(traced(1, running=[Slice(0, "spin", "jit", "kernel", 1000.0, None)]))
    scene.add(traced(2, at=1005.0, running=[Slice(1, "spin", "jit", "kernel", 1006.0, None)]))
    told = Scene()
    for fact in tell(scene):
        told.add(fact)
    loss = traced(3, at=1009.0)
    for one in (scene, told):
        one.add(loss)
        assert [(x.seq, x.end, x.lost) for _, _, x in one.slices] == [
            (0, 1005.0, True),
            (1, 1009.0, True),
        ]
    assert view_of(told).fold(told) == view_of(scene).fold(scene)


def test_a_recording_is_drawn_with_what_ended_with_its_context(tmp_path: Path) -> None:
    source = lab(devices=1)
    spin = Slice(3, "spin", "jit", "kernel", 1000.0, None)
    view = TimelineView(source)
    with views.record(source, tmp_path / "seen.jsonl") as recording:
        for fact in (traced(1, running=[spin]), traced(2, at=1056.0)):
            source.seen = [fact]
            view.sample()
    recorded = TimelineView(views.Recording.open(recording.path))
    state = recorded.sample()
    texts = recorded.text(state), view.text(view.sample())
    assert len({re.sub(r"for [0-9.]+ s", "", one) for one in texts}) == 1  # a moment later
    assert state["works"] == [[0, "spin", "kernel", True]]
    _, _, columns = unpack(recorded.pack(recorded.source.look()))
    assert columns.T.tolist() == [[1000.0, 1056.0, 3.0, 0.0]]


def test_a_line_of_an_earlier_version_says_nothing_of_losses() -> None:
    line = encode(traced(1, done=[Slice(1, "Gemm", "blas", "kernel", 1.0, 2.0)]))
    old = line.replace(b",2.0,false,null,null]", b",2.0]")
    assert old != line
    assert decode(old) == decode(line)


def test_only_the_newest_marks_are_sent_and_the_others_are_counted() -> None:
    scene = Scene()
    for n in range(MARKED + 5):
        scene.add(GenerationChanged(device="gpu0", before=n, after=n + 1, at=float(n)))
    state = view_of(scene).fold(scene)
    assert len(state["marks"]) == MARKED
    assert state["marks"][-1] == (
        [MARKED + 4.0, "gpu0", "generation", f"g{MARKED + 4}→g{MARKED + 5}"]
    )
    assert state["earlier_marks"] == 5


def test_a_mark_is_in_the_next_fold_of_the_same_view() -> None:
    scene = Scene()
    view = view_of(scene)
    for n in range(3):
        assert len(view.fold(scene)["marks"]) == n
        scene.add(GenerationChanged(device="gpu0", before=n, after=n + 1, at=float(n)))
    assert view.fold(scene)["marks"][-1][0] == 2.0
    assert view.fold(Scene())["marks"] == [], "another scene has its own"


def test_a_fault_with_a_long_text_is_cut() -> None:
    from accel_lab.compute.events.lifecycle import CircuitOpened

    scene = Scene()
    scene.add(CircuitOpened(device="gpu0", cause="x" * 1000))
    ((_, _, kind, text),) = view_of(scene).fold(scene)["marks"]
    assert (kind, len(text), text[-1]) == ("fault", LONGEST, "…")


@pytest.mark.parametrize(("seconds", "written"), CASE["durations"])
def test_durations_have_three_digits(seconds: float, written: str) -> None:
    assert duration(seconds) == written


KINDS: tuple[Work, ...] = ("kernel", "copy", "function")
slices = st.builds(
    Slice,
    seq=st.integers(0, 2**40),
    name=st.sampled_from(["Gemm", "Axpy", "Run"]),
    stream=st.sampled_from(["blas", "run"]),
    kind=st.sampled_from(KINDS),
    start=st.floats(1e9, 1e9 + 10),
    end=st.floats(1e9 + 10, 1e9 + 20),
)
looks = st.lists(
    st.tuples(st.sampled_from(["gpu0", "gpu1"]), st.lists(slices, max_size=5)), max_size=8
)


@given(looks=looks, every=st.integers(1, 4))
def test_looks_taken_one_by_one_and_all_at_once_give_the_same(
    looks: list[tuple[str, list[Slice]]], every: int
) -> None:
    """The columns name every slice as it was, by number, whenever the scene was folded."""
    stepped, whole = Scene(), Scene()
    for number, (device, done) in enumerate(looks):
        stepped.add(work(device, done))
        whole.add(work(device, done))
        if number % every == 0:
            view_of(stepped).fold(stepped)
    state = view_of(stepped).fold(stepped)
    assert state == view_of(whole).fold(whole)
    packed = view_of(stepped).pack(stepped)
    assert packed == view_of(whole).pack(whole)
    first, count, columns = unpack(packed)
    assert (first, count) == (0, stepped.traced)
    for (_, device, one), (start, end, seq, kind) in zip(stepped.slices, columns.T, strict=True):
        row, name, what = state["works"][int(kind)]
        assert (start, end, seq, name, what) == (one.start, one.end, one.seq, one.name, one.kind)
        assert (state["rows"][row]["device"], state["rows"][row]["stream"]) == (device, one.stream)


def test_the_columns_are_the_newest_and_stay_small() -> None:
    scene = Scene()
    done = [Slice(n, "Gemm", "blas", "kernel", n, n + 0.5) for n in range(PACKED + 100)]
    scene.add(work("gpu0", done))
    packed = view_of(scene).pack(scene)
    assert len(packed) <= 132_000
    first, count, columns = unpack(packed)
    assert (first, count) == (100, PACKED)
    assert list(columns[2]) == list(range(100, PACKED + 100))


def test_what_the_scene_forgot_before_the_first_look_leaves_no_gap_in_the_columns() -> None:
    scene = Scene()
    scene.add(work("gpu0", [Slice(0, "Gemm", "blas", "kernel", 0.0, 0.5)]))
    view_of(scene).fold(scene)
    done = [Slice(n, "Gemm", "blas", "kernel", n, n + 0.5) for n in range(1, SLICES + 50)]
    scene.add(work("gpu0", done))
    first, count, columns = unpack(view_of(scene).pack(scene))
    assert first + count == scene.traced == SLICES + 50
    assert list(columns[2]) == list(range(first, first + count))


def test_a_fold_costs_what_is_new() -> None:
    scene = Scene()
    done = [Slice(n, "Gemm", "blas", "kernel", n, n + 0.5) for n in range(SLICES)]
    scene.add(work("gpu0", done))
    view = view_of(scene)
    begin = time.thread_time()
    view.fold(scene)
    first_s = time.thread_time() - begin
    next_s = []
    for _ in range(10):
        begin = time.thread_time()
        scene.add(work("gpu0", done[:10]))
        view.fold(scene)
        view.pack(scene)
        next_s.append(time.thread_time() - begin)
    assert min(next_s) < first_s / 3


def test_a_state_of_eight_busy_devices_is_small() -> None:
    import msgspec

    scene = Scene()
    devices = [f"gpu{i}" for i in range(8)]
    scene.add(tree(*devices))
    streams = ("array", "blas", "fft", "rng", "jit", "upload", "download", "run")
    for device in devices:
        ones = [Slice(n, f"Message{n % 20}", streams[n % 8], "kernel", n, n + 1) for n in range(40)]
        scene.add(work(device, ones, [Slice(99, "Run", "run", "function", 50.0, None)]))
    assert len(msgspec.json.encode(view_of(scene).fold(scene))) < 16_384


# With a real system.


@pytest.fixture(scope="module")
def system() -> Iterator[System]:
    with System("host", recover="stale", max_restarts=1000) as opened:
        opened.devices[0].put(np.ones(8)).result(WAIT)
        yield opened


@pytest.fixture
def cpu(system: System) -> Device:
    return system.devices[0]


@pytest.fixture
def view(system: System) -> TimelineView:
    """Watch the system: what is sent from here on is traced."""
    view = views.timeline(system)
    assert type(view) is TimelineView
    watch(view, system)
    return view


def watch(view: TimelineView, system: System) -> None:
    """Look until what is sent is traced; nothing is any more, soon after nobody looks."""
    before = view.source.look().traced
    look_until(view, lambda scene: system.devices[0].run(int).result(WAIT) or scene.traced > before)


def look_until(view: TimelineView, seen: Callable[[Scene], object]) -> Scene:
    """Look as a widget does until something is seen."""
    end = time.monotonic() + WAIT
    while not seen(scene := view.source.look()):
        if time.monotonic() > end:
            raise TimeoutError(f"not seen; running: {scene.running}, newest: {newest(scene)}")
        time.sleep(0.02)
    return scene


def newest(scene: Scene) -> list[Slice]:
    return [one for _, _, one in list(scene.slices)[-5:]]


def done_of(scene: Scene, seq: int) -> Slice | None:
    return next((one for _, _, one in scene.slices if one.seq == seq), None)


def running_of(scene: Scene) -> list[Slice]:
    return [one for ones in scene.running.values() for one in ones]


def test_a_slice_agrees_with_what_the_function_measured_itself(
    view: TimelineView, cpu: Device
) -> None:
    def measured() -> tuple[float, float]:
        begin = time.time()
        time.sleep(0.2)
        return begin, time.time()

    def longer() -> float:
        """Return how much longer the slice is than what it is of."""
        began: float
        ended: float
        began, ended = cpu.run(measured).result(WAIT)

        def around(scene: Scene) -> list[Slice]:
            return [
                x
                for x in newest(scene)
                if x.start <= began and x.end is not None and x.end >= ended
            ]

        (one,) = around(look_until(view, around))
        assert (one.kind, one.stream) == ("function", "run")
        assert one.end is not None
        assert one.start <= began <= ended <= one.end
        return (one.end - one.start) - (ended - began)

    assert any(longer() < 0.05 for _ in range(10)), "unless the process stands still meanwhile"


def wait_for(path: Path) -> None:
    while not path.exists():
        time.sleep(0.001)


def say_and_wait_for(begun: Path, path: Path) -> None:
    begun.touch()
    wait_for(path)


def test_a_long_function_is_seen_while_it_runs_and_once_when_it_is_done(
    view: TimelineView, cpu: Device, tmp_path: Path
) -> None:
    reply = cpu.run(wait_for, tmp_path / "go")
    scene = look_until(view, running_of)
    (one,) = running_of(scene)
    assert one.end is None
    assert not reply.done
    assert f"{one.name} #{one.seq}" in str(view)
    (tmp_path / "go").touch()
    reply.result(WAIT)
    scene = look_until(view, lambda s: done_of(s, one.seq))
    look_until(view, lambda s: not running_of(s))
    assert [x.seq for _, _, x in scene.slices].count(one.seq) == 1


@pytest.mark.parametrize("gone", ["done", "lost"])
def test_what_runs_when_somebody_begins_to_watch_is_seen(tmp_path: Path, gone: str) -> None:
    with System("host", recover="stale") as lab:
        cpu = lab.devices[0]
        cpu.run(int).result(WAIT)
        began = time.time()
        reply = cpu.run(say_and_wait_for, tmp_path / "begun", tmp_path / "go")
        lab.flush()
        wait_for(tmp_path / "begun")
        time.sleep(0.2)  # what is shorter is not told of
        view = views.timeline(lab)
        (one,) = running_of(look_until(view, running_of))
        assert (one.seq, one.name) == (cpu.last_number, "say_and_wait_for")
        assert (one.kind, one.stream) == ("function", "run")
        assert began <= one.start <= time.time() - 0.1
        for _ in range(3):
            time.sleep(0.15)  # it is looked at again meanwhile, and has not begun anew
            assert running_of(look_until(view, running_of)) == [one]
        if gone == "done":
            (tmp_path / "go").touch()
            reply.result(WAIT)
        else:
            cpu.replace()
            with pytest.raises(ContextReplaced):
                reply.result(WAIT)
        (_, _, last) = look_until(view, lambda scene: scene.slices).slices[0]
        assert last.end is not None
        assert msgspec.structs.replace(last, end=None, lost=False) == one
        assert last.lost == (gone == "lost")
        assert last.end > one.start
        look_until(view, lambda scene: not running_of(scene))


SPIN = """
__global__ void spin(volatile int* go) { while (*go == 0) {} }
__global__ void saxpy(float a, const float* x, float* y) { y[threadIdx.x] += a * x[threadIdx.x]; }
"""


def test_a_kernel_has_its_own_name_and_says_for_how_long_it_runs(
    view: TimelineView, system: System, cpu: Device, tmp_path: Path
) -> None:
    require("compiler")
    saxpy = jit.compile(cpu, SPIN, "saxpy").result(WAIT)
    x, y = array.full(cpu, (4,), 1.0, "float32"), array.zeros(cpu, (4,), "float32")
    watch(view, system)  # compiling takes longer than tracing goes on by itself
    saxpy(1, 4, (2.0, x, y)).result(WAIT)
    seq = cpu.last_number
    done = done_of(look_until(view, lambda scene: done_of(scene, seq)), seq)
    assert done is not None
    assert (done.name, done.kind, done.stream) == ("saxpy", "kernel", "jit")
    assert "LaunchKernel" not in view.export(tmp_path / "trace.json").read_text()

    spin = jit.compile(cpu, SPIN, "spin").result(WAIT)
    endless = spin(1, 1, (array.zeros(cpu, (1,), "int32"),))
    seq = cpu.last_number
    long = f"▶ spin #{seq} running for "
    look_until(view, lambda scene: long in str(views.tree(system)) and scene)
    assert re.search(rf"▶ spin #{seq} for [\d.]+ m?s", str(view))
    cpu.replace()
    with pytest.raises(ContextLost):
        endless.result(WAIT)


def test_what_a_stream_is_at_is_told_with_its_time() -> None:
    scene = Scene()
    scene.add(work("gpu0", running=[Slice(7, "saxpy", "jit", "kernel", 1.0, None)]))
    view = views.timeline(lab())
    state = view.fold(scene) | {"at": 13.5}
    assert "▶ saxpy #7 for 12.5 s" in view.text(state)
    assert "▶ saxpy #7 for 12.5 s" in view.html(state)


def test_a_message_that_fails_does_not_stay_running(
    view: TimelineView, cpu: Device, tmp_path: Path
) -> None:
    def breaks() -> None:
        wait_for(tmp_path / "go")
        raise ValueError("on purpose")

    reply = cpu.run(breaks)
    (one,) = running_of(look_until(view, running_of))
    (tmp_path / "go").touch()
    with pytest.raises(UserCodeError, match="on purpose"):
        reply.result(WAIT)
    look_until(view, lambda s: not running_of(s))
    scene = look_until(view, lambda s: done_of(s, one.seq))
    assert [x.seq for _, _, x in scene.slices].count(one.seq) == 1
    done = done_of(scene, one.seq)
    assert done is not None
    assert done.end is not None
    assert done.end > one.start, "it was at work until it failed"
    assert not done.lost


def test_after_a_lost_context_nothing_stays_running(
    view: TimelineView, cpu: Device, system: System
) -> None:
    mark = system.events.published
    cpu.run(time.sleep, 60)
    (one,) = running_of(look_until(view, running_of))
    os.kill(system.events.history(ContextStarted)[-1].pid, signal.SIGKILL)
    system.events.wait_for(ContextStarted, WAIT, since=mark)
    look_until(view, lambda s: not running_of(s))
    cpu.put(np.ones(8)).result(WAIT)
    # The next context may be up before the reason of the loss is told.
    look_until(
        view, lambda s: any("SIGKILL" in str(getattr(fact, "cause", "")) for _, fact in s.facts)
    )
    state = view.sample()
    assert state["running"] == []
    lost = done_of(view.source.look(), one.seq)
    assert lost is not None
    assert lost.lost
    assert "ended with its context" in str(view).lower()
    faults = [text for _, _, kind, text in state["marks"] if kind == "fault"]
    assert "SIGKILL" in faults[-1]
    changes = [text for _, device, kind, text in state["marks"] if kind == "generation"]
    assert changes[-1] == f"g{cpu.generation - 1}→g{cpu.generation}"
