"""Functions of each element that are computed together give what each alone gives.

Programs are drawn: functions, choices, conversions, reductions, views and writes in place, over
operands that broadcast, while handles are dropped at any moment. One device may fuse, another of
the same backend may not, and on the host NumPy does the same.
"""

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from accel_lab import array
from accel_lab.compute.device import Device
from accel_lab.errors import InvalidArgument
from accel_lab.system import System

SHAPES = [(3, 5), (5,), (1, 5), (3, 1), (), (1,)]
DTYPES = ["bool", "int8", "uint8", "int32", "int64", "float16", "float32", "float64"]
UNARY = [
    "negative",
    "positive",
    "absolute",
    "sign",
    "square",
    "floor",
    "rint",
    "isnan",
    "logical_not",
]
SMOOTH = ["sqrt", "exp", "log", "sin", "tanh", "arctan"]
BINARY = [
    "add", "subtract", "multiply", "divide", "maximum", "minimum", "equal", "less", "greater_equal",
    "logical_and", "logical_xor", "floor_divide", "remainder",
]  # fmt: skip
NUMBERS = st.sampled_from([0, 1, 2, 3, 0.5, -1.5, 2.0, True, float("inf"), float("nan")])
OTHERS = ["where", "cast", "sum", "slice", "in place", "drop", "drop"]
Step: TypeAlias = tuple[str, Any, int, int, int, Any]


@pytest.fixture(scope="module")
def systems(backend: Any) -> Iterator[tuple[System, System]]:
    """Open a system that fuses, and one that does not."""
    name = backend.__name__.rpartition(".")[2]
    with (
        System(name, devices=1, journal=None) as fused,
        System(name, devices=1, journal=None, fuse=False) as alone,
    ):
        yield fused, alone


@st.composite
def programs(draw: st.DrawFn, *, smooth: bool) -> list[Step]:
    """Draw steps: a word, what is done, and which of the arrays so far it is done to."""
    which = st.integers(0, 1000)
    steps: list[Step] = []
    for _ in range(draw(st.integers(4, 30))):
        word = draw(st.sampled_from(["unary"] * 4 + ["binary"] * 6 + ["number"] * 4 + OTHERS))
        op: Any = None
        if word == "unary":
            op = draw(st.sampled_from(UNARY + (SMOOTH if smooth else [])))
        elif word in ("binary", "number", "in place"):
            op = draw(st.sampled_from(BINARY))
        elif word == "cast":
            op = draw(st.sampled_from(DTYPES))
        number = draw(NUMBERS) if word in ("number", "where") else None
        steps.append((word, op, draw(which), draw(which), draw(which), number))
    return steps


def run(
    steps: list[Step], given: list[Any], library: Any, refused: set[int], *, learn: bool
) -> list[Any]:
    """Carry out a program with handles or with NumPy's arrays; return what is not dropped.

    Parameters:
        refused: the steps that are none of these operands; `learn` has them found out.
    """
    values = list(given)
    for at, (word, op, i, j, k, number) in enumerate(steps):
        if at in refused:
            continue
        x, y, z = (values[n % len(values)] for n in (i, j, k))
        if word == "drop":
            if len(values) > len(given):
                del values[len(given) + i % (len(values) - len(given))]
            continue
        try:
            values.append(done(library, word, op, (x, y, z), number))
        except InvalidArgument:
            if not learn:
                raise
            refused.add(at)
    return values


def done(library: Any, word: str, op: Any, operands: tuple[Any, Any, Any], number: Any) -> Any:
    x, y, z = operands
    function: Any = getattr(library, op or "add", None)
    made: dict[str, Callable[[], Any]] = {
        "unary": lambda: function(x),
        "binary": lambda: function(x, y),
        "number": lambda: function(x, number),
        "where": lambda: library.where(x, y, z if number is None else number),
        "cast": lambda: x.astype(op),
        "sum": lambda: library.sum(x, axis=0, keepdims=True) if x.ndim else library.square(x),
        "slice": lambda: x[..., ::-1] if x.ndim else x[...],
        "in place": lambda: function(x, 2, out=x),  # what shares its memory sees it
    }
    return made[word]()


class Numpys:
    """NumPy's functions, which make arrays also of what has no axes."""

    def __getattr__(self, name: str) -> Any:
        def call(*operands: Any, **options: Any) -> Any:
            return np.asarray(getattr(np, name)(*operands, **options))

        return call


def operands(seed: int) -> list[Any]:
    """Return arrays of all dtypes, of some shapes, with what is special among their elements."""
    rng = np.random.default_rng(seed)
    made: list[Any] = []
    for at, dtype in enumerate(DTYPES):
        values = rng.integers(-3, 4, SHAPES[(at + seed) % len(SHAPES)]).astype(dtype)
        if "float" in dtype and values.size > 1:
            values.flat[0], values.flat[-1] = np.nan, -0.0
        made.append(np.ascontiguousarray(values))
    return made


def carried_out(
    device: Device, steps: list[Step], seed: int, refused: set[int], *, learn: bool
) -> list[Any]:
    handles = [device.put(x) for x in operands(seed)]
    left = run(steps, handles, array, refused, learn=learn)
    del handles
    return [ref.get() for ref in left]


def equal(ours: list[Any], theirs: list[Any]) -> None:
    """Assert that all bits are the same."""
    for one, other in zip(ours, theirs, strict=True):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        np.testing.assert_array_equal(one, other)
        if one.dtype.kind == "f":
            known = ~np.isnan(one)
            np.testing.assert_array_equal(np.signbit(one[known]), np.signbit(other[known]))


COMMON = settings(max_examples=150, suppress_health_check=list(HealthCheck))


@COMMON
@given(steps=programs(smooth=False), seed=st.integers(0, 50))
def test_what_is_fused_has_the_bits_of_what_is_not(
    systems: tuple[System, System], steps: list[Step], seed: int
) -> None:
    fused, alone = (lab.devices[0] for lab in systems)
    refused: set[int] = set()
    one_by_one = carried_out(alone, steps, seed, refused, learn=True)
    together = carried_out(fused, steps, seed, refused, learn=False)
    equal(together, one_by_one)
    if fused.name.startswith("cpu"):
        with np.errstate(all="ignore"):
            given_ = [x.copy() for x in operands(seed)]
            equal(together, run(steps, given_, Numpys(), refused, learn=False))


@COMMON
@given(steps=programs(smooth=True), seed=st.integers(0, 50))
def test_functions_that_are_approximated_are_within_their_bounds(
    systems: tuple[System, System], steps: list[Step], seed: int
) -> None:
    fused, alone = (lab.devices[0] for lab in systems)
    refused: set[int] = set()
    one_by_one = carried_out(alone, steps, seed, refused, learn=True)
    together = carried_out(fused, steps, seed, refused, learn=False)
    if fused.name.startswith("cpu"):
        equal(together, one_by_one)
