"""Allocators and completion strategies change where work runs and who waits, and no result."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_lab import AccelRef, Device, System, array, blas, event, fft, streams
from accel_lab.errors import ContextLost, StaleRef

WAIT_S = 60.0
BUFFERS, SIZE = 4, 8
Array = npt.NDArray[Any]

SYSTEMS: dict[str, dict[str, Any]] = {
    "per actor": {"streams": streams.PerActor({"blas": 1, "upload": 2})},
    "single": {"streams": streams.Single(), "completion": streams.Sync(look_s=0)},
    "pooled": {
        "streams": streams.Pooled(3, {"upload": 0, "download": 0, "fft": 2}, {1: 2}),
        "completion": streams.HostFn(look_s=0),
    },
}
STRATEGIES: dict[str, streams.Strategy] = {
    "sync": streams.Sync(look_s=0),
    "polled": streams.Polled(),
    "host function": streams.HostFn(look_s=0, watchdog_s=0.01),
}


def opened(backend: Any, **options: Any) -> System:
    return System(backend.__name__.rpartition(".")[2], devices=1, **options)


@pytest.fixture(scope="module", params=SYSTEMS)
def gpu(request: pytest.FixtureRequest, backend: Any) -> Iterator[Device]:
    with opened(backend, **SYSTEMS[request.param]) as lab:
        yield lab.devices[0]
        lab.check()


def halve(x: Any) -> None:
    x *= 0.5


class Both:
    """Some buffers on a device, and the same in NumPy."""

    def __init__(self, device: Device, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.device = device
        self.there = [rng.uniform(-1, 1, (SIZE, SIZE)) for _ in range(BUFFERS)]
        self.here: list[AccelRef] = [device.put(one) for one in self.there]
        self.fetched: list[tuple[Any, Array]] = []

    def axpy(self, i: int, j: int) -> None:
        blas.axpy(self.here[i], self.here[j], alpha=0.5, out=self.here[j])
        self.there[j][...] = 0.5 * self.there[i] + self.there[j]

    def gemm(self, i: int, j: int) -> None:
        self.here[j] = blas.gemm(self.here[i], self.here[j], alpha=1 / SIZE)
        self.there[j] = self.there[i] @ self.there[j] / SIZE

    def subtract(self, i: int, j: int) -> None:
        array.subtract(self.here[i], self.here[j], out=self.here[i])
        self.there[i][...] = self.there[i] - self.there[j]

    def transform(self, i: int, j: int) -> None:
        self.here[j] = array.real(fft.fft(self.here[i], norm="ortho"))
        self.there[j] = np.fft.fft(self.there[i], norm="ortho").real

    def run(self, i: int, j: int) -> None:
        self.device.run(halve, self.here[i])
        self.there[i][...] *= 0.5
        del j

    def put(self, i: int, j: int) -> None:
        made = np.full((SIZE, SIZE), 0.1 * j)
        self.here[i], self.there[i] = self.device.put(made), made

    def view(self, i: int, j: int) -> None:
        """Have two of them share memory."""
        self.here[i], self.there[i] = self.here[j].T, self.there[j].T

    def get(self, i: int, j: int) -> None:
        self.fetched.append((self.device.get(self.here[i]), self.there[i].copy()))
        del j

    def check(self) -> None:
        for i in range(BUFFERS):
            self.get(i, i)
        for reply, expected in self.fetched:
            np.testing.assert_allclose(reply.result(WAIT_S), expected, rtol=1e-9, atol=1e-9)


STEPS: list[Callable[[Both, int, int], None]] = [
    Both.axpy,
    Both.gemm,
    Both.subtract,
    Both.transform,
    Both.run,
    Both.put,
    Both.view,
    Both.get,
]
places = st.integers(0, BUFFERS - 1)


@settings(max_examples=40)
@given(
    seed=st.integers(0, 99),
    steps=st.lists(st.tuples(st.sampled_from(STEPS), places, places), max_size=20),
)
def test_any_order_gives_what_numpy_gives(
    gpu: Device, seed: int, steps: list[tuple[Callable[[Both, int, int], None], int, int]]
) -> None:
    both = Both(gpu, seed)
    for step, i, j in steps:
        if step in (Both.axpy, Both.subtract):
            if np.shares_memory(both.there[i], both.there[j]):
                continue  # BLAS takes no operand that it writes
            if not both.there[j if step is Both.axpy else i].flags.c_contiguous:
                continue
        step(both, i, j)
    both.check()


def test_the_tree_says_which_stream_each_library_has(backend: Any) -> None:
    allocator = streams.Pooled(2, {"blas": 1, "fft": 1}, {1: 100})
    with opened(backend, streams=allocator) as lab:
        nodes = {node.name: node for node in lab.tree().walk() if node.kind == "library"}
        assert lab.streams == allocator
        assert {nodes[one].stream for one in ("blas", "fft")} == {"pool 1"}
        assert nodes["upload"].stream == "pool 0"
        assert "on pool 0" in nodes["upload"].detail
        assert "priority" not in nodes["upload"].detail
        for apart in ("run", "collective", "event"):
            assert nodes[apart].stream == apart
        told = nodes["blas"].detail
        assert told.startswith("on pool 1, priority ")
        assert "of 100 asked for" in told, "no device has so many"
        assert "on pool 1" in repr(lab.tree())
    with opened(backend) as lab:
        for node in lab.tree().walk():
            if node.kind == "library":
                assert node.stream == node.name
                assert not node.detail.startswith("on ")


@pytest.mark.parametrize("name", SYSTEMS)
def test_the_last_write_is_told_by_stream_message_and_place(backend: Any, name: str) -> None:
    with opened(backend, **SYSTEMS[name]) as lab:
        gpu = lab.devices[0]
        streams_of = {node.name: node.stream for node in lab.tree().walk()}
        x = gpu.put(np.ones((4, 4)))
        first = x.last_write.result(WAIT_S)
        made = blas.gemm(x, x)
        number = gpu.last_number
        second = made.last_write.result(WAIT_S)
        array.add(made, 1.0, out=made)
        third = made.last_write.result(WAIT_S)
        blas.gemm(made, x)  # reads it
        again = made.last_write.result(WAIT_S)
        assert (first.kind, first.library, first.request) == ("Put", "upload", 1)
        assert (second.kind, second.library, second.request) == ("Gemm", "blas", number)
        assert (third.library, third == again) == ("array", True)
        for write in (first, second, third):
            assert write.stream == streams_of[write.library]
            assert write.sequence >= 1
        if name == "single":
            assert first.sequence < second.sequence < third.sequence
        gpu.run(halve, made)
        assert made.last_write.result(WAIT_S).kind == "Run"
        shared = made.T
        array.multiply(shared, 2.0, out=shared)
        assert made.last_write.result(WAIT_S) == shared.last_write.result(WAIT_S)
        behind = event.record(gpu, third.library)
        event.synchronize(behind).result(WAIT_S)


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_message_that_comes_again_is_the_last_write_each_time(backend: Any, name: str) -> None:
    with opened(backend, fuse=False, **SYSTEMS[name]) as lab:
        gpu = lab.devices[0]
        x, y, other = (gpu.put(np.ones(64)) for _ in range(3))
        numbers = []
        for _ in range(6):
            blas.axpy(x, y, out=y)
            numbers.append(gpu.last_number)
            write = y.last_write.result(WAIT_S)
            assert (write.request, write.kind) == (numbers[-1], "Axpy")
            blas.axpy(x, other, out=other)
        assert write.request == numbers[-1]
        assert gpu.get(y).result(WAIT_S).tolist() == [7.0] * 64


def test_functions_of_each_element_that_are_one_have_their_own_numbers(backend: Any) -> None:
    with opened(backend, streams=streams.Single()) as lab:
        gpu = lab.devices[0]
        x = gpu.put(np.ones(64))
        made, numbers = [x], []
        for _ in range(4):
            made.append(array.add(made[-1], 1.0))
            numbers.append(gpu.last_number)
        asked = [one.last_write for one in made[1:]]
        assert [one.result(WAIT_S).request for one in asked] == numbers
        assert gpu.get(made[-1]).result(WAIT_S).tolist() == [5.0] * 64


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("fault", ["kill", "poison"])
def test_a_fault_answers_all_that_is_pending(backend: Any, strategy: str, fault: Any) -> None:
    allocator = streams.Pooled(2)
    chosen = STRATEGIES[strategy]
    with opened(backend, recover="stale", streams=allocator, completion=chosen) as lab:
        gpu = lab.devices[0]
        assert lab.completion == chosen
        x = gpu.put(np.ones((256, 256)))
        sent: list[Any] = [blas.gemm(x, x) for _ in range(20)]
        broken = lab.inject(fault)
        with contextlib.suppress(StaleRef):  # it may be noticed by now
            sent += [blas.gemm(x, x) for _ in range(20)]
        with pytest.raises(ContextLost):
            broken.result(WAIT_S)
        for product in sent:
            with contextlib.suppress(ContextLost, StaleRef):
                assert product.result(WAIT_S) is product
        y = gpu.put(np.ones((256, 256)))
        assert (gpu.get(blas.gemm(y, y)).result(WAIT_S) == 256.0).all()
        assert {node.stream for node in lab.tree().walk() if node.name == "blas"} <= {
            "pool 0",
            "pool 1",
        }


def test_several_devices_keep_step_on_shared_streams(backend: Any) -> None:
    if backend.__name__.endswith("cuda") and backend.device_count() < 2:
        pytest.skip("needs two cards")
    name = backend.__name__.rpartition(".")[2]
    with System(name, devices=2, streams=streams.Single()) as lab:
        world = lab.world()
        x: Any = [gpu.put(np.full(4, float(at + 1))) for at, gpu in enumerate(lab.devices)]
        for _ in range(3):
            x = world.all_reduce(x).map(lambda part: array.multiply(part, 0.5))
        assert x.get().tolist() == [[1.5] * 4] * 2
