"""What the training view draws, as plain values: `widgets/training/draw.js` draws the same.

A state is `{lab, runs, closed}`. A run is `{name, step, at, rate, took, curve, ranks, loss?, norm?,
speed?, mean_of, restarts?}`; what is empty or unknown is left out. A curve is `{steps, loss, rate,
norm?}`, lists of one length; a rank is `{device, seconds, words}`, each in the order of `PARTS`.
"""

from collections.abc import Sequence

from accel_lab.compute.events.training import StepTrained
from accel_lab.views.scene.incidents import duration
from accel_lab.views.scene.scene import Scene
from accel_lab.views.scene.trainings import TrainingRun
from accel_lab.views.widget.view import State

PARTS = ("Computing", "Communication", "Waiting")
"""Of the time of a step."""
RESTARTS = 8
"""So many of the newest are listed; all that are kept are marked."""


def state_of(scene: Scene) -> State:
    """Fold a scene into plain values."""
    name = "" if scene.tree is None else scene.tree.name
    runs = [_run(name, run) for name, run in scene.trainings.runs.items()]
    return {"lab": name, "runs": runs, "closed": scene.closed}


def _run(name: str, run: TrainingRun) -> State:
    last = run.last
    alike = [one for one in run.newest if (one.ranks, one.noun) == (last.ranks, last.noun)]
    seconds = sum(one.seconds for one in alike)
    state: State = {"name": name, "step": last.step, "at": last.at, "rate": _words(last.rate)}
    state |= {"took": duration(seconds / len(alike)), "mean_of": len(alike)}
    if last.loss is not None:
        state["loss"] = _words(last.loss)
    if last.norm is not None:
        state["norm"] = _words(last.norm)
    if last.noun and seconds > 0:
        speed = sum(one.count for one in alike) / seconds
        state["speed"] = [f"{float(f'{speed:.3g}'):,g}", last.noun]
    state["curve"] = _curve(run.curve())
    state["ranks"] = [_rank(device, place, alike) for place, device in enumerate(last.ranks)]
    if run.restarts:
        state["restarts"] = [_restart(one) for one in reversed(run.restarts)]
    return state


def _curve(steps: Sequence[StepTrained]) -> State:
    curve: State = {
        "steps": [one.step for one in steps],
        "loss": [_short(one.loss) for one in steps],
        "rate": [_short(one.rate) for one in steps],
    }
    norms = [_short(one.norm) for one in steps]
    return curve | ({"norm": norms} if any(one is not None for one in norms) else {})


def _rank(device: str, place: int, steps: Sequence[StepTrained]) -> State:
    """Return how the mean of some steps is shared out on a rank."""
    exchanging = sum(one.exchanging_s[place] for one in steps) / len(steps)
    waiting = sum(one.waiting_s[place] for one in steps) / len(steps)
    whole = sum(one.seconds for one in steps) / len(steps)
    parts = (max(0.0, whole - exchanging - waiting), exchanging, waiting)
    seconds = [round(part, 7) for part in parts]
    return {"device": device, "seconds": seconds, "words": [duration(part) for part in parts]}


def _restart(one: StepTrained) -> State:
    lost = [f"{name} lost its context" for name in one.lost]
    state: State = {"at": one.at, "step": one.step, "why": [*lost, *one.faults]}
    return state | ({"again": one.again} if one.again else {})


def _words(value: float) -> str:
    return f"{value:.4g}"


def _short(value: float | None) -> float | None:
    """Return a number that travels in few characters."""
    return None if value is None else float(f"{value:.5g}")
