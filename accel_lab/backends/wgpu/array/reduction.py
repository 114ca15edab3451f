"""Reductions on wgpu: each invocation folds some elements, and the parts are folded again.

An invocation folds few at a time: a processor's adapter ends a loop without a word after 65 535
rounds. So a sum's rounding errors grow as those of sums of parts do.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from accel_lab.backends.wgpu.kernels.job import Job
from accel_lab.backends.wgpu.kernels.parts import fits, halves, in_parts
from accel_lab.backends.wgpu.kernels.types import cast, type_of
from accel_lab.libraries.array.reduction import PLACES, SPREADS, Reduce

if TYPE_CHECKING:
    from accel_lab.backends.wgpu.device.device import WgpuDevice

AT_ONCE = 128
"""How many elements an invocation folds."""
_NARROW = frozenset({"float16", "bfloat16"})


def reduce(device: "WgpuDevice", m: Reduce, x: Any, out: Any) -> None:
    """Write a reduction."""
    axes = m.axes()
    kept = tuple(axis for axis in range(x.ndim) if axis not in axes)
    rows = int(np.prod([x.shape[axis] for axis in kept], dtype=np.int64))
    each = int(np.prod([x.shape[axis] for axis in axes], dtype=np.int64))
    if not rows:
        return
    turned = Lines(x.transpose((*kept, *axes)), len(kept))
    if m.op in PLACES:
        places(device, m.op, turned.x, rows, each, out)
        return
    made = m.made_dtype()
    if m.op in ("any", "all"):
        folded = fold(device, "or" if m.op == "any" else "and", turned, "bool")
    elif m.op in ("max", "min"):
        folded = fold(device, m.op, turned, x.name)
    elif m.op in ("sum", "prod"):
        folded = fold(device, m.op, turned, wide(made))
    else:
        _mean(device, m, turned, each, out)
        return
    _write(device, folded, out, "x(i)", folded.name)


class Lines(NamedTuple):
    """An array whose last axes are to be folded.

    Attributes:
        kept: how many come before these.
    """

    x: Any
    kept: int

    @property
    def rows(self) -> tuple[int, ...]:
        """The extents of what is kept."""
        shape: tuple[int, ...] = self.x.shape[: self.kept]
        return shape

    @property
    def each(self) -> int:
        """How many elements a row has."""
        return int(np.prod(self.x.shape[self.kept :], dtype=np.int64))


def fold(
    device: "WgpuDevice",
    op: str,
    lines: Lines,
    dtype: str,
    term: str = "",
    arrays: Mapping[str, Any] = MappingProxyType({}),
) -> Any:
    """Return an array of what the rows of `x` fold to, computed in a dtype.

    Parameters:
        term: what is folded, as WGSL, if that is not `x(n)`.
        arrays: what it is made of beside `x`, of which each has an element for each row.
    """
    x, rows = lines.x, lines.rows
    term = term or cast("x(n)", x.name, dtype)
    if _far(device, x, arrays) is None:
        count = int(np.prod(rows, dtype=np.int64))
        given = {"x": x, **arrays}
        return fold_terms(device, op, given, count, lines.each, dtype, term).reshape(rows)
    made = device.empty(rows, dtype)
    _fold(device, op, lines, made, term, arrays)
    return made


def _far(device: "WgpuDevice", x: Any, arrays: Mapping[str, Any]) -> Any:
    """Return an array that a binding cannot have, None where there is none."""
    return next((one for one in (x, *arrays.values()) if not fits(device, one)), None)


def _fold(
    device: "WgpuDevice",
    op: str,
    lines: Lines,
    out: Any,
    term: str,
    arrays: Mapping[str, Any],
) -> None:
    """Write what rows fold to; what is too large for a binding is halved, and joined again."""
    x, kept = lines
    far = _far(device, x, arrays)
    if far is None:
        device.copy(fold(device, op, lines, out.name, term, arrays), out)
        return
    parts = halves(far, range(far.ndim))
    if len(parts[0]) <= kept:
        for part in parts:
            some = {name: one[part] for name, one in arrays.items()}
            _fold(device, op, Lines(x[part], kept), out[part], term, some)
        return
    _fold(device, op, Lines(x[parts[0]], kept), out, term, arrays)
    other = device.empty(out.shape, out.name)
    _fold(device, op, Lines(x[parts[1]], kept), other, term, arrays)
    _, both = _terms(op, out.name)
    kind = type_of(out.name)
    made = both.format(a="x(i)", b="y(i)")
    made = made if kind.kind == "f" else kind.rounded.format(made)
    for one, two in in_parts(device, (out, other)):
        job = Job(device)
        job.array("x", one)
        job.array("y", two)
        job.run(f"set_x(i, {made});", one.size)


_FOLDS = {
    "sum": ("{T}(0)", "({a} + {b})"),
    "prod": ("{T}(1)", "({a} * {b})"),
    "or": ("false", "({a} || {b})"),
    "and": ("true", "({a} && {b})"),
}


def _terms(op: str, dtype: str) -> tuple[str | None, str]:
    """Return what nothing folds to, and what two do."""
    kind = type_of(dtype)
    if op in _FOLDS:
        start, both = _FOLDS[op]
        if kind.kind == "b" and op in ("sum", "prod"):
            return ("false", "({a} || {b})") if op == "sum" else ("true", "({a} && {b})")
        return start.format(T=kind.value), both
    if kind.kind == "f":
        name = "more" if op == "max" else "less"
        return None, f"{name}_{kind.value}" + "({a}, {b})"
    if kind.kind == "b":
        return None, "({a} || {b})" if op == "max" else "({a} && {b})"
    return None, op + "({a}, {b})"


def fold_terms(
    device: "WgpuDevice",
    op: str,
    arrays: Mapping[str, Any],
    rows: int,
    each: int,
    dtype: str,
    term: str,
) -> Any:
    """Return a vector of what the terms of rows fold to.

    Parameters:
        arrays: what a term is made of, by names.
        term: number `n` of all terms, which is number `k` of its `row`, as WGSL.
    """
    start, both = _terms(op, dtype)
    kind = type_of(dtype)
    step = both.format(a="made", b="v")
    if kind.kind != "f":
        step = kind.rounded.format(step)
    while True:
        parts = max(1, -(-each // AT_ONCE))
        made = device.empty((rows * parts,), dtype)
        job = Job(device)
        for name, array in arrays.items():
            job.array(name, array)
        job.array("total", made)
        job.count("each", each)
        job.count("parts", parts)
        begin = "k" if start else "k + parts()"
        job.run(
            "let row = i / parts(); var k = i % parts(); var n = row * each() + k;\n"
            f"var made = {start or term};\n"
            f"for (k = {begin}; k < each(); k = k + parts()) {{\n"
            f"  n = row * each() + k; let v = {term}; made = {step};\n}}\n"
            "set_total(i, made);",
            rows * parts,
        )
        if parts == 1:
            return made
        arrays, each, term = {"x": made}, parts, "x(n)"


def _mean(device: "WgpuDevice", m: Reduce, lines: Lines, each: int, out: Any) -> None:
    """Write a mean, a variance or its root."""
    made = m.made_dtype()
    dtype = wide(m.dtype or made)
    kind = type_of(dtype).value
    quotient = f"x(i) / {kind}(number())"
    sums = fold(device, "sum", lines, dtype)
    if m.op not in SPREADS:
        _write(device, sums, out, quotient, dtype, float(each))
        return
    means = device.empty(lines.rows, dtype)
    _write(device, sums, means, quotient, dtype, float(each))
    off = f"({cast('x(n)', lines.x.name, dtype)} - mean(row))"
    squares = fold(device, "sum", lines, dtype, f"({off} * {off})", {"mean": means})
    text = f"sqrt({quotient})" if m.op == "std" else quotient
    _write(device, squares, out, text, dtype, float(max(each - m.ddof, 0)))


def places(device: "WgpuDevice", op: str, x: Any, rows: int, each: int, out: Any) -> None:
    """Write where the first of the largest, or least, elements is; a NaN is both."""
    dtype, kind = x.name, type_of(x.name)
    where: Any = None
    while True:
        parts = max(1, -(-each // AT_ONCE))
        values = device.empty((rows * parts,), dtype)
        found = device.empty((rows * parts,), "uint32")
        job = Job(device)
        job.array("x", x)
        if where is not None:
            job.array("place", where)
        job.array("y", values)
        job.array("z", found)
        job.count("each", each)
        job.count("parts", parts)
        at = "k" if where is None else "place(row * each() + k)"
        sign = ">" if op == "argmax" else "<"
        nan = f"is_nan_{kind.value}(v)" if kind.kind == "f" else "false"
        old = f"is_nan_{kind.value}(best)" if kind.kind == "f" else "false"
        ahead = f"v {sign} best"
        if kind.kind == "b":
            ahead = "v && !best" if op == "argmax" else "!v && best"
        same = f"({nan} && {old}) || (!{nan} && !{old} && v == best)"
        job.run(
            "let row = i / parts(); var k = i % parts();\n"
            f"var best = x(row * each() + k); var at = {at};\n"
            "for (k = k + parts(); k < each(); k = k + parts()) {\n"
            f"  let v = x(row * each() + k); let here = {at};\n"
            f"  let first = ({same}) && here < at;\n"
            f"  if (first || (!({old}) && ({nan} || {ahead}))) {{ best = v; at = here; }}\n}}\n"
            "set_y(i, best); set_z(i, at);",
            rows * parts,
        )
        if parts == 1:
            _write(device, found, out, "x(i)", "uint32")
            return
        x, where, each = values, found, parts


def _write(
    device: "WgpuDevice", x: Any, out: Any, text: str, dtype: str, number: float | None = None
) -> None:
    """Write as many elements into the results, converted."""
    for part, to in in_parts(device, (x.reshape(out.shape), out)):
        job = Job(device)
        job.array("x", part)
        job.array("y", to)
        if number is not None:
            job.number("number", number, dtype)
        job.run(f"set_y(i, {cast(f'({text})', dtype, to.name)});", to.size)


def wide(dtype: str) -> str:
    """Return in what sums of a dtype are formed."""
    return "float32" if dtype in _NARROW else dtype
