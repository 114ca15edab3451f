"""A user's `__del__`, run by a thread that carries what contexts are told, or what they say."""

import numpy as np
import pytest

from accel_lab import System
from accel_lab.compute.cluster.cluster_spawner import ClusterSpawner
from accel_lab.errors import InvalidArgument
from tests.compute.cluster.conftest import until
from tests.compute.cluster.near_cluster import NearCluster
from tests.finalized import collecting, in_time

WAIT = 60.0


@pytest.mark.parametrize("way", ["down", "up"])
def test_one_that_waits_is_refused(
    lab: System, cluster: NearCluster, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """It would wait for its own thread, and all that the node is asked would wait with it."""
    device = lab.devices[1]
    x = device.put(np.arange(5000.0))
    x.result(WAIT)
    met: list[BaseException] = []

    def wait() -> None:
        try:
            device.get(x).result(2.0)
        except (InvalidArgument, TimeoutError) as error:
            met.append(error)

    collecting(monkeypatch, cluster.machines["a"], way, wait)
    np.testing.assert_array_equal(device.get(x).result(WAIT), np.arange(5000.0))
    device.ping().result(WAIT)
    assert until(lambda: bool(met))
    assert isinstance(met[0], InvalidArgument), met


def test_one_that_has_a_context_told_something_comes_back(lab: System) -> None:
    device = lab.devices[1]
    device.ping().result(WAIT)
    supervisor = device._supervisor
    spawner = supervisor._services.spawner
    assert isinstance(spawner, ClusterSpawner)

    def tell() -> bool:
        with spawner._relays["a"]._lock:  # it may be collected wherever that is held
            supervisor.cancel([1 << 60])
        return True

    assert in_time(tell)
    device.ping().result(WAIT)


def test_one_that_closes_the_system_does_not_wait_for_itself(
    lab: System, cluster: NearCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = lab.devices[1]
    device.ping().result(WAIT)
    collecting(monkeypatch, cluster.machines["a"], "down", lab.close)
    device.ping()
    assert until(lambda: device.state == "stopped")
    assert until(lambda: not lab._event_loop.is_running)
