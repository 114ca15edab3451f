"""Which messages are functions of each element, that may be computed together with others."""

from accel_lab.compute.fusion.program import Parts
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.operation import Spec
from accel_lab.libraries.array.elementwise import Binary, Unary, Where, paired

_NARROW = frozenset({"bfloat16", "float8_e4m3fn", "float8_e5m2"})
_NO_UFUNCS = frozenset({"real", "imag"})


def unary_parts(m: Unary, spec: Spec) -> Parts | None:
    """Return the function and its operand."""
    if m.out is not None or m.op in _NO_UFUNCS or not _are_wide(spec, m.x):
        return None
    return m.op, (m.x,)


def binary_parts(m: Binary, spec: Spec) -> Parts | None:
    """Return the function and its operands."""
    x, y = m.x, m.y
    if m.out is not None or not _are_wide(spec, x, y):
        return None
    if m.op == "power" and "int" in spec.dtype:
        return None  # NumPy refuses an integer's negative power
    if x is None or y is None:
        return m.op, paired(m.op, *m.sides())
    return m.op, (x, y)


def where_parts(m: Where, spec: Spec) -> Parts | None:
    """Return the choice and its operands."""
    if not _are_wide(spec, m.condition, m.x, m.y):
        return None
    return "where", (m.condition, *paired("where", *m.sides()))


def _are_wide(spec: Spec, *operands: AccelRef | None) -> bool:
    """Whether all floats have at least 16 bits; others are computed in float32 and rounded.

    Of an operand that was never made nothing is known: its message fails alone.
    """
    if spec.dtype in _NARROW:
        return False
    for operand in operands:
        if operand is not None and (not operand.known or operand.dtype in _NARROW):
            return False
    return True
