"""The contract of launches of a graph: operands that change, numbers, other graphs, refusals."""

import threading
from typing import Any

import numpy as np
import pytest

from accel_lab import array, blas, fft, jit, rng, solver
from accel_lab.compute.device import Device
from accel_lab.errors import InvalidArgument, StaleRef
from tests.contract.samples import assert_equal, reals, refused, value

WAIT_S = 60.0
SAXPY = """
__global__ void saxpy(const float* x, float* y, float a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] += a * x[i];
}
"""


def test_a_named_buffer_is_swapped_for_others_of_any_strides(device: Device) -> None:
    x = reals(0, (3, 5), "float32")
    with device.graph(x=device.put(x)) as g:
        y = g["x"] * 2 + 1
        total = array.sum(y, axis=0)
    others = [x, x + 1, np.ascontiguousarray((x + 2).T)]
    refs = [device.put(others[0]), device.put(others[1]), device.put(others[2]).T]
    for ref, other in zip((*refs, *refs), (others[0], others[1], others[2].T) * 2, strict=True):
        g.launch(x=ref).result(WAIT_S)
        np.testing.assert_allclose(value(device, y), other * 2 + 1, rtol=1e-6)
        np.testing.assert_allclose(value(device, total), (other * 2 + 1).sum(0), rtol=1e-5)
    g.launch().result(WAIT_S)  # with what it was recorded with
    np.testing.assert_allclose(value(device, y), x * 2 + 1, rtol=1e-6)


@pytest.mark.parametrize("n", [1000, 200_000])
def test_what_it_writes_in_place_is_what_the_launch_is_given(device: Device, n: int) -> None:
    """Small buffers and large ones, which `cuda` brings to the graph in different ways."""
    mine, others = device.put(np.zeros(n)), [device.put(np.full(n, 10.0 * i)) for i in range(4)]
    step = device.put(np.ones(n))
    with device.graph(mine=mine, step=step) as g:
        array.add(g["mine"], g["step"], out=g["mine"])
    for _ in range(2):
        for one in others:
            g.launch(mine=one, step=step)
    g.launch(step=others[1])
    assert value(device, mine)[-1] == 12
    for i, one in enumerate(others):
        assert_equal(value(device, one), np.full(n, 10.0 * i + 2))


def test_a_large_operand_of_few_messages_changes(device: Device) -> None:
    """`cuda` prepares only these anew; views between them and the rest are what they were."""
    n = 100_000
    x, fixed = device.put(np.ones((n, 2))), device.put(np.arange(8.0))
    with device.graph(x=x, shift=0.0) as g:
        small = fixed
        for _ in range(9):
            small = small * 2.0
        turned = small.reshape(2, 4).T
        total = array.sum(g["x"].T[1:], axis=1)
        shifted = turned + g["shift"]
        last = blas.gemm(turned, turned, trans_b="t")
    doubled = np.arange(8.0) * 512
    for i in range(5):
        g.launch(x=device.put(np.full((n, 2), float(i))), shift=float(i))
        assert_equal(value(device, total), np.array([i * float(n)]))
        assert_equal(value(device, shifted), doubled.reshape(2, 4).T + i)
        assert_equal(value(device, last), doubled.reshape(2, 4).T @ doubled.reshape(2, 4))


def test_what_is_sent_between_two_launches_disturbs_nothing(device: Device) -> None:
    """A graph works in memory of its own, whatever others take and free meanwhile."""
    x = reals(0, (32, 48), "float64")
    with device.graph(x=device.put(x)) as g:
        y = blas.gemm(g["x"].T, g["x"].T, trans_b="t")
        z = array.sum(array.absolute(fft.rfft(y)), axis=0)
    exact = np.abs(np.fft.rfft(x.T @ x)).sum(0)
    for _ in range(3):
        g.launch()
        for n in (16, 32, 48, 4096):
            other = device.put(np.full((n, 48), np.nan))
            blas.gemm(other, other[:16], trans_b="t")
            array.sum(fft.rfft(other), axis=0)
            array.sort(other, 0)
            del other
        np.testing.assert_allclose(value(device, z), exact, rtol=1e-10)


