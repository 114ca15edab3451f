"""Graphs on a card: how they are brought up to date, what they take, and how quick they are."""

import time
from typing import Any

import numpy as np
import pytest

from accel_lab import array, blas, fft, jit, rng
from accel_lab.compute.device import Device
from accel_lab.errors import InvalidArgument

pytestmark = pytest.mark.gpu

WAIT_S = 60.0
ADD = "__global__ void add(float* x, float a) { x[threadIdx.x] += a; }"


def run_many(device: Device, n: int) -> tuple[Any, Any]:
    """Record thirty messages of six kinds, and do the same call by call."""
    generator, twin = rng.Generator(device, 3), rng.Generator(device, 3)
    kernel = jit.compile(device, ADD, "add").result(WAIT_S)
    counts = device.put(np.zeros(32, "f"))

    def body(x: Any, rate: Any, draws: rng.Generator) -> Any:
        for _ in range(5):
            y = array.tanh(blas.gemm(x, x, alpha=rate) + draws.normal((n, n)))
            spectrum = fft.rfft(array.sum(y, axis=0))
            x = y * array.real(spectrum)[:1]
            kernel(1, 32, (counts, 1.0))
        return x

    start = device.put(np.eye(n, dtype="f"))
    with device.graph(x=start, rate=0.5) as g:
        made = body(g["x"], g["rate"], generator)

    def graph(x: Any, rate: float) -> Any:
        g.launch(x=x, rate=rate)
        return made.get()

    return graph, lambda x, rate: body(x, rate, twin).get()


@pytest.mark.parametrize("n", [16, 512])
def test_thirty_messages_are_what_they_are_one_by_one(gpu: Device, n: int) -> None:
    """Operands small and large, numbers and random words change with each launch."""
    graph, alone = run_many(gpu, n)
    for i in range(6):
        x, rate = gpu.put(np.full((n, n), 0.1 * i, "f")), 0.5 - 0.1 * i
        np.testing.assert_allclose(graph(x, rate), alone(x, rate), rtol=1e-4, atol=1e-4)


def test_what_two_graphs_and_other_messages_do_side_by_side_stays_apart(gpu: Device) -> None:
    a, _ = run_many(gpu, 64)
    _, b = run_many(gpu, 64)
    xs = [gpu.put(np.full((64, 64), 0.01 * i, "f")) for i in range(20)]
    expected = [b(x, 0.5) for x in xs]
    got = []
    for x in xs:
        noise = gpu.put(np.full((64, 64), np.nan, "f"))
        fft.rfft(blas.gemm(noise, noise))
        got.append(a(x, 0.5))
        array.sum(noise + noise, axis=0)
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-4)


def test_what_a_library_does_not_let_capture_is_refused_with_the_launch(gpu: Device) -> None:
    x = gpu.put(np.random.default_rng(0).standard_normal(1000))
    with gpu.graph() as g:
        y = array.sort(x)
    launched = g.launch()
    gpu.ping().result(WAIT_S)
    if launched.failed:
        with pytest.raises(InvalidArgument, match="Sort cannot be in a graph on cuda"):
            launched.result()
    else:
        np.testing.assert_array_equal(y.get(), np.sort(x.get()))
    np.testing.assert_array_equal((x + 1).get(), x.get() + 1)  # the device is well
    assert gpu.generation == 1


def test_it_is_closed_with_its_memory(gpu: Device) -> None:
    x = gpu.put(np.ones((256, 256), "f"))

    def use() -> None:
        with gpu.graph(x=x) as g:
            fft.rfft(blas.gemm(g["x"], g["x"]))
        g.launch().result(WAIT_S)
        g.close()

    def held() -> int:
        gpu.ping().result(WAIT_S)
        return sum(row.nbytes for row in gpu.resident)

    use()
    before = held()
    for _ in range(5):
        use()
    assert held() <= before


def test_a_loop_of_a_thousand_passes_needs_no_host(gpu: Device) -> None:
    count, more = gpu.put(np.zeros(1, "int32")), gpu.put(np.ones(1, bool))
    with gpu.graph() as g:
        array.multiply(count, 0, out=count)
        array.equal(count, 0, out=more)
        with g.loop(more):
            array.add(count, 1, out=count)
            array.less(count, 1000, out=more)
    g.launch().result(WAIT_S)
    began = time.perf_counter()
    g.launch().result(WAIT_S)
    took = time.perf_counter() - began
    assert count.get() == 1000
    assert took < 0.1
