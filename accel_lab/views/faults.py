"""The last faults of systems, as they are at this moment: a table for each system."""

from collections.abc import Iterable

from accel_lab.views.scene.incidents import incidents
from accel_lab.views.scene.observer import Lab, observer_of
from accel_lab.views.supervision import html, state_of, text
from accel_lab.views.widget.view import State

LEFT = "text-align: left"
"""JupyterLab draws the cells of a table right, which is for numbers."""


class Faults:
    """The newest faults of some systems, at most `count` of each; as text and as tables."""

    def __init__(self, labs: Iterable[Lab], count: int) -> None:
        self.states = [_state(lab, count) for lab in labs]

    def __repr__(self) -> str:
        return "\n\n".join(map(text, self.states))

    def _repr_html_(self) -> str:
        return "".join(html(state, LEFT) for state in self.states)


def _state(lab: Lab, count: int) -> State:
    observer = observer_of(lab)
    with observer.lock:
        scene = observer.look()
        nodes = () if scene.tree is None else scene.tree.children
        found = incidents(scene.facts, [node.name for node in nodes if node.kind == "device"])
    faults = [one for one in found if one.level == "fault"]
    state = state_of(faults[-count:], closed=scene.closed)
    if earlier := len(faults) - count:
        state["older"] = {"fault": max(0, earlier) + sum(state.get("older", {}).values())}
    return state | {"lab": lab.name}
