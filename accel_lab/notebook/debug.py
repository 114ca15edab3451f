"""`%debug` and `%pdb on` where code has failed in a context: its frames, as text.

No debugger gets there. IPython's own would open on the frames of the notebook, which only sent that
code. On everything else they are IPython's own.
"""

import functools
import linecache
import sys
from collections.abc import Callable, Iterator
from typing import Any

from accel_lab.compute.machine.stack_frames import chain
from accel_lab.display.failure import place_of
from accel_lab.errors import UserCodeError

TITLE = 200
_MARK = "accel_lab_original"


def install(shell: Any) -> None:
    """Have `%debug` and `%pdb on` answer for code in contexts, too; twice is as once."""
    magics = shell.magics_manager.magics["line"]
    original = magics.get("debug")
    if original is None or hasattr(original, _MARK):
        return

    @functools.wraps(original)  # with the attributes by which IPython knows how to call it
    def debug(line: str = "", *args: Any, **kwargs: Any) -> Any:
        error = None if line.strip() else failed_there(getattr(sys, "last_value", None))
        if error is None:
            return original(line, *args, **kwargs)
        sys.stdout.write(told(error) + "\n")
        return None

    opens = shell.debugger

    @functools.wraps(opens)
    def debugger(*args: Any, **kwargs: Any) -> Any:
        error = failed_there(getattr(sys, "last_value", None)) if shell.call_pdb else None
        if error is None:
            return opens(*args, **kwargs)
        sys.stdout.write(told(error) + "\n")
        return None

    setattr(debug, _MARK, original)
    setattr(debugger, _MARK, opens)
    magics["debug"], shell.debugger = debug, debugger


def uninstall(shell: Any) -> None:
    """Give IPython its own `%debug` and debugger back."""
    magics = shell.magics_manager.magics["line"]
    original: Callable[..., Any] | None = getattr(magics.get("debug"), _MARK, None)
    if original is not None:
        magics["debug"] = original
    opens: Callable[..., Any] | None = getattr(shell.debugger, _MARK, None)
    if opens is not None:
        shell.debugger = opens


def failed_there(error: BaseException | None) -> UserCodeError | None:
    """Return the failure of code in a context that an error is, or comes of."""
    found = (one for one in chain(error) if isinstance(one, UserCodeError))
    return next(found, None)


def told(error: UserCodeError) -> str:
    """Return the frames of a failure as text, the innermost last, each with its variables."""
    headline = str(error).partition("\n")[0]
    headline = headline if len(headline) <= TITLE else f"{headline[: TITLE - 1]}…"
    if not error.frames:
        return (
            f"{headline}\n%debug cannot show more: this happened in a context, whose frames are "
            "gone, and none of them was of your code"
        )
    lines = [f"{headline}, in a context: its frames as they were then, as text"]
    for file, number, function, line, variables in error.frames:
        lines.append(f"{place_of(file) or file}, line {number}, in {function}")
        lines += _code(file, number, line)
        width = max((len(name) for name, _ in variables), default=0)
        lines += [f"    {name:<{width}} = {text}" for name, text in variables]
    return "\n".join(lines)


def _code(file: str, number: int, line: str) -> Iterator[str]:
    """Give the line that ran, as the context knew it or the notebook does."""
    text = line or linecache.getline(file, number).strip()
    if text:
        yield f"  {text}"
