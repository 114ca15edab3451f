"""A notebook's namespace as pickles know it: by name, for functions that look up globals there.

Where such a function arrives in a context, its globals are the names of the notebook's cells, as
those of functions are that cells define. What it uses of the notebook has to be sent beside it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import FunctionType
from typing import Any

from accel_lab.compute.cells.definitions import globals_of


class NotebookGlobals:
    """Takes note of what functions use that are pickled while it is entered.

    Parameters:
        names: the notebook's.
        space: what its cells' names are called in contexts.

    Attributes:
        reached: names of the notebook that are globals of functions pickled so far, each with the
            first of these.
    """

    def __init__(self, names: dict[str, Any], space: str) -> None:
        self.names = names
        self.spaces = {id(names): space}
        self.reached: dict[str, str] = {}

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Leave this namespace out of what this thread pickles meanwhile."""
        token = _entered.set(self)
        try:
            yield
        finally:
            _entered.reset(token)

    def note(self, function: FunctionType) -> None:
        """Take note of what a function uses."""
        for name in globals_of(function.__code__):
            if name in self.names and not name.startswith("__"):
                self.reached.setdefault(name, function.__name__)


_entered: ContextVar[NotebookGlobals | None] = ContextVar("entered", default=None)


def entered() -> NotebookGlobals | None:
    """Return the home in which this thread pickles, if any."""
    return _entered.get()
