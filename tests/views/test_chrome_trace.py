"""The Chrome trace against the rules of the trace event format."""

import json
import math
from collections import defaultdict
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from accel_lab.compute.events.lifecycle import (
    CircuitOpened,
    ContextLost,
    GenerationChanged,
    LibraryRestarted,
    RequestFailed,
)
from accel_lab.compute.events.samples import Slice
from accel_lab.views.chrome_trace import chrome_trace
from accel_lab.views.scene.scene import Scene
from accel_lab.views.timeline import TimelineView
from tests.views.work import CASE, Recorded, case_scene, tree, work

DEVICES = st.sampled_from(["gpu0", "gpu1", "gpu2"])
streams = st.lists(st.tuples(st.floats(0, 10), st.floats(0, 10)), max_size=6)
works = st.tuples(DEVICES, st.sampled_from(["blas", "run", "upload"]), streams, st.booleans())
moments = st.floats(1000.0, 1100.0)
facts = st.one_of(
    st.builds(
        ContextLost,
        at=moments,
        device=DEVICES,
        generation=st.just(1),
        cause=st.text(),
        in_flight=st.just(0),
    ),
    st.builds(GenerationChanged, at=moments, device=DEVICES, before=st.just(1), after=st.just(2)),
    st.builds(CircuitOpened, at=moments, device=DEVICES, cause=st.text()),
    st.builds(
        LibraryRestarted,
        at=moments,
        device=DEVICES,
        library=st.just("fft"),
        cause=st.text(),
        restarts=st.just(1),
    ),
    st.builds(
        RequestFailed,
        at=moments,
        device=DEVICES,
        message=st.text(),
        error=st.text(),
        cell=st.none(),
    ),
)


def scene_of(looks: list[Any], told: list[Any], *, with_tree: bool) -> Scene:
    """Return a scene in which each stream works in order."""
    scene = Scene()
    if with_tree:
        scene.add(tree("gpu1"))
    seq = 0
    ends: defaultdict[tuple[str, str], float] = defaultdict(lambda: 1000.0)
    running: dict[str, list[Slice]] = defaultdict(list)
    for device, stream, spans, at_work in looks:
        done = []
        for gap, length in spans:
            start = ends[device, stream] + gap
            ends[device, stream] = start + length
            done.append(Slice(seq, "Gemm", stream, "kernel", start, start + length))
            seq += 1
        if at_work:
            running[device] = [Slice(seq, "Run", "run", "function", ends[device, stream], None)]
        scene.add(work(device, done, running[device]))
    for fact in told:
        scene.add(fact)
    return scene


def check(trace: dict[str, Any]) -> None:
    """Assert the rules of the format (Trace Event Format, as Perfetto imports it)."""
    assert json.loads(json.dumps(trace, allow_nan=False)) == trace
    assert trace["displayTimeUnit"] in {"ms", "ns"}
    processes: dict[int, str] = {}
    threads: dict[tuple[int, int], str] = {}
    for event in trace["traceEvents"]:
        assert {"ph", "name", "pid", "tid"} <= event.keys()
        assert type(event["pid"]) is int
        assert type(event["tid"]) is int
        if event["ph"] == "M":
            pid, tid, name = event["pid"], event["tid"], event["args"]["name"]
            if event["name"] == "process_name":
                assert pid not in processes
                processes[pid] = name
            else:
                assert event["name"] == "thread_name"
                assert (pid, tid) not in threads
                threads[pid, tid] = name
            continue
        assert math.isfinite(event["ts"])
        assert event["ts"] >= 0
        assert event["pid"] in processes
        if event["ph"] == "i":
            assert event["s"] in {"g", "p", "t"}
            assert "dur" not in event
            continue
        assert event["ph"] in {"X", "B"}
        assert (event["pid"], event["tid"]) in threads
        assert ("dur" in event) == (event["ph"] == "X")
        assert event.get("dur", 0) >= 0
    assert len(set(processes.values())) == len(processes)
    assert all(tid > 0 for _, tid in threads)


@settings(max_examples=50)
@given(st.lists(works, max_size=6), st.lists(facts, max_size=5), st.booleans())
def test_every_scene_gives_a_trace_by_the_rules(
    looks: list[Any],
    told: list[Any],
    with_tree: bool,  # noqa: FBT001 - hypothesis chooses
) -> None:
    """Every slice is one event on its stream, where it was; what runs begins and does not end."""
    scene = scene_of(looks, told, with_tree=with_tree)
    trace = chrome_trace(scene)
    check(trace)
    events = trace["traceEvents"]
    names = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    lanes = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    origin = trace["otherData"]["origin_s"]
    found = [
        (names[e["pid"]], lanes[e["pid"], e["tid"]], e["args"]["seq"], e["ts"], e["dur"])
        for e in events
        if e["ph"] == "X"
    ]
    for (_, device, one), (pid, tid, seq, ts, dur) in zip(scene.slices, found, strict=True):
        assert one.end is not None
        assert (device, one.stream, one.seq) == (pid, tid, seq)
        assert abs(origin + ts / 1e6 - one.start) < 2e-6
        assert abs(dur / 1e6 - (one.end - one.start)) < 2e-6
    begun = [e["args"]["seq"] for e in events if e["ph"] == "B"]
    assert begun == [one.seq for ones in scene.running.values() for one in ones]
    assert not any(e["ph"] == "E" for e in events)
    assert sum(e["ph"] == "i" for e in events) == len(told)


def test_the_case_is_the_trace_that_the_browser_makes_too() -> None:
    assert chrome_trace(case_scene()) == CASE["trace"]


def test_an_empty_scene_is_an_empty_trace() -> None:
    trace = chrome_trace(Scene())
    check(trace)
    assert trace["traceEvents"] == []


def test_export_writes_the_trace_to_a_file(tmp_path: Path) -> None:
    view = TimelineView(Recorded(case_scene()))
    path = view.export(str(tmp_path / "lab.json"))
    assert json.loads(path.read_text()) == CASE["trace"]
