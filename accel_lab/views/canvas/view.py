"""The canvas: a simulation's picture, live, with what can be set of it."""

import weakref
from base64 import b64encode
from collections.abc import Iterator
from html import escape
from typing import Any, ClassVar

from accel_lab.actor.actor import ActorRef
from accel_lab.blueprints.realtime.checks import require_count, require_number
from accel_lab.blueprints.realtime.simulation import MOST_STEPS, Control, Simulation
from accel_lab.compute.events.tree import Node
from accel_lab.views.canvas.player import Player
from accel_lab.views.canvas.png import png
from accel_lab.views.scene.scene import Scene
from accel_lab.views.widget.publisher import MAX_HZ
from accel_lab.views.widget.view import State, View, show


class CanvasView(View):
    """The picture of a simulation."""

    name = "canvas"
    source: Player
    wants: ClassVar = frozenset()

    def fold(self, scene: Scene) -> State:
        """Fold what is known of the simulation and of its device."""
        player = self.source
        about, frame = player.described, player.offered
        node = _device(scene, about.device.name)
        state: State = {
            "lab": "" if scene.tree is None else scene.tree.name,
            "title": about.title,
            "device": about.device.name,
            "state": "stopped" if node is None else node.state,
            "generation": 0 if node is None else node.generation,
            "playing": player.playing,
            "rate": player.rate_hz,
            "frame": 0 if frame is None else frame.number,
            "painted": 0 if frame is None else frame.generation,
            "steps": 0 if frame is None else frame.steps,
            "size": about.size,
            "measures": list(zip(about.measures, player.measured, strict=False)),
            "controls": [_control(one) for one in about.controls],
            "closed": scene.closed or not player.actor.is_alive,
        }
        return state | ({"problem": player.problem} if player.problem else {})

    def pack(self, scene: Scene) -> bytes:
        """Return the picture, red, green and blue of each pixel."""
        del scene
        frame = self.source.offered
        return b"" if frame is None else frame.pixels.tobytes()

    def text(self, state: State) -> str:
        """Draw it as lines."""
        return "\n".join((_caption(state), *(f"  {line}" for line in _measures(state))))

    def html(self, state: State) -> str:
        """Draw the picture, with what was measured below it."""
        frame = self.source.offered
        lines = "".join(f"<br>{escape(line)}" for line in _measures(state))
        caption = f"<figcaption>{escape(_caption(state))}{lines}</figcaption>"
        if frame is None:
            return f"<figure>{caption}</figure>"
        data = b64encode(png(frame.pixels)).decode()
        alt = escape(_caption(state), quote=True)
        return f'<figure><img alt="{alt}" src="data:image/png;base64,{data}">{caption}</figure>'

    def do_play(self) -> None:
        """Go on."""
        self.source.play(playing=True)

    def do_pause(self) -> None:
        """Stand still."""
        self.source.play(playing=False)

    def do_step(self) -> None:
        """Go on by one picture."""
        self.source.step()

    def do_set(self, name: str, value: float) -> None:
        """Send the message of a control; waits for what becomes of it.

        Raises:
            InvalidArgument: there is no such control, or it does not take the value.
        """
        control = self.source.control(name)
        number = require_number(f"set {name}", value, low=control.low, high=control.high)
        self.source.set(name, number)

    def do_shown(self, frame: int) -> None:
        """Note which picture the page has shown."""
        self.source.heard(frame)


_players: "weakref.WeakValueDictionary[ActorRef[Any], Player]" = weakref.WeakValueDictionary()


def canvas(actor: ActorRef[Simulation], *, steps: int = 1, rate_hz: float = MAX_HZ) -> CanvasView:
    """Return the live picture of a simulation; display it as the last value of a cell.

    In a notebook it plays while it is there: it steps the simulation, and shows the newest picture.
    Sliders send the messages that the simulation's controls name. Elsewhere it is one picture.
    A simulation has one canvas; asked for again, it takes `steps` anew.

    Parameters:
        actor: the address of a `Simulation`.
        steps: how many of the simulation's steps a picture.
        rate_hz: how many pictures a second at most, up to 30.

    Raises:
        InvalidArgument: it is no simulation, or there is no such number of steps.
        ValueError: the rate is not positive.
    """
    require_count("canvas: steps", steps, high=MOST_STEPS)
    player = _players.get(actor)
    if player is None:
        player = _players[actor] = Player(actor)
    player.steps = steps
    return show(CanvasView, player, rate_hz=rate_hz)


def _device(scene: Scene, name: str) -> Node | None:
    nodes = () if scene.tree is None else scene.tree.children
    return next((one for one in nodes if one.name == name), None)


def _control(control: Control) -> dict[str, Any]:
    found = {"name": control.name, "low": control.low, "high": control.high, "value": control.value}
    return found | ({"choices": control.choices} if control.choices else {})


def _caption(state: State) -> str:
    ending = " (closed)" if state["closed"] else ""
    height, width = state["size"]
    where = f"{state['title']} on {state['lab']}/{state['device']}"
    return f"{where}: step {state['steps']}, {width} by {height} pixels{ending}"


def _measures(state: State) -> Iterator[str]:
    for name, value in state["measures"]:
        yield f"{name} {value:.4g}"
    if "problem" in state:
        yield state["problem"]
