"""The user code's environment, which a context takes over from the notebook."""

import os
import sys
from collections.abc import Mapping
from typing import Any, NamedTuple


class Environment(NamedTuple):
    """Where code runs.

    Attributes:
        folder: the working directory; empty when it has been removed.
        path: `sys.path`.
        variables: the environment, as the operating system has it.
        exact: whether that is all of it. A new context has some variables of its own beside it.
    """

    folder: str
    path: list[str]
    variables: Mapping[Any, Any]
    exact: bool = False


UNKNOWN = Environment("", [], {})
OWN = Environment("", [], {}, exact=True)
"""That of a machine with files of its own, which takes over none."""


def variables() -> Mapping[Any, Any]:
    """Return this process's environment, encoded: in a microsecond, where text takes twenty."""
    return dict(os.environ._data)  # type: ignore[attr-defined] # noqa: SLF001 - what it looks into


def environment() -> Environment:
    """Return this process's; takes about two microseconds."""
    try:
        folder = os.getcwd()  # noqa: PTH109 - what chdir takes
    except FileNotFoundError:
        folder = ""
    return Environment(folder, list(sys.path), variables())
