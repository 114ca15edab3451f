"""The view of a system's worlds and of the collective operations in them."""

from accel_lab.views.collectives.state import state_of
from accel_lab.views.collectives.words import html, text
from accel_lab.views.scene.observer import Lab, Source
from accel_lab.views.scene.scene import Scene
from accel_lab.views.widget.publisher import DEFAULT_HZ
from accel_lab.views.widget.view import State, View, show


class CollectivesView(View):
    """The worlds of a system."""

    name = "collectives"

    def fold(self, scene: Scene) -> State:
        """Fold the worlds that are in use; where none is, the one that was last."""
        return state_of(scene)

    def text(self, state: State) -> str:
        """Draw it as aligned lines, a paragraph a world."""
        return text(state)

    def html(self, state: State) -> str:
        """Draw it as tables."""
        return html(state)


def collectives(lab: Lab | Source, *, rate_hz: float = DEFAULT_HZ) -> CollectivesView:
    """Return the worlds of a system; display it as the last value of a cell.

    Of each world its ranks around a ring: who has begun the operation that is under way, who is
    waited for, and who is lost. Below that the last operations with their bandwidth, who usually
    begins last, and how the world healed.

    Parameters:
        lab: the system, or a recording of one.
        rate_hz: how often it may update while something changes, at most 30.

    Raises:
        ValueError: the rate is not positive.
    """
    return show(CollectivesView, lab, rate_hz=rate_hz)
