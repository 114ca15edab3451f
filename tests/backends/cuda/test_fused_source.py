"""The C++ of functions computed together, compiled for the CPU, against NumPy."""

import ctypes
import shutil
import subprocess
from collections.abc import Callable
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from accel_lab.backends.cuda.array.fused_layout import layout_of
from accel_lab.backends.cuda.array.fused_source import (
    NAME,
    Variant,
    as_packed,
    number_kinds,
    packing,
    source_of,
)
from accel_lab.compute.fusion.program import STEP, Program, Step
from accel_lab.libraries.array.elementwise import BINARY, UNARY

Array = npt.NDArray[Any]
Compute = Callable[[Program, tuple[int, ...], list[Array], list[Any]], list[Array]]
DTYPES = ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
FLOATS = ["float16", "float32", "float64"]
EXACT = {
    "add", "subtract", "multiply", "divide", "negative", "positive", "absolute", "square",
    "reciprocal", "sqrt", "floor", "ceil", "trunc", "rint", "isnan", "isinf", "isfinite",
    "conjugate", "invert", "logical_not", "equal", "not_equal", "less", "less_equal", "greater",
    "greater_equal", "logical_and", "logical_or", "logical_xor", "bitwise_and", "bitwise_or",
    "bitwise_xor", "maximum", "minimum",
}  # fmt: skip
LEFT_TO_CUPY = {"floor_divide", "remainder", "power", "left_shift", "right_shift", "sign"}
LEFT_TO_CUPY |= {"arcsinh", "arccosh", "arctanh", "signbit", "real", "imag"}
LEFT_TO_CUPY |= {"hypot", "logaddexp", "copysign", "nextafter"}
ULPS = 4


@pytest.fixture(scope="module")
def compute(tmp_path_factory: pytest.TempPathFactory) -> Compute:
    """Compile a program for the CPU and run it once, packed as a launch is."""
    compiler = shutil.which("c++")
    if compiler is None:
        pytest.skip("there is no C++ compiler")
    folder: Path = tmp_path_factory.mktemp("fused")

    def run(
        program: Program, shape: tuple[int, ...], arrays: list[Array], numbers: list[Any]
    ) -> list[Array]:
        layout = layout_of(shape, arrays)
        variant = Variant(program, layout.places, layout.rank, wide=False)
        source = source_of(variant)
        assert source is not None
        made = len(list(folder.glob("*.so")))
        (folder / f"{made}.cpp").write_text(source)
        command = [compiler, "-O1", "-w", "-ffp-contract=off", "-shared", "-fPIC", f"{made}.cpp"]
        subprocess.run([*command, "-o", f"{made}.so"], cwd=folder, check=True)
        outs = [np.empty(shape, program.steps[at].dtype) for at in program.kept]
        kinds = number_kinds(program)
        packed = packing(variant).pack(
            *(x.ctypes.data for x in arrays),
            *(x.ctypes.data for x in outs),
            *(as_packed(*one) for one in zip(numbers, kinds, strict=True)),
            prod(shape),
            *layout.tail,
        )
        getattr(ctypes.CDLL(str(folder / f"{made}.so")), NAME)(packed)
        return outs

    return run


def special(dtype: str, seed: int) -> Array:
    """Return values of a dtype, among them the first and the last, and what is no number."""
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return rng.integers(0, 2, 64).astype(bool)
    if dtype in FLOATS:
        values = rng.standard_normal(64) * 4
        values[:8] = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5]
        return rng.permutation(values).astype(dtype)
    limits = np.iinfo(dtype)
    values = rng.integers(limits.min, limits.max, 64, dtype, endpoint=True)
    values[:3] = limits.min, limits.max, 1
    return values


def same(op: str, ours: Array, theirs: Array) -> None:
    assert ours.dtype == theirs.dtype, op
    if op in EXACT or ours.dtype.kind != "f":
        np.testing.assert_array_equal(ours, theirs, err_msg=op)
    else:
        np.testing.assert_array_max_ulp(ours, theirs, ULPS)


@pytest.mark.parametrize("dtype", [*DTYPES, *FLOATS])
def test_every_function_is_numpys(compute: Compute, dtype: str) -> None:
    x, y = special(dtype, 0), special(dtype, 1)
    steps: list[Step] = []
    expected: list[tuple[str, Array]] = []
    with np.errstate(all="ignore"):
        for op in sorted(UNARY | BINARY):
            operands = (x,) if op in UNARY else (x, y)
            try:
                value = getattr(np, op)(*operands)
            except (TypeError, ValueError):
                continue
            step = Step(op, tuple(range(len(operands))), str(value.dtype))
            alone = Program((dtype, dtype), (), (step,), (0,))
            if source_of(Variant(alone, ("each", "each"), 0, wide=False)) is None:
                assert op in LEFT_TO_CUPY or (op == "reciprocal" and dtype not in FLOATS), op
                continue
            steps.append(step)
            expected.append((op, value))
    assert len(steps) >= 12
    program = Program((dtype, dtype), (), tuple(steps), tuple(range(len(steps))))
    for made, (op, value) in zip(compute(program, x.shape, [x, y], []), expected, strict=True):
        same(op, made, value)


