"""Operators as cuda.compute takes them: a word of its own, or LTO-IR that NVRTC makes."""

from typing import Any

from accel_lab.compute.arrays.dtypes import numpy_dtype
from accel_lab.errors import CompileError
from accel_lab.libraries.primitives.operators import TYPES, Operator

_KINDS = {
    "sum": "PLUS",
    "prod": "MULTIPLIES",
    "min": "MINIMUM",
    "max": "MAXIMUM",
    "bit_and": "BIT_AND",
    "bit_or": "BIT_OR",
    "bit_xor": "BIT_XOR",
    "sub": "MINUS",
    "equal": "EQUAL_TO",
}
_SIGNS = {"sum": "+", "prod": "*", "bit_and": "&", "bit_or": "|", "bit_xor": "^"}
_LOG_LIMIT = 64 << 10

# Where one element of a pair stands, its padding included, is the same in NumPy's aligned structs.
_KEYED = """
struct accel_lab_pair { $T value; unsigned char head; };
extern "C" __device__ void accel_lab_keyed(void* left, void* right, void* out) {
  const accel_lab_pair a = *(const accel_lab_pair*)left, b = *(const accel_lab_pair*)right;
  accel_lab_pair made;
  made.head = a.head | b.head;
  made.value = b.head ? b.value : ($T)($call);
  *(accel_lab_pair*)out = made;
}
"""
_ARG = """
struct accel_lab_place { $T value; long long at; };
extern "C" __device__ void accel_lab_arg(void* left, void* right, void* out) {
  const accel_lab_place a = *(const accel_lab_place*)left, b = *(const accel_lab_place*)right;
  const bool no_a = a.value != a.value, no_b = b.value != b.value;
  const bool same = no_a || no_b ? no_a && no_b : a.value == b.value;
  const bool first = same ? a.at < b.at : no_a || (!no_b && a.value $less b.value);
  *(accel_lab_place*)out = first ? a : b;
}
"""


def elementwise(op: Operator, arity: int, dtype: str, result: str, architecture: str) -> Any:
    """Return an operator of elements.

    Parameters:
        result: its type in C++; `bool` for a predicate.

    Raises:
        CompileError: NVRTC refuses the source.
    """
    from cuda.compute.op import OpKind

    if not op.source:
        return getattr(OpKind, _KINDS[op.name])
    return several((op,), arity, dtype, result, architecture)[0]


def several(
    ops: tuple[Operator, ...], arity: int, dtype: str, result: str, architecture: str
) -> list[Any]:
    """Return functions of one source, which is compiled once: a linker takes it but once.

    Raises:
        CompileError: NVRTC refuses the source.
    """
    from cuda.compute.op import RawOp

    text = ops[0].text(dtype) + '#line 1 "the call of an operator"\n'
    for at, op in enumerate(ops):
        names = "ab"[:arity]
        takes = "".join(f"void* {name}, " for name in names)
        given = ", ".join(f"*({TYPES[dtype]}*){name}" for name in names)
        text += f'extern "C" __device__ void accel_lab_op_{at}({takes}void* out) {{\n'
        text += f"  *({result}*)out = {op.name}({given});\n}}\n"
    codes = [_ltoir(text, ops[0].name, architecture)]
    for at in range(1, len(ops)):
        codes += [_ltoir(f"__device__ int accel_lab_no_op_{at};\n", "", architecture)]
    return [RawOp(ltoir=code, name=f"accel_lab_op_{at}") for at, code in enumerate(codes)]


def keyed(op: Operator, dtype: str, architecture: str) -> Any:
    """Return an operator of pairs: an element, and whether a run begins with it.

    Raises:
        CompileError: NVRTC refuses the source.
    """
    from cuda.compute.op import RawOp

    if op.source:
        call = f"{op.name}(a.value, b.value)"
    elif op.name in _SIGNS:
        call = f"a.value {_SIGNS[op.name]} b.value"
    else:
        call = f"a.value {'<' if op.name == 'min' else '>'} b.value ? a.value : b.value"
    text = op.text(dtype) + _KEYED.replace("$T", TYPES[dtype]).replace("$call", call)
    return RawOp(ltoir=_ltoir(text, op.name, architecture), name="accel_lab_keyed")


def arg(op: Operator, dtype: str, architecture: str) -> Any:
    """Return an operator of elements with their places."""
    from cuda.compute.op import RawOp

    less = "<" if op.name == "argmin" else ">"
    text = op.text(dtype) + _ARG.replace("$T", TYPES[dtype]).replace("$less", less)
    return RawOp(ltoir=_ltoir(text, op.name, architecture), name="accel_lab_arg")


def never(architecture: str) -> Any:
    """Return a predicate that is never true."""
    from cuda.compute.op import RawOp

    text = 'extern "C" __device__ void accel_lab_never(void*, void* out) { *(bool*)out = false; }'
    return RawOp(ltoir=_ltoir(text, "", architecture), name="accel_lab_never")


def _ltoir(text: str, name: str, architecture: str) -> bytes:
    """Compile for a linker; any thread, and without a GPU."""
    from cuda.cccl import get_include_paths
    from cuda.core import Program, ProgramOptions

    options = ProgramOptions(
        arch=f"sm_{architecture}",
        relocatable_device_code=True,
        link_time_optimization=True,
        std="c++17",
        define_macro="__NV_NO_VECTOR_DEPRECATION_DIAG",
        include_path=[path for path in get_include_paths().as_tuple() if path is not None],
    )
    try:
        code: bytes = Program(text, "c++", options).compile("ltoir").code
    except Exception as error:  # cuda.core has a class of its own for it, with NVRTC's log
        log = str(error)[:_LOG_LIMIT]
        raise CompileError(f"{name} does not compile:\n{log}", log=log, name=name) from error
    return code


def zero(dtype: str) -> Any:
    """Return a vector of one element, whose dtype counts."""
    import numpy as np

    return np.zeros(1, numpy_dtype(dtype))
