"""What `%load_ext accel_lab` adds to IPython: magics that show systems, and run cells in them.

A magic is one entry of `MAGICS`: its name, the function that obeys it, and the words that its
argument may be.
"""

import re
import sys
import weakref
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Literal, NamedTuple

from accel_lab.compute.device import Device
from accel_lab.compute.output import cell_origin
from accel_lab.compute.output.displays import Shown, publish
from accel_lab.default import default_system
from accel_lab.errors import InvalidArgument
from accel_lab.notebook import debug
from accel_lab.notebook.footer import Footer
from accel_lab.notebook.gpu_cell import GpuCells
from accel_lab.notebook.gpu_profile import Profile, execute, profile
from accel_lab.notebook.timing import Timing
from accel_lab.open_systems import running
from accel_lab.system import System
from accel_lab.views.faults import Faults
from accel_lab.views.lab import lab as view_of

FAULTS = 20


class Magic(NamedTuple):
    """One magic.

    Attributes:
        kind: whether it stands in a line, or at the head of a cell.
        name: without the percent sign.
        obey: is called with the rest of the line, and with the cell below it, if it heads one; what
            it returns is the cell's value.
        words: returns what the argument may be, for completion.
    """

    kind: Literal["line", "cell"]
    name: str
    obey: Callable[..., Any]
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


def gpu(line: str, cell: str) -> None:
    """Run the cell where the arrays are: `%%gpu [device] [-o name,…] [--quiet]`.

    The device is a variable of the notebook or the name of one, as `gpu1`; when not given it is the
    first of the system that was opened last, or of the default system. Names that the cell binds
    come back, with `-o` only these: arrays as AccelRefs, all else as ObjectRefs. Below it stands
    what it cost, as `accel_lab.notebook.footer.Footer` says. With `--quiet` nothing is displayed.
    """
    _cells_of(_shell()).run(line, cell)


def gputime(line: str, cell: str) -> Timing:
    """Time the cell where the arrays are: `%%gputime [device] [-n N] [-r R]`.

    It is run once, and then R times (7 when not given), each time as often in a loop as N says, or
    as takes a tenth of a second. What it takes is measured by the device's clock: as a Timing, with
    the median and the spread of the runs. It binds no names; arrays that it changes stay changed.
    """
    return _cells_of(_shell()).time(line, cell)


def gpuprofile(line: str, cell: str) -> Profile:
    """Run the cell in the notebook, and show how long the devices work at each of its messages.

    It waits until all that the cell has sent is done. A timeline of the cell stands above the
    table. What a `%%gpu` cell or a function does inside is one message: `nsys` tells it apart.
    """
    if line.strip():
        raise _mistake(f"%%gpuprofile takes no argument: {line.strip()!r}")
    shell = _shell()
    of = f"cell {shell.displayhook.prompt_count}"
    value, seen, timelines = profile(_systems([]), partial(execute, shell, cell), of)
    for shown in (value, *timelines):
        if shown is not None:
            _display(shown)
    return seen


def _shell() -> Any:
    from IPython.core.getipython import get_ipython

    return get_ipython()


def _cells_of(shell: Any) -> GpuCells:
    """Return what runs the cells of an IPython."""
    cells = _cells.get(shell)
    if cells is None:
        names = shell.user_ns
        cells = _cells[shell] = GpuCells(
            names, partial(_device, names), _end, partial(_keep_result, weakref.ref(shell))
        )
    return cells


_cells: weakref.WeakKeyDictionary[Any, GpuCells] = weakref.WeakKeyDictionary()


def _device(names: Mapping[str, Any], name: str | None) -> Device:
    """Return the device that a cell names.

    Raises:
        InvalidArgument: there is none; the text lists those there are.
    """
    systems = running()
    if name is None:
        return (systems[-1] if systems else default_system()).devices[0]
    if isinstance(device := names.get(name), Device):
        return device
    devices = {device.name: device for system in systems for device in system.devices}
    if name not in devices:
        raise InvalidArgument(f"{name!r} is no device; there are {', '.join(devices) or 'none'}")
    return devices[name]


def load_ipython_extension(shell: Any) -> None:
    """Add the magics, and the completion of their arguments, to an IPython; twice is as once."""
    from IPython.core.completer import context_matcher

    unload_ipython_extension(shell)
    cell_origin.follow_notebook()
    for magic in MAGICS:
        shell.register_magic_function(magic.obey, magic.kind, magic.name)
    debug.install(shell)
    shell.Completer.custom_matchers.append(context_matcher()(complete))


def unload_ipython_extension(shell: Any) -> None:
    """Take them out of an IPython again."""
    debug.uninstall(shell)
    for magic in MAGICS:
        shell.magics_manager.magics[magic.kind].pop(magic.name, None)
    if complete in shell.Completer.custom_matchers:
        shell.Completer.custom_matchers.remove(complete)


def complete(context: Any) -> Any:
    """Complete the argument of a magic; IPython calls it."""
    from IPython.core.completer import SimpleCompletion

    before = re.match(r"\s*%%?(\w+)\s", context.text_until_cursor)
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


def _devices() -> list[str]:
    return [device.name for system in running() for device in system.devices]


def _names() -> list[str]:
    return [system.name for system in running()]


def _mistake(text: str) -> Exception:
    """Return what IPython prints in one line."""
    from IPython.core.error import UsageError

    return UsageError(text)


def _end(footer: Footer) -> None:
    """Show a line: every formatter of the notebook would have its turn if it were displayed."""
    publish(Shown({"text/plain": repr(footer), "text/html": footer._repr_html_()}, {}, {}))


def _keep_result(shell: "weakref.ref[Any]", value: Any) -> None:
    """Have `_`, `__`, `___`, `_N` and `Out` as if IPython had shown this by itself.

    Whoever takes what cells show, as `%%capture`, takes it from them, too.
    """
    hook: Any = getattr(shell(), "displayhook", None)
    current: Any = sys.displayhook
    if hook is current:
        hook.update_user_ns(value)
        hook.fill_exec_result(value)


def _display(view: object) -> None:
    from IPython.display import display

    display(view)  # type: ignore[no-untyped-call]


MAGICS = (
    Magic("cell", "gpu", gpu, lambda: [*_devices(), "-o", "--quiet"]),
    Magic("cell", "gpuprofile", gpuprofile, list),
    Magic("cell", "gputime", gputime, lambda: [*_devices(), "-n", "-r"]),
    Magic("line", "lab", lab, lambda: ["full", *_names()]),
    Magic("line", "lab_faults", lab_faults, _names),
)
