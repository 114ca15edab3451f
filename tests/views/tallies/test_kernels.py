"""The kernel table without a browser: what it counts is what the trace has."""

import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from accel_lab import System, blas
from accel_lab.compute.events.samples import Slice, SystemEnded, Work, WorkTraced
from accel_lab.compute.output import cell_origin
from accel_lab.compute.output.cell_origin import Origin
from accel_lab.views.kernels import DRAWN, LISTED, WIDTH, KernelsView
from accel_lab.views.lab import LabView
from accel_lab.views.past.recording import retell
from accel_lab.views.past.still import Still
from accel_lab.views.scene.recap import recap
from accel_lab.views.scene.scene import SLICES, Scene
from accel_lab.views.tallies import kernel_tally
from accel_lab.views.tallies.kernel_tally import CELLS, KernelTally
from accel_lab.views.timeline import duration
from accel_lab.views.widget.view import View
from tests.views.made_up import lab as made_up
from tests.views.test_tree import Table
from tests.views.work import Recorded, case_scene, tree, work

WAIT_S = 20.0


def folded(scene: Scene) -> dict[str, Any]:
    return KernelsView(Recorded(scene)).fold(scene)


def drawn(scene: Scene) -> str:
    return KernelsView(Recorded(scene)).text(folded(scene))


def summed(scene: Scene) -> dict[tuple[str, str, str], tuple[int, float, float, float]]:
    """Sum the slices of a scene in the plainest way: calls, total, longest, last."""
    took: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    ends: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    for _, device, one in scene.slices:
        if one.kind != "untraced" and not one.lost and one.end is not None:
            took[one.name, device, one.stream].append(one.end - one.start)
            ends[one.name, device, one.stream].append(one.end)
    return {k: (len(v), sum(v), max(v), max(ends[k])) for k, v in took.items()}


def told(state: dict[str, Any]) -> dict[tuple[str, str, str], tuple[int, float, float, float]]:
    """Return the same of the rows."""
    return {
        (row["name"], row["device"], row["stream"]): (
            row["calls"],
            row["total"],
            row["longest"],
            row["last"],
        )
        for row in state["kernels"]
        if row["calls"]
    }


def close(found: Mapping[Any, Any], expected: Mapping[Any, Any]) -> bool:
    return found.keys() == expected.keys() and all(
        np.allclose(found[key], expected[key], rtol=0, atol=1e-6) for key in expected
    )


def slice_of(
    seq: int,
    name: str = "Gemm",
    start: float = 1000.0,
    end: float | None = 1001.0,
    kind: Work = "kernel",
    **more: Any,
) -> Slice:
    return Slice(seq, name, "blas", kind, start, end, **more)


# What is counted.


def test_rows_are_what_the_slices_sum_to() -> None:
    scene = case_scene()
    state = folded(scene)
    assert told(state) == summed(scene)
    run = next(row for row in state["kernels"] if row["name"] == "Run")
    assert (run["calls"], run["running"], "last" in run) == (0, 1000.75, False)
    assert (state["untraced"], state["devices"], state["lab"]) == (2, ["gpu0", "gpu1"], "lab")


def test_looks_that_follow_each_other_count_what_one_look_counts() -> None:
    scene, rng = Scene(), np.random.default_rng(26)
    for look in range(40):
        spans = np.sort(rng.uniform(1000 + look, 1001 + look, (25, 2)))
        done = [
            slice_of(25 * look + n, f"kernel{n % 7}", float(start), float(end))
            for n, (start, end) in enumerate(spans)
        ]
        scene.add(work(f"gpu{look % 2}", done))
        state = folded(scene)
    assert close(told(state), summed(scene))
    assert sum(row["calls"] for row in state["kernels"]) == 1000
    kernel_tally._tallies.clear()
    assert folded(scene) == state


