"""Collective operations on the time line: one mark for all ranks, live and in a recording."""

import time
from pathlib import Path
from typing import Any

import numpy as np

from accel_lab import System
from accel_lab.views.past.recording import Recording, record
from accel_lab.views.scene.scene import Scene
from accel_lab.views.scene.worlds.joints import SHOWN
from accel_lab.views.timeline import TimelineView
from tests.views.collectives.worlds import AT, DEVICES, ended, look, scene_of, tree
from tests.views.work import Recorded

LATE = (0.0, -1.0, 0.002, 0.004)
WAIT_S = 30


def state_of(scene: Scene) -> dict[str, Any]:
    return TimelineView(Recorded(scene)).fold(scene)


def test_a_collective_is_one_mark_with_the_begin_of_each_rank() -> None:
    scene = scene_of(tree(), look(), ended(), ended(2, LATE, failure="late", at=AT + 6))
    first, second = state_of(scene)["joints"]
    begins = [AT + 5 - 0.01 + waited for waited in (0.0, 0.001, 0.006, 0.002)]
    assert first[:4] == [round(AT + 5 - 0.01, 6), AT + 5, "all_reduce 64 MiB", False]
    assert first[4] == [[d, round(at, 6)] for d, at in zip(DEVICES, begins, strict=True)]
    assert second[3] is True
    assert second[4][1] == ["gpu1", None], "it never began"


def test_the_newest_are_marked_and_a_session_without_any_says_nothing() -> None:
    scene = scene_of(tree(), look(), *(ended(n, at=AT + n) for n in range(SHOWN + 9)))
    ends = [one[1] for one in state_of(scene)["joints"]]
    assert ends == [AT + n for n in range(9, SHOWN + 9)]
    assert "joints" not in state_of(scene_of(tree()))


def test_a_recording_has_the_marks_that_were_seen_live(tmp_path: Path) -> None:
    with System("host", 2, name="lab") as lab:
        view = TimelineView(lab)
        with record(lab, tmp_path / "session"):
            world = lab.world()
            world.all_reduce([device.put(np.ones(3)) for device in lab.devices]).result(WAIT_S)
            until = time.monotonic() + WAIT_S
            while "joints" not in (live := view.sample()):
                assert time.monotonic() < until
                time.sleep(0.01)
        assert "1 collective operation" in view.text(live)
    played = TimelineView(Recording(tmp_path / "session"))
    assert played.sample()["joints"] == live["joints"]
    assert [device for device, _ in live["joints"][0][4]] == ["cpu0", "cpu1"]
