"""How a transform is asked of cuFFT, against SciPy; no CUDA needed.

Plans are played in NumPy on the bare memory of the arrays, by the very numbers that cuFFT would
get, and the copies by their own kernel, compiled for the CPU.
"""

import ctypes
import math
import shutil
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import scipy.fft
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.lib.stride_tricks import as_strided

from accel_lab.backends.cuda.fft.copies import JOB_BYTES, Element, Halved, Variant, move, source_of
from accel_lab.backends.cuda.fft.passes import (
    FEW_CALLS,
    MANY_POINTS,
    MOST_AXES,
    Layout,
    Plan,
    Side,
    Work,
    dense,
    packed,
    passes,
)
from accel_lab.backends.cuda.fft.route import Array, Copy, Run, Task, route
from accel_lab.libraries.fft.transform import NORMS, Kind, frame

Memory = npt.NDArray[Any]
Play = Callable[[Copy, int, int], None]

LOOP = """
extern "C" void all(const Job* job) {
  for (Index i = 0; i < job->count; ++i) move_one(*job, i);
}
"""


@pytest.fixture(scope="module")
def copying(tmp_path_factory: pytest.TempPathFactory) -> Play:
    """Compile the kernels of the copies; `play(copy, operand's address, result's address)`."""
    compiler = shutil.which("c++")
    if compiler is None:
        pytest.skip("there is no C++ compiler")

    @cache
    def compiled(variant: Variant) -> Any:
        folder: Path = tmp_path_factory.mktemp("move")
        (folder / "move.cpp").write_text(source_of(variant) + LOOP)
        flags = ["-O1", "-Wall", "-Wno-sign-compare", "-Werror", "-shared", "-fPIC"]
        command = [compiler, *flags, "move.cpp", "-o", "x.so"]
        subprocess.run(command, cwd=folder, check=True)
        return ctypes.CDLL(str(folder / "x.so")).all

    def play(copy: Copy, source: int, target: int) -> None:
        job = copy.move.job()
        job[:16] = source.to_bytes(8, "little") + target.to_bytes(8, "little")
        for wide in (False, True):  # twice the same, unless it is done in place
            if not (wide and source == target):
                variant = Variant(double=True, source=copy.read, target=copy.written, wide=wide)
                compiled(variant)((ctypes.c_char * JOB_BYTES).from_buffer(job))

    return play


