"""The text of a cell as code that runs in a context."""

import ast
import linecache
import tokenize
from io import StringIO
from types import CodeType

TIMES = "__accel_lab_times__"
"""What the loop of a timed cell runs over."""


def parts_of(source: str, filename: str) -> tuple[CodeType, CodeType | None]:
    """Compile a cell; an expression at its end apart, because its value is shown."""
    remember(source, filename)
    tree = ast.parse(source, filename)
    last = None
    if tree.body and isinstance(tree.body[-1], ast.Expr) and not _is_silent(source):
        last = compile(ast.Expression(tree.body.pop().value), filename, "eval")  # type: ignore[attr-defined]
    return compile(tree, filename, "exec"), last


def _is_silent(source: str) -> bool:
    """Whether a cell's last sign is a semicolon; a comment may follow it."""
    if ";" not in source:
        return False
    signs = [one.string for one in tokenize.generate_tokens(StringIO(source).readline)]
    said = [one for one in signs if one.strip() and not one.startswith("#")]
    return said[-1] == ";"


def remember(source: str, filename: str) -> None:
    """Have tracebacks show the lines of a cell."""
    linecache.cache[filename] = len(source), None, source.splitlines(keepends=True), filename


def loop_of(source: str, filename: str) -> CodeType:
    """Compile a cell as the body of a loop over TIMES."""
    parts_of(source, filename)  # a `break` or a `return` is no more allowed than elsewhere
    tree = ast.parse(source, filename)
    loop = ast.parse(f"for {TIMES} in {TIMES}: pass", filename)
    head = loop.body[0]
    assert isinstance(head, ast.For)
    head.body = tree.body or head.body
    return compile(loop, filename, "exec")
