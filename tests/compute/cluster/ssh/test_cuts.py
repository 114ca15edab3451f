"""Connections that are cut: what was asked is answered, and names stay."""

import random
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from accel_lab import System
from accel_lab.compute.events.lifecycle import ContextLost as ContextWasLost
from accel_lab.compute.supervision import context_supervisor
from accel_lab.errors import BackendUnavailable, ContextLost
from tests.compute.cluster.conftest import until
from tests.compute.cluster.ssh.far_host import Between, FarHost

WAIT = 60.0
CUTS = 20


@pytest.fixture
def between(host: FarHost) -> Iterator[Between]:
    """Put a relay before the far machine."""
    made = Between(host.port)
    yield made
    made.close()


def test_twenty_cuts_lose_nothing(host: FarHost, between: Between) -> None:
    """At random moments, while arrays, sums and functions with effects are under way."""
    rng = random.Random(20)
    lost: list[ContextWasLost] = []
    stop = threading.Event()
    wrong: list[Any] = []
    rounds = [0, 0]

    def work(lab: System, which: int) -> None:
        """Each answer is that of the request; none is missing, and none is given twice."""
        device, own = lab.devices[0], np.random.default_rng(which)
        try:
            while not stop.is_set():
                value = own.random(int(own.integers(1, 120_000)))
                assert np.array_equal((device.put(value) + 1).get(), value + 1)
                assert device.run(_counted, which).result(WAIT) == rounds[which] + 1
                rounds[which] += 1
        except BaseException as error:  # noqa: BLE001 - is told below
            wrong.append(error)

    with System(host.at(between.port), python=sys.executable, ssh=host.ssh) as lab:
        lab.events.subscribe(lost.append, ContextWasLost)
        kept = lab.devices[0].put(np.arange(1000.0)) * 2
        threads = [threading.Thread(target=work, args=(lab, which)) for which in (0, 1)]
        for thread in threads:
            thread.start()
        for _ in range(CUTS):
            time.sleep(rng.random() * 0.15)
            opened = between.opened
            between.cut()
            assert until(lambda: between.opened > opened or bool(wrong))  # noqa: B023 - now
        done = list(rounds)
        assert until(lambda: min(np.subtract(rounds, done)) > 0 or bool(wrong))
        stop.set()
        for thread in threads:
            thread.join(WAIT)
        assert wrong == []
        np.testing.assert_array_equal(kept.get(), 2 * np.arange(1000.0))
        assert lab.devices[0].generation == 1
    assert lost == []


def test_a_context_lives_behind_an_answer_that_takes_long(
    host: FarHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its signs of life wait behind the answer, for longer than it may be silent."""
    monkeypatch.setattr(context_supervisor, "HEARTBEAT_LIMIT_S", 2.0)
    between = Between(host.port, rate=2 << 20)
    try:
        with System(host.at(between.port), python=sys.executable, ssh=host.ssh) as lab:
            device = lab.devices[0]
            noise = device.run(lambda: np.random.default_rng(0).bytes(8 << 20)).result(WAIT)
            assert noise == np.random.default_rng(0).bytes(8 << 20)
            assert device.generation == 1
    finally:
        between.close()


def _counted(which: int) -> int:
    """Count the calls; runs there."""
    import builtins

    counts = builtins.__dict__.setdefault("_calls", {})
    counts[which] = counts.get(which, 0) + 1
    return int(counts[which])


def test_without_a_connection_for_too_long_contexts_are_lost(
    host: FarHost, between: Between
) -> None:
    before = set(host.processes())
    with System(host.at(between.port), python=sys.executable, ssh=host.ssh, grace_s=0.5) as lab:
        device = lab.devices[0]
        kept = device.put(np.arange(1000.0)) * 2
        assert kept.get()[1] == 2
        there = set(host.processes()) - before
        running = device.run(time.sleep, 60)
        between.is_open = False
        between.cut()
        with pytest.raises(ContextLost, match=r"no connection for 0\.5 s"):
            running.result(WAIT)
        assert until(lambda: not there & set(host.processes()))
        assert until(lambda: device.state == "circuit open")
        with pytest.raises(BackendUnavailable, match="ssh does not reach"):
            kept.get()
        between.is_open = True
        device.reset()
        np.testing.assert_array_equal(kept.get(), 2 * np.arange(1000.0))


def test_a_stopped_far_process_is_a_loss(host: FarHost, between: Between) -> None:
    """It is told at once, and not after the grace time."""
    import os
    import signal

    before = set(host.processes())
    with System(host.at(between.port), python=sys.executable, ssh=host.ssh) as lab:
        kept = lab.devices[0].put(np.arange(100.0)) + 1
        assert kept.get()[0] == 1
        lab.devices[0].ping().result(WAIT)
        for pid in set(host.processes()) - before:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        np.testing.assert_array_equal(kept.get(), np.arange(100.0) + 1)
        assert lab.devices[0].generation == 2
