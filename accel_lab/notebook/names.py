"""Which of the notebook's names a cell uses, from its text."""

import ast
import builtins

from accel_lab.errors import InvalidArgument


def used_names(source: str) -> list[str]:
    """Return the names that a cell, or a function in it, reads and that are not built in; sorted.

    A name counts although the cell binds it too: the first use may come before that.

    Raises:
        InvalidArgument: the cell is not Python; says where.
    """
    try:
        tree = ast.parse(source)
    except SyntaxError as error:
        where = f"line {error.lineno}: {(error.text or '').strip()}"
        raise InvalidArgument(f"the cell is not plain Python: {error.msg}, {where}") from error
    found = {
        node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Store)
    }
    # `x += 1` reads x, and its syntax tree says only that it is written.
    found |= {
        node.target.id
        for node in ast.walk(tree)
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name)
    }
    return sorted(name for name in found if not hasattr(builtins, name))


def bound_names(source: str) -> set[str]:
    """Return the names that a cell binds by itself, functions in it left out."""
    found: set[str] = set()
    ahead: list[ast.AST] = [ast.parse(source)]
    while ahead:
        node = ahead.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.alias):
            found.add((node.asname or node.name).partition(".")[0])
        if not isinstance(node, ast.Lambda):
            ahead += ast.iter_child_nodes(node)
    return found
