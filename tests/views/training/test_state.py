"""Trainers as the view folds them, as text and as tables, without a browser."""

from html.parser import HTMLParser
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from accel_lab.compute.events.samples import SystemEnded
from accel_lab.views.past.recording import retell
from accel_lab.views.scene.recap import recap
from accel_lab.views.scene.scene import Scene
from accel_lab.views.scene.trainings import POINTS, RUNS
from accel_lab.views.training import TrainingView
from accel_lab.views.training.words import html, sparkline, text
from tests.views.collectives.worlds import scene_of
from tests.views.test_supervision import Recorded
from tests.views.training.steps import AT, FAULT, RANKS, step, steps


def run_of(scene: Scene) -> Any:
    (run,) = TrainingView(Recorded(scene)).sample()["runs"]
    return run


def test_a_run_says_how_far_it_is_how_fast_and_where_its_time_goes() -> None:
    run = run_of(scene_of(*steps(20, killed=[7])))
    assert (run["step"], run["at"], run["loss"], run["norm"]) == (20, AT + 20, "0.15", "1.05")
    assert run["speed"] == ["1,500", "rows"]
    assert (run["took"], run["mean_of"]) == ("40 ms", 16)
    first, second = run["ranks"]
    assert first["seconds"] == pytest.approx([0.034, 0.006, 0.0])
    assert second["seconds"] == pytest.approx([0.024, 0.006, 0.01])
    assert second["words"] == ["24 ms", "6.0 ms", "10 ms"]
    why = ["cpu1 lost its context", FAULT]
    assert run["restarts"] == [{"at": AT + 7, "step": 7, "why": why}]
    assert run["curve"]["steps"] == list(range(1, 21))
    assert run["curve"]["loss"][:3] == [3.0, 1.5, 1.0]


def test_means_are_of_steps_on_the_same_ranks() -> None:
    alone = structs.replace(
        step(21), ranks=RANKS[:1], exchanging_s=(0.0,), waiting_s=(0.0,), seconds=0.08
    )
    run = run_of(scene_of(*steps(20), alone))
    assert (run["mean_of"], run["took"]) == (1, "80 ms")
    assert [rank["device"] for rank in run["ranks"]] == ["cpu0"]


@settings(max_examples=12, deadline=None)
@given(count=st.integers(1, 5 * POINTS))
def test_a_long_curve_is_thinned_evenly_and_keeps_its_ends(count: int) -> None:
    scene = scene_of(*steps(count, killed=[1]))
    drawn = run_of(scene)["curve"]["steps"]
    assert len(drawn) <= POINTS + 16
    assert len(drawn) >= min(count, POINTS // 2)
    assert drawn[-min(count, 16) :] == list(range(max(1, count - 15), count + 1))
    body = [one for one in drawn if one <= count - 16]
    gaps = {b - a for a, b in pairwise(body)}
    assert len(gaps) <= 1  # every second, fourth, eighth one
    assert drawn[0] == 1
    assert [one["step"] for one in run_of(scene)["restarts"]] == [1]


def test_steps_that_are_done_again_are_drawn_once() -> None:
    scene = scene_of(*steps(30))
    scene.add(step(26, loss=9.0, killed=True, again=5))
    run = run_of(scene)
    assert run["curve"]["steps"] == list(range(1, 27))
    assert run["curve"]["loss"][-2:] == [0.12, 9.0]
    assert run["restarts"][0]["again"] == 5
    assert "step 26 was done again, and 4 before it: cpu1 lost" in " ".join(
        text(TrainingView(Recorded(scene)).sample()).split()
    )


def test_a_loss_that_is_not_finite_is_a_gap() -> None:
    scene = scene_of(*steps(3), structs.replace(step(4), loss=None, norm=None), step(5))
    run = run_of(scene)
    assert run["curve"]["loss"][3] is None
    assert sparkline([1.0, None, 0.0]) == "█ ▁"
    scene.add(structs.replace(step(6), loss=None, norm=None, noun=""))
    run = run_of(scene)
    assert not {"loss", "norm", "speed"} & set(run)
    state = TrainingView(Recorded(scene)).sample()
    assert "step 6, loss not finite" in text(state)
    assert "not finite" in html(state)


@pytest.mark.parametrize("told", [recap, retell])
@pytest.mark.parametrize("count", [3, 100, 400])
def test_a_scene_is_told_again_with_its_trainers(told: Any, count: int) -> None:
    scene = scene_of(*steps(count, killed=[2]), *steps(5, trainer="U"))
    again = scene_of(*told(scene))
    assert again.trainings == scene.trainings
    state, other = (TrainingView(Recorded(one)).sample() for one in (scene, again))
    assert state == other


def test_of_a_long_run_the_same_is_drawn_when_it_is_told_again() -> None:
    scene = scene_of(*steps(3000, killed=[3, 2999]))
    again = run_of(scene_of(*recap(scene)))
    run = run_of(scene)
    assert {**again, "curve": 0} == {**run, "curve": 0}
    assert set(again["curve"]["steps"]) <= {3, *run["curve"]["steps"]}  # what is marked is there
    assert len(again["curve"]["steps"]) >= POINTS // 2


def test_a_copy_and_the_past_go_on_by_themselves() -> None:
    scene = scene_of(*steps(20, killed=[7]))
    twin = scene.copy()
    then = scene.trainings.until(AT + 6.5)
    assert scene.trainings.until(AT).runs == {}
    for fact in list(steps(30))[20:]:
        scene.add(fact)
    assert run_of(twin)["step"] == 20
    assert (then.runs["T"].last.step, len(then.runs["T"].restarts)) == (6, 0)
    assert len(scene.trainings.until(AT + 7).runs["T"].restarts) == 1


def test_so_many_trainers_are_kept() -> None:
    scene = Scene()
    for number in range(2 * RUNS):
        scene.add(structs.replace(step(1, trainer=f"T{number}"), at=AT + number))
    assert list(scene.trainings.runs) == [f"T{number}" for number in range(RUNS, 2 * RUNS)]


class Tags(HTMLParser):
    """The cells of all tables, and how many pictures there are."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.cells: list[str] = []
        self.pictures = 0
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.pictures += tag == "img" and dict(attrs)["src"].startswith("data:image/svg+xml")

    def handle_data(self, data: str) -> None:
        self.cells.append(data)


def test_text_and_tables_say_the_same() -> None:
    scene = scene_of(*steps(20, killed=[7]))
    scene.add(SystemEnded(name="lab"))
    state = TrainingView(Recorded(scene)).sample()
    lines = text(state).splitlines()
    assert lines[0] == "training: training (closed)"
    assert lines[2].startswith("T: step 20, loss 0.15, learning rate 0.008179, gradient norm 1.05")
    assert any(line.split() == ["cpu1", *["24", "ms", "6.0", "ms", "10", "ms"]] for line in lines)
    page = Tags(html(state))
    assert page.pictures == 1
    assert {"cpu1", "24 ms", "6.0 ms", "10 ms"} <= set(page.cells)
    assert any("step 7 was done again: cpu1 lost its context" in cell for cell in page.cells)
    nothing = TrainingView(Recorded(Scene())).sample()
    assert text(nothing) == "training: training, no step was trained"
    assert html(nothing) == "<p>training: training, no step was trained</p>"
