"""A Panel page with the canvas of a simulation in it: `panel serve canvas_app.py`."""

# mypy: disable-error-code="no-untyped-call"

import time
from typing import Any

import msgspec
import panel as pn
import param
from panel.custom import AnyWidgetComponent

from accel_lab import System
from accel_lab.blueprints.realtime import AddSource, FluidSimulationActor, Splash
from accel_lab.views.canvas.player import Player
from accel_lab.views.canvas.view import CanvasView
from accel_lab.views.widget import commands
from accel_lab.views.widget.assets import source, style


class Canvas(AnyWidgetComponent):
    """The canvas under Panel."""

    _esm = source("canvas/canvas.js")
    _stylesheets = [style("canvas/canvas.css")]  # noqa: RUF012  (Panel reads a list)

    state: Any = param.Bytes(b"")
    columns: Any = param.Bytes(b"")
    stamp: Any = param.Number(0.0)
    shown: Any = param.Integer(0)

    def _handle_msg(self, message: Any) -> None:
        commands.take(view, message)


pn.extension()
lab = System("host", devices=1, name="lab")
fluid = lab.spawn(lambda: FluidSimulationActor(lab.devices[0], 24, 36, sweeps=8))
fluid.ask(AddSource(Splash(18, 20, 4, dye=(4, 2, 1)))).result()
view = CanvasView(Player(fluid))
end = view.source.on_news(lambda: None)
canvas = Canvas(sizing_mode="stretch_width")
canvas.param.watch(lambda event: view.do_shown(event.new), "shown")


def update() -> None:
    """Send the newest state and picture, as the publisher does."""
    state = msgspec.json.encode(view.sample())
    columns = view.pack(view.source.look())
    canvas.param.update(columns=columns, state=state, stamp=time.time())


def close(_: object) -> None:
    """End what the page's session has begun."""
    end()
    lab.close()


pn.state.add_periodic_callback(update, period=100)
pn.state.on_session_destroyed(close)
pn.Column(canvas).servable()
