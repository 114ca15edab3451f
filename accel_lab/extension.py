"""What `%load_ext accel_lab` adds to IPython: magics that show the running systems.

A magic is one entry of `MAGICS`: its name, the function that obeys it, and the words that its
argument may be.
"""

import re
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from accel_lab.system import System, running
from accel_lab.views.faults import Faults
from accel_lab.views.lab import lab as view_of

FAULTS = 20


class Magic(NamedTuple):
    """One line magic.

    Attributes:
        name: without the percent sign.
        obey: is called with the rest of the line; what it returns is the cell's value.
        words: returns what the argument may be, for completion.
    """

    name: str
    obey: Callable[[str], Any]
    words: Callable[[], Iterable[str]]


def lab(line: str) -> Any:
    """Show the running systems: `%lab [full] [NAME …]`.

    Each in its compact view, the tree and a line for each of the rest; with `full` in all its
    views. Without a name, every system that is open.
    """
    words = line.split()
    full = "full" in words
    systems = _systems([word for word in words if word != "full"])
    views = [view_of(system, compact=not full) for system in systems]
    if len(views) == 1:
        return views[0]
    for view in views:
        _display(view)
    return None


def lab_faults(line: str) -> Any:
    """Show the last faults as a table: `%lab_faults [N] [NAME …]`, 20 when N is not given."""
    words = line.split()
    numbers = [word for word in words if re.fullmatch(r"[+-]?\d+", word)]
    count = int(numbers[0]) if numbers else FAULTS
    if len(numbers) > 1 or count < 1:
        raise _mistake(f"%lab_faults takes one number of faults, from 1: {line.strip()!r}")
    return Faults(_systems([word for word in words if word not in numbers]), count)


def load_ipython_extension(shell: Any) -> None:
    """Add the magics, and the completion of their arguments, to an IPython; twice is as once."""
    from IPython.core.completer import context_matcher

    unload_ipython_extension(shell)
    for magic in MAGICS:
        shell.register_magic_function(magic.obey, "line", magic.name)
    shell.Completer.custom_matchers.append(context_matcher()(complete))


def unload_ipython_extension(shell: Any) -> None:
    """Take them out of an IPython again."""
    for magic in MAGICS:
        shell.magics_manager.magics["line"].pop(magic.name, None)
    if complete in shell.Completer.custom_matchers:
        shell.Completer.custom_matchers.remove(complete)


def complete(context: Any) -> Any:
    """Complete the argument of a magic; IPython calls it."""
    from IPython.core.completer import SimpleCompletion

    before = re.match(r"\s*%(\w+)\s", context.text_until_cursor)
    magic = next((one for one in MAGICS if before and one.name == before[1]), None)
    if magic is None:
        return {"completions": []}
    words = [word for word in magic.words() if word.startswith(context.token)]
    completions = [SimpleCompletion(text=word, type="param") for word in words]
    return {"completions": completions, "suppress": True}


def _systems(names: list[str]) -> list[System]:
    """Return the open systems of these names, all of them for none.

    Raises:
        UsageError: there is none, or none of a name.
    """
    systems = running()
    if not systems:
        raise _mistake("no system is running: lab = System() opens one")
    known = {system.name: system for system in systems}
    if strangers := [name for name in names if name not in known]:
        raise _mistake(f"no system {strangers[0]!r} is running; there are {', '.join(known)}")
    return [known[name] for name in names] or systems


def _names() -> list[str]:
    return [system.name for system in running()]


def _mistake(text: str) -> Exception:
    """Return what IPython prints in one line."""
    from IPython.core.error import UsageError

    return UsageError(text)


def _display(view: object) -> None:
    from IPython.display import display

    display(view)  # type: ignore[no-untyped-call]


MAGICS = (
    Magic("lab", lab, lambda: ["full", *_names()]),
    Magic("lab_faults", lab_faults, _names),
)
