"""The statements of a cell that only define something, so that accel_lab can rerun them.

Imports, functions, classes, and names of constants, of lambdas and of `xp`.
"""

import ast
import dis
from collections.abc import Iterator
from functools import lru_cache
from types import CodeType

_READS = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS")
"""A class's body reads by the latter two, its bases and decorators too."""
_NAMED = (
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    ast.ClassDef,
    ast.MatchAs,
    ast.MatchStar,
    ast.ExceptHandler,
)


@lru_cache(maxsize=4)
def parsed(source: str) -> ast.Module:
    """Return a cell's syntax tree, to be looked at by everyone and changed by no one.

    Raises:
        SyntaxError: it is not Python.
    """
    return ast.parse(source)


def definitions(source: str, changing: set[str]) -> set[str]:
    """Return what only such statements of a cell bind; `a.b` for `import a.b`.

    Parameters:
        changing: what functions change wherever they are called, so that it is no constant.
    """
    body = parsed(source).body
    defined = [set(_defined(statement)) for statement in body]
    found = set().union(*defined)
    if not found:
        return found
    constants = {name for statement in body for name in _constant(statement)}
    others = (statement for statement, names in zip(body, defined, strict=True) if not names)
    return found.difference(constants & changing, *map(_bound, others))


def changed(source: str) -> set[str]:
    """Return what functions of a cell declare global."""
    if "global" not in source:
        return set()
    declared = (node for node in ast.walk(parsed(source)) if isinstance(node, ast.Global))
    return {name for node in declared for name in node.names}


def named(node: ast.AST) -> str | None:
    """Return what a definition, a pattern of `match` or an `except` binds: no `ast.Name` tells."""
    if isinstance(node, ast.MatchMapping):
        return node.rest
    return node.name if isinstance(node, _NAMED) else None


def text(source: str, names: frozenset[str]) -> str:
    """Return those statements of a cell that define one of these names."""
    statements = parsed(source).body
    return "\n".join(ast.unparse(one) for one in statements if names & set(_defined(one)))


def compiled(source: str, filename: str, names: frozenset[str]) -> Iterator[CodeType]:
    """Compile those statements of a cell that define one of these names, each by itself."""
    tree = ast.parse(source, filename)
    ahead: list[ast.stmt] = []
    for statement in tree.body:
        if _is_future(statement):
            ahead.append(statement)
        elif names & set(_defined(statement)):
            yield compile(ast.Module([*ahead, statement], []), filename, "exec")


def _defined(statement: ast.stmt) -> Iterator[str]:
    """Yield what a statement defines, if it does nothing else."""
    if _is_future(statement):
        return
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield statement.name
    elif isinstance(statement, ast.Import | ast.ImportFrom):
        yield from (alias.asname or alias.name for alias in statement.names)
    else:
        yield from _constant(statement)


def _is_future(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.ImportFrom) and statement.module == "__future__"


def _constant(statement: ast.stmt) -> Iterator[str]:
    if isinstance(statement, ast.Assign) and _is_definition(statement.value):
        targets = statement.targets
        names = [target.id for target in targets if isinstance(target, ast.Name)]
        yield from names if len(names) == len(targets) else []


def _is_definition(value: ast.expr) -> bool:
    """Whether this is a constant, or a function that is made as by `def`."""
    return isinstance(value, ast.Lambda) or _is_constant(value)


def _is_constant(value: ast.expr) -> bool:
    if isinstance(value, ast.UnaryOp):
        value = value.operand
    if isinstance(value, ast.Tuple):
        return all(map(_is_constant, value.elts))
    # What every cell has under this name is the same in each context.
    return isinstance(value, ast.Constant) or (isinstance(value, ast.Name) and value.id == "xp")


def _bound(statement: ast.stmt) -> set[str]:
    """Return whatever a statement may bind, and more."""
    found: set[str] = set()
    for node in ast.walk(statement):
        if (name := named(node)) is not None:
            found.add(name)
        elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            found.add(node.id)
        elif isinstance(node, ast.alias):
            found.add(node.asname or node.name)
    return found


@lru_cache(maxsize=256)
def globals_behind(source: str, name: str) -> frozenset[str]:
    """Return the globals that functions read which a cell has defined under this name."""
    codes = compiled(source, "<cell>", frozenset((name,)))
    return frozenset[str]().union(*map(globals_of, codes))


@lru_cache(maxsize=256)
def globals_of(code: CodeType) -> frozenset[str]:
    """Return the globals that a function, or one inside it, reads."""
    found = {one.argval for one in dis.get_instructions(code) if one.opname in _READS}
    inner = (constant for constant in code.co_consts if isinstance(constant, CodeType))
    return frozenset(found.union(*map(globals_of, inner)))
