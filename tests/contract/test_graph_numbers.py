"""The contract of a graph's numbers: a launch changes them, or the block is refused."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from accel_lab import array, jit, primitives, rng
from accel_lab.compute.device import Device
from accel_lab.compute.graph.graph import Graph
from accel_lab.compute.graph.parameter import parameter, without_parameters
from accel_lab.errors import InvalidArgument
from tests.contract.samples import assert_equal, refused, value

WAIT_S = 60.0
LARGE = 8 << 20
FILL = "__global__ void fill(int* x, int n) { x[threadIdx.x] = n; }"
COMPUTED: dict[str, Callable[[Any], Any]] = {
    "plus": lambda n: n + 1,
    "from the right": lambda n: 2 - n,
    "minus": lambda n: -n,
    "rounded up": lambda n: (n + 255) // 256,
    "power": lambda n: n**2,
    "numpy's": lambda n: np.float64(2) * n,
    "an array": lambda n: np.ones(3) * n,
    "a ufunc": np.sqrt,
    "summed": lambda n: sum([1, n]),
    "rounded": round,
}


@pytest.mark.parametrize("computed", COMPUTED)
@pytest.mark.parametrize("kind", [int, float, complex])
def test_what_python_computes_with_one_is_refused(computed: str, kind: Any) -> None:
    if kind is complex and computed in ("rounded up", "rounded"):
        pytest.skip("Python has none")
    with pytest.raises(InvalidArgument, match=f"here the {kind.__name__} .* as it is"):
        COMPUTED[computed](parameter(kind(3), 0))


class Nested(msgspec.Struct):
    """Stands for a message whose numbers are in pairs."""

    pairs: Any
    number: Any = 0


def test_one_that_stands_too_deep_is_refused() -> None:
    n = parameter(3, 5)
    plain, places = without_parameters(Nested((1, n), n))
    assert (plain.pairs, plain.number) == ((1, 3), 3)
    assert [(one.number, one.field, one.at) for one in places] == [
        (5, "pairs", 1),
        (5, "number", -1),
    ]
    for pairs in (((1, n),), (n, (1, n)), [n], [(1, n)]):
        with pytest.raises(
            InvalidArgument, match="Nested has a number of the graph deep in its pairs"
        ):
            without_parameters(Nested(pairs))


def test_what_looks_at_one_is_not(device: Device) -> None:
    n, x = parameter(3, 0), parameter(0.5, 1)
    assert n > 2
    assert n == 3
    assert bool(n)
    assert np.isfinite(x)
    assert np.less(x, 1)
    assert type(int(n) + 1) is int
    assert f"{x}" == "0.5"
    with device.graph(x=2.0) as g:
        y = array.full(device, (3,), float(g["x"]) * 2)
    g.launch().result(WAIT_S)
    assert_equal(value(device, y), np.full(3, 4.0, "float32"))


def _extents(device: Device) -> dict[str, Callable[[Graph], Any]]:
    x = device.put(np.arange(6.0).reshape(2, 3))
    return {
        "slice": lambda g: x[g["n"] :],
        "index": lambda g: x[g["n"]],
        "axis": lambda g: array.sum(x, axis=g["n"]),
        "shape": lambda g: array.zeros(device, (g["n"], 2)),
        "roll": lambda g: array.roll(x, g["n"]),
        "a draw's range": lambda g: rng.integers(device, 3, g["n"], seed=1),
    }


def test_an_extent_an_axis_and_a_place_are_refused(device: Device) -> None:
    x = device.put(np.ones(2))
    for name, use in _extents(device).items():
        with device.graph(n=1) as g:
            with pytest.raises(InvalidArgument, match=r"write int\(…\) around it") as caught:
                use(g)
            assert "here the int 1" in str(caught.value), name
            y = x + 1
        g.launch().result(WAIT_S)
        assert_equal(value(device, y), np.full(2, 2.0))


@pytest.mark.usefixtures("compiling")
def test_a_launchs_grid_and_block_are_refused_and_its_arguments_change(device: Device) -> None:
    kernel, x = jit.compile(device, FILL, "fill"), device.put(np.zeros(4, "int32"))
    with device.graph(n=3) as g:
        for grid, block in ((g["n"], 4), (1, g["n"]), ((1, g["n"]), 4)):
            with pytest.raises(InvalidArgument, match="an extent"):
                kernel(grid, block, (x, g["n"]))
        kernel(1, 4, (x, g["n"]))
    g.launch(n=7).result(WAIT_S)
    assert value(device, x).tolist() == [7] * 4


def test_one_that_no_message_has_cannot_be_changed(device: Device) -> None:
    x = device.put(np.ones(3))
    with device.graph(x=x, n=2) as g:
        y = array.pad(g["x"], (0, g["n"])) * int(g["n"])
    g.launch(n=2).result(WAIT_S)  # as it was
    for one in (g, g.clone()):
        with refused(device, "no message of the block has n", "g['n'] as it is"):
            one.launch(n=3)
    with device.graph(m=2) as outer, pytest.raises(InvalidArgument, match="has n"):
        g.launch(n=outer["m"])
    assert_equal(value(device, y), np.array([2.0, 2, 2, 0, 0]))


def test_a_launch_that_is_refused_keeps_none_of_its_operands(device: Device) -> None:
    if not device.name.startswith("cpu"):
        pytest.skip("it is seen by what the process has of the host's memory")
    x, few = device.put(np.ones(LARGE)), device.put(np.ones(3))
    with device.graph(x=x, bins=2) as g:
        y = array.sum(g["x"])
        counts = primitives.histogram_even(few, g["bins"], 0, 1)
    g.launch().result(WAIT_S)
    other = device.put(np.full(LARGE, 2.0))
    before = device.run(_resident).result(WAIT_S)
    with pytest.raises(InvalidArgument, match="HistogramEven would make"):
        g.launch(x=other, bins=3).result(WAIT_S)
    other.free()
    other = device.put(np.full(LARGE, 3.0))  # where the last one was
    assert device.run(_resident).result(WAIT_S) < before + LARGE * 4
    g.launch().result(WAIT_S)
    assert value(device, y) == LARGE
    assert value(device, counts).tolist() == [0, 3]


def _resident() -> int:
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    (line,) = [one for one in lines if one.startswith("RssAnon:")]  # without the arena
    return int(line.split()[1]) << 10


def test_sorts_are_recorded_where_nothing_is_judged(device: Device) -> None:
    keys = np.array([3.0, 1, 2, 1])
    x, carried = device.put(keys), device.put(np.arange(4))
    at = device.put(np.array([0, 2, 4]))
    with device.graph(x=x) as g:
        ordered = primitives.sort(g["x"], descending=True)
        pairs = primitives.sort_pairs(g["x"], carried)
        for wrong in (
            lambda: primitives.sort(x, offsets=at),
            lambda: primitives.sort_pairs(x, carried, offsets=at),
        ):
            with pytest.raises(InvalidArgument, match="the host judges its offsets"):
                wrong()
    for one in (keys, -keys):
        g.launch(x=device.put(one)).result(WAIT_S)
        assert_equal(value(device, ordered), np.sort(one)[::-1])
        assert_equal(value(device, pairs.values), np.argsort(one, kind="stable"))
