"""The workspaces of a context: what the notebook calls there through `run`.

All of it happens in a context process, on the dispatcher's thread.
"""

import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from accel_lab.compute.cells.cell_execution import Cell, Piece, Ran, Timed
from accel_lab.compute.cells.class_source import find_classes
from accel_lab.compute.cells.user_modules import Projects
from accel_lab.compute.cells.workspace import Workspace
from accel_lab.compute.execution.backend import Backend
from accel_lab.compute.execution.cost_meter import CostMeter
from accel_lab.compute.execution.stream import Stream
from accel_lab.compute.output import matplotlib_figures
from accel_lab.errors import InvalidArgument, StaleRef

_workspaces: dict[str, Workspace] = {}
_projects = Projects()
_backend: list[Backend] = []
_generation: list[int] = []
_meter: list[CostMeter] = []


def serve(backend: Backend, generation: int, stream: Stream) -> None:
    """Begin to serve the context of this process, whose user code runs on `stream`."""
    _backend[:] = [backend]
    _generation[:] = [generation]
    _meter[:] = [CostMeter(backend, stream)]
    find_classes()
    _suit_environment()


def serving() -> bool:
    """Whether this process is a context, and runs code of a notebook's."""
    return bool(_backend)


def of(space: str) -> Workspace:
    """Return a namespace of this context, made when it is first asked for."""
    if space not in _workspaces:
        _workspaces[space] = Workspace(_backend[0], _generation[0])
    return _workspaces[space]


def spaces() -> dict[str, Workspace]:
    """Return the namespaces of this context."""
    return _workspaces


def run_cell(space: str, cell: Cell, *, quiet: bool) -> Ran:
    """Run a cell in the namespace `space`, as `Workspace.run` says."""
    ran = of(space).run(cell, _meter[0], quiet=quiet)
    _projects.seen()
    return ran


def call(
    space: str,
    cell: Cell,
    *,
    callee: Callable[..., Any],
    args: Sequence[Any],
    kwargs: dict[str, Any],
) -> Ran:
    """Call an object of the namespace `space`, as `Workspace.call` says."""
    ran = of(space).call(cell, callee, args, kwargs)
    _projects.seen()
    return ran


def define(space: str, cell: Cell, pieces: list[Piece], plain: dict[str, bytes]) -> Ran:
    """Define again what cells have defined in the namespace `space`, as `Workspace.define` says."""
    ran = of(space).define(cell, pieces, plain)
    _projects.seen()
    return ran


def outcome(space: str, number: int) -> Ran:
    """Tell what a cell has done in the namespace `space` that has failed or was stopped."""
    if space not in _workspaces:
        return Ran(_generation[0])
    return _workspaces[space].told_again(number)


def time_cell(space: str, cell: Cell, *, number: int, repeat: int) -> Timed:
    """Time a cell in the namespace `space`, as `Workspace.time` says."""
    timed = of(space).time(cell, _meter[0], number=number, repeat=repeat)
    _projects.seen()
    return timed


def resident(space: str, name: str, serial: int) -> Any:
    """Return an object that a cell has left; what the pickle of an ObjectRef calls.

    Raises:
        InvalidArgument: this process is no context.
        StaleRef: it is gone, with its context or otherwise.
    """
    if not serving():
        refused = InvalidArgument(
            f"this is the pickle of a handle, of {name!r}: it is good only in the object's context"
        )
        refused.remedy = "Pickle the object itself, which the handle's .get() returns a copy of."
        raise refused
    if space not in _workspaces:
        raise StaleRef(f"{name!r} was lost with its context; run its cell again")
    return _workspaces[space].find(name, serial)


def drop(space: str, name: str, serial: int) -> None:
    """Forget an object that a cell has left."""
    if space in _workspaces:
        _workspaces[space].drop(name, serial)


def note_modules() -> None:
    """Look at what is imported by now, so that no context has to."""
    _projects.seen()


def refresh() -> None:
    """Load the modules of the user's project again whose source has changed."""
    renewed = _projects.refresh()
    if renewed is not None:
        for workspace in _workspaces.values():
            workspace.rebind(renewed)


def settle(folder: str, sys_path: list[str]) -> None:
    """Take over the notebook's folder and `sys.path`."""
    with suppress(OSError):  # it has been removed
        os.chdir(folder)
    sys.path[:] = sys_path


def take_over(environment: dict[str, str]) -> None:
    """Take over the notebook's environment."""
    for name in os.environ.keys() - environment.keys():
        del os.environ[name]
    os.environ.update(environment)
    _suit_environment()


def _suit_environment() -> None:
    """Set what libraries are to do here, where the user has not."""
    matplotlib_figures.use()
    _backend[0].suit_environment()
