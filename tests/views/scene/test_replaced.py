"""A context that somebody had replaced is no fault, and a device without one says what it does."""

from pathlib import Path

import pytest

from accel_lab import views
from accel_lab.compute.events.lifecycle import ContextLost, ContextStarted
from accel_lab.errors import ContextReplaced
from accel_lab.system import System
from accel_lab.views import Recording, TimelineView, VramView
from accel_lab.views.scene.fault_mark import mark_of
from accel_lab.views.scene.incidents import incidents
from tests.views.made_up import lab as made_up

WAIT = 20.0


def test_a_replace_that_was_asked_for_is_nowhere_a_fault(tmp_path: Path) -> None:
    with System("host", devices=1, name="lab") as lab:
        gpu = lab.devices[0]
        gpu.ping().result(WAIT)
        timeline, supervision = views.timeline(lab), views.supervision(lab)
        with views.record(lab, f"{tmp_path}/session.jsonl"):
            mark = lab.events.published
            gpu.replace()
            lost = lab.events.wait_for(ContextLost, WAIT, since=mark)
            lab.events.wait_for(ContextStarted, WAIT, since=mark)
            (row,) = [one for one in supervision.sample()["rows"] if "replaced" in one["what"]]
        assert isinstance(lost, ContextLost)
        assert lost.asked
        assert mark_of(lost) is None
        assert (row["level"], row["what"], row["outcome"]) == (
            "note",
            "context replaced",
            "recovered",
        )
        kinds = [kind for _, _, kind, _ in timeline.sample()["marks"]]
        assert kinds == ["generation"]
        assert ": 0 faults" in str(supervision)
        journal = views.journal(lab)
        lab.flush()
        state = journal.sample()
        assert state["faults"] == 0
        assert "losses" not in state
        assert any("replaced, as asked" in row["what"] for row in state["window"])
        assert list(Recording.open(f"{tmp_path}/session.jsonl").faults) == []


def test_what_a_replace_ended_is_no_fault_in_the_journal_either() -> None:
    with System("host", devices=1) as lab:
        gpu = lab.devices[0]
        gpu.ping().result(WAIT)
        mark = lab.events.published
        busy = gpu.run(_wait)
        gpu.replace()
        with pytest.raises(ContextReplaced):
            busy.result(WAIT)
        lab.events.wait_for(ContextStarted, WAIT, since=mark)
        lab.flush()
        assert views.journal(lab).sample()["faults"] == 0


def _wait() -> None:
    import threading

    threading.Event().wait(60)


def test_a_loss_that_nobody_asked_for_is_a_fault_still() -> None:
    lost = ContextLost(device="gpu0", generation=1, cause="it was killed", in_flight=0)
    (one,) = incidents([(0, lost)])
    assert (one.level, one.what) == ("fault", "context lost")
    found = mark_of(lost)
    assert found is not None
    assert found.kind == "fault"


def test_a_device_that_starts_says_so_in_every_view_that_has_nothing_of_it_yet() -> None:
    lab = made_up(1)
    lab.devices[0].state = "starting"
    timeline = TimelineView(lab)
    assert timeline.sample()["states"] == {"gpu0": "starting"}
    assert "gpu0 is starting" in timeline.text(timeline.sample())
    memory = VramView(lab)
    assert "gpu0: starting, not seen yet" in memory.text(memory.sample())
    lab.devices[0].state = "running"
    assert "states" not in timeline.sample()