def test_mixed_dtypes_and_numbers_promote_as_numpys(compute: Compute) -> None:
    arrays = [special(dtype, 2) for dtype in ("int8", "float32", "float16", "uint64", "bool")]
    numbers = [2, 0.1, -1, True, 2**63 + 5]
    cases = [("add", 0, 1), ("multiply", 1, -2), ("less", 2, -2), ("maximum", 2, -3),
             ("equal", 3, -5), ("subtract", 1, 2), ("add", 4, -1), ("logical_or", 0, -4),
             ("greater", 0, 2), ("divide", 0, 3)]  # fmt: skip
    steps: list[Step] = []
    expected: list[tuple[str, Array]] = []
    with np.errstate(all="ignore"):
        for op, a, b in cases:
            given = [arrays[at] if at >= 0 else numbers[-1 - at] for at in (a, b)]
            value = getattr(np, op)(*given)
            steps.append(Step(op, (a, b), str(value.dtype)))
            expected.append((op, value))
        condition, one, other = arrays[2], arrays[1], 0.1
        steps.append(Step("where", (2, 1, -6), "float32"))
        expected.append(("add", np.where(condition, one, np.float32(other))))
    program = Program(
        tuple(str(x.dtype) for x in arrays),
        (*(type(number).__name__ for number in numbers), "float"),
        tuple(steps),
        tuple(range(len(steps))),
    )
    # A number belongs to one step, as the notebook sends it.
    for at, step in enumerate(steps[:-1]):
        used = [operand for operand in step.operands if operand < 0]
        alone = Program(
            program.arrays,
            tuple(program.numbers[-1 - operand] for operand in used),
            (Step(step.op, tuple(-1 if o < 0 else o for o in step.operands), step.dtype),),
            (0,),
        )
        given = [numbers[-1 - operand] for operand in used]
        (made,) = compute(alone, arrays[0].shape, arrays, given)
        same(expected[at][0], made, expected[at][1])
    last = Program(program.arrays, ("float",), (Step("where", (2, 1, -1), "float32"),), (0,))
    (made,) = compute(last, arrays[0].shape, arrays, [0.1])
    same("add", made, expected[-1][1])


def test_what_nobody_asks_for_is_not_written_and_each_step_is_rounded(compute: Compute) -> None:
    x = special("float16", 5)
    steps = (
        Step("multiply", (0, -1), "float16"),
        Step("add", (STEP, 0), "float16"),
        Step("greater", (STEP + 1, -2), "bool"),
        Step("where", (STEP + 2, STEP + 1, -3), "float16"),
    )
    program = Program(("float16",), ("float", "float", "int"), steps, (1, 3))
    added, chosen = compute(program, x.shape, [x], [0.1, 0.5, 7])
    with np.errstate(all="ignore"):
        expected = x * 0.1 + x
        np.testing.assert_array_equal(added, expected)
        np.testing.assert_array_equal(chosen, np.where(expected > 0.5, expected, 7))


@pytest.mark.parametrize("shape", [(6, 4), (2, 3, 4), (24,), (1, 6, 4)])
def test_views_and_what_broadcasts_are_read_where_they_lie(
    compute: Compute, shape: tuple[int, ...]
) -> None:
    rng = np.random.default_rng(7)
    whole = rng.standard_normal((4, 12, 12)).astype("f4")
    plain = rng.standard_normal(shape).astype("f4")
    row, one = rng.standard_normal(shape[-1]).astype("f4"), np.array([2.0], "f4")
    view = whole[: (*(1, 1), *shape)[-3], : (1, *shape)[-2] * 2 : 2, shape[-1] - 1 :: -1]
    view = (
        view[..., : shape[-1]] if shape[-1] <= 12 else np.broadcast_to(whole[0, 0, ::-1][:1], shape)
    )
    view = np.broadcast_to(view[(0,) * max(0, view.ndim - len(shape))], shape)
    column = rng.standard_normal((*shape[:-1], 1)).astype("f4")
    arrays = [plain, view, row, one, column]
    steps = (
        Step("add", (0, 1), "float32"),
        Step("multiply", (STEP, 2), "float32"),
        Step("subtract", (STEP + 1, 3), "float32"),
        Step("add", (STEP + 2, 4), "float32"),
    )
    (made,) = compute(Program(("float32",) * 5, (), steps, (3,)), shape, arrays, [])
    np.testing.assert_array_equal(made, (plain + view) * row - one + column)
