"""What lies beside the slices on the axis of time: as a timeline sends it, and in a replay."""

from typing import Any

import numpy as np

from accel_lab.compute.events.samples import (
    CellRun,
    HostWait,
    LevelsSampled,
    NotebookSampled,
    Slice,
)
from accel_lab.views.past.facts import UNTOLD
from accel_lab.views.past.rewound import Rewound
from accel_lab.views.scene.scene import Scene
from accel_lab.views.scene.strips import LEVELS, OF_LEVELS, OF_QUEUED, OF_WAITS, WAITS
from accel_lab.views.timeline import CELLS, TimelineView
from tests.views.past.test_rewound import Live
from tests.views.work import Recorded, tree, work


def strips(scene: Scene) -> list[tuple[float, float, Any]]:
    """Return the strips that a timeline sends of a scene, each with its columns."""
    view = TimelineView(Recorded(scene))
    numbers = np.frombuffer(view.pack(scene), "<f8")
    at, found = 2 + 4 * int(numbers[1]), []
    while at < len(numbers):
        kind, of, count = numbers[at], numbers[at + 1], int(numbers[at + 2])
        columns = 1 if kind == OF_QUEUED else 2
        told = numbers[at + 3 : at + 3 + columns * count].reshape(columns, count)
        found.append((kind, of, told.tolist()))
        at += 3 + columns * count
    return found


def cell(number: int, start: float, end: float | None = None) -> CellRun:
    return CellRun(number, f"x{number} = 1", start, end, "" if end is None else "done")


def test_a_scene_without_any_sends_none() -> None:
    scene = Scene()
    scene.add(tree("gpu0"))
    scene.add(work("gpu0", [Slice(1, "Gemm", "blas", "kernel", 1.0, 2.0)]))
    assert strips(scene) == []
    assert "cells" not in TimelineView(Recorded(scene)).fold(scene)


def test_waits_levels_and_queue_times_are_packed_and_the_newest_cells_told() -> None:
    scene = Scene()
    scene.add(tree("gpu0", "gpu1"))
    waits = (HostWait(1.0, 2.0), HostWait(3.0, None))
    scene.add(NotebookSampled(cells=(cell(1, 0.5, 2.5), cell(2, 2.75)), waits=waits))
    scene.add(LevelsSampled(device="gpu1", levels=((1.0, 64), (2.0, 0))))
    slices = [
        Slice(n, "Gemm", "blas", "kernel", n, n + 0.5, queued=q) for n, q in ((1, 0.5), (2, None))
    ]
    scene.add(work("gpu0", slices))
    sent = strips(scene)
    (of_waits, of_levels, of_queued) = sent
    assert of_waits[0] == OF_WAITS
    assert of_waits[2][0] == [1.0, 3.0]
    assert of_waits[2][1][0] == 2.0
    assert np.isnan(of_waits[2][1][1])
    assert of_levels == (OF_LEVELS, 1.0, [[1.0, 2.0], [64.0, 0.0]])
    assert of_queued == (OF_QUEUED, 0.0, [[0.5, 0.0]])
    state = TimelineView(Recorded(scene)).fold(scene)
    assert state["cells"] == [[1, 0.5, 2.5, "done", "x1 = 1"], [2, 2.75, None, "", "x2 = 1"]]
    assert state["totals"] == {"gpu1": None}


def test_what_is_sent_is_bounded() -> None:
    scene = Scene()
    scene.add(tree("gpu0"))
    count = max(WAITS, LEVELS, CELLS) + 7
    scene.add(
        NotebookSampled(
            cells=tuple(cell(n, n, n + 0.5) for n in range(count)),
            waits=tuple(HostWait(n, n + 0.5) for n in range(count)),
        )
    )
    levels = tuple((float(n), n) for n in range(count))
    scene.add(LevelsSampled(device="gpu0", levels=levels))
    of_waits, of_levels = strips(scene)
    assert (len(of_waits[2][0]), of_waits[2][0][-1]) == (WAITS, count - 1)
    assert (len(of_levels[2][0]), of_levels[2][0][-1]) == (LEVELS, count - 1)
    told = TimelineView(Recorded(scene)).fold(scene)["cells"]
    assert (len(told), told[-1][0]) == (CELLS, count - 1)


def test_a_replay_has_the_cells_the_waits_and_the_memory_of_its_moment() -> None:
    live, base = Live(), Scene()
    base.unrecorded.update(UNTOLD)
    cells = (cell(1, 1.0, 2.0), cell(2, 3.0, 9.0), cell(3, 10.0, 11.0))
    waits = (HostWait(1.5, 1.75), HostWait(4.0, 8.0), HostWait(10.0, 10.5))
    live.see(
        tree("gpu0"),
        NotebookSampled(cells=cells, waits=waits),
        LevelsSampled(device="gpu0", levels=((1.0, 64), (6.0, 128))),
    )
    scene = Rewound(live).at(5.0, base)
    assert list(scene.cells.values()) == [cell(1, 1.0, 2.0), cell(2, 3.0)]
    assert list(scene.waits.values()) == [HostWait(1.5, 1.75), HostWait(4.0, None)]
    assert list(scene.levels["gpu0"]) == [(1.0, 64)]
    assert "cells" not in scene.unrecorded


def test_a_replay_says_why_there_are_no_cells() -> None:
    base = Scene()
    base.unrecorded.update(UNTOLD)
    scene = Rewound(Live()).at(5.0, base)
    state = TimelineView(Recorded(scene)).fold(scene)
    assert state["cells_unrecorded"] == "a journal does not say when cells ran"
    assert "cells" not in state
