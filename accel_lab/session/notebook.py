"""The names of a notebook, or of a program, and what its cells define."""

import re
import weakref
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import FunctionType
from typing import Any

import msgspec

from accel_lab.compute.cells.cell_code import remember
from accel_lab.compute.cells.definitions import compiled, definitions
from accel_lab.compute.output import cell_origin
from accel_lab.compute.residency.notebook_names import Namespace, notebook
from accel_lab.errors import AccelError
from accel_lab.session.plain.secret import Secrets
from accel_lab.session.store.folder import Folder

_IPYTHONS = re.compile(r"_+|_+(i+|ih|oh|dh|i?\d+|exit_code|sh|version|repr)|__\w+__|__vsc_\w+")
"""What IPython binds by itself, and front ends."""


def shell() -> Any:
    """Return the IPython that runs here; None where none does."""
    if not cell_origin.in_notebook():
        return None
    from IPython.core.getipython import get_ipython

    return get_ipython()


def user_names(space: Namespace) -> dict[str, Any]:
    """Return what the user has bound in a namespace, in the order in which that was."""
    hidden = getattr(shell(), "user_ns_hidden", {}) if notebook() is space else {}
    nothing = object()
    return {
        name: value
        for name, value in list(space.items())
        if _IPYTHONS.fullmatch(str(name)) is None and hidden.get(name, nothing) is not value
    }


class Definitions:
    """The texts that define functions and classes, kept in a folder.

    Attributes:
        keys: of the text that defines a name, the last one.
    """

    def __init__(self, folder: Folder, secrets: Secrets) -> None:
        self.keys: dict[str, str] = {}
        self._folder = folder
        self._secrets = secrets

    def note(self, source: str, filename: str) -> None:
        """Take note of what a cell defines; nothing of a text that holds a secret."""
        with suppress(SyntaxError):
            found = definitions(source, set())
            if found and self._secrets.scrubbed(source) == source:
                key = self._folder.keep(msgspec.msgpack.encode([source, filename]))
                for name in sorted(found):
                    self.keys.pop(name, None)
                    self.keys[name] = key  # behind those that were defined before

    def has(self, name: str, value: Any) -> bool:
        """Whether the text is known that has defined what a name stands for."""
        if name not in self.keys or getattr(value, "__module__", None) != "__main__":
            return False
        if isinstance(value, FunctionType):
            return value.__name__ in (name, "<lambda>") and value.__closure__ is None
        return isinstance(value, type) and value.__name__ == name

    def define(self, names: set[str], keys: Mapping[str, str], space: Namespace) -> dict[str, str]:
        """Define these again, in the order in which they were; return why which could not be."""
        lost: dict[str, str] = {}
        by_text: dict[str, set[str]] = {}
        for name, key in keys.items():
            if name in names:
                by_text.setdefault(key, set()).add(name)
        for key, some in by_text.items():
            try:
                source, filename = msgspec.msgpack.decode(
                    self._folder.content(key), type=tuple[str, str]
                )
                remember(source, filename)
                for statement in compiled(source, filename, frozenset(some)):
                    exec(statement, space)  # noqa: S102 - with leave
            except AccelError:
                raise
            except Exception as error:  # noqa: BLE001 - the user's own code
                failed = {name for name in some if name not in space}
                lost |= dict.fromkeys(failed, f"defining it again failed: {error!r}")
        return lost


def follow_cells(
    ipython: Any, committed: Callable[[int | None, str], object]
) -> Callable[[], None]:
    """Have something called behind each cell, with its number and text; returns what ends that.

    It holds nothing of whose method is called.
    """
    weak = weakref.WeakMethod(committed)

    def end(result: Any = None) -> None:
        found, info = weak(), getattr(result, "info", None)
        if found is not None:
            found(cell_origin.current().cell, str(getattr(info, "raw_cell", "") or ""))

    ipython.events.register("post_run_cell", end)

    def stop() -> None:
        with suppress(ValueError):
            ipython.events.unregister("post_run_cell", end)

    return stop


def as_python(ipython: Any, source: str) -> str:
    """Return a cell's text as Python, without magics."""
    with suppress(Exception):
        return str(ipython.transform_cell(source))
    return source
