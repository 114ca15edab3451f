"""The view of what chosen arrays of a system held."""

from accel_lab.views.scene.observer import Lab, Source
from accel_lab.views.scene.scene import Scene
from accel_lab.views.values.state import state_of
from accel_lab.views.values.words import html, text
from accel_lab.views.widget.publisher import DEFAULT_HZ
from accel_lab.views.widget.view import State, View, show


class ValuesView(View):
    """What chosen arrays of a system held."""

    name = "values"

    def fold(self, scene: Scene) -> State:
        """Fold the series, in the order of their first looks."""
        return state_of(scene)

    def text(self, state: State) -> str:
        """Draw it as aligned lines, a paragraph a series."""
        return text(state)

    def html(self, state: State) -> str:
        """Draw it as pictures and a table."""
        return html(state)


def values(lab: Lab | Source, *, rate_hz: float = DEFAULT_HZ) -> ValuesView:
    """Return what chosen arrays of a system held; display it as the last value of a cell.

    For each name of `lab.observe`, or message of `lab.watch_values`, and each device: the range,
    the mean and the histogram over the looks so far, the newest histogram, and how many elements
    were NaN or Inf. Of many looks it draws some of the earlier ones.

    Parameters:
        lab: the system, or a recording of one.
        rate_hz: how often it may update while something changes, at most 30.

    Raises:
        ValueError: the rate is not positive.
    """
    return show(ValuesView, lab, rate_hz=rate_hz)
