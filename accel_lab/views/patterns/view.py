"""The view of a system's patterns and agents."""

from typing import ClassVar

from accel_lab.views.patterns.state import state_of
from accel_lab.views.patterns.words import html, text
from accel_lab.views.scene.observer import Lab, Source, Want
from accel_lab.views.scene.scene import Scene
from accel_lab.views.widget.publisher import DEFAULT_HZ
from accel_lab.views.widget.view import State, View, show


class PatternsView(View):
    """The patterns of a system."""

    name = "patterns"
    wants: ClassVar[frozenset[Want]] = frozenset({"patterns"})

    def fold(self, scene: Scene) -> State:
        """Fold the patterns, in the order in which they began."""
        return state_of(scene)

    def text(self, state: State) -> str:
        """Draw it as aligned lines, a paragraph a pattern."""
        return text(state)

    def html(self, state: State) -> str:
        """Draw it as tables."""
        return html(state)


def patterns(lab: Lab | Source, *, rate_hz: float = DEFAULT_HZ) -> PatternsView:
    """Return the patterns of a system; display it as the last value of a cell.

    Of each pattern, and of each agent, how many requests wait and run, what became of the others,
    its calls and how long answers took; its tenants, replicas, stages or nodes; and what it decided
    last. One that was closed stays as long as you hold it.

    Parameters:
        lab: the system, or a recording of one.
        rate_hz: how often it may update while something changes, at most 30.

    Raises:
        ValueError: the rate is not positive.
    """
    return show(PatternsView, lab, rate_hz=rate_hz)
