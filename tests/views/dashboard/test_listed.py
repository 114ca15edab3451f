"""What a dashboard's list says of the systems of this process."""

import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from accel_lab import System
from accel_lab.views import Recording, record
from accel_lab.views.dashboard.watched import Onlooker
from accel_lab.views.feed.feed import FEED
from accel_lab.views.lab import LabView
from accel_lab.views.scene.scene import Scene
from tests.views.made_up import lab as made_up

if find_spec("prometheus_client") is None or find_spec("panel") is None:
    pytest.skip("panel and prometheus_client come with the lab extra", allow_module_level=True)

from accel_lab.views.dashboard.metrics import exposition
from accel_lab.views.dashboard.page import Desk, _coarse


def listed(onlooker: Onlooker) -> Any:
    """Return the row of a system."""
    (row,) = Desk(lambda: [onlooker], LabView).overview()
    return row


def test_a_system_is_up_since_it_was_opened_and_not_since_somebody_looks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with System("host") as lab:
        opened = FEED.opened_at(lab)
        assert opened is not None
        later = time.time() + 600
        monkeypatch.setattr(time, "time", lambda: later)
        onlooker = Onlooker(lab, lab.name)
        assert onlooker.opened == opened
        assert listed(onlooker)["up_s"] >= 540
        monkeypatch.undo()


def test_a_recording_is_marked_and_neither_up_nor_live(tmp_path: Path) -> None:
    lab = made_up(1)
    record(lab, tmp_path / "session.jsonl").close()
    with Recording.open(tmp_path / "session.jsonl") as recording:
        onlooker = Onlooker(recording, "lab")
        row = listed(onlooker)
        assert (row["name"], row["ended"]) == ("lab", "recorded")
        up = exposition([onlooker]).partition(b"\naccel_lab_up{")[2].splitlines()[0]
        assert up.endswith(b" 0.0")


def test_the_time_that_a_system_is_up_never_runs_backwards(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whoever sets the clock on the wall."""
    onlooker = Onlooker(made_up(1), "lab")
    before = onlooker.up_s
    monkeypatch.setattr(time, "time", lambda: 0.0)
    assert onlooker.up_s >= before
    monkeypatch.undo()
    shown = [_coarse(seconds) for seconds in range(4000)]
    assert shown == sorted(shown)


def test_a_process_that_was_killed_stands_first() -> None:
    onlookers = [Onlooker(made_up(1), name) for name in ("first", "second", "third")]
    killed = onlookers[2]
    killed.killed = True
    ended: Any = Ended()
    killed._source = ended
    rows = Desk(lambda: list(onlookers), LabView).overview()
    assert [row["name"] for row in rows] == ["third", "first", "second"]
    assert rows[0]["ended"] == "killed"


class Ended:
    """A source of which nothing more comes."""

    ended = True

    def look(self) -> Scene:
        return Scene()