def test_a_look_costs_what_is_new(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene()
    scene.add(work("gpu0", [slice_of(n) for n in range(5_000)]))
    folded(scene)
    counted: list[int] = []
    count = KernelTally._count

    def counts(self: KernelTally, slices: Any, senders: Any) -> None:
        counted.append(len(slices))
        count(self, slices, senders)

    monkeypatch.setattr(KernelTally, "_count", counts)
    scene.add(work("gpu0", [slice_of(5_000), slice_of(5_001)]))
    assert folded(scene)["kernels"][0]["calls"] == 5_002
    folded(scene)
    assert counted == [2]


def test_the_same_name_on_another_stream_or_device_is_another_row() -> None:
    scene = Scene()
    scene.add(work("gpu0", [slice_of(1), Slice(2, "Gemm", "jit", "kernel", 1001.0, 1002.0)]))
    scene.add(work("gpu1", [slice_of(1)]))
    assert sorted(told(folded(scene))) == [
        ("Gemm", "gpu0", "blas"),
        ("Gemm", "gpu0", "jit"),
        ("Gemm", "gpu1", "blas"),
    ]


def test_messages_that_were_not_traced_are_said_and_not_counted_as_calls() -> None:
    scene = Scene()
    several = Slice(1200, "not traced", "blas", "untraced", 1000.5, 1001.0)
    goes_on = Slice(1200, "not traced", "blas", "untraced", 990.0, None)
    scene.add(work("gpu0", [slice_of(1), several], [goes_on], dropped=1200))
    state = folded(scene)
    assert [(row["name"], row["calls"]) for row in state["kernels"]] == [("Gemm", 1)]
    assert "running" not in state["kernels"][0]
    assert "1200 messages not traced" in drawn(scene)


def test_what_ended_with_its_context_is_no_call_and_is_said() -> None:
    scene = Scene()
    scene.add(work("gpu0", [slice_of(1)], [slice_of(2, start=1001.0, end=None)]))
    scene.add(WorkTraced(device="gpu0", generation=2, done=(), running=(), at=1009.0))
    state = folded(scene)
    (row,) = state["kernels"]
    assert (row["calls"], row["total"], row["lost"]) == (1, 1.0, 1)
    assert "running" not in row
    assert "1 ⊗1" in drawn(scene)
    view = KernelsView(Recorded(scene))
    assert "1 ended with its context" in view.html(state)


def test_slices_that_a_scene_had_forgotten_before_the_first_look_are_said() -> None:
    scene = Scene()
    for start in range(0, SLICES + 3_000, 1_000):
        scene.add(work("gpu0", [slice_of(start + n) for n in range(1_000)]))
    state = folded(scene)
    assert (state["forgotten"], state["kernels"][0]["calls"]) == (3_000, SLICES)
    assert "3000 earlier slices not counted" in drawn(scene)


def test_many_kernels_are_the_200_that_took_the_most_and_one_row() -> None:
    scene = Scene()
    took = {f"kernel{n:03}": float(n + 1) for n in range(LISTED + 37)}
    done = [
        slice_of(n, name, 1000.0, 1000.0 + seconds)
        for n, (name, seconds) in enumerate(took.items())
    ]
    scene.add(work("gpu0", done))
    state = folded(scene)
    least = sorted(took.values())[:37]
    assert len(state["kernels"]) == LISTED
    assert min(row["total"] for row in state["kernels"]) > max(least)
    assert state["rest"] == {
        "kinds": 37,
        "calls": 37,
        "total": sum(least),
        "longest": max(least),
        "last": 1000.0 + max(least),
    }
    lines = drawn(scene).splitlines()
    assert lines[0].startswith(f"system: {LISTED + 37} kernels, {duration(sum(took.values()))} of")
    assert len(lines) == 2 + DRAWN + 1
    others = sorted(took.values())[:-DRAWN]
    assert lines[-1].split()[:3] == [str(len(others)), "more", f"{len(others)}"]
    assert duration(sum(others)) in lines[-1]
    assert len(msgspec.json.encode(state)) < 40_000


# Whose it is.


def test_a_row_has_the_numbers_of_the_cells_that_sent_it() -> None:
    scene = Scene()
    scene.add(
        WorkTraced(
            device="gpu0",
            generation=1,
            done=(slice_of(1), slice_of(3), slice_of(5), slice_of(6, "Axpy")),
            running=(slice_of(9, "Spin", end=None),),
            cells=((1, 3), (3, 4), (4, None), (6, 7), (9, 12)),
        )
    )
    state = folded(scene)
    cells = {row["name"]: list(row.get("cells", ())) for row in state["kernels"]}
    assert cells == {"Gemm": [(3, 4)], "Axpy": [(7, 7)], "Spin": [(12, 12)]}
    assert re.search(r"Gemm .* 3-4$", drawn(scene), re.MULTILINE)


def test_of_very_many_cells_the_newest_are_told() -> None:
    scene = Scene()
    many = 2 * CELLS
    scene.add(
        WorkTraced(
            device="gpu0",
            generation=1,
            done=tuple(slice_of(n) for n in range(1, many)),
            running=(),
            cells=tuple((n, 2 * n) for n in range(1, many)),
        )
    )
    (row,) = folded(scene)["kernels"]
    assert [a for a, _ in row["cells"]] == [2 * n for n in range(many - CELLS, many)]
    assert row["earlier"]
    assert max(map(len, drawn(scene).splitlines())) <= WIDTH


@pytest.mark.parametrize("again", [recap, retell])
def test_who_is_told_of_a_scene_knows_the_same_cells(again: Callable[[Scene], Any]) -> None:
    scene = Scene()
    scene.add(tree("gpu0"))
    done = (slice_of(1), slice_of(2), slice_of(3, "Axpy"))
    cells = ((1, 3), (2, None), (3, 5))
    scene.add(WorkTraced(device="gpu0", generation=1, done=done, running=(), cells=cells, at=1.0))
    other = Scene()
    for fact in again(scene):
        other.add(fact)
    assert folded(other)["kernels"] == folded(scene)["kernels"]
    twin = scene.copy()
    twin.senders["gpu0"].begin(4, 9)
    assert scene.senders["gpu0"].cell_of(4) == 5


# What it says.


def test_the_text_keeps_to_80_columns() -> None:
    scene = Scene()
    long = "void cutlass::Kernel2<cutlass_80_simt_sgemm_128x128_8x4_nn_align1>"
    scene.add(tree("gpu0"))
    done = [slice_of(n, long, 1000.0, 1000.123456) for n in range(12_345)]
    scene.add(work("gpu0", done, [slice_of(9, "short", 1000.0, None)]))
    text = drawn(scene)
    assert max(map(len, text.splitlines())) <= WIDTH
    line = r"^void cut\S*… +gpu0/blas +12,345 +1524 s +123 ms +123 ms +100\.0 %$"
    assert re.search(line, text, re.MULTILINE)
    assert "short" in text


def test_the_table_shows_names_as_text_and_when_they_ran() -> None:
    scene = case_scene()
    scene.add(work("<b>", [slice_of(1, "<i>")]))
    view = KernelsView(Recorded(scene))
    table = Table(view.html(view.fold(scene)))
    assert table.rows[1][:4] == ["Kernel", "On", "Calls", "Total"]
    assert table.rows[2][:6] == ["<i>", "<b>/blas", "1", "1 s", "1 s", "1 s"]
    assert any("running for 500 ms" in cell for row in table.rows for cell in row)
    assert table.attributes == {"scope"}


def test_nothing_seen_closed_and_unrecorded_say_so() -> None:
    scene = Scene()
    assert drawn(scene) == "system: 0 kernels, no work was seen yet"
    scene.add(SystemEnded(name="lab"))
    assert drawn(scene).endswith("(closed)")
    scene.unrecorded["work"] = "nobody has looked at the work"
    assert drawn(scene) == "system: work is not recorded: nobody has looked at the work"


def test_a_part_of_a_session_says_which() -> None:
    facts = [WorkTraced(device="gpu0", generation=0, done=(slice_of(1),), running=())]
    view = KernelsView(Still("lab", "cell 12", facts))
    assert view.text(view.sample()).splitlines()[0] == "lab, cell 12: 1 kernel, 1 s of work"


def test_an_idle_system_does_not_change() -> None:
    view = KernelsView(made_up(2))
    assert view.sample() == view.sample()


# A system that runs.


@pytest.fixture
def seen() -> Iterator[tuple[System, KernelsView]]:
    with System("host", name="real") as lab:
        view = KernelsView(lab.ready())
        traced(view, lambda: lab.devices[0].put(np.ones(3)).result())
        yield lab, view


def traced(view: View, send: Callable[[], object]) -> None:
    """Send work until some of it is seen: from then on all is, as long as somebody looks."""

    def is_seen(state: dict[str, Any]) -> bool:
        send()
        rows = state["kernels"]
        return bool(rows["kernels"] if isinstance(rows, dict) else rows)

    settled(view, is_seen)


def settled(view: View, wanted: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
    """Look until something is seen, as the publisher does."""
    end = time.monotonic() + WAIT_S
    while not wanted(state := view.sample()):
        assert time.monotonic() < end, state
        time.sleep(0.02)
    return state


def test_cells_functions_and_messages_of_a_system_that_runs_are_rows(
    seen: tuple[System, KernelsView], monkeypatch: pytest.MonkeyPatch
) -> None:
    lab, view = seen
    gpu = lab.devices[0]

    def double(x: Any) -> Any:
        return 2 * x

    monkeypatch.setattr(cell_origin, "_current", Origin(4))
    x = gpu.put(np.ones((32, 32)))
    for _ in range(5):
        y = x @ x
    y.get()
    monkeypatch.setattr(cell_origin, "_current", Origin(6))
    assert gpu.run(double, 21).result() == 42
    (x @ x).get()
    state = settled(
        view,
        lambda state: (
            {("Gemm", 6), ("double", 1), ("Download", 2)}
            <= {(row["name"], row["calls"]) for row in state["kernels"]}
        ),
    )
    with view.source.lock:
        scene = view.source.look()
        assert close(told(view.fold(scene)), summed(scene))
    cells = {row["name"]: list(row["cells"]) for row in state["kernels"]}
    assert cells["Gemm"] == cells["Download"] == [(4, 4), (6, 6)]
    assert cells["double"] == [(6, 6)]
    double_row = next(row for row in state["kernels"] if row["name"] == "double")
    assert (double_row["kind"], double_row["stream"]) == ("function", "run")


def wait_for(path: str) -> None:
    import os
    import time

    while not os.path.exists(path):  # noqa: PTH110 - what it imports travels with it
        time.sleep(0.005)


def test_what_runs_now_says_so(seen: tuple[System, KernelsView], tmp_path: Path) -> None:
    lab, view = seen
    end = tmp_path / "end"
    reply = lab.devices[0].run(wait_for, str(end))
    state = settled(view, lambda state: any("running" in row for row in state["kernels"]))
    (row,) = [row for row in state["kernels"] if "running" in row]
    assert (row["name"], row["calls"]) == ("wait_for", 0)
    assert "0 ▶" in view.text(state)
    end.touch()
    reply.result()
    settled(view, lambda state: not any("running" in row for row in state["kernels"]))


def test_in_the_past_it_counts_what_was_done_by_then_or_says_that_nobody_looked() -> None:
    with System("host", name="real") as lab:
        gpu = lab.ready().devices[0]
        gpu.put(np.ones(3)).get()
        lab.flush()
        view = LabView(lab)
        settled(view, lambda state: state["journal"]["count"] >= 1)
        x = gpu.put(np.ones((16, 16)))
        traced(view, lambda: blas.gemm(x, x).result())
        for _ in range(3):
            (x @ x).result()
        lab.flush()
        settled(view, lambda state: calls(state["kernels"], "Gemm") >= 3)
        count = settled(view, lambda state: state["journal"]["count"] >= 8)["journal"]["count"]

        def at(position: int) -> dict[str, Any]:
            view.do_part("journal", {"do": "seek", "position": position})
            state: dict[str, Any] = view.sample()["kernels"]
            return state

        first = at(1)
        assert first["kernels"] == []
        assert first["unrecorded"].startswith("work was first looked at ")
        assert "work is not recorded" in view.parts["kernels"].text(first)
        past = [at(position) for position in range(1, count + 1)]
        for state in past:
            ends = [row["last"] for row in state["kernels"] if row["calls"]]
            assert max(ends, default=0.0) <= state["at"] + 1e-6
        done = [sum(row["calls"] for row in state["kernels"]) for state in past]
        assert done == sorted(done)
        assert done[-1] > 0
        assert at(1) == first


def calls(state: dict[str, Any], name: str) -> int:
    return sum(row["calls"] for row in state["kernels"] if row["name"] == name)
