"""CUDA C++ of a program of functions of each element.

The C++ is portable, so that a test runs it without a GPU and compares it with NumPy. Each step has
the value that CuPy's own kernel would write: it is rounded to its dtype, and nothing is contracted
across steps.
"""

from struct import Struct
from typing import Any, NamedTuple

import numpy as np

from accel_lab.backends.cuda.array.fused_layout import Place
from accel_lab.backends.cuda.device.narrow_floats import SOURCE as NARROW
from accel_lab.compute.arrays.dtypes import canonical, numpy_dtype
from accel_lab.compute.fusion.program import STEP, Program, Step

NAME = "accel_lab_fused"
_TYPES = {
    "bool": "bool",
    "int8": "signed char",
    "int16": "short",
    "int32": "int",
    "int64": "long long",
    "uint8": "unsigned char",
    "uint16": "unsigned short",
    "uint32": "unsigned int",
    "uint64": "unsigned long long",
    "float16": "float",
    "float32": "float",
    "float64": "double",
}
"""What values are computed in."""
_FLOATS = frozenset({"float16", "float32", "float64"})
_SIGNED = frozenset({"int8", "int16", "int32", "int64"})
_COMPARED = {
    "equal": "{a} == {b}",
    "not_equal": "{a} != {b}",
    "less": "{a} < {b}",
    "less_equal": "{a} <= {b}",
    "greater": "{a} > {b}",
    "greater_equal": "{a} >= {b}",
}
_LOGICAL = {
    "logical_and": "{a} && {b}",
    "logical_or": "{a} || {b}",
    "logical_xor": "{a} != {b}",
    "logical_not": "!{a}",
}
_BITWISE = {"bitwise_and": "{a} & {b}", "bitwise_or": "{a} | {b}", "bitwise_xor": "{a} ^ {b}"}
_OF_WHOLE = {"isnan": "false", "isinf": "false", "isfinite": "true"}
_OF_BOOL = {
    "add": "{a} || {b}",
    "multiply": "{a} && {b}",
    "maximum": "{a} || {b}",
    "minimum": "{a} && {b}",
    "absolute": "{a}",
    "conjugate": "{a}",
    **dict.fromkeys(("square", "floor", "ceil", "trunc"), "{a}"),
    "invert": "!{a}",
    **_BITWISE,
    **_OF_WHOLE,
}
_OF_ALL = {
    "add": "{a} + {b}",
    "subtract": "{a} - {b}",
    "multiply": "{a} * {b}",
    "negative": "-{a}",
    "positive": "{a}",
    "conjugate": "{a}",
    "square": "{a} * {a}",
}
_OF_INTEGERS = {
    **_OF_ALL,
    **_BITWISE,
    **_OF_WHOLE,
    "invert": "~{a}",
    "maximum": "{a} > {b} ? {a} : {b}",
    "minimum": "{a} < {b} ? {a} : {b}",
    "floor": "{a}",
    "ceil": "{a}",
    "trunc": "{a}",
}
_OF_FLOATS = {
    **_OF_ALL,
    "divide": "{a} / {b}",
    "reciprocal": "{one} / {a}",
    "maximum": "{a} != {a} ? {a} : {b} != {b} ? {b} : fmax{f}({a}, {b})",
    "minimum": "{a} != {a} ? {a} : {b} != {b} ? {b} : fmin{f}({a}, {b})",
    "absolute": "fabs{f}({a})",
    "isnan": "{a} != {a}",
    "isinf": "fabs{f}({a}) == INFINITY",
    "isfinite": "fabs{f}({a}) < INFINITY",
    "arctan2": "atan2{f}({a}, {b})",
    **{op: op + "{f}({a})" for op in ("sqrt", "exp", "expm1", "log", "log1p", "log2", "log10")},
    **{op: op + "{f}({a})" for op in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
    **{op: op + "{f}({a})" for op in ("floor", "ceil", "trunc", "rint")},
    **{f"arc{op}": f"a{op}" + "{f}({a})" for op in ("sin", "cos", "tan")},
}
_ASKED = frozenset({"isnan", "isinf", "isfinite"})

_HALVES = r"""
#ifdef __CUDACC__
__device__ float from_half(unsigned short bits) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
  return value;
}
__device__ unsigned short to_half(float value) {
  unsigned short bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
}
#ifndef INFINITY
#define INFINITY __int_as_float(0x7f800000)
#endif
#else
#include <cmath>
static inline float from_half(unsigned short bits) { return narrow::decode<5, 10, false>(bits); }
static inline unsigned short to_half(float value) { return narrow::encode<5, 10, false>(value); }
#endif
"""
_KERNEL = """
struct Job {{
{fields}
}};

__device__ void fused_at(const Job& job, {index} i) {{
{body}
}}

#ifdef __CUDACC__
extern "C" __global__ void {name}(const Job job) {{
  {index} step = ({index})gridDim.x * blockDim.x;
#pragma unroll 4
  for ({index} i = ({index})blockIdx.x * blockDim.x + threadIdx.x; i < job.count; i += step)
    fused_at(job, i);
}}
#else
extern "C" void {name}(const Job* job) {{
  for ({index} i = 0; i < job->count; ++i) fused_at(*job, i);
}}
#endif
"""


class Variant(NamedTuple):
    """Which kernel: a program over arrays in these places.

    Attributes:
        rank: how many axes are told apart, if an array has strides.
        wide: whether there are more than 2**31 elements.
    """

    program: Program
    places: tuple[Place, ...]
    rank: int
    wide: bool


def source_of(variant: Variant) -> str | None:
    """Return the C++ of a kernel; None where one of its steps is left to CuPy."""
    program = variant.program
    types = [*program.arrays, *(step.dtype for step in program.steps)]
    if any(one not in _TYPES for one in types) or "complex" in program.numbers:
        return None
    lines = _reads(variant)
    for at, step in enumerate(program.steps):
        value = _value(program, step)
        if value is None:
            return None
        if step.dtype == "float16":
            value = f"from_half(to_half({value}))"
        lines.append(f"const {_TYPES[step.dtype]} t{at} = ({_TYPES[step.dtype]})({value});")
    for place, at in enumerate(program.kept):
        dtype = program.steps[at].dtype
        value = f"to_half(t{at})" if dtype == "float16" else f"t{at}"
        lines.append(f"(({_stored(dtype)}*)job.y{place})[i] = {value};")
    index = "unsigned long long" if variant.wide else "unsigned int"
    kernel = _KERNEL.format(
        fields="\n".join(f"  {one};" for one in _fields(variant)),
        body="\n".join(f"  {line}" for line in lines),
        index=index,
        name=NAME,
    )
    return NARROW + _HALVES + kernel


def packing(variant: Variant) -> Struct:
    """Return how a job lies in memory: arrays, results, numbers, then extents and strides."""
    program = variant.program
    strided = variant.places.count("strided")
    addresses = "Q" * (len(program.arrays) + len(program.kept))
    numbers = "".join("q" if kind in ("q", "Q") else "d" for kind in number_kinds(program))
    return Struct(f"={addresses}{numbers}Q{'q' * (variant.rank * (1 + strided))}")


def number_kinds(program: Program) -> list[str]:
    """Return as what each number is packed: a double, an int64 or a uint64, or a float16 first."""
    kinds = [""] * len(program.numbers)
    for step in program.steps:
        loop = _loop(program, step)
        for operand in step.operands:
            if operand < 0:
                if loop == "float16":
                    kind = "e"
                elif loop in _FLOATS:
                    kind = "d"
                else:
                    kind = "Q" if loop.startswith("uint") else "q"
                kinds[-1 - operand] = kind
    return kinds


def as_packed(number: Any, kind: str) -> Any:
    """Return a number as it is packed."""
    if kind == "d":
        return float(number)
    if kind == "e":
        return float(np.float16(number))
    number = int(number)
    return number - 2**64 if kind == "Q" and number >= 2**63 else number


def _fields(variant: Variant) -> list[str]:
    program = variant.program
    lines = [f"const void* x{at}" for at in range(len(program.arrays))]
    lines += [f"void* y{at}" for at in range(len(program.kept))]
    for at, kind in enumerate(number_kinds(program)):
        lines.append(f"{'double' if kind in 'de' else 'long long'} n{at}")
    lines.append("unsigned long long count")
    if variant.rank:
        lines.append(f"long long extents[{variant.rank}]")
        strided = [at for at, place in enumerate(variant.places) if place == "strided"]
        lines += [f"long long strides{at}[{variant.rank}]" for at in strided]
    return lines


def _reads(variant: Variant) -> list[str]:
    lines: list[str] = []
    if variant.rank:
        index = "unsigned long long" if variant.wide else "unsigned int"
        lines.append(f"{index} left = i;")
        for axis in range(variant.rank - 1, 0, -1):
            lines.append(f"const {index} i{axis} = left % ({index})job.extents[{axis}];")
            lines.append(f"left /= ({index})job.extents[{axis}];")
        lines.append(f"const {index} i0 = left;")
    for at, (dtype, place) in enumerate(zip(variant.program.arrays, variant.places, strict=True)):
        if place == "each":
            where = "i"
        elif place == "one":
            where = "0"
        else:
            where = " + ".join(f"i{axis} * job.strides{at}[{axis}]" for axis in range(variant.rank))
        read = f"((const {_stored(dtype)}*)job.x{at})[{where}]"
        if dtype == "float16":
            read = f"from_half({read})"
        lines.append(f"const {_TYPES[dtype]} a{at} = {read};")
    return lines


def _stored(dtype: str) -> str:
    return "unsigned short" if dtype == "float16" else _TYPES[dtype]


def _loop(program: Program, step: Step) -> str:
    """Return the dtype that a step is computed in."""
    if step.op in _LOGICAL:
        return "bool"
    if step.op in _ASKED or step.op in _COMPARED:
        known: list[object] = []
        for operand in step.operands:
            if operand < 0:
                known.append({"bool": True, "int": 1, "float": 1.0}[program.numbers[-1 - operand]])
            else:
                known.append(numpy_dtype(_dtype(program, operand)))
        return canonical(np.result_type(*known))  # type: ignore[arg-type]
    return step.dtype


def _dtype(program: Program, operand: int) -> str:
    return program.steps[operand - STEP].dtype if operand >= STEP else program.arrays[operand]


def _value(program: Program, step: Step) -> str | None:
    """Return the expression of a step; None where it is left to CuPy."""
    loop, operands = _loop(program, step), step.operands
    dtypes = {_dtype(program, operand) for operand in operands if operand >= 0}
    if {"int64", "uint64"} <= dtypes:
        return None  # they are compared exactly, and computed with in double
    if step.op == "where" and operands[0] < 0:
        return None
    template = _template(step.op, loop)
    if template is None:
        return None
    names = [_named(program, operand, loop) for operand in operands]
    return template.format(
        a=names[0],
        b=names[-1],
        condition=f"{_raw(operands[0])} != 0",
        other=names[1 % len(names)],
        f="" if loop == "float64" else "f",
        one="1.0" if loop == "float64" else "1.0f",
    )


def _template(op: str, loop: str) -> str | None:
    """Return what a function is in C++, computed in a dtype; None where it is left to CuPy."""
    if op == "where":
        return "{condition} ? {other} : {b}"
    if op in _LOGICAL or op in _COMPARED:
        return _LOGICAL.get(op) or _COMPARED[op]
    if loop == "bool":
        return _OF_BOOL.get(op)
    if loop in _FLOATS:
        return _OF_FLOATS.get(op)
    if op == "absolute":
        return "{a} < 0 ? -{a} : {a}" if loop in _SIGNED else "{a}"
    return _OF_INTEGERS.get(op)


def _raw(operand: int) -> str:
    return f"t{operand - STEP}" if operand >= STEP else f"a{operand}"


def _named(program: Program, operand: int, loop: str) -> str:
    """Return an operand as a value of the dtype that is computed in."""
    target = _TYPES[loop]
    if operand < 0:
        return f"(({target})job.n{-1 - operand})"
    value = _raw(operand)
    source = _dtype(program, operand)
    if loop == "bool" and source != "bool":
        return f"({value} != 0)"
    if source == loop:
        return value
    cast = f"({target}){value}"
    return f"from_half(to_half({cast}))" if loop == "float16" else f"({cast})"
