"""Reductions on wgpu: each invocation folds some elements, and the parts are folded again.

An invocation folds few at a time: a processor's adapter ends a loop without a word after 65 535
rounds. So a sum's rounding errors grow as those of sums of parts do.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from accel_lab.backends.wgpu.kernels.job import Job
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
    turned = x.transpose((*kept, *axes))
    to = Rows(out, rows)
    if m.op in PLACES:
        places(device, m.op, turned, rows, each, to)
        return
    made = m.made_dtype()
    if m.op in ("any", "all"):
        folded = fold(device, "or" if m.op == "any" else "and", turned, rows, each, "bool")
    elif m.op in ("max", "min"):
        folded = fold(device, m.op, turned, rows, each, x.name)
    elif m.op in ("sum", "prod"):
        folded = fold(device, m.op, turned, rows, each, wide(made))
    else:
        _mean(device, m, turned, rows, each, to)
        return
    _write(device, folded, to, "x(i)", folded.name)


def fold(device: "WgpuDevice", op: str, x: Any, rows: int, each: int, dtype: str) -> Any:
    """Return a vector of what the rows of `x` fold to, computed in a dtype."""
    return fold_terms(device, op, {"x": x}, rows, each, dtype, cast("x(n)", x.name, dtype))


class Rows:
    """Where the results go: an array as a vector, whatever its strides are."""

    def __init__(self, out: Any, rows: int) -> None:
        self.out, self.rows = out, rows


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


def _mean(device: "WgpuDevice", m: Reduce, x: Any, rows: int, each: int, to: Rows) -> None:
    """Write a mean, a variance or its root."""
    made = m.made_dtype()
    dtype = wide(m.dtype or made)
    kind = type_of(dtype).value
    sums = fold(device, "sum", x, rows, each, dtype)
    if m.op not in SPREADS:
        _write(device, sums, to, f"x(i) / {kind}(number())", dtype, float(each))
        return
    means = device.empty((rows,), dtype)
    _write(device, sums, Rows(means, rows), f"x(i) / {kind}(number())", dtype, float(each))
    off = f"({cast('x(n)', x.name, dtype)} - mean(row))"
    arrays = {"x": x, "mean": means}
    squares = fold_terms(device, "sum", arrays, rows, each, dtype, f"({off} * {off})")
    quotient = f"x(i) / {kind}(number())"
    text = f"sqrt({quotient})" if m.op == "std" else quotient
    _write(device, squares, to, text, dtype, float(max(each - m.ddof, 0)))


def places(device: "WgpuDevice", op: str, x: Any, rows: int, each: int, to: Rows) -> None:
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
            _write(device, found, to, "x(i)", "uint32")
            return
        x, where, each = values, found, parts


def _write(
    device: "WgpuDevice", x: Any, to: Rows, text: str, dtype: str, number: float | None = None
) -> None:
    """Write a vector into the results, converted."""
    job = Job(device)
    job.array("x", x)
    job.array("y", to.out)
    if number is not None:
        job.number("number", number, dtype)
    job.run(f"set_y(i, {cast(f'({text})', dtype, to.out.name)});", to.rows)


def wide(dtype: str) -> str:
    """Return in what sums of a dtype are formed."""
    return "float32" if dtype in _NARROW else dtype
