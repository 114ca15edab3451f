"""The workspaces of a context: what the notebook calls there through `run`.

All of it happens in a context process, on the dispatcher's thread.
"""

import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from accel_lab.compute.cells.cell_execution import Cell, Piece, Ran, Timed
from accel_lab.compute.cells.user_modules import Projects
from accel_lab.compute.cells.workspace import Workspace
from accel_lab.compute.execution.cost_meter import CostMeter
from accel_lab.compute.output import matplotlib_figures
from accel_lab.compute.streams.allocators import USER_CODE
from accel_lab.errors import InvalidArgument, StaleRef

if TYPE_CHECKING:
    from accel_lab.compute.execution.context import Context


class Workspaces:
    """The namespaces of a context, each made when it is first asked for.

    Attributes:
        projects: what is known of the user's modules.
    """

    def __init__(self, context: "Context") -> None:
        self._user_code = context.backend
        self._generation = context.generation
        self._meter = CostMeter(context.backend, context.backend, context.stream(USER_CODE))
        self._spaces: dict[str, Workspace] = {}
        self.projects = Projects()
        self._suit_environment()

    def of(self, space: str) -> Workspace:
        """Return the namespace of this name."""
        if space not in self._spaces:
            self._spaces[space] = Workspace(self._user_code, self._generation)
        return self._spaces[space]

    def spaces(self) -> dict[str, Workspace]:
        """Return the namespaces that there are."""
        return self._spaces

    def run_cell(self, space: str, cell: Cell, *, quiet: bool) -> Ran:
        """Run a cell in the namespace `space`, as `Workspace.run` says."""
        ran = self.of(space).run(cell, self._meter, quiet=quiet)
        self.projects.seen()
        return ran

    def call(
        self,
        space: str,
        cell: Cell,
        *,
        callee: Callable[..., Any],
        args: Sequence[Any],
        kwargs: dict[str, Any],
    ) -> Ran:
        """Call an object of the namespace `space`, as `Workspace.call` says."""
        ran = self.of(space).call(cell, callee, args, kwargs)
        self.projects.seen()
        return ran

    def define(self, space: str, cell: Cell, pieces: list[Piece], plain: dict[str, bytes]) -> Ran:
        """Define again what cells have defined there, as `Workspace.define` says."""
        ran = self.of(space).define(cell, pieces, plain)
        self.projects.seen()
        return ran

    def outcome(self, space: str, number: int) -> Ran:
        """Tell what a cell has done there that has failed or was stopped."""
        if space not in self._spaces:
            return Ran(self._generation)
        return self._spaces[space].told_again(number)

    def time_cell(self, space: str, cell: Cell, *, number: int, repeat: int) -> Timed:
        """Time a cell there, as `Workspace.time` says."""
        timed = self.of(space).time(cell, self._meter, number=number, repeat=repeat)
        self.projects.seen()
        return timed

    def find(self, space: str, name: str, serial: int) -> Any:
        """Return an object that a cell has left.

        Raises:
            StaleRef: it is gone, with its context or otherwise.
        """
        if space not in self._spaces:
            raise StaleRef(f"{name!r} was lost with its context; run its cell again")
        return self._spaces[space].find(name, serial)

    def drop(self, space: str, name: str, serial: int) -> None:
        """Forget an object that a cell has left."""
        if space in self._spaces:
            self._spaces[space].drop(name, serial)

    def refresh(self) -> None:
        """Load the modules of the user's project again whose source has changed."""
        renewed = self.projects.refresh()
        if renewed is not None:
            for workspace in self._spaces.values():
                workspace.rebind(renewed)

    def settle(self, folder: str, sys_path: list[str]) -> None:
        """Take over the notebook's folder and `sys.path`."""
        with suppress(OSError):  # it has been removed
            os.chdir(folder)
        sys.path[:] = sys_path

    def take_over(self, environment: dict[str, str]) -> None:
        """Take over the notebook's environment."""
        for name in os.environ.keys() - environment.keys():
            del os.environ[name]
        os.environ.update(environment)
        self._suit_environment()

    def _suit_environment(self) -> None:
        """Set what libraries are to do here, where the user has not."""
        matplotlib_figures.use()
        self._user_code.suit_environment()


_here: Workspaces | None = None
"""Those of this process, if it is a context.

A pickle is loaded by whoever has it, and the name `gpu` is asked for by any code: to these no
argument tells where they are.
"""


def serve(workspaces: Workspaces) -> None:
    """Have what is loaded in this process find the objects of its cells."""
    global _here  # noqa: PLW0603 - a process is one context, and for good
    _here = workspaces


def serving() -> bool:
    """Whether this process is a context, and runs code of a notebook's."""
    return _here is not None


def resident(space: str, name: str, serial: int) -> Any:
    """Return an object that a cell has left; what the pickle of an ObjectRef calls.

    Raises:
        InvalidArgument: this process is no context.
        StaleRef: it is gone, with its context or otherwise.
    """
    if _here is None:
        refused = InvalidArgument(
            f"this is a pickled handle, of {name!r}: it can be loaded only in the object's context"
        )
        refused.remedy = "Pickle the object itself, which the handle's .get() returns a copy of."
        raise refused
    return _here.find(space, name, serial)
