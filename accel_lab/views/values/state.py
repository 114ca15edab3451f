"""What the values view draws, as plain values: `widgets/values/draw.js` draws the same.

A state is `{lab, series, closed}`. A series is `{name, device, array, look, at, least?, most?,
mean?, nans?, infs?, cell?, counts, curve}`, where the numbers are words, and what is zero, unknown
or empty is left out. A curve is `{looks, least, most, mean, levels, bad}`, lists of one length, of
numbers, or null where none was finite: `levels` are digits, one a bin from the least to the most,
0 for none and 9 for as many as in the fullest; `bad` is how many elements were no finite numbers.
"""

from collections.abc import Sequence

from accel_lab.compute.events.samples import ValuesSeen
from accel_lab.compute.message.operation import Spec, spec_text
from accel_lab.views.scene.observations import Series
from accel_lab.views.scene.scene import Scene
from accel_lab.views.widget.view import State

LEVELS = 9


def state_of(scene: Scene) -> State:
    """Fold a scene into plain values."""
    name = "" if scene.tree is None else scene.tree.name
    series = [_series(one) for one in scene.observations.series.values()]
    return {"lab": name, "series": series, "closed": scene.closed}


def levels_of(counts: Sequence[int]) -> str:
    """Return a digit for each bin; one that has any has at least 1."""
    most = max(counts, default=0) or 1
    return "".join(str(-(-LEVELS * count // most)) for count in counts)


def _series(series: Series) -> State:
    one = series.newest
    state: State = {"name": one.name, "device": one.device, "look": one.look, "at": one.at}
    state["array"] = spec_text(Spec(one.shape, one.dtype))
    numbers = {"least": one.least, "most": one.most, "mean": one.mean}
    state |= {name: f"{value:.4g}" for name, value in numbers.items() if value is not None}
    state |= {name: n for name, n in (("nans", one.nans), ("infs", one.infs)) if n}
    if one.cell is not None:
        state["cell"] = one.cell
    looks = series.looks()
    return state | {"counts": list(one.counts), "curve": _curve(looks)}


def _curve(looks: Sequence[ValuesSeen]) -> State:
    return {
        "looks": [one.look for one in looks],
        "least": [_short(one.least) for one in looks],
        "most": [_short(one.most) for one in looks],
        "mean": [_short(one.mean) for one in looks],
        "levels": [levels_of(one.counts) for one in looks],
        "bad": [one.nans + one.infs for one in looks],
    }


def _short(value: float | None) -> float | None:
    """Return a number that travels in few characters."""
    return None if value is None else float(f"{value:.5g}")
