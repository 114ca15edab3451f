"""The view of how the devices of a system reach each other."""

from typing import ClassVar

from accel_lab.views.scene.observer import Lab, Source, Want
from accel_lab.views.scene.scene import Scene
from accel_lab.views.topology.state import state_of
from accel_lab.views.topology.words import html, text
from accel_lab.views.widget.publisher import DEFAULT_HZ
from accel_lab.views.widget.view import State, View, show


class TopologyView(View):
    """How the devices of a system reach each other."""

    name = "topology"
    wants: ClassVar[frozenset[Want]] = frozenset({"peers"})

    def fold(self, scene: Scene) -> State:
        """Fold the links and what was measured of them."""
        return state_of(scene)

    def text(self, state: State) -> str:
        """Draw it as an aligned table, and a line for the rest."""
        return text(state)

    def html(self, state: State) -> str:
        """Draw it as a table."""
        return html(state)


def topology(lab: Lab | Source, *, rate_hz: float = DEFAULT_HZ) -> TopologyView:
    """Return how the devices of a system reach each other; display it as the last value of a cell.

    A row is from a device, a column is to one: the link, and how fast `lab.topology.measure()`
    found it, the stronger the colour the faster. With a new context of a device its figures are
    stale.

    Parameters:
        lab: the system, or a recording of one.
        rate_hz: how often it may update while something changes, at most 30.

    Raises:
        ValueError: the rate is not positive.
    """
    return show(TopologyView, lab, rate_hz=rate_hz)
