"""Replace calls that ask a terminal: a context has none, and they say so or print what they can."""

import builtins
import io
import sys
from types import ModuleType
from typing import Any, NoReturn

from accel_lab.compute.output.formatting import text
from accel_lab.compute.output.module_patches import adapt

NO_INPUT = (
    "nothing can be typed into a %%gpu cell or a function on the device: its process has no "
    "terminal. Ask in a cell without %%gpu, and use the name here; breakpoint() and pdb.set_trace()"
    " tell the variables and go on, and %debug after a failure tells those of its frames"
)
_SET_TRACE = ("pdb", "IPython.core.debugger", "IPython.terminal.debugger")


def do_without() -> None:
    """Have `input`, debuggers and what asks for passwords work so in this process."""
    builtins.input = _refuse
    sys.breakpointhook = _tell_at_breakpoint
    for name in _SET_TRACE:
        adapt(name, _change_set_trace)
    adapt("getpass", _change_getpass)


def _refuse(*_: object, **__: object) -> NoReturn:
    """Answer `input()`, and the prompt of a debugger.

    Raises:
        UnsupportedOperation: always; not EOFError, at which debuggers end their program.
    """
    raise io.UnsupportedOperation(NO_INPUT)


def _tell_at_breakpoint(*_: Any, **__: Any) -> None:
    _tell_locals("breakpoint()")


def _tell_at_set_trace(*_: Any, **__: Any) -> None:
    _tell_locals("set_trace()")


def _tell_locals(what: str) -> None:
    """Say what is there, two calls above, and go on."""
    frame = sys._getframe(2)  # noqa: SLF001 - where the call stands
    code = frame.f_code
    lines = [f"{what} at {code.co_filename}, line {frame.f_lineno}: nothing stops here, where no "]
    lines[0] += "terminal is; the variables are"
    for name, value in frame.f_locals.items():
        if not name.startswith("__") and not isinstance(value, ModuleType):
            lines.append(f"  {name} = {text(value)}")
    sys.stdout.write("\n".join(lines) + "\n")


def _change_set_trace(module: ModuleType) -> None:
    names: Any = module
    names.set_trace = _tell_at_set_trace


def _change_getpass(module: ModuleType) -> None:
    names: Any = module
    names.getpass = _refuse
