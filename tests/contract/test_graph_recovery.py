"""A graph after its context was lost: recorded again, with its results as they were."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from accel_lab import System, array, blas, jit, rng
from accel_lab.compute.actors.fault import Inject
from accel_lab.compute.device import Device
from accel_lab.compute.graph.graph import Graph
from accel_lab.errors import ContextLost, DependencyFailed, StaleRef
from tests.contract.samples import assert_same, reals, value

WAIT_S = 60.0
ILL = """
__global__ void ill(double* x, int far) {
  if (far) x = (double*)(far * 8ll);
  x[0] += 1;
}
"""


@pytest.fixture
def lab(backend: Any) -> Iterator[System]:
    with System(backend.__name__.rpartition(".")[2], devices=1, recover="replay") as system:
        yield system


class Walk:
    """A graph that moves points at random, and what it writes."""

    def __init__(self, device: Device) -> None:
        self.at = device.put(reals(1, (16, 3), "float64"))
        self.turn = device.put(np.eye(3))
        self.steps = device.put(np.zeros(1, "int64"))
        self.generator = rng.Generator(device, 11)
        self.graph: Graph = device.graph(turn=self.turn, size=0.5)
        with self.graph as g:
            noise = self.generator.normal((16, 3), "float64")
            moved = blas.gemm(self.at, g["turn"]) + noise * g["size"]
            array.add(moved, 0, out=self.at)
            array.add(self.steps, 1, out=self.steps)
            self.mean = array.sum(moved, axis=0) / 16.0

    @property
    def results(self) -> list[Any]:
        device = self.graph.device
        return [value(device, ref) for ref in (self.at, self.steps, self.mean)]


@pytest.mark.parametrize("fault", ["kill", "poison"])
def test_a_graph_survives_a_fault_in_the_middle(lab: System, fault: str) -> None:
    (device,) = lab.devices
    calm, hit = Walk(device), Walk(device)
    other = np.linalg.qr(reals(3, (3, 3), "float64"))[0]
    turns = [device.put(other) for _ in range(2)]
    generation = device.generation
    for _ in range(3):
        calm.graph.launch(turn=turns[0])
        calm.graph.launch(size=0.25)
    expected = calm.results
    hit.graph.launch(turn=turns[1])
    hit.graph.launch(size=0.25)
    lost = device.ask(Inject(fault))
    for _ in range(2):  # they are in flight when it dies
        hit.graph.launch(turn=turns[1])
        hit.graph.launch(size=0.25)
    with pytest.raises(ContextLost):
        lost.result(WAIT_S)
    for got, one in zip(hit.results, expected, strict=True):
        assert_same(got, one)
    for got, one in zip(calm.results, expected, strict=True):
        assert_same(got, one)
    assert device.generation == generation + 1
    for walk in (calm, hit):  # and both go on
        walk.graph.launch().result(WAIT_S)
    for got, one in zip(hit.results, calm.results, strict=True):
        assert_same(got, one)


@pytest.mark.usefixtures("compiling")
def test_an_illegal_address_in_a_graph_costs_the_context_and_not_the_graph(
    lab: System, compiling: None
) -> None:
    (device,) = lab.devices
    if device.name.startswith("cpu"):
        pytest.skip("an address of its own process is not illegal on the host")
    x = device.put(np.zeros(4))
    kernel = jit.compile(device, ILL, "ill")
    with device.graph(far=0) as g:
        y = x + 1
        kernel(1, 1, (x, g["far"]))
    g.launch().result(WAIT_S)
    with pytest.raises(ContextLost):
        g.launch(far=1 << 20).result(WAIT_S)
    assert device.generation == 2
    g.launch().result(WAIT_S)
    assert value(device, x)[0] == 2
    assert value(device, y)[0] == 2


def test_a_suspended_device_takes_its_graphs_up_again(lab: System) -> None:
    (device,) = lab.devices
    calm, walk = Walk(device), Walk(device)
    for one in (calm, walk):
        one.graph.launch(size=0.1).result(WAIT_S)
    device.suspend()
    device.resume()
    for one in (calm, walk):
        one.graph.launch().result(WAIT_S)
    for got, expected in zip(walk.results, calm.results, strict=True):
        assert_same(got, expected)


def test_what_a_failed_launch_should_have_written_is_refused(lab: System) -> None:
    (device,) = lab.devices
    x = device.put(np.ones(3, "int8"))
    with device.graph(n=1) as g:
        y = array.add(x, g["n"])
        array.add(x, 1, out=x)
    g.launch().result(WAIT_S)
    failed = g.launch(n=1000)  # beyond int8
    with pytest.raises(DependencyFailed, match="was not written"):
        value(device, y)
    with pytest.raises(Exception, match="1000"):
        failed.result(WAIT_S)


def test_without_recovery_a_graph_is_stale(backend: Any) -> None:
    name = backend.__name__.rpartition(".")[2]
    with System(name, devices=1, recover="stale") as system:
        (device,) = system.devices
        x = device.put(np.ones(3))
        with device.graph() as g:
            array.add(x, 1, out=x)
        g.launch().result(WAIT_S)
        with pytest.raises(ContextLost):
            device.ask(Inject("kill")).result(WAIT_S)
        with pytest.raises(StaleRef):
            g.launch()
