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
