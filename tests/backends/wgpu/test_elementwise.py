"""Every function of elements that wgpu has, in one kernel for each dtype, against NumPy."""

from functools import partial
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from accel_lab.backends.wgpu.kernels.elementwise import compute, is_lacking
from accel_lab.backends.wgpu.kernels.fine import FINE
from accel_lab.backends.wgpu.kernels.types import TYPES
from accel_lab.compute.arrays.dtypes import canonical, numpy_dtype
from accel_lab.compute.fusion.program import STEP, Program, Step
from accel_lab.libraries.array.elementwise import BINARY, UNARY

AT_ONCE = 24
SAID_BEFORE = frozenset({"int16", "uint16", "uint64", "bfloat16"})
"""What is computed as its neighbours are: a kernel takes long to be made."""
OF_EACH_KIND = [
    pytest.param(name, marks=pytest.mark.slow) if name in SAID_BEFORE else name for name in TYPES
]
EXACT = {"float16": 1, "bfloat16": 1, "float32": 1, "float64": 1}
"""Of floats, how many units in the last place a function may be off."""
LARGE = [0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5, 1e-6, 3e4, -3e4, 88.0, 100.25, np.pi, 7.75]
FAR = [1e6, 3e7, -4e9, 1.5e20, 3.1e38, 1e-40, 1e-30, np.inf, -np.inf, np.nan]


def values(dtype: str) -> Any:
    """Return elements of a dtype: its ends, and what lies between."""
    native = numpy_dtype(dtype)
    if native.kind == "b":
        return np.array([False, True, True, False])
    if native.kind in "iu":
        info = np.iinfo(native)
        ends = [info.min, info.max, info.min + 1, 0, 1, 2, 3, 7, 31, 100]
        return np.array(ends + ([-1, -7, -100] if native.kind == "i" else []), native)
    with np.errstate(all="ignore"):
        spread = np.random.default_rng(0).standard_normal(200) * 3
        return np.concatenate([LARGE, FAR, spread]).astype(native)


def without_subnormals(x: Any) -> Any:
    """Return floats with zero for those below the least normal one."""
    if x.dtype.kind in "biu" or x.dtype == np.float64:
        return x
    info: Any = ml_dtypes.finfo(x.dtype)  # type: ignore[no-untyped-call]
    return np.where(np.abs(x) < info.smallest_normal, x.dtype.type(0), x)


def of_numpy(op: str, *operands: Any) -> Any:
    """Return what NumPy makes, None where it has no such function.

    Of float32 it is off itself by some units, in functions of which float64's are near enough.
    """
    try:
        with np.errstate(all="ignore"):
            made = np.asarray(getattr(np, op)(*operands))
            if op in FINE and made.dtype == np.float32:
                made = getattr(np, op)(*(x.astype(np.float64) for x in operands)).astype(made.dtype)
            return made
    except (TypeError, ValueError):
        return None


def units_off(got: Any, expected: Any, dtype: str, *, is_literal: bool) -> float:
    """Return how far floats are from each other, in units of the last place; NaN is NaN."""
    wide, right = got.astype(np.float64), expected.astype(np.float64)
    info: Any = ml_dtypes.finfo(numpy_dtype(dtype))  # type: ignore[no-untyped-call]
    same = (wide == right) | (np.isnan(wide) & np.isnan(right))
    if not is_literal:
        same |= (wide == 0) & (np.abs(right) < float(info.smallest_normal))
    if same.all():
        return 0.0
    step = np.maximum(np.abs(right) * float(info.eps), float(info.smallest_subnormal))
    with np.errstate(all="ignore"):
        off = np.where(same, 0.0, np.abs(wide - right) / step)
    return float(np.nanmax(np.where(np.isfinite(off), off, np.inf)))


def nans(x: Any) -> Any:
    """Return where an array of any dtype is NaN."""
    return np.isnan(x.astype(np.float64))


def mistakes(
    step: Step, operands: list[Any], got: Any, right: Any, *, is_literal: bool
) -> list[str]:
    """Return what is said of a result that is not NumPy's."""
    off, most = float("inf"), 0
    if right.dtype.kind not in "biu":
        off, most = units_off(got, right, step.dtype, is_literal=is_literal), EXACT[step.dtype]
        if step.op in {"divide", "floor_divide"} and not is_literal:
            most = 3  # WGSL allows two and a half
    bad = np.flatnonzero(~((got == right) | (nans(got) & nans(right))))[:3]
    if not bad.size or off <= most:
        return []
    given = [x[bad] for x in operands]
    return [f"{step.op} of {given}: {got[bad]}, not {right[bad]}, off by {off:.3g}"]


def checked(
    adapter: Any, dtype: str, ops: list[str], operands: list[Any], *, is_literal: bool
) -> list[str]:
    """Compute functions of the operands in few kernels; return what is wrong."""
    if not is_literal:
        operands = [without_subnormals(x) for x in operands]
    wrong: list[str] = []
    expected = {op: of_numpy(op, *operands) for op in ops}
    steps = []
    for op, made in expected.items():
        if made is None:
            continue
        step = Step(op, tuple(range(len(operands))), canonical(made.dtype))
        if step.dtype in TYPES:
            alone = Program((dtype,) * len(operands), (), (step,), (0,))
            if not is_lacking(alone, adapter.lacks):
                steps.append(step)
    arrays = [adapter.adopt(x)[0] for x in operands]
    for at in range(0, len(steps), AT_ONCE):
        some = tuple(steps[at : at + AT_ONCE])
        outs = [adapter.empty(operands[0].shape, step.dtype) for step in some]
        program = Program((dtype,) * len(operands), (), some, tuple(range(len(some))))
        compute(adapter, program, arrays, (), outs)
        for step, out in zip(some, outs, strict=True):
            made = adapter.read(out)
            wrong += mistakes(step, operands, made, expected[step.op], is_literal=is_literal)
    return wrong


@pytest.mark.parametrize("dtype", OF_EACH_KIND)
def test_functions_of_an_element_are_numpys(adapter: Any, dtype: str, *, is_literal: bool) -> None:
    x, check = values(dtype), partial(checked, adapter, dtype, is_literal=is_literal)
    assert check(sorted(UNARY - {"reciprocal"}), [x]) == []
    assert check(["reciprocal"], [x[x != 0]]) == []  # of zero integers have none


@pytest.mark.parametrize("dtype", OF_EACH_KIND)
def test_functions_of_two_elements_are_numpys(
    adapter: Any, dtype: str, *, is_literal: bool
) -> None:
    x = values(dtype)
    left, right = (one.ravel() for one in np.meshgrid(x[:40], x[:40]))
    ops = sorted(BINARY - {"power"} if x.dtype.kind in "iu" else BINARY)  # NumPy refuses some
    operands = [left.copy(), right.copy()]
    assert checked(adapter, dtype, ops, operands, is_literal=is_literal) == []


def test_steps_read_what_steps_before_them_made(adapter: Any, *, is_literal: bool) -> None:
    x = values("float32")[:15]
    steps = Step("multiply", (0, -1), "float32"), Step("add", (STEP, 0), "float32")
    program = Program(("float32",), ("float",), steps, (1,))
    out = adapter.empty(x.shape, "float32")
    compute(adapter, program, [adapter.adopt(x)[0]], (2.5,), [out])
    expected = x * np.float32(2.5) + x
    np.testing.assert_allclose(adapter.read(out), expected, rtol=0 if is_literal else 2**-23)
