"""Devices of other nodes are the same devices: contexts and relays are real, only Ray is left out.

`test_ray.py` has the same on a Ray cluster.
"""

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from accel_lab import System
from accel_lab.compute.cluster import relay
from accel_lab.errors import (
    Cancelled,
    DeadlineExceeded,
    DependencyFailed,
    InvalidArgument,
    LibraryError,
    UserCodeError,
)
from accel_lab.libraries import fft, solver
from tests.compute.cluster.conftest import until
from tests.compute.cluster.near_cluster import NearCluster, use

WAIT = 60.0


@pytest.fixture(scope="module", name="cluster")
def one_cluster() -> Iterator[NearCluster]:
    """Return the cluster of `lab`, which these tests share: they lose no node."""
    made = NearCluster(own=1, a=2, b=2)
    with pytest.MonkeyPatch.context() as patch:
        use(made, patch)
        yield made


@pytest.fixture(scope="module", name="lab")
def one_lab(cluster: NearCluster) -> Iterator[System]:
    """Open a system with a device on each node: cpu0 here, cpu1 on a, cpu2 on b."""
    with System("host", cluster="ray") as opened:
        yield opened


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> NearCluster:
    """Return a cluster of its own."""
    made = NearCluster(own=1, a=2, b=2)
    use(made, monkeypatch)
    return made


def test_devices_have_their_places(lab: System) -> None:
    assert [device.name for device in lab.devices] == ["cpu0", "cpu1", "cpu2"]
    details = [node.children[0].detail for node in lab.tree().children]
    assert ["on node" in one for one in details] == [False, True, True]
    assert details[1].endswith("on node-a")


