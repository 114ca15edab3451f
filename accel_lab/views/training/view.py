"""The view of a system's trainers."""

from accel_lab.views.scene.observer import Lab, Source
from accel_lab.views.scene.scene import Scene
from accel_lab.views.training.state import state_of
from accel_lab.views.training.words import html, text
from accel_lab.views.widget.publisher import DEFAULT_HZ
from accel_lab.views.widget.view import State, View, show


class TrainingView(View):
    """The trainers of a system."""

    name = "training"

    def fold(self, scene: Scene) -> State:
        """Fold the trainers, in the order in which they began."""
        return state_of(scene)

    def text(self, state: State) -> str:
        """Draw it as aligned lines, a paragraph a trainer."""
        return text(state)

    def html(self, state: State) -> str:
        """Draw it as pictures and tables."""
        return html(state)


def training(lab: Lab | Source, *, rate_hz: float = DEFAULT_HZ) -> TrainingView:
    """Return the trainers of a system; display it as the last value of a cell.

    Of each trainer the loss, the learning rate and the norm of the gradients by steps, with a mark
    where a fault had a step done again; rows or tokens a second; and of each rank how much of a
    step is communication, waiting for other ranks, and all else, which is computing above all.

    A long curve is thinned. Of what was trained before the first look at the system it has the
    newest steps.

    Parameters:
        lab: the system, or a recording of one.
        rate_hz: how often it may update while something changes, at most 30.

    Raises:
        ValueError: the rate is not positive.
    """
    return show(TrainingView, lab, rate_hz=rate_hz)