def play_plan(plan: Plan, source: Memory, target: Memory, *, inverse: bool) -> None:
    """Do what cuFFT does, on flat memory from where the call begins."""
    kind, n, batch = plan.kind, plan.n, plan.batch
    axes = tuple(range(1, 1 + len(n)))
    half = (*n[:-1], n[-1] // 2 + 1)
    view = embedded(source, plan.source, batch, half if kind == "C2R" else n)
    got: Any
    if kind == "C2C" and inverse:
        got = scipy.fft.ifftn(view, axes=axes, norm="forward")
    elif kind == "C2C":
        got = scipy.fft.fftn(view, axes=axes)
    elif kind == "R2C":
        got = scipy.fft.rfftn(view, axes=axes)
    else:
        got = scipy.fft.irfftn(view, n, axes, norm="forward")
        # Else cuFFT's answer would be undefined.
        back = scipy.fft.rfftn(got, axes=axes, norm="forward")
        np.testing.assert_allclose(view, back, atol=1e-12 * max(1, np.abs(back).max()))
    embedded(target, plan.target, batch, half if kind == "R2C" else n)[...] = got
    if kind == "C2R":
        view[...] = np.nan  # as cuFFT may


def embedded(memory: Memory, side: Side, batch: int, extents: tuple[int, ...]) -> Any:
    """Return the elements that cuFFT's manual gives for an advanced layout."""
    strides = [side.stride]
    for embed, extent in zip(side.embed[:0:-1], extents[:0:-1], strict=True):
        assert embed >= extent
        strides.insert(0, strides[0] * embed)
    assert side.stride > 0
    assert side.distance > 0
    last = (batch - 1) * side.distance
    last += sum((n - 1) * step for n, step in zip(extents, strides, strict=True))
    assert last < memory.size
    size = memory.itemsize
    return as_strided(
        memory, (batch, *extents), [size * step for step in (side.distance, *strides)]
    )


@st.composite
def placed(draw: st.DrawFn, shape: tuple[int, ...], dtype: Any) -> tuple[Memory, Memory]:
    """Draw (memory, view): the view has this shape, and any axis order, gaps and directions."""
    order = draw(st.permutations(range(len(shape)))) if draw(st.booleans()) else range(len(shape))
    steps = [draw(st.sampled_from([1, 1, 1, 1, 2, -1])) for _ in shape]
    gaps = [draw(st.sampled_from([0, 0, 0, 1])) for _ in shape]
    held = [shape[axis] * abs(steps[axis]) + gaps[axis] for axis in order]
    memory = np.zeros(math.prod(held), dtype)
    whole = memory.reshape(held).transpose(np.argsort(order))
    part = whole[tuple(slice(0, n * abs(s)) for n, s in zip(shape, steps, strict=True))]
    return memory, part[tuple(slice(None, None, s) for s in steps)]


def element(x: Memory) -> Element:
    return "complex" if x.dtype.kind == "c" else "real"


def array_of(x: Memory, *, aligned: bool = True) -> Array:
    return Array(x.shape, x.strides, x.itemsize, element(x), aligned)


@st.composite
def tasks(draw: st.DrawFn) -> dict[str, Any]:
    """Draw a transform of up to five axes."""
    shape = tuple(draw(st.lists(st.integers(1, 5), min_size=1, max_size=5)))
    kind: Kind = draw(st.sampled_from(["C2C", "R2C", "C2R"]))
    least = kind != "C2C"
    chosen = draw(st.permutations(range(len(shape))))[: draw(st.integers(least, len(shape)))]
    axes = tuple(chosen)
    s = tuple(draw(st.integers(1, 6)) for _ in axes) if draw(st.booleans()) else None
    assume(kind != "C2R" or s is not None or shape[axes[-1]] > 1)
    real = kind == "R2C" or draw(st.sampled_from([False, False, True]))
    x = draw(placed(shape, np.float64 if real else np.complex128))
    made = frame(kind, shape, s, axes)
    out = draw(placed(made.shape, np.float64 if kind == "C2R" else np.complex128))
    return {
        "kind": kind,
        "made": made,
        "s": s,
        "x": x,
        "out": out,
        "norm": draw(st.sampled_from(NORMS)),
        "inverse": kind == "C2R" or (kind == "C2C" and draw(st.booleans())),
        "aligned": draw(st.sampled_from([True, True, True, False])),
        "seed": draw(st.integers(0, 2**32 - 1)),
    }


def play_route(task: Task, x: Memory, out: Memory, copying: Play, *, inverse: bool) -> int:
    """Follow a route on views of memory; return how many steps were copies."""
    made = route(task)
    between = [np.full(n // 8, np.nan) for n in (made.first_bytes, made.second_bytes)]
    bases = [base(x), base(out), *between]
    starts = [x.ctypes.data, out.ctypes.data, *(one.ctypes.data for one in between)]
    copies = 0
    for step in made.steps:
        if not isinstance(step, Run):
            copying(step, starts[step.source], starts[step.target])
            copies += 1
            continue
        plan, offsets, _ = step.work
        for from_, to in offsets:
            source = memory_from(bases[step.source], starts[step.source], plan.kind == "R2C", from_)
            target = memory_from(bases[step.target], starts[step.target], plan.kind == "C2R", to)
            play_plan(plan, source, target, inverse=inverse)
    return copies


def base(x: Memory) -> Memory:
    while isinstance(x.base, np.ndarray):
        x = x.base
    return x


def memory_from(memory: Memory, start: int, real: bool, offset: int) -> Memory:  # noqa: FBT001
    """Return flat memory from the element that many after `start`."""
    flat = memory.reshape(-1).view(np.float64 if real else np.complex128)
    first = (start - memory.ctypes.data) // flat.itemsize + offset
    if real:
        assert offset % 2 == 0
    return flat[first:]


@settings(max_examples=400)
@given(drawn=tasks())
def test_a_route_is_scipy_s_transform(copying: Play, drawn: dict[str, Any]) -> None:
    made, kind, inverse = drawn["made"], drawn["kind"], drawn["inverse"]
    (around_x, x), (around, out) = drawn["x"], drawn["out"]
    rng = np.random.default_rng(drawn["seed"])
    around_x[...] = rng.standard_normal(around_x.shape)
    if x.dtype.kind == "c":
        around_x += 1j * rng.standard_normal(around_x.shape)
    around[...] = 7
    before = around_x.copy()
    name = {"C2C": "ifftn" if inverse else "fftn", "R2C": "rfftn", "C2R": "irfftn"}[kind]
    exact = getattr(scipy.fft, name)(x, drawn["s"], made.axes, drawn["norm"])
    task = Task(
        kind,
        made,
        made.factor(drawn["norm"], inverse=inverse),
        array_of(x, aligned=drawn["aligned"]),
        array_of(out),
    )
    play_route(task, x, out, copying, inverse=inverse)
    np.testing.assert_allclose(out, exact, atol=1e-13 * max(1, np.abs(exact).max()))
    assert before.tobytes() == around_x.tobytes()
    out[...] = 7
    assert (around == 7).all()


@settings(max_examples=100)
@given(drawn=tasks())
def test_a_complex_transform_may_be_done_in_place(copying: Play, drawn: dict[str, Any]) -> None:
    _, x = drawn["x"]
    assume(x.dtype.kind == "c")
    rng = np.random.default_rng(drawn["seed"])
    x[...] = rng.standard_normal(x.shape) + 1j * rng.standard_normal(x.shape)
    made = frame("C2C", x.shape, None, drawn["made"].axes)
    exact = scipy.fft.fftn(x, axes=made.axes, norm="ortho")
    factor = made.factor("ortho", inverse=False)
    task = Task("C2C", made, factor, array_of(x), array_of(x))
    play_route(task, x, x, copying, inverse=False)
    np.testing.assert_allclose(x, exact, atol=1e-13 * max(1, np.abs(exact).max()))


@pytest.mark.parametrize(
    ("kind", "shape", "axes", "runs"),
    [
        ("C2C", (4, 8), (0, 1), 1),
        ("C2C", (4, 8), (0,), 1),
        ("C2C", (5, 4, 8), (0, 2), 1),
        ("C2C", (5, 4, 8), (1,), 1),
        ("C2C", (2, 3, 4, 5), (0, 1, 2, 3), 2),
        ("R2C", (6, 4, 8), (1, 2), 1),
        ("R2C", (6, 4, 8), (2, 1), 2),
        ("R2C", (6, 4, 8), (0, 1, 2), 1),
    ],
)
def test_what_cufft_can_address_is_not_copied(
    kind: Kind, shape: tuple[int, ...], axes: tuple[int, ...], runs: int
) -> None:
    made = frame(kind, shape, None, axes)
    x = np.zeros(shape, float if kind == "R2C" else complex)
    task = Task(kind, made, 1.0, array_of(x), array_of(np.zeros(made.shape, complex)))
    steps = route(task).steps
    assert [type(step) for step in steps] == [Run] * runs


def test_a_factor_costs_one_copy_within_the_result() -> None:
    made = frame("C2C", (4, 8), None, None)
    x = array_of(np.zeros((4, 8), complex))
    run, copy = route(Task("C2C", made, 0.5, x, x)).steps
    assert isinstance(run, Run)
    assert isinstance(copy, Copy)
    assert len(copy.move.axes) == 1


def test_c2r_copies_its_operand_once_and_scales_it_there() -> None:
    made = frame("C2R", (5, 4, 8), None, None)
    x = array_of(np.zeros((5, 4, 8), complex))
    out = array_of(np.zeros(made.shape))
    copy, run = route(Task("C2R", made, 0.5, x, out)).steps
    assert isinstance(copy, Copy)
    assert copy.move.factor == 0.5
    assert isinstance(run, Run)


def test_many_calls_are_worse_than_a_copy() -> None:
    for batch, copied in ((FEW_CALLS, False), (FEW_CALLS + 1, True)):
        shape = (batch, 8, 64)
        made = frame("C2C", shape, None, (1,))
        task = Task("C2C", made, 1.0, *(array_of(np.zeros(shape, complex)) for _ in range(2)))
        assert any(isinstance(step, Copy) for step in route(task).steps) is copied


def test_a_batch_of_billions_of_points_is_divided() -> None:
    shape = (5, MANY_POINTS // 2)
    layout = dense(shape, (0, 1))
    found = passes(Work("C2C", (1, shape[1]), None), layout, layout)
    assert found is not None
    assert [(one.plan.batch, one.offsets) for one in found] == [
        (2, ((0, 0), (MANY_POINTS, MANY_POINTS))),
        (1, ((2 * MANY_POINTS, 2 * MANY_POINTS),)),
    ]


@pytest.mark.parametrize("strides", [(8, 0), (8, -1), (-8, 1), (9, 2), (3, 1), (1, 8)])
def test_axes_that_do_not_nest_take_a_pass_each(strides: tuple[int, int]) -> None:
    found = passes(Work("C2C", (4, 4), None), Layout((4, 4), strides), dense((4, 4), (0, 1)))
    assert found is None or len(found) == 2
    assert MOST_AXES == 3


def test_a_copy_walks_as_few_axes_as_it_can() -> None:
    x = np.zeros((3, 4, 5, 6))
    assert len(move(x.shape, x.shape, x.strides, x.strides).axes) == 1
    turned = x.transpose(2, 3, 0, 1)
    assert len(move(turned.shape, turned.shape, turned.strides, x.strides).axes) > 1
    padded = move((3, 8, 5, 6), x.shape, x.strides, np.zeros((3, 8, 5, 6)).strides)
    assert [(axis.extent, axis.held) for axis in padded.axes] == [(3, 3), (240, 120)]
    halved = move(x.shape, x.shape, x.strides, x.strides, halved=Halved(3, 10, (1,)))
    assert [axis.extent for axis in halved.axes] == [3, 4, 5, 6]
    assert halved.nyquist == 5


@pytest.mark.parametrize("n", [1, 2, 7, 8])
@pytest.mark.parametrize("ndim", [1, 2, 3])
def test_padded_lines_are_transformed_within_their_memory(copying: Play, n: int, ndim: int) -> None:
    room = np.random.default_rng(n).standard_normal((3, 2, 4, 2 * (n // 2 + 1)))
    lines, pairs = room[..., :n], room.view(np.complex128)
    axes = tuple(range(-ndim, 0))
    exact = scipy.fft.rfftn(lines, axes=axes)
    made = frame("R2C", lines.shape, None, axes)
    task = Task("R2C", made, 1.0, array_of(lines), array_of(pairs))
    copies = play_route(task, lines, pairs, copying, inverse=False)
    np.testing.assert_allclose(pairs, exact, atol=1e-12)
    assert copies == 0 or n == 1


@pytest.mark.parametrize("kind", ["C2C", "R2C", "C2R"])
@pytest.mark.parametrize("n", [(8,), (4, 2), (2, 4, 8)])
def test_a_plan_of_dense_arrays_is_theirs(kind: Kind, n: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    real, axes = rng.standard_normal((5, *n)), tuple(range(1, 1 + len(n)))
    half = scipy.fft.rfftn(real, axes=axes)
    whole = real + 1j * rng.standard_normal(real.shape)
    x, exact = {
        "C2C": (whole, scipy.fft.fftn(whole, axes=axes)),
        "R2C": (real, half),
        "C2R": (half.copy(), real * math.prod(n)),
    }[kind]
    out = np.zeros(exact.shape, exact.dtype)
    plan = packed(kind, n, x.view(np.float64).size)
    play_plan(plan, x.reshape(-1), out.reshape(-1), inverse=kind == "C2R")
    np.testing.assert_allclose(out, exact, atol=1e-12)
