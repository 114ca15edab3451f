"""An error as a notebook shows it: where it came up, why, what to do; the long story apart."""

import re
import sys
import traceback
import weakref
from collections.abc import Callable, Iterator
from html import escape
from pathlib import Path
from types import TracebackType
from typing import Any, cast

from accel_lab.display.summary import Labelled, as_html, as_text

PACKAGE = f"{Path(__file__).parent.parent}/"
CAUSES = 4
CELL_MAGIC = re.compile(r"get_ipython\(\)\.run_cell_magic\('(\w+)', '([^']*)', ")
RED = "\x1b[31m{}\x1b[39m"
offers: list[Callable[[BaseException], str]] = []
"""Each may say what can be had back because of an error."""
_shown: "weakref.ref[BaseException] | None" = None


def lines(error: BaseException) -> Iterator[tuple[str, str]]:
    """Give what is worth knowing of an error as (what, text)."""
    if where := user_line(error):
        yield "raised", where
    for note in getattr(error, "__notes__", ()):
        yield "note", note
    for cause in _causes(error):
        if str(cause) not in str(error):
            yield "because", headline(cause)
    for offer in offers:
        if text := offer(error):
            yield "memory", text
    if remedy := getattr(error, "remedy", ""):
        yield "what to do", remedy


def headline(error: BaseException) -> str:
    """Return the error's name and text."""
    text = str(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def user_line(error: BaseException) -> str:
    """Return the user's own line that the error passed last, empty when there is none.

    As "cell 5, line 3: c = blas.gemm(a, b)"; a notebook's cell goes before a file.
    """
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith(PACKAGE)
    ]
    cells = [frame for frame in frames if place_of(frame.filename)]
    for frame in reversed(cells or frames):
        place = place_of(frame.filename) or frame.filename
        line = (frame.line or "").strip()
        if magic := CELL_MAGIC.match(line):  # what IPython makes of it is not the user's line
            return f"{place}: %%{magic[1]} {magic[2]}".rstrip()
        return f"{place}, line {frame.lineno}: {line}".rstrip(": ")
    return ""


def place_of(filename: str) -> str:
    """Return "cell 5" for the code of a notebook's cell, else nothing."""
    shell = _shell()
    if shell is None:
        return ""
    named = shell.compile.format_code_name(filename)
    return f"cell {named[1].removeprefix('In[').removesuffix(']')}" if named else ""


def html(error: BaseException) -> str:
    """Return a table, and the whole traceback one click away."""
    title, _, rest = headline(error).partition("\n")
    table = as_html(title, lines(error))
    if rest:
        table += f"<pre>{escape(rest)}</pre>"
    return table + (details(whole(error)) if error.__traceback__ is not None else "")


def details(story: str) -> str:
    """Return a traceback that is folded away."""
    return f"<details><summary>The whole traceback</summary><pre>{escape(story)}</pre></details>"


def whole(error: BaseException) -> str:
    """Return the traceback as Python writes it, causes first, without IPython's own frames."""
    told = traceback.TracebackException.from_exception(error)
    link: traceback.TracebackException | None = told
    while link is not None:
        for frame in link.stack.copy():
            if "/IPython/core/" in frame.filename:
                link.stack.remove(frame)
            else:
                frame.filename = place_of(frame.filename) or frame.filename
        link = link.__cause__ or link.__context__
    return "".join(told.format()).rstrip()


def of_cell(error: BaseException) -> list[str]:
    """Return what a failed cell prints: a few lines the first time, all of it when asked again.

    `%tb` asks again. In a notebook the whole is put below the cell's output, folded away.
    """
    global _shown  # noqa: PLW0603 - one notebook, one newest failure
    shell = _shell()
    if shell is None:
        return [whole(error)]
    if _shown is not None and _shown() is error:
        tb: list[str] = shell.InteractiveTB.structured_traceback(
            type(error), error, error.__traceback__
        )
        return tb
    _shown = weakref.ref(error)
    if hasattr(shell, "kernel"):
        _put_below(shell, details(whole(error)))
    return short(error, colour=str(shell.colors).lower() != "nocolor").split("\n")


def interrupt() -> KeyboardInterrupt:
    """Return what to raise where a wait is interrupted; a notebook shows the user's lines of it."""
    error: Any = KeyboardInterrupt()
    error._render_traceback_ = _of_interrupt  # not one that holds the error, and so its frames
    return cast("KeyboardInterrupt", error)


def _of_interrupt() -> list[str]:
    """Return what IPython prints of the interrupt that it is about to show."""
    error, shell = sys.exc_info()[1] or getattr(sys, "last_value", None), _shell()
    if shell is None or not isinstance(error, KeyboardInterrupt):
        return ["KeyboardInterrupt"]
    own = _without_ours(error.__traceback__)
    shown: list[str] = shell.InteractiveTB.structured_traceback(KeyboardInterrupt, error, own)
    return shown


def _without_ours(trace: TracebackType | None) -> TracebackType | None:
    """Return a traceback without the frames of this package."""
    if trace is None:
        return None
    below = _without_ours(trace.tb_next)
    if trace.tb_frame.f_code.co_filename.startswith(PACKAGE):
        return below
    return TracebackType(below, trace.tb_frame, trace.tb_lasti, trace.tb_lineno)


def short(error: BaseException, *, colour: bool = False) -> str:
    """Return an error in a few lines."""
    name, _, text = headline(error).partition(":")
    title = f"{RED.format(name) if colour else name}:{text}" if text else name
    told: Labelled = [*lines(error), ("traceback", "%tb shows the whole")]
    return as_text(title, told, 11)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Give what led to an error, the nearest first."""
    cause = error.__cause__
    for _ in range(CAUSES):
        if cause is None:
            return
        yield cause
        cause = cause.__cause__


def _put_below(shell: Any, markup: str) -> None:
    """Show something when the cell is through with its own output."""

    def put(*_: object) -> None:
        shell.events.unregister("post_run_cell", put)
        shell.display_pub.publish({"text/html": markup, "text/plain": "The whole traceback: %tb"})

    shell.events.register("post_run_cell", put)


def _shell() -> Any:
    """Return the IPython that runs, None elsewhere; imports nothing."""
    ipython = sys.modules.get("IPython")
    return ipython.get_ipython() if ipython is not None else None