def test_two_operands_may_share_memory(device: Device) -> None:
    x, y = device.put(np.arange(6.0)), device.put(np.ones(3))
    with device.graph(a=x[:3], b=y) as g:
        array.add(g["a"], g["b"], out=g["a"])
        c = g["b"] * 10
    g.launch(a=x[:3], b=x[3:]).result(WAIT_S)
    assert_equal(value(device, x), np.array([3.0, 5.0, 7.0, 3.0, 4.0, 5.0]))
    g.launch(a=x[3:], b=x[:3]).result(WAIT_S)
    assert_equal(value(device, x), np.array([3.0, 5.0, 7.0, 6.0, 9.0, 12.0]))
    assert_equal(value(device, c), np.array([30.0, 50.0, 70.0]))


def test_numbers_change_with_a_launch_and_no_longer(device: Device) -> None:
    x = device.put(np.arange(4.0))
    with device.graph(a=2.0, n=3, z=1j) as g:
        y = x * g["a"]
        w = array.add(y, g["n"])
        scaled = blas.gemm(device.put(np.eye(4)), y.reshape(4, 1), alpha=g["a"])
        turned = array.multiply(x, g["z"])

    def expect(a: float, n: int, z: complex) -> None:
        x_ = np.arange(4.0)
        assert_equal(value(device, w), x_ * a + n)
        assert_equal(value(device, scaled), (x_ * a * a).reshape(4, 1))
        assert_equal(value(device, turned), x_ * complex(z))

    launches: list[dict[str, Any]] = [{}, {"a": 0.5}, {"n": np.int32(7), "a": 3}, {"z": 2.0}, {}]
    recorded: dict[str, Any] = {"a": 2.0, "n": 3, "z": 1j}
    for numbers in launches:
        g.launch(**numbers).result(WAIT_S)
        expect(**(recorded | numbers))


@pytest.mark.usefixtures("compiling")
def test_a_kernel_of_the_users_gets_what_changes(device: Device) -> None:
    kernel = jit.compile(device, SAXPY, "saxpy")
    x, y = device.put(np.ones(100, "f")), device.put(np.zeros(100, "f"))
    with device.graph(x=x, y=y, a=2.0) as g:
        kernel(1, 128, (g["x"], g["y"], g["a"], 100))
    g.launch()
    g.launch(a=5)
    other = device.put(np.full(100, 3, "f"))
    g.launch(y=other, a=-1.0)
    assert_equal(value(device, y), np.full(100, 7, "f"))
    assert_equal(value(device, other), np.full(100, 2, "f"))


def test_random_numbers_go_on_as_they_would_without_it(device: Device) -> None:
    mine, other = rng.Generator(device, 3), rng.Generator(device, 3)
    first = mine.uniform((5,))
    with device.graph() as g:
        a = mine.uniform((7,))
        b = mine.normal((4,), "float64")
    second = mine.uniform((3,))
    drawn = [value(device, first), value(device, second)]
    for _ in range(3):
        g.launch()
        drawn += [value(device, a), value(device, b)]
    expected = [other.uniform((5,)), other.uniform((3,))]
    for _ in range(3):
        expected += [other.uniform((7,)), other.normal((4,), "float64")]
    for got, ref in zip(drawn, expected, strict=True):
        assert_equal(got, value(device, ref))
    assert mine.state == other.state


