"""The device tree as a widget; importing it needs anywidget."""

from typing import Any

from accel_lab.views.assets import source, style
from accel_lab.views.live import LiveView
from accel_lab.views.publisher import DEFAULT_HZ
from accel_lab.views.snapshots import Lab
from accel_lab.views.tree import TreeView


class TreeWidget(TreeView, LiveView):
    """The device tree, live."""

    _esm = source("tree.js")
    _css = style("tree.css")

    def __init__(self, lab: Lab, *, rate_hz: float = DEFAULT_HZ) -> None:
        TreeView.__init__(self, lab)
        LiveView.__init__(self, lab, rate_hz=rate_hz)

    def _repr_mimebundle_(self, **_: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """Put what a page without a widget manager shows beside the widget."""
        drawn, metadata = TreeView._repr_mimebundle_(self)
        live = None if self.discarded else LiveView._repr_mimebundle_(self)
        return (drawn, metadata) if live is None else (live[0] | drawn, live[1])
