"""The contract of a graph's branches: the device decides, and it does what Python would."""

from typing import Any

import numpy as np
import pytest

from accel_lab import array, jit, rng
from accel_lab.compute.device import Device
from accel_lab.errors import InvalidArgument
from tests.contract.samples import assert_equal, refused, value

WAIT_S = 60.0
COUNT = "__global__ void count(int* n, int* go, int last) { *n += 1; *go = *n < last; }"


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int32", "int64"])
def test_a_condition_chooses_a_body(device: Device, dtype: str) -> None:
    flag, x = device.put(np.array([1], dtype)), device.put(np.zeros(3))
    with device.graph(flag=flag) as g:
        with g.when(g["flag"]):
            array.add(x, 1, out=x)
        with g.otherwise():
            array.add(x, 10, out=x)
        with g.when(g["flag"]):
            array.add(x, 100, out=x)
    expected = 0
    large = 1 if dtype == "bool" else np.iinfo(dtype).max
    for condition in (1, 0, large, 0):
        g.launch(flag=device.put(np.array([condition], dtype)))
        expected += 101 if condition else 10
        assert_equal(value(device, x), np.full(3, float(expected)))
    g.launch()
    assert_equal(value(device, x), np.full(3, expected + 101.0))


def test_a_condition_may_be_computed_in_the_graph(device: Device) -> None:
    x = device.put(np.array([3.0, 4.0]))
    with device.graph(x=x) as g:
        norm = array.sum(g["x"] * g["x"])
        with g.when(norm > 10.0):
            scaled = g["x"] / 5.0
    g.launch().result(WAIT_S)
    assert_equal(value(device, scaled), np.array([0.6, 0.8]))
    g.launch(x=device.put(np.array([1.0, 1.0]))).result(WAIT_S)
    assert_equal(value(device, scaled), np.array([0.6, 0.8]))  # as it was: nothing wrote it


def test_a_loop_is_repeated_as_long_as_its_condition_holds(device: Device) -> None:
    """Newton's square root, until the step is small; the passes are counted."""
    a = device.put(np.array([2.0, 9.0, 1e6]))
    x, count = device.put(np.ones(3)), device.put(np.zeros(1, "int32"))
    more = device.put(np.ones(1, bool))
    with device.graph(a=a) as g:
        array.add(g["a"], 0, out=x)
        array.multiply(count, 0, out=count)
        array.logical_or(more, 1.0, out=more)
        with g.loop(more):
            better = (x + g["a"] / x) * 0.5
            step = array.max(array.absolute(better - x))
            array.add(better, 0, out=x)
            array.add(count, 1, out=count)
            array.greater(step.reshape(1), 1e-9, out=more)
    for a_ in (np.array([2.0, 9.0, 1e6]), np.array([1.0, 1.0, 1.0]), np.array([2.0, 3.0, 5.0])):
        g.launch(a=device.put(a_)).result(WAIT_S)
        y, passes = a_.copy(), 0
        while True:
            b = (y + a_ / y) * 0.5
            step_, y, passes = np.abs(b - y).max(), b, passes + 1
            if not step_ > 1e-9:
                break
        np.testing.assert_allclose(value(device, x), np.sqrt(a_), rtol=1e-9)
        assert value(device, count)[0] == passes


def test_a_loop_whose_condition_never_held_is_not_run(device: Device) -> None:
    go, x = device.put(np.zeros((), "int32")), device.put(np.zeros(3))
    with device.graph() as g, g.loop(go):
        array.add(x, 1, out=x)
    g.launch().result(WAIT_S)
    assert_equal(value(device, x), np.zeros(3))


@pytest.mark.parametrize("index", [0, 1, 2, 3, -1, 100])
def test_an_index_chooses_a_case_or_none(device: Device, index: int) -> None:
    x = device.put(np.zeros(2))
    with device.graph(i=device.put(np.array([0], "int32"))) as g:
        with g.switch(g["i"]) as cases:
            for amount in (1, 2, 4):
                with cases.case():
                    array.add(x, amount, out=x)
        y = x * 10
    g.launch(i=device.put(np.array([index], "int32"))).result(WAIT_S)
    amount = {0: 1, 1: 2, 2: 4}.get(index, 0)
    assert_equal(value(device, y), np.full(2, 10.0 * amount))