def test_a_graph_in_a_graph_has_the_operands_that_it_is_launched_with(device: Device) -> None:
    mine, other = rng.Generator(device, 5), rng.Generator(device, 5)
    x, total = device.put(np.arange(3.0)), device.put(np.zeros(3))
    with device.graph(x=x, total=total, a=1.0) as child:
        noise = mine.uniform((3,), "float64")
        array.add(child["total"], child["x"] * child["a"] + noise, out=child["total"])
    y, sums = device.put(np.ones(3)), [device.put(np.zeros(3)) for _ in range(2)]
    with device.graph(y=y, factor=10.0) as parent:
        child.launch(x=parent["y"], total=sums[0], a=parent["factor"])
        child.launch(x=x, total=sums[0])
        child.launch(x=x, total=sums[1])
    expected, arange = np.zeros((2, 3)), np.arange(3.0)
    launches: list[tuple[dict[str, Any], Any]] = [
        ({}, np.full(3, 10.0)),
        ({"factor": 2.0}, np.full(3, 2.0)),
        ({"y": device.put(np.full(3, 4.0))}, np.full(3, 40.0)),
    ]
    for changed, scaled in launches:
        parent.launch(**changed).result(WAIT_S)
        terms: list[tuple[int, Any]] = [(0, scaled), (0, arange), (1, arange)]
        for row, term in terms:
            expected[row] += term + value(device, other.uniform((3,), "float64"))
    for got, exact in zip(sums, expected, strict=True):
        np.testing.assert_allclose(value(device, got), exact, rtol=1e-12)
    child.launch()
    expected_alone = arange + value(device, other.uniform((3,), "float64"))
    np.testing.assert_allclose(value(device, total), expected_alone, rtol=1e-12)
    assert mine.state == other.state
    child.close()
    with pytest.raises(StaleRef, match="was freed"):
        parent.launch()


def test_a_clone_has_results_of_its_own(device: Device) -> None:
    x = device.put(np.arange(3.0))
    with device.graph(x=x) as g:
        y = g["x"] + 1
    twin = g.clone()
    (z,) = twin.results
    twin.launch(x=device.put(np.zeros(3)))
    g.launch()
    g.close()
    assert_equal(value(device, y), np.arange(3.0) + 1)
    assert_equal(value(device, z), np.ones(3))
    twin.launch().result(WAIT_S)
    assert_equal(value(device, z), np.arange(3.0) + 1)


def test_a_launch_works_however_large_the_graph_is(device: Device) -> None:
    with device.graph(x=device.put(np.ones(8))) as g:
        y = g["x"]
        for _ in range(300):
            y = y + 1
    assert len(g.results) == 1
    g.launch(x=device.put(np.zeros(8))).result(WAIT_S)
    assert_equal(value(device, y), np.full(8, 300.0))


def test_what_other_threads_send_is_not_recorded(device: Device) -> None:
    found: list[Any] = []
    with device.graph() as g:
        thread = threading.Thread(
            target=lambda: found.append(value(device, device.put(np.ones(3)) + 1))
        )
        thread.start()
        thread.join()
    assert_equal(found[0], np.full(3, 2.0))
    assert "Binary" not in g.dot()


def test_what_is_put_in_the_block_is_put_once(device: Device) -> None:
    with device.graph() as g:
        y = device.put(np.arange(3.0)) + np.float32(2)
    g.launch().result(WAIT_S)
    assert_equal(value(device, y), np.arange(3.0) + 2)


def test_what_cannot_be_recorded_is_refused_by_name_and_the_rest_is_recorded(
    device: Device,
) -> None:
    x = device.put(np.eye(3))
    with device.graph() as other:
        array.add(x, 1)
    with device.graph() as g:
        y = x + 1
        for name, wrong in (
            ("Download", x.get),
            ("Run", lambda: device.run(np.sum, x)),
            ("Inv", lambda: solver.inv(x)),
            ("Nonzero", lambda: array.nonzero(x)),
            ("Generate", lambda: rng.generate(device, "xorwow", (3,))),
            ("Sobol", lambda: rng.sobol(device, 4, 2)),
            ("TimeGraph", other.time),
        ):
            with pytest.raises(InvalidArgument, match=f"{name} cannot be in a graph: "):
                wrong()
        z = y * 2
    g.launch().result(WAIT_S)
    assert_equal(value(device, z), (np.eye(3) + 1) * 2)


def test_a_block_that_fails_records_nothing(device: Device) -> None:
    x, generator = device.put(np.ones(3)), rng.Generator(device, 1)
    g = device.graph(x=x)

    def block() -> None:
        with g:
            generator.uniform((3,))
            array.add(x, 1, out=x)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        block()
    assert_equal(value(device, x), np.ones(3))
    assert generator.offset == 0
    with pytest.raises(InvalidArgument, match="not recorded yet"):
        g.launch()
    assert_equal(value(device, x + 1), np.full(3, 2.0))  # what follows is sent
    with g:
        drawn = generator.uniform((3,))
    g.launch().result(WAIT_S)
    first = rng.Generator(device, 1).uniform((3,))
    assert_equal(value(device, drawn), value(device, first))


