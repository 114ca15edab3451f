"""Which of the notebook's names a cell uses, from its text."""

import ast
from functools import lru_cache
from symtable import symtable

from accel_lab.compute.definitions import parsed
from accel_lab.errors import InvalidArgument

_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def used_names(source: str) -> list[str]:
    """Return the global names that a cell, or a function in it, reads, built-in ones too; sorted.

    A name counts although the cell binds it too, unless it certainly does so before the first use.

    Raises:
        InvalidArgument: the cell is not Python; says where.
    """
    try:
        tree = parsed(source)
        ahead = [symtable(source, "<cell>", "exec")]
    except SyntaxError as error:
        where = f"line {error.lineno}: {(error.text or '').strip()}"
        refused = InvalidArgument(f"the cell is not plain Python: {error.msg}, {where}")
        refused.remedy = "Correct that line; magics and shell commands have cells of their own."
        raise refused from error
    _refuse_await(source, tree)
    # `x += 1` and `del x` need x, and are no reference to it.
    nodes = list(ast.walk(tree))
    written = [node.target for node in nodes if isinstance(node, ast.AugAssign)]
    names = [node for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Del)]
    needed = {node.id for node in (*written, *names) if isinstance(node, ast.Name)}
    bound = bound_names(source)
    first = _bound_first(tree.body)
    found: set[str] = set()
    while ahead:
        scope = ahead.pop()
        ahead += scope.get_children()
        outermost = scope.get_type() == "module"
        for symbol in scope.get_symbols():
            name = symbol.get_name()
            # From Python 3.12 on, a comprehension's variables are among those of the cell.
            of_cell = not symbol.is_assigned() or name in needed or name in bound
            read = symbol.is_referenced() or name in needed
            if read and (of_cell if outermost else symbol.is_global()):
                found.add(name)
    return sorted(found - first)


def _bound_first(body: list[ast.stmt]) -> set[str]:  # noqa: C901 - one case for each way to bind
    """Return the names that these statements bind before anything in them could read them."""
    read: set[str] = set()
    bound: set[str] = set()
    in_loops: set[str] = set()  # and behind one only if it had an item
    for statement in body:
        own: set[str] = set()
        match statement:
            case ast.Assign(targets, value):
                read |= _read(value, *targets) - bound
                own = _stored(*targets)
            case ast.AnnAssign(target, annotation, ast.expr() as value):
                read |= _read(annotation, value, target) - bound
                own = _stored(target)
            case ast.Import(names) | ast.ImportFrom(_, names):
                own = {(one.asname or one.name).partition(".")[0] for one in names}
            case ast.FunctionDef(name, args, inner):
                result = [] if statement.returns is None else [statement.returns]
                read |= _read(args, *result, *statement.decorator_list) - bound
                read |= _read(*inner) - bound - {name}  # it may call itself
                own = {name}
            case ast.ClassDef(name):
                read |= _read(statement) - bound
                own = {name}
            case ast.With(items, inner):
                for item in items:
                    read |= _read(item.context_expr) - bound
                    if item.optional_vars is not None:
                        read |= _read(item.optional_vars) - bound
                        bound |= _stored(item.optional_vars) - read
                read |= _read(*inner) - bound
            case ast.For(target, items, inner):
                read |= _read(items) - bound
                in_loops |= _stored(target) - read
                read |= _read(target, *inner, *statement.orelse) - bound - _stored(target)
            case _:
                read |= _read(statement) - bound
        bound |= own - read
    return bound | in_loops - read


def _read(*nodes: ast.AST) -> set[str]:
    """Return the names that may be read somewhere in these."""
    found: set[str] = set()
    for node in nodes:
        for one in ast.walk(node):
            if isinstance(one, ast.Name) and not isinstance(one.ctx, ast.Store):
                found.add(one.id)
            elif isinstance(one, ast.AugAssign) and isinstance(one.target, ast.Name):
                found.add(one.target.id)
    return found


def _stored(*targets: ast.AST) -> set[str]:
    names = (one for top in targets for one in ast.walk(top) if isinstance(one, ast.Name))
    return {one.id for one in names if isinstance(one.ctx, ast.Store)}


def _refuse_await(source: str, tree: ast.Module) -> None:
    """Refuse what only a notebook's own cells can do; the compiler knows where that is."""
    try:
        compile(tree, "<cell>", "exec", dont_inherit=True)
    except SyntaxError as error:
        if not any(word in error.msg for word in ("await", "async")):
            return  # it fails in the context as it does anywhere
        line = source.splitlines()[(error.lineno or 1) - 1].strip()
        text = f"the cell awaits outside a function: {error.msg}, line {error.lineno}: {line}"
        refused = InvalidArgument(text)
        refused.remedy = (
            "No event loop runs there: await it in a cell of the notebook's own, or write "
            "asyncio.run(…) around a coroutine here. Handles need no await: use them as arrays."
        )
        raise refused from None


@lru_cache(maxsize=4)
def bound_names(source: str) -> frozenset[str]:
    """Return the names that a cell binds by itself, functions in it left out."""
    found: set[str] = set()
    ahead: list[ast.AST] = [parsed(source)]
    while ahead:
        node = ahead.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.alias):
            found.add((node.asname or node.name).partition(".")[0])
        if isinstance(node, _COMPREHENSIONS):
            ahead += (inner for inner in ast.walk(node) if isinstance(inner, ast.NamedExpr))
        elif not isinstance(node, ast.Lambda):
            ahead += ast.iter_child_nodes(node)
    return frozenset(found)
