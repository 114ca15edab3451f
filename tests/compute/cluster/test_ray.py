"""Ray's own cluster of several nodes on this machine: place, compute, lose a node, close.

Starting it takes 10 s on two free cores, and its raylet gives its agent 15 s to start: on a machine
that has much else to do it does not.
"""

import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accel_lab import System
from accel_lab.compute.process import zygote_cache
from accel_lab.errors import BackendUnavailable, ContextLost
from accel_lab.libraries import fft
from tests.compute.cluster.conftest import until
from tests.conftest import require

WAIT = 120.0
SHARED = Path("/dev/shm")  # noqa: S108 - is looked at alone
STORE_BYTES = 100 << 20

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.filterwarnings("default"),  # Ray's own code has some
]


@pytest.fixture
def nodes() -> Iterator[dict[str, Any]]:
    """Start a cluster: this process's node with room for one device, two more with room for two."""
    require("ray")
    import ray
    from ray.cluster_utils import Cluster

    cluster = Cluster()
    try:
        cluster.add_node(num_cpus=1, object_store_memory=STORE_BYTES, include_dashboard=False)
        others = [cluster.add_node(num_cpus=2, object_store_memory=STORE_BYTES) for _ in range(2)]
        ray.init(address=cluster.address, log_to_driver=False, logging_level="error")
        yield {"cluster": cluster, **{node.node_id: node for node in others}}
    finally:
        ray.shutdown()
        cluster.shutdown()


def contexts() -> set[str]:
    """Return the processes of contexts, and of what forks them, that any of these raylets has."""
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
            variables = (folder / "environ").read_bytes()
        except OSError:
            continue
        of_ray = words[0].startswith(b"ray::Contexts")
        if of_ray or (b"accel_lab.context_process" in words and b"RAY_JOB_ID" in variables):
            found.add(folder.name)
    return found


def node_of(lab: System, index: int) -> str:
    place = lab._source._places.of(index)  # type: ignore[union-attr]
    assert place is not None
    return place.node.id


def test_a_system_on_a_ray_cluster(nodes: dict[str, Any]) -> None:
    zygote_cache.end()
    before = set(SHARED.iterdir())
    rng = np.random.default_rng(6)
    with System("host", cluster="ray") as lab:
        assert [device.name for device in lab.devices] == ["cpu0", "cpu1", "cpu2"]
        assert {node_of(lab, 1), node_of(lab, 2)} == nodes.keys() - {"cluster"}
        large = rng.random((1500, 1500))
        for device in lab.devices:
            a = device.put(large)
            np.testing.assert_array_equal(a.get(), large)
            np.testing.assert_allclose((a @ a).get(), large @ large)
            np.testing.assert_allclose((a + 1).get(), large + 1)
            np.testing.assert_allclose(device.ask(fft.R2C(a[2])).get(), np.fft.rfft(large[2]))
            assert device.run(lambda x: float(x.sum()), a).result(WAIT) == large.sum()
        device, other = lab.devices[1:]
        moved = lab.copy(device.put(large) * 2, to=other)
        np.testing.assert_array_equal(moved.get(), large * 2)
        assert len(contexts()) >= 4

        with pytest.raises(ContextLost, match="SIGKILL"):
            lab.inject("kill", device).result(WAIT)
        kept = device.put(np.arange(4000.0))
        for _ in range(10):
            kept = kept + 1
        assert kept.get()[0] == 10
        running = device.run(time.sleep, 0.5)
        nodes["cluster"].remove_node(nodes[node_of(lab, 1)], allow_graceful=False)
        with suppress(ContextLost):  # unless it was done by then, it may be the reason
            running.result(WAIT)
        np.testing.assert_array_equal((kept * 2).get(), 2 * (np.arange(4000.0) + 10))
        np.testing.assert_array_equal(moved.get(), large * 2)
        assert node_of(lab, 1) == node_of(lab, 2)
        assert "the loss of its node" in str(lab.tree().children[1].detail)

        nodes["cluster"].remove_node(nodes[node_of(lab, 1)], allow_graceful=False)
        with pytest.raises((BackendUnavailable, ContextLost)):
            other.put(large).get()
        assert until(lambda: device.state == other.state == "circuit open")
        assert lab.devices[0].put(large).get()[3, 4] == large[3, 4]
    zygote_cache.end()
    assert until(lambda: not contexts())
    assert {one for one in SHARED.iterdir() if "plasma" not in one.name} <= before


def test_close_leaves_nothing_on_the_nodes(nodes: dict[str, Any]) -> None:
    import ray

    zygote_cache.end()
    with System("host", 5, cluster="ray") as lab:
        for device in lab.devices:
            assert device.put(np.ones(1 << 20)).get().sum() == 1 << 20
    zygote_cache.end()
    assert until(lambda: not contexts())
    assert ray.is_initialized()  # it was the test's
