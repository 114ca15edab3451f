"""Trainers of a real system, one device of which is killed in the middle."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from accel_lab import System, views
from accel_lab.blueprints import train
from accel_lab.compute.events.training import StepTrained
from accel_lab.views.lab import LabView
from accel_lab.views.past.rewound import Rewound
from accel_lab.views.scene.observer import observer_of
from accel_lab.views.scene.scene import Scene
from accel_lab.views.training import TrainingView
from tests.blueprints.train.digits import Killing, batches, loss, parameters

STEPS = 12


@pytest.fixture(scope="module")
def lab() -> Iterator[System]:
    with System("host", 2, max_restarts=1000, within_s=0.2) as opened:
        yield opened


def test_the_curve_goes_on_after_a_kill_and_the_restart_is_marked(
    lab: System, tmp_path: Path
) -> None:
    view, whole = TrainingView(lab), LabView(lab)
    observer = observer_of(lab)
    seen = observer.seen
    assert view.sample()["runs"] == []
    assert "training" not in whole.sample()
    path = tmp_path / "session.jsonl"
    with views.record(lab, path, rate_hz=30):
        trainer = train.DataParallelTrainer(
            lab.world(),
            loss,
            parameters(),
            train.AdamW(train.Cosine(0.02, STEPS)),
            Killing(lab, 1, 6),
            clip_norm=1.0,
        )
        losses = trainer.run(STEPS)
        state = view.sample()
    (run,) = state["runs"]
    assert run["name"] == trainer.name
    assert run["curve"]["steps"] == list(range(1, STEPS + 1))
    assert run["curve"]["loss"] == pytest.approx(losses, rel=1e-4)
    assert run["curve"]["norm"] == pytest.approx(trainer.norms, rel=1e-4)
    assert run["curve"]["rate"] == pytest.approx(
        [trainer.optimizer.rate_at(step) for step in range(STEPS)], rel=1e-4
    )
    (restart,) = run["restarts"]
    assert (restart["step"], restart["why"][0]) == (7, "cpu1 lost its context")
    assert len(restart["why"]) == 1 + len(trainer.faults)

    told = lab.events.history(StepTrained)
    for fact in told:
        assert (fact.count, fact.noun, fact.ranks) == (60, "rows", ("cpu0", "cpu1"))
        for exchanging, waiting in zip(fact.exchanging_s, fact.waiting_s, strict=True):
            assert exchanging > 0
            assert waiting >= 0
            assert exchanging + waiting <= fact.seconds + 0.01  # two clocks
    for rank in run["ranks"]:
        assert sum(rank["seconds"]) == pytest.approx(sum(f.seconds for f in told) / STEPS, rel=0.01)

    past = views.Recording.open(path)
    past.player.seek(len(past))
    assert TrainingView(past.player).sample()["runs"] == state["runs"]
    assert "training" in whole.sample()
    with observer.lock:
        assert observer.seen is seen
        then = Rewound(observer).at(told[5].at, Scene())
    assert then.trainings.runs[trainer.name].last.step == 6
    still = view._repr_mimebundle_()[0]
    assert 'src="data:image/svg+xml;base64,' in still["text/html"]
    assert "step 7 was done again" in still["text/plain"]


def test_a_trainer_that_goes_back_to_a_snapshot_says_how_far(lab: System) -> None:
    trainer = train.ShardedTrainer(
        lab.world(), loss, parameters(), train.AdamW(0.01), Killing(lab, 1, 6), every=4
    )
    losses = trainer.run(STEPS)
    told = [one for one in lab.events.history(StepTrained) if one.trainer == trainer.name]
    assert [one.step for one in told] == [1, 2, 3, 4, 5, 6, *range(5, STEPS + 1)]
    (again,) = [one for one in told if one.faults]
    assert (again.step, again.again, again.lost) == (5, 2, ("cpu1",))
    assert [one.again for one in told if one is not again] == [0] * (len(told) - 1)
    run = next(one for one in TrainingView(lab).sample()["runs"] if one["name"] == trainer.name)
    assert run["curve"]["loss"] == pytest.approx(losses, rel=1e-4)


def test_trainers_have_names_of_their_own_and_one_device_exchanges_nothing(lab: System) -> None:
    made = [
        train.Trainer(lab.devices[0], loss, parameters(), train.SGD(0.1), batches())
        for _ in range(2)
    ]
    assert made[0].name != made[1].name
    made[1].run(2)
    (first, second) = [x for x in lab.events.history(StepTrained) if x.trainer == made[1].name]
    assert (first.exchanging_s, first.waiting_s, first.norm) == ((0.0,), (0.0,), None)
    assert second.rate == 0.1
