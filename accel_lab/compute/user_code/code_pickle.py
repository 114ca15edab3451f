"""Code with the text that it was compiled from, where no file has that: a cell's, as IPython's.

So tracebacks have its lines on the other side, and `inspect.getsource` works there, which Triton
and `torch.jit.script` call.
"""

import linecache
from collections.abc import Callable
from types import CodeType
from typing import Any

from accel_lab.compute.cells.cell_code import remember

_NO_FILE = "<dynamic-code>"
"""What cloudpickle has had for the file of all code since 3.1.3."""
LONGEST_TEXT = 1 << 20
"""The text of a longer cell stays behind: it would travel with each call."""


class CodePickle:
    """Reduces code for one pickle, which has each text once."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    def reduced(self, code: CodeType, make: Callable[..., Any], given: tuple[Any, ...]) -> Any:
        """Return how to make code again.

        Parameters:
            make, given: what cloudpickle calls with what.
        """
        filename = code.co_filename
        given = tuple(filename if one == _NO_FILE else one for one in given)
        text = self._texts.get(filename)
        if text is None:
            text = self._texts[filename] = _text_of(filename)
        return (_with_text, (make, given, filename, text)) if text else (make, given)


def _text_of(filename: str) -> str:
    """Return the text of what is no file; empty if it is one, or nobody knows it."""
    entry = linecache.cache.get(filename)
    if entry is None or len(entry) == 1 or entry[1] is not None:
        return ""
    text = "".join(entry[2])
    return text if len(text) <= LONGEST_TEXT else ""


def _with_text(make: Callable[..., Any], given: tuple[Any, ...], filename: str, text: str) -> Any:
    if _text_of(filename) != text:
        remember(text, filename)
    return make(*given)
