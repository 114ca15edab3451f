"""Nodes that are lost: every request is answered, and devices go where there is room."""

import random
import threading
import time
from typing import Any

import numpy as np
import pytest

from accel_lab import System
from accel_lab.compute.cluster.places import Node
from accel_lab.compute.events.lifecycle import ContextLost as ContextWasLost
from accel_lab.errors import AccelError, BackendUnavailable, ContextLost, StaleRef
from tests.compute.cluster.conftest import until
from tests.compute.cluster.near_cluster import NearCluster

WAIT = 60.0


def test_a_crash_there_costs_the_context_and_names_the_culprit(lab: System) -> None:
    device = lab.devices[1]
    kept = device.put(np.arange(5000.0)) * 2
    with pytest.raises(ContextLost, match="SIGSEGV"):
        lab.inject("segfault", device).result(WAIT)
    np.testing.assert_array_equal(kept.get(), 2 * np.arange(5000.0))
    assert device.generation == 2
    place = lab._source._places.of(1)  # type: ignore[union-attr]
    assert place is not None
    assert place.node.id == "a"


def test_buffers_come_back_on_another_node(lab: System, cluster: NearCluster) -> None:
    lost: list[ContextWasLost] = []
    lab.events.subscribe(lost.append, ContextWasLost)
    device, other = lab.devices[1:]
    a, b = device.put(np.arange(5000.0)), other.put(np.ones(3000))
    for _ in range(20):
        a = a + 1
    assert a.get()[0] == 20
    cluster.machines["a"].die()
    np.testing.assert_array_equal((a * 2).get(), 2 * (np.arange(5000.0) + 20))
    assert (device.generation, other.generation) == (2, 1)
    assert b.get().sum() == 3000
    assert [one.device for one in lost] == ["cpu1"]
    assert "the loss of its node, node-a: it was switched off" in lost[0].cause
    assert lab.tree().children[1].children[0].detail.endswith("on node-b")


def test_without_replay_it_is_told(cluster: NearCluster) -> None:
    with System("host", cluster="ray", recover="stale") as lab:
        device = lab.devices[1]
        kept = device.put(np.ones(3))
        assert kept.get().sum() == 3
        running = device.run(time.sleep, 60)
        assert until(lambda: device.in_flight > 0)
        cluster.machines["a"].die()
        with pytest.raises(ContextLost, match="node-a"):
            running.result(WAIT)
        with pytest.raises(StaleRef):
            kept.get()
        assert device.put(np.ones(4)).get().sum() == 4


def test_without_room_the_circuit_opens_until_a_node_comes(
    cluster: NearCluster,
) -> None:
    cluster.up = {name: Node(name, f"node-{name}", 1) for name in ("own", "a")}
    with System("host", cluster="ray") as lab:
        device = lab.devices[1]
        kept = device.put(np.arange(3000.0))
        assert kept.get().size == 3000
        cluster.machines["a"].die()
        with pytest.raises(BackendUnavailable, match="no other one has room: node-own for 1"):
            device.put(np.ones(3)).get()
        assert until(lambda: device.state == "circuit open")
        assert lab.devices[0].put(np.ones(3)).get().sum() == 3
        cluster.up["new"] = Node("new", "node-new", 1)
        device.reset()
        assert device.put(np.ones(5)).get().sum() == 5
        assert lab.tree().children[1].children[0].detail.endswith("on node-new")


def test_a_device_comes_to_this_machine(cluster: NearCluster) -> None:
    cluster.up = {name: Node(name, f"node-{name}", 2) for name in ("own", "a")}
    with System("host", cluster="ray") as lab:
        kept = lab.devices[1].put(np.arange(3000.0)) + 1
        assert kept.get()[0] == 1
        cluster.machines["a"].die()
        np.testing.assert_array_equal(kept.get(), np.arange(3000.0) + 1)
        assert "on node" not in lab.tree().children[1].children[0].detail


def test_a_node_that_cannot_is_told_at_once(cluster: NearCluster) -> None:
    cluster.refusals["a"] = "node-a has accel_lab 0.0 on Python 2.7"
    with pytest.raises(BackendUnavailable, match=r"Python 2\.7"):
        System("host", cluster="ray").__enter__()


def test_a_backend_that_cannot_be_loaded_there_is_told(
    cluster: NearCluster,
) -> None:
    cluster.loads = "none"
    lab = System("host", cluster="ray")
    try:
        with pytest.raises(BackendUnavailable, match=r"on node-[ab]: ModuleNotFoundError"):
            lab.ready()
    finally:
        lab.close()


def test_a_system_that_is_closed_at_once_leaves_nothing(
    leaves_nothing: None, cluster: NearCluster
) -> None:
    for _ in range(4):
        System("host", 5, cluster="ray").close()


def test_every_request_is_answered_whenever_a_node_is_lost(
    leaves_nothing: None, cluster: NearCluster
) -> None:
    """Puts, gets, copies and sums are under way; each gives its value, or a typed error."""
    cluster.up = {name: Node(name, f"node-{name}", 4) for name in ("own", "a", "b", "c")}
    answered: list[int] = []
    wrong: list[Any] = []
    stop = threading.Event()

    def work(lab: System, seed: int) -> None:
        rng = random.Random(seed)
        while not stop.is_set():
            size, value = rng.randrange(1, 200_000), rng.random()
            source, target = rng.sample(lab.devices, 2)
            try:
                ref = source.put(np.full(size, value)) + 1
                copy = lab.copy(ref, to=target)
                found = [one.get() for one in (ref, copy)]
            except AccelError:
                continue
            except BaseException as error:  # noqa: BLE001 - is told below
                wrong.append(error)
                return
            if not all(np.array_equal(one, np.full(size, value + 1)) for one in found):
                wrong.append((size, value, found))
            answered.append(1)

    with System("host", 4, cluster="ray", max_restarts=9) as lab:
        threads = [threading.Thread(target=work, args=(lab, seed)) for seed in (1, 2)]
        for thread in threads:
            thread.start()
        for name in ("a", "b"):
            count = len(answered)
            assert until(lambda: len(answered) > count + 5 or bool(wrong))  # noqa: B023 - now
            cluster.machines[name].die()
        count = len(answered)
        assert until(lambda: len(answered) > count + 5 or bool(wrong))
        stop.set()
        for thread in threads:
            thread.join(WAIT)
            assert not thread.is_alive()
        assert wrong == []
        for device in lab.devices:
            assert device.put(np.ones(7)).get().sum() == 7
        del device
    del lab, threads
