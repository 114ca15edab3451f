"""A Panel page with the notebook's own module in it: `panel serve panel_app.py`."""

# mypy: disable-error-code="no-untyped-call"

import time
from typing import Any

import msgspec
import panel as pn
import param
from panel.custom import AnyWidgetComponent

from accel_lab.views.tree import state_of
from accel_lab.views.widget.assets import source, style
from tests.views.made_up import lab as made_up


class Tree(AnyWidgetComponent):
    """The device tree under Panel."""

    _esm = source("tree/tree.js")
    _stylesheets = [style("tree/tree.css")]  # noqa: RUF012  (Panel reads a list)

    state: Any = param.Bytes(b"")
    stamp: Any = param.Number(0.0)


pn.extension()
lab = made_up(2)
tree = Tree(sizing_mode="stretch_width")


def update() -> None:
    """Send the newest state, as the publisher does."""
    tree.param.update(state=msgspec.json.encode(state_of(lab.tree())), stamp=time.time())


def restart() -> None:
    """Lose a context."""
    lab.restart()
    update()


update()
pn.state.add_periodic_callback(update, period=1000)
pn.Column(tree, pn.widgets.Button(name="Restart", on_click=lambda _: restart())).servable()
