"""IPython's `display` in a context: it shows under the cell, at once, as IPython itself would."""

import builtins
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from accel_lab.compute.output.displays import Cleared, Shown
from accel_lab.compute.output.formatting import bundle
from accel_lab.compute.output.module_patches import adapt
from accel_lab.compute.output.printing import Screen, screens

WIDGET = "application/vnd.jupyter.widget-view+json"
NO_WIDGET = (
    "A widget of a %%gpu cell cannot be shown: what it shows is kept in the process that made it, "
    "and a front end asks the notebook's. Make it in a cell without %%gpu; what moves here is "
    "text, as tqdm's bar, and display(…, display_id=True).update(…)"
)


def display(
    *values: Any,
    include: Any = None,
    exclude: Any = None,
    metadata: dict[str, Any] | None = None,
    transient: dict[str, Any] | None = None,
    display_id: str | bool | None = None,
    raw: bool = False,
    clear: bool = False,
    update: bool = False,
    **_: object,
) -> Any:
    """Show values as IPython's `display` does; with a `display_id`, return its DisplayHandle.

    Parameters:
        raw: they are data by MIME type.
    """
    handle = None
    transient = dict(transient or {})
    if display_id:
        from IPython.core.display_functions import DisplayHandle

        new: Any = DisplayHandle
        handle = new(None if display_id is True else display_id)
        transient["display_id"] = handle.display_id
    if update and "display_id" not in transient:
        raise TypeError("display_id required for update_display")
    if handle is not None and not values:
        values, raw = ({},), True
    if clear:
        clear_output(wait=True)
    for value in values:
        data, described = (value, {}) if raw else bundle(value, include, exclude)
        if data or raw:  # else the value has shown itself
            publish(data, described | (metadata or {}), transient=transient, update=update)
    return handle


def publish(
    data: dict[str, Any],
    metadata: dict[str, Any] | None = None,
    *,
    transient: dict[str, Any] | None = None,
    update: bool = False,
    **_: object,
) -> None:
    """Show data by MIME type: IPython's `publish_display_data`.

    Raises:
        TypeError: it is no dictionary.
    """
    if not isinstance(data, dict):
        raise TypeError(f"data must be a dict, got: {data!r}")
    if WIDGET in data:
        data, metadata = {"text/plain": NO_WIDGET}, {}
    for one in screens:
        one.show(Shown(data, metadata or {}, transient or {}, update))


def clear_output(wait: bool = False) -> None:  # noqa: FBT001, FBT002 - as IPython's
    """Clear the output of the cell, or when there is something new."""
    for one in screens:
        one.show(Cleared(wait))


def nbytes() -> int:
    """Return how much was shown so far, in bytes."""
    return sum(one.nbytes for one in screens)


@contextmanager
def muted(*, when: bool = True) -> Iterator[None]:
    """Show nothing for a while, if `when` is so."""
    lit, screens[:] = list(screens), [] if when else list(screens)
    try:
        yield
    finally:
        screens[:] = lit


def use(on: Screen) -> None:
    """Have all that is displayed in this process shown by a screen.

    `display` needs no import, as in a notebook.
    """
    screens[:] = [on]
    vars(builtins)["display"] = display
    adapt("IPython.core.display_functions", _change)
    adapt("tqdm.notebook", _take_text)


def _change(module: ModuleType) -> None:
    """Have everybody who imports IPython's functions get these."""
    names: Any = module
    names.display, names.clear_output, names.publish_display_data = display, clear_output, publish


def _take_text(module: ModuleType) -> None:
    """Have bars that would be widgets be text."""
    names: Any = module
    plain: Any = sys.modules["tqdm.std"]
    names.tqdm = names.tqdm_notebook = plain.tqdm
    names.trange = names.tnrange = plain.trange
