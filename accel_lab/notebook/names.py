"""Which of the notebook's names a cell uses, from its text."""

import ast
from collections.abc import Iterable
from functools import lru_cache
from symtable import symtable
from typing import Any

from accel_lab.compute.cells.definitions import named, parsed
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
    if "await" in source or "async" in source:
        _refuse_await(source, tree)
    needed: set[str] = set()
    first = _bound_first(tree.body, needed)
    bound = bound_names(source)
    late = _late_in_classes(tree) if "class" in source else {}
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
            of_class = name in late.get((scope.get_name(), scope.get_lineno()), ())
            if read and (of_cell if outermost else symbol.is_global() or of_class):
                found.add(name)
    return sorted(found - first)


def _late_in_classes(tree: ast.Module) -> dict[tuple[str, int], set[str]]:
    """Return, by each class's name and line, what its body binds, but perhaps reads before that.

    Such a name is the global until then, whatever functions around the class have.
    """
    return {
        (node.name, node.lineno): _bound_in(node.body) - _bound_first(node.body, set())
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    }


def _bound_first(  # noqa: C901 - one case for each way to bind
    body: list[ast.stmt], needed: set[str]
) -> set[str]:
    """Return the names that these statements bind before anything in them could read them.

    Parameters:
        needed: gets those that `x += 1` or `del x` need somewhere, which is no reference to them.
    """
    read: set[str] = set()
    bound: set[str] = set()
    in_loops: set[str] = set()  # and behind one only if it had an item

    def reads(*nodes: ast.AST | None) -> set[str]:
        return _read(nodes, needed) - bound

    for statement in body:
        own: set[str] = set()
        match statement:
            case ast.Assign(targets, value):
                read |= reads(value, *targets)
                own = _stored(*targets)
            case ast.AnnAssign(target, annotation, ast.expr() as value):
                read |= reads(annotation, value, target)
                own = _stored(target)
            case ast.Import(names) | ast.ImportFrom(_, names):
                own = {(one.asname or one.name).partition(".")[0] for one in names}
            case ast.FunctionDef(name, args, inner):
                read |= reads(args, statement.returns, *statement.decorator_list)
                read |= reads(*inner) - {name}  # it may call itself
                own = {name}
            case ast.ClassDef(name):
                read |= reads(statement)
                own = {name}
            case ast.With(items, inner):
                for item in items:
                    read |= reads(item.context_expr, item.optional_vars)
                    if item.optional_vars is not None:
                        bound |= _stored(item.optional_vars) - read
                read |= reads(*inner)
            case ast.For(target, items, inner):
                read |= reads(items)
                in_loops |= _stored(target) - read
                read |= reads(target, *inner, *statement.orelse) - _stored(target)
            case _:
                read |= reads(statement)
        bound |= own - read
    return bound | in_loops - read


def _read(nodes: Iterable[ast.AST | None], needed: set[str]) -> set[str]:
    """Return the names that may be read somewhere in these; `ast.walk` takes twice as long."""
    found: set[str] = set()
    ahead: list[Any] = list(nodes)
    for node in ahead:  # which grows
        kind = type(node)
        if kind is ast.Name:
            if type(node.ctx) is not ast.Store:
                found.add(node.id)
                if type(node.ctx) is ast.Del:
                    needed.add(node.id)
        elif kind is list:
            ahead += node
        elif isinstance(node, ast.AST):
            for field in node._fields:
                ahead.append(getattr(node, field))
            if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
                found.add(node.target.id)
                needed.add(node.target.id)
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
    return frozenset(_bound_in(parsed(source).body))


def _bound_in(body: list[ast.stmt]) -> set[str]:
    found: set[str] = set()
    ahead: list[ast.AST] = [*body]
    while ahead:
        node = ahead.pop()
        if (name := named(node)) is not None:
            found.add(name)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.alias):
            found.add((node.asname or node.name).partition(".")[0])
        if isinstance(node, _COMPREHENSIONS):
            ahead += (inner for inner in ast.walk(node) if isinstance(inner, ast.NamedExpr))
        elif not isinstance(node, ast.Lambda):
            ahead += ast.iter_child_nodes(node)
    return found
