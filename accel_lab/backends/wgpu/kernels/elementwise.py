"""Functions of each element in WGSL: a program of several steps is one kernel.

Each step is rounded to its dtype. What WGSL's own functions promise of float32 is little, so where
the adapter has float64 they are computed in that and rounded; else by WGSL's own.
"""

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from accel_lab.backends.wgpu.kernels.fine import FINE, ROUGH
from accel_lab.backends.wgpu.kernels.job import Job
from accel_lab.backends.wgpu.kernels.lacking import lacks
from accel_lab.backends.wgpu.kernels.parts import in_parts
from accel_lab.backends.wgpu.kernels.target import Target
from accel_lab.backends.wgpu.kernels.types import TYPES, cast, type_of
from accel_lab.compute.arrays.dtypes import canonical, numpy_dtype
from accel_lab.compute.fusion.program import STEP, Program, Step
from accel_lab.errors import UnsupportedDtype

_COMPARED = {
    "equal": "({a} == {b})",
    "not_equal": "!({a} == {b})",
    "less": "({a} < {b})",
    "less_equal": "({a} <= {b})",
    "greater": "({a} > {b})",
    "greater_equal": "({a} >= {b})",
}
_OF_TRUTHS = {
    "equal": "({a} == {b})",
    "not_equal": "({a} != {b})",
    "less": "(!{a} && {b})",
    "less_equal": "(!{a} || {b})",
    "greater": "({a} && !{b})",
    "greater_equal": "({a} || !{b})",
}
_LOGICAL = {
    "logical_and": "({a} && {b})",
    "logical_or": "({a} || {b})",
    "logical_xor": "({a} != {b})",
    "logical_not": "!{a}",
}
_OF_BOOL = {
    **dict.fromkeys(("add", "maximum", "bitwise_or"), "({a} || {b})"),
    **dict.fromkeys(("multiply", "minimum", "bitwise_and"), "({a} && {b})"),
    "bitwise_xor": "({a} != {b})",
    "invert": "!{a}",
    **dict.fromkeys(("absolute", "conjugate", "square", "floor", "ceil", "trunc", "real"), "{a}"),
    "imag": "false",
    "isnan": "false",
    "isinf": "false",
    "isfinite": "true",
    "power": "({a} || !{b})",
}
_OF_ALL = {
    "add": "({a} + {b})",
    "subtract": "({a} - {b})",
    "multiply": "({a} * {b})",
    "square": "({a} * {a})",
    "positive": "{a}",
    "conjugate": "{a}",
    "real": "{a}",
    "imag": "{T}(0)",
}
_OF_WHOLE = {
    **_OF_ALL,
    "negative": "({T}(0) - {a})",
    "sign": "({T}({a} > {T}(0)) - {T}({a} < {T}(0)))",
    "reciprocal": "select({T}(1) / {a}, {T}(0), {a} == {T}(0))",
    "floor_divide": "floored_{T}({a}, {b})",
    "remainder": "modulo_{T}({a}, {b})",
    "power": "power_{T}({a}, {b})",
    "maximum": "max({a}, {b})",
    "minimum": "min({a}, {b})",
    "bitwise_and": "({a} & {b})",
    "bitwise_or": "({a} | {b})",
    "bitwise_xor": "({a} ^ {b})",
    "invert": "(~{a})",
    "left_shift": "select({a} << (u32({b}) & {low}), {T}(0), {far})",
    "right_shift": "select({a} >> (u32({b}) & {low}), {a} >> {low} >> 1u, {far})",
    **dict.fromkeys(("floor", "ceil", "trunc", "rint"), "{a}"),
    "isnan": "false",
    "isinf": "false",
    "isfinite": "true",
}
_OF_FLOATS = {
    **_OF_ALL,
    "negative": "flip_{T}({a})",
    "absolute": "bare_{T}({a})",
    "sign": "sign_{T}({a})",
    "reciprocal": "({T}(1) / {a})",
    "divide": "quotient_{T}({a}, {b})",
    "floor_divide": "floored_{T}({a}, {b})",
    "remainder": "modulo_{T}({a}, {b})",
    "maximum": "more_{T}({a}, {b})",
    "minimum": "less_{T}({a}, {b})",
    "copysign": "signed_{T}({a}, {b})",
    "sqrt": "sqrt({a})",
    "rint": "rint_{T}({a})",
    **{op: op + "_{T}({a})" for op in ("floor", "ceil", "trunc")},
    "isnan": "is_nan_{T}({a})",
    "isinf": "is_inf_{T}({a})",
    "isfinite": "!(is_nan_{T}({a}) || is_inf_{T}({a}))",
    "signbit": "negative_{T}({a})",
}
_NUMBERS = {"bool": True, "int": 1, "float": 1.0}
_ASKED = frozenset({"isnan", "isinf", "isfinite", "signbit"})


def compute(
    device: Target,
    program: Program,
    arrays: Sequence[Any],
    numbers: Sequence[Any],
    outs: Sequence[Any],
) -> None:
    """Enqueue a program whose results have the shape of `outs`, to which the arrays broadcast.

    Raises:
        UnsupportedDtype: wgpu lacks a step, or a dtype.
    """
    shape, count = outs[0].shape, len(arrays)
    for part in in_parts(device, [*(x.broadcast_to(shape) for x in arrays), *outs]):
        _compute(device, program, part[:count], numbers, part[count:])


