"""The canvas: a simulation's picture, live, with what can be set of it."""

import time
import weakref
from base64 import b64encode
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any, ClassVar

from accel_lab.actor.actor import ActorRef
from accel_lab.blueprints.realtime.checks import require_count, require_number
from accel_lab.blueprints.realtime.simulation import MOST_STEPS, Control, Simulation
from accel_lab.compute.events.tree import Node
from accel_lab.errors import FilmError
from accel_lab.views.canvas.film import Film
from accel_lab.views.canvas.mp4 import ffmpeg
from accel_lab.views.canvas.player import Player
from accel_lab.views.canvas.png import png
from accel_lab.views.canvas.spectator import Spectator
from accel_lab.views.scene.scene import Scene
from accel_lab.views.widget.publisher import MAX_HZ
from accel_lab.views.widget.view import State, View, show


class CanvasView(View):
    """The picture of a simulation."""

    name = "canvas"
    source: Player | Spectator
    wants: ClassVar = frozenset()

    def fold(self, scene: Scene) -> State:
        """Fold what is known of the simulation and of its device."""
        player, frame = self.source.player, self.source.delivery.offered
        about = player.described
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
        if film := _film(player):
            state["film"] = film
        if player.problem:
            state["problem"] = player.problem
        return state | ({"looks_on": True} if isinstance(self.source, Spectator) else {})

    def pack(self, scene: Scene) -> bytes:
        """Return the picture, red, green and blue of each pixel."""
        del scene
        frame = self.source.delivery.offered
        return b"" if frame is None else frame.pixels.tobytes()

    def text(self, state: State) -> str:
        """Draw it as lines."""
        return "\n".join((_caption(state), *(f"  {line}" for line in _lines(state))))

    def html(self, state: State) -> str:
        """Draw the picture, with what was measured below it."""
        frame = self.source.delivery.offered
        lines = "".join(f"<br>{escape(line)}" for line in _lines(state))
        caption = f"<figcaption>{escape(_caption(state))}{lines}</figcaption>"
        if frame is None:
            return f"<figure>{caption}</figure>"
        data = b64encode(png(frame.pixels)).decode()
        alt = escape(_caption(state), quote=True)
        return f'<figure><img alt="{alt}" src="data:image/png;base64,{data}">{caption}</figure>'

    def play(self) -> None:
        """Go on; where no page shows it, too, until `pause`. Then a dashboard can show it."""
        self.source.player.play(playing=True, unseen=True)

    def pause(self) -> None:
        """Stand still."""
        self.source.player.play(playing=False)

    def record(self, path: str | Path, *, pictures: int = 1500, rate_hz: float = 25.0) -> Film:
        """Write each picture from now on to a film; returns at once.

        It plays meanwhile though no page shows it. The film ends with its `stop()`, after so many
        pictures, or when the canvas is closed, and has its name then. No picture is kept in memory.

        Parameters:
            path: ends in .gif, for Pillow, or in .mp4, for ffmpeg.
            pictures: how many at most.
            rate_hz: how many a second are shown, however long they took to compute.

        Raises:
            FilmError: what writes such a file is not installed, or it cannot be written there.
            InvalidArgument: it is neither a .gif nor an .mp4, or another film is not over.
        """
        require_count("record: pictures", pictures)
        require_number("record: rate_hz", rate_hz, low=1, high=50)
        return self.source.player.record(path, most=pictures, rate_hz=rate_hz)

    def do_play(self) -> None:
        """Go on."""
        self.source.player.play(playing=True)

    def do_pause(self) -> None:
        """Stand still."""
        self.source.player.play(playing=False)

    def do_step(self) -> None:
        """Go on by one picture."""
        self.source.player.step()

    def do_record(self) -> None:
        """Record to a file in the working directory, an MP4 where that can be.

        Raises:
            FilmError: it cannot be written; the page says so, too.
        """
        kind = "gif" if ffmpeg() is None else "mp4"
        name = f"{self.source.player.described.title}-{time.strftime('%Y%m%d-%H%M%S')}.{kind}"
        try:
            self.record(name)
        except FilmError as error:
            self.source.player.refused = str(error)
            raise

    def do_stop(self) -> None:
        """End the film; waits until it is written."""
        if self.source.player.film is not None:
            self.source.player.film.finish()

    def do_set(self, name: str, value: float) -> None:
        """Send the message of a control; waits for what becomes of it.

        Raises:
            InvalidArgument: there is no such control, or it does not take the value.
        """
        control = self.source.player.control(name)
        number = require_number(f"set {name}", value, low=control.low, high=control.high)
        self.source.player.set(name, number)

    def do_shown(self, frame: int) -> None:
        """Note which picture the page has shown."""
        self.source.player.heard(frame)


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


def players_of(lab: object) -> list[Player]:
    """Return what plays the simulations of a system, of every canvas that is open."""
    found = [one for one in list(_players.values()) if one.is_open and one.lab is lab]
    return sorted(found, key=lambda one: one.actor.name)


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


def _film(player: Player) -> dict[str, Any]:
    """Say of the last film whether it runs, how far it is, and whether it failed."""
    film = player.film
    running = film is not None and film.running
    if not running and player.refused:
        return {"running": False, "told": player.refused, "failed": True}
    if film is None:
        return {}
    if film.problem is not None:
        return {"running": False, "told": str(film.problem), "failed": True}
    told = f"{film.path.name}: {film.pictures:,} pictures, {film.pictures / film.rate_hz:.1f} s"
    return {"running": running, "told": told, "failed": False}


def _lines(state: State) -> Iterator[str]:
    for name, value in state["measures"]:
        yield f"{name} {value:.4g}"
    if film := state.get("film"):
        yield f"recording {film['told']}" if film["running"] else film["told"]
    if "problem" in state:
        yield state["problem"]
