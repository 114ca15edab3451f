"""The source of classes of a notebook and its cells, for `inspect`.

It looks for the file of a class's module, and there is none of `__main__` in a context.
"""

import ast
import inspect
import linecache
from types import CodeType, FunctionType
from typing import Any

_file_of: Any = inspect.getfile


def find_classes() -> None:
    """Have `inspect.getsource` find the classes of cells from now on, in this process."""
    patched: Any = inspect
    patched.getfile = _file


def _file(of: Any) -> str:
    """Return the file of something, as `inspect.getfile` does, or the cell of a class.

    Raises:
        OSError, TypeError: as that does.
    """
    if isinstance(of, type) and of.__module__ == "__main__":
        found = _cell_of(of)
        if found is not None:
            return found
    file: str = _file_of(of)
    return file


def _cell_of(kind: type) -> str | None:
    """Return the cell that one of a class's own functions is in, else the last that defines it."""
    for one in vars(kind).values():
        code = _code_of(one)
        if code is not None and _defines(code.co_filename, kind):
            return code.co_filename
    return next((name for name in reversed(list(linecache.cache)) if _defines(name, kind)), None)


def _code_of(value: Any) -> CodeType | None:
    """Return the code of a function, also of one that is a property's or a class's own."""
    if type(value) is property:
        value = value.fget
    elif type(value) in (staticmethod, classmethod):
        value = value.__func__
    return value.__code__ if type(value) is FunctionType else None


def _defines(filename: str, kind: type) -> bool:
    """Whether a cell has a statement that defines a class of this name."""
    entry = linecache.cache.get(filename)
    if entry is None or len(entry) == 1 or entry[1] is not None:
        return False  # a file, or what is read when it is asked for
    text = "".join(entry[2])
    if kind.__name__ not in text:
        return False
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return False
    named = (node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    return kind.__name__ in named