def _compute(
    device: Target,
    program: Program,
    arrays: Sequence[Any],
    numbers: Sequence[Any],
    outs: Sequence[Any],
) -> None:
    job = Job(device)
    for at, x in enumerate(arrays):
        job.array(f"x{at}", x)
    for place, out in enumerate(outs):
        job.array(f"y{place}", out)
    text = _Text(job, program, numbers, device.lacks)
    lines = [f"let t{at} = {text.value(step)};" for at, step in enumerate(program.steps)]
    lines += [f"set_y{place}(i, t{at});" for place, at in enumerate(program.kept)]
    job.run("\n".join(lines), outs[0].size)


def is_lacking(program: Program, lacks: frozenset[str]) -> bool:
    """Whether wgpu has not all of a program's steps and dtypes.

    Parameters:
        lacks: the dtypes that the adapter has not.
    """
    dtypes = {*program.arrays, *(step.dtype for step in program.steps)}
    if not dtypes <= TYPES.keys() - lacks or "complex" in program.numbers:
        return True
    try:
        text = _Text(None, program, (), lacks)
        for step in program.steps:
            text.value(step)
    except UnsupportedDtype:
        return True
    return False


class _Text:
    """The steps of a program as expressions."""

    def __init__(
        self, job: Job | None, program: Program, numbers: Sequence[Any], lacks: Collection[str]
    ) -> None:
        self._job, self._program, self._numbers, self._lacks = job, program, numbers, lacks
        self._named: set[str] = set()

    def value(self, step: Step) -> str:
        """Return what a step computes.

        Raises:
            UnsupportedDtype: wgpu has no such function of the dtype.
        """
        op, operands = step.op, step.operands
        made = type_of(step.dtype)
        if op == "where":
            names = [self._operand(one, step.dtype) for one in operands[1:]]
            return f"select({names[1]}, {names[0]}, {self._truth(operands[0])})"
        loop = self._loop(step)
        kind = type_of(loop)
        template = _template(op, loop, self._lacks)
        if template is None:
            raise lacks(f"wgpu has no {op} of {loop}; convert with array.cast")
        names = [self._operand(one, loop) for one in operands]
        most = 32 * kind.words - 1
        whole = f"u{32 * kind.words}"  # in which a negative number is a large one
        low, far = f"{most}u", f"(bitcast<{whole}>({names[-1]}) > {whole}({most}))"
        text = template.format(a=names[0], b=names[-1], T=kind.value, low=low, far=far)
        if op in _COMPARED or op in _LOGICAL or op in _ASKED:
            return text
        return made.rounded.format(text)

    def _loop(self, step: Step) -> str:
        """Return the dtype that a step is computed in."""
        if step.op in _LOGICAL:
            return "bool"
        if step.op not in _ASKED and step.op not in _COMPARED:
            return step.dtype
        known: list[Any] = []
        for one in step.operands:
            if one < 0:
                known.append(_NUMBERS[self._program.numbers[-1 - one]])
            else:
                known.append(numpy_dtype(self._dtype(one)))
        if {"int64", "uint64"} <= {self._dtype(one) for one in step.operands if one >= 0}:
            text = f"wgpu has no {step.op} of int64 and uint64"
            raise lacks(f"{text}; convert with array.cast")
        try:
            loop = canonical(np.result_type(*known))
        except np.exceptions.DTypePromotionError:  # of a narrow float, which is compared in another
            loop = canonical(np.equal.resolve_dtypes((*map(np.dtype, known), None))[0])
        return "float64" if step.op == "signbit" and type_of(loop).kind != "f" else loop

    def _dtype(self, operand: int) -> str:
        if operand >= STEP:
            return self._program.steps[operand - STEP].dtype
        return self._program.arrays[operand]

    def _truth(self, operand: int) -> str:
        if operand < 0:
            return self._operand(operand, "bool")
        return cast(self._raw(operand), self._dtype(operand), "bool")

    def _raw(self, operand: int) -> str:
        return f"t{operand - STEP}" if operand >= STEP else f"x{operand}(i)"

    def _operand(self, operand: int, dtype: str) -> str:
        """Return an operand as a value of a dtype."""
        if operand >= 0:
            return cast(self._raw(operand), self._dtype(operand), dtype)
        name = f"n{-1 - operand}_{dtype}"
        if self._job is not None and name not in self._named:
            self._named.add(name)
            self._job.number(name, self._numbers[-1 - operand], dtype)
        return f"{name}()"


def _template(op: str, loop: str, lacks: Collection[str]) -> str | None:
    """Return what a function is in WGSL, computed in a dtype; None where there is none."""
    kind = type_of(loop)
    if kind.kind == "b":
        return {**_LOGICAL, **_OF_TRUTHS, **_OF_BOOL}.get(op)
    if op in _COMPARED:
        return _COMPARED[op]
    if kind.kind != "f":
        return (
            ("abs({a})" if kind.kind == "i" else "{a}") if op == "absolute" else _OF_WHOLE.get(op)
        )
    found = _OF_FLOATS.get(op)
    if found is None and kind.value == "f32":
        fine = FINE.get(op)
        found = fine and f"f32({fine.format(a='f64({a})', b='f64({b})')})"
        return ROUGH.get(op) if "float64" in lacks else found
    return found