def test_operands_that_do_not_fit_are_refused_at_the_call(device: Device) -> None:
    x = device.put(np.ones(3))
    with device.graph(x=x, n=2, a=0.5) as g:
        y = g["x"] * g["a"] + g["n"]
    short, single = device.put(np.ones(2)), device.put(np.ones(3, "f"))
    g.handle.result(WAIT_S)
    for wrong, *words in (
        ({"x": short}, "x is float64[3] on", "float64[2]"),
        ({"x": single}, "x is float64[3] on", "float32[3]"),
        ({"x": np.ones(3)}, "x is float64[3] on", "ndarray"),
        ({"z": x}, "'z' names nothing", "x, n, a"),
        ({"n": 2.5}, "n is a int", "2.5"),
        ({"a": 1j}, "a is a float", "1j"),
        ({"a": x}, "a is a float"),
    ):
        with refused(device, *words):
            g.launch(**wrong)
    for wrong, *words in (
        ({"x": np.ones(3)}, "x is a buffer or a number", "ndarray"),
        ({"x": x, "y": x}, "y and x are one buffer"),
    ):
        with refused(device, *words):
            device.graph(**wrong)
    g.launch(n=np.int64(1)).result(WAIT_S)
    assert_equal(value(device, y), np.full(3, 1.5))


def test_a_graph_is_entered_once_and_closed_once(device: Device) -> None:
    x = device.put(np.ones(3))
    with device.graph() as g:
        y = x + 1
        with pytest.raises(InvalidArgument, match="is recording a block already"), device.graph():
            pass
        with pytest.raises(InvalidArgument, match="not recorded yet"):
            g.launch()
    with pytest.raises(InvalidArgument, match="recorded already"), g:
        pass
    g.launch()
    g.close()
    g.close()
    assert_equal(value(device, y), np.full(3, 2.0))  # a handle that was kept lives on
    with pytest.raises(InvalidArgument, match="was closed"):
        g.launch()
    with pytest.raises(InvalidArgument, match="inside the block"), g.when(x):
        pass


def test_an_operand_that_was_freed_is_named(device: Device) -> None:
    x = device.put(np.ones(3))
    with device.graph() as g:
        y = x + 1
    x.free()
    with pytest.raises(StaleRef, match="was freed"):
        g.launch()
    assert_equal(value(device, y), np.zeros(3))


def test_a_graph_frees_what_it_has_when_it_is_closed(device: Device) -> None:
    def in_use() -> int:
        value(device, array.zeros(device, 1))
        return sum(row.nbytes for row in device.resident)

    x = device.put(np.ones(1 << 16))
    before = in_use()
    with device.graph() as g:
        y = array.tanh(array.tanh(x) + 1)
    g.launch().result(WAIT_S)
    during = in_use()
    assert during >= before + 3 * x.nbytes - 4096  # the result, and two that have no handle
    g.close()
    del y
    assert in_use() <= before + 4096


def test_it_is_drawn_with_what_follows_what_and_with_times(device: Device) -> None:
    x = device.put(np.ones((4, 4)))
    with device.graph(x=x) as g:
        y = blas.gemm(g["x"], g["x"])
        z = array.tanh(y) + 1
    dot = g.dot()
    assert dot.startswith("digraph")
    assert [line.strip() for line in dot.splitlines() if "->" in line] == [
        "n0 -> n1;",
        "n1 -> n2;",
    ]
    for word in ("Gemm", "Unary", "Binary", "float64[4, 4]"):
        assert word in dot
    seconds = g.time()
    assert len(seconds) == 3
    assert all(0 <= one < WAIT_S for one in seconds)
    np.testing.assert_allclose(value(device, z), np.tanh(np.full((4, 4), 4.0)) + 1)
    assert dot != g.dot()
    assert "µs" in g.dot()
    page = g._repr_html_()
    assert "<svg" in page
    assert "Gemm" in page
    assert "3 messages, 2 results" in repr(g)