def test_each_computes_what_numpy_does(lab: System) -> None:
    rng = np.random.default_rng(1)
    x = rng.random((257, 129)).astype("float32")
    y = rng.random((129, 65)).astype("float32")
    for device in lab.devices:
        a, b = device.put(x), device.put(y)
        np.testing.assert_allclose((a @ b).get(), x @ y, rtol=1e-4)
        np.testing.assert_allclose((a + a).get(), 2 * x)
        spectrum = device.ask(fft.R2C(a[3])).get()
        np.testing.assert_allclose(spectrum, np.fft.rfft(x[3]), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(
    "shape", [(), (0,), (5,), (2049,), (4097, 3), (3 << 20,)], ids=lambda shape: f"{shape}"
)
def test_arrays_of_any_size_come_back(lab: System, shape: tuple[int, ...]) -> None:
    """In the message, in one piece of the arena, and in several."""
    value = np.random.default_rng(2).integers(-(1 << 60), 1 << 60, shape)
    for device in lab.devices:
        ref = device.put(value)
        np.testing.assert_array_equal(ref.get(), value)


def test_an_array_of_the_arena_is_read_in_place(lab: System) -> None:
    value = lab.empty((1000, 1000), "float64")
    value[:] = np.arange(1e6).reshape(1000, 1000)
    there = lab.devices[1].put(value)
    np.testing.assert_array_equal((there * 2).get(), 2 * np.array(value))


def test_memory_that_is_used_again_brings_nothing_old(lab: System) -> None:
    """Blocks of the arena are given out again and again: here each copy of them differs."""
    device, other = lab.devices[1:]
    rng = np.random.default_rng(3)
    for _ in range(25):
        value = rng.random(int(rng.integers(3000, 60_000)))
        refs = [device.put(value), other.put(-value)]
        moved = [lab.copy(refs[0], to=2), lab.copy(refs[1], to=1), lab.copy(refs[0], to=0)]
        for ref, sign in zip([*refs, *moved], (1, -1, 1, -1, 1), strict=True):
            np.testing.assert_array_equal(ref.get(), sign * value)


def test_a_copy_of_what_failed_says_so(lab: System) -> None:
    """Between all pairs of machines."""
    for source in lab.devices:
        for target in lab.devices:
            if source is not target:
                failed = solver.cholesky(source.put(-np.eye(40)))
                with pytest.raises(DependencyFailed):
                    lab.copy(failed, to=target).get()


def _fail(_: Any) -> None:
    raise ValueError("no")


def test_a_call_larger_than_a_frame_gets_there(lab: System) -> None:
    weights = np.random.default_rng(4).random(400_000)

    def total() -> float:
        return float(weights.sum())

    answers = [device.run(total).result(WAIT) for device in lab.devices]
    np.testing.assert_allclose(answers, weights.sum())


def test_answers_larger_than_a_frame_come_back(lab: System) -> None:
    answer = lab.devices[2].run(lambda: bytes(3 << 20)).result(WAIT)
    assert answer == bytes(3 << 20)


def test_what_is_printed_there_is_shown_here(
    lab: System, capfd: pytest.CaptureFixture[str]
) -> None:
    def both() -> None:
        print("from Python")  # noqa: T201 - is shown
        os.write(1, b"from C\n")

    lab.devices[1].run(both).result(WAIT)
    shown = ""

    def all_there() -> bool:
        nonlocal shown
        shown += capfd.readouterr().out
        return "from Python" in shown and "from C" in shown

    assert until(all_there)


def test_errors_are_those_of_any_device(lab: System) -> None:
    device = lab.devices[1]
    ref = device.put(np.zeros((2, 3)))
    with pytest.raises(InvalidArgument):
        ref @ ref
    with pytest.raises(UserCodeError, match="no"):
        device.run(_fail, 1).result(WAIT)
    with pytest.raises(LibraryError):
        lab.inject("library", device).result(WAIT)
    other = lab.devices[2].put(np.zeros((3, 2)))
    with pytest.raises(InvalidArgument, match="cpu2"):
        ref @ other


def test_requests_are_cancelled_and_run_out_of_time(lab: System) -> None:
    import time

    device = lab.devices[1]
    running = device.run(time.sleep, 5)
    waiting = device.run(time.sleep, 0)
    waiting.cancel()
    with pytest.raises(Cancelled):
        waiting.result(WAIT)
    running.cancel()
    with pytest.raises(Cancelled):
        running.result(WAIT)
    with pytest.raises(DeadlineExceeded):
        device.run(time.sleep, 60, timeout_s=0.3).result(WAIT)
    assert device.run(int, 3).result(WAIT) == 3


def test_many_messages_go_in_batches(lab: System, cluster: NearCluster) -> None:
    device = lab.devices[1]
    x = device.put(np.zeros(8))
    before = len(cluster.machines["a"].batches)
    for _ in range(3000):
        x = x + 1
    np.testing.assert_array_equal(x.get(), np.full(8, 3000.0))
    assert len(cluster.machines["a"].batches) - before < 1000


def test_much_more_than_a_batch_is_sent_at_once(
    lab: System, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What did not go with a batch goes with the next, also if nothing comes behind it."""
    monkeypatch.setattr(relay, "BATCH_BYTES", 1 << 20)
    value = np.random.default_rng(7).integers(0, 255, 40 << 20, np.uint8)
    first, second = lab.devices[1:]
    for _ in range(2):
        refs = [first.put(value), second.put(value)]
        for device, ref in zip((first, second), refs, strict=True):
            device.ping().result(WAIT)
            np.testing.assert_array_equal(ref.get(), value)


def test_what_needs_one_machine_is_refused(lab: System) -> None:
    with pytest.raises(InvalidArgument, match="cpu1 is on another machine"):
        lab.devices[1].suspend()
    with pytest.raises(InvalidArgument, match="one of these devices"):
        lab.world()
    with pytest.raises(InvalidArgument, match="one of these devices"):
        lab.world([lab.devices[1]])
    here = lab.world([lab.devices[0]])
    here.close()
    assert lab.devices[1].put(np.ones(3)).get().sum() == 3


def test_the_topology_says_what_is_apart(lab: System) -> None:
    link = lab.topology.link("cpu0", "cpu1")
    assert not link.reachable
    assert link.kind == "another machine"
    assert lab.topology.islands == (("cpu0",), ("cpu1",), ("cpu2",))


def test_two_devices_of_one_node(fresh: NearCluster) -> None:
    with System("host", 5, cluster="ray") as lab:
        value = np.random.default_rng(5).random(5000)
        ref = lab.devices[0].put(value)
        for device in lab.devices[1:]:
            ref = lab.copy(ref, to=device) + 1
        np.testing.assert_allclose(ref.get(), value + 4)
    assert set(fresh.machines) == {"a", "b"}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"devices": 6}, "has room for 5: node-own for 1, node-a for 2, node-b for 2"),
        ({"devices": [0, 1]}, "how many"),
        ({"suspend_after_s": 1.0}, "another machine"),
        ({"backend": "none"}, "backend is cuda or host"),
    ],
    ids=["too many", "a list", "suspended", "no backend"],
)
def test_mistakes_are_told_at_the_call(
    fresh: NearCluster, given: dict[str, Any], said: str
) -> None:
    with pytest.raises(InvalidArgument, match=said):
        System(**{"backend": "host", "cluster": "ray", **given})


def test_another_kind_of_cluster_is_refused() -> None:
    with pytest.raises(InvalidArgument, match=r"cluster is ray or ssh:.*, not 'dask'"):
        System("host", cluster="dask")


def test_nothing_is_left(leaves_nothing: None, fresh: NearCluster) -> None:
    with System("host", 5, cluster="ray") as lab:
        for device in lab.devices:
            (device.put(np.ones((500, 500))) @ device.put(np.ones((500, 500)))).get()
    assert fresh.has_left
