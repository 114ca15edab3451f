"""Figures of Matplotlib in a context: shown under the cell, as a notebook shows its own."""

import os
import sys
from collections.abc import Iterator

from accel_lab.compute.output.formatting import Bundle, drawn, png
from accel_lab.compute.output.ipython_display import publish

BACKEND = "module://accel_lab.compute.output.matplotlib_backend"


def use() -> None:
    """Have Matplotlib draw for here, whatever the notebook's process draws for."""
    chosen = os.environ.get("MPLBACKEND", "")
    if not chosen or "inline" in chosen:
        os.environ["MPLBACKEND"] = BACKEND


def _taken() -> Iterator[Bundle]:
    """Close the figures that are open, and yield each as what displays it, if it is news."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is None:
        return
    for number in pyplot.get_fignums():
        figure = pyplot.figure(number)
        before, now = drawn.get(figure), png(figure)
        pyplot.close(figure)
        if now != before:
            yield {"image/png": now, "text/plain": repr(figure)}, {}


def show(*_: object, **__: object) -> None:
    """Show all open figures now: what `pyplot.show()` does here."""
    for bundle in _taken():
        publish(*bundle)
