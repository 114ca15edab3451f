"""The text of a cell as code that runs in a context, and what that and its functions look up."""

import ast
import linecache
import sys
from collections.abc import Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any

TIMES = "__accel_lab_times__"
"""What the loop of a timed cell runs over."""
_NO_MODULE = ModuleType("none")


def parts_of(source: str, filename: str) -> tuple[CodeType, CodeType | None]:
    """Compile a cell; an expression at its end apart, because its value is shown."""
    remember(source, filename)
    tree = ast.parse(source, filename)
    last = None
    if tree.body and isinstance(tree.body[-1], ast.Expr) and not source.rstrip().endswith(";"):
        last = compile(ast.Expression(tree.body.pop().value), filename, "eval")  # type: ignore[attr-defined]
    return compile(tree, filename, "exec"), last


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


def complete(given: dict[str, Any], names: dict[str, Any]) -> None:
    """Have functions of the notebook find here what the notebook has not, as a cell's `cp = xp`."""
    ahead = [value for value in given.values() if type(value) is FunctionType]
    seen: set[int] = set()
    while ahead:
        function = ahead.pop()
        known = function.__globals__
        of_module = vars(sys.modules.get(function.__module__, _NO_MODULE))
        if id(function) in seen or known is names or known is of_module:
            continue
        seen.add(id(function))
        for name in _global_names(function.__code__):
            if name not in known and name in names:
                known[name] = names[name]
        ahead += [value for value in known.values() if type(value) is FunctionType]


def _global_names(code: CodeType) -> Iterator[str]:
    """Yield what a function, or one inside it, may look up outside itself."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _global_names(constant)