def test_branches_stand_in_branches_and_in_other_graphs(device: Device) -> None:
    outer, inner = device.put(np.ones(1, "int32")), device.put(np.ones(1, "int32"))
    x = device.put(np.zeros(2))
    with device.graph(inner=inner, x=x) as child:
        with child.when(child["inner"]):
            array.add(child["x"], 1, out=child["x"])
        with child.otherwise():
            array.add(child["x"], 10, out=child["x"])
    with device.graph(outer=outer, inner=inner) as g:
        with g.when(g["outer"]):
            child.launch(inner=g["inner"])
            with g.when(g["inner"]):
                array.add(x, 100, out=x)
        with g.otherwise():
            array.add(x, 1000, out=x)
    expected = 0
    for one in (0, 1):
        for other in (0, 1):
            g.launch(
                outer=device.put(np.array([one], "int32")),
                inner=device.put(np.array([other], "int32")),
            ).result(WAIT_S)
            expected += (101 if other else 10) if one else 1000
            assert_equal(value(device, x), np.full(2, float(expected)))


@pytest.mark.usefixtures("compiling")
def test_a_kernel_of_the_users_ends_a_loop(device: Device) -> None:
    kernel = jit.compile(device, COUNT, "count")
    n, go = device.put(np.zeros(1, "int32")), device.put(np.ones(1, "int32"))
    with device.graph(last=10) as g, g.loop(go):
        kernel(1, 1, (n, go, g["last"]))
    g.launch().result(WAIT_S)
    assert (value(device, n)[0], value(device, go)[0]) == (10, 0)
    array.add(go, 1, out=go)
    g.launch(last=25).result(WAIT_S)
    assert value(device, n)[0] == 25


def test_draws_in_a_branch_take_their_words_whether_it_is_run_or_not(device: Device) -> None:
    mine, other = rng.Generator(device, 9), rng.Generator(device, 9)
    flag = device.put(np.zeros(1, bool))
    with device.graph(flag=flag) as g:
        with g.when(g["flag"]):
            x = mine.uniform((4,))
        y = mine.uniform((4,))
    for condition in (False, True):
        g.launch(flag=device.put(np.array([condition]))).result(WAIT_S)
        first = value(device, other.uniform((4,)))
        assert_equal(value(device, x), first if condition else np.zeros(4, "f"))
        assert_equal(value(device, y), value(device, other.uniform((4,))))


def test_what_is_no_branch_is_refused(device: Device) -> None:
    x, flag = device.put(np.ones(2)), device.put(np.ones(1, "int32"))
    generator = rng.Generator(device, 1)
    with device.graph() as g:
        wrongs: list[tuple[Any, ...]] = [
            (lambda: g.when(x), "if: the condition is a bool or an integer of one element", "[2]"),
            (
                lambda: g.loop(1),  # type: ignore[arg-type]
                "while: the condition is a buffer",
                "1",
            ),
            (lambda: g.switch(x[:1]), "switch: the condition", "float64[1]"),
            (g.otherwise, "otherwise() stands directly behind"),
        ]
        for wrong, *words in wrongs:
            with pytest.raises(InvalidArgument) as caught, wrong():
                pass
            for word in words:
                assert word in str(caught.value)
        with (
            pytest.raises(InvalidArgument, match="Uniform cannot be in a while of a graph"),
            g.loop(flag),
        ):
            generator.uniform((3,))
        with pytest.raises(InvalidArgument, match="at least one case"), g.switch(flag):
            pass
        y = x + 1
    assert generator.offset == 0
    assert "while" not in g.dot()
    g.launch().result(WAIT_S)
    assert_equal(value(device, y), np.full(2, 2.0))


def test_a_case_that_fails_is_neither_recorded_nor_drawn(device: Device) -> None:
    x, at = device.put(np.ones(2)), device.put(np.zeros(1, "int32"))

    def fail(switch: Any) -> None:
        with switch.case():
            array.tanh(x, out=x)
            raise ZeroDivisionError

    with device.graph() as g, g.switch(at) as switch:
        with pytest.raises(ZeroDivisionError):
            fail(switch)
        with switch.case():
            array.add(x, 1, out=x)
    g.launch().result(WAIT_S)
    assert_equal(value(device, x), np.full(2, 2.0))
    assert "Unary" not in g.dot()
    assert g.dot().count("label=") == 2


def test_a_graph_that_draws_is_refused_in_a_loop_and_takes_no_words(device: Device) -> None:
    generator, flag = rng.Generator(device, 1), device.put(np.ones(1, bool))
    with device.graph() as inner:
        generator.uniform((3,))
    with (
        device.graph() as outer,
        outer.loop(flag),
        pytest.raises(InvalidArgument, match="LaunchGraph cannot be in a while of a graph"),
    ):
        inner.launch()
    assert generator.offset == 0


def test_a_graph_with_a_branch_is_not_timed(device: Device) -> None:
    flag = device.put(np.ones(1, bool))
    with device.graph() as g, g.when(flag):
        array.add(flag, 1)
    with pytest.raises(InvalidArgument, match="branch is not timed"):
        g.time()
    with refused(device, "names nothing"):
        g.launch(flag=flag)
    dot: Any = g.dot()
    assert "if #" in dot
    assert "style=dashed" in dot
