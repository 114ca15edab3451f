"""Who else is replaced when a context is lost: contexts of devices that belong together."""

import os
import re
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial

import numpy as np
import pytest

from accel_lab import System, blas
from accel_lab.compute.events.lifecycle import CircuitClosed, CircuitOpened, ContextStarted
from accel_lab.compute.supervision.restart_groups import Groups
from accel_lab.errors import CircuitOpen, ContextLost, InvalidArgument, StaleRef
from tests.faults.conftest import pid_of, settle, works

WAIT = 30.0
ONES = np.ones((4, 4), np.float32)


@pytest.fixture
def together(nothing_left: None) -> Iterator[System]:
    """Run three devices that share state."""
    with System("host", 3, recover="stale", strategy="all_for_one", max_restarts=1000) as lab:
        yield lab


@pytest.fixture
def pipeline(nothing_left: None) -> Iterator[System]:
    """Run three devices of which each takes what the one before makes."""
    with System("host", 3, recover="stale", strategy="rest_for_one", max_restarts=1000) as lab:
        yield lab


def generations(lab: System) -> list[int]:
    return [device.generation for device in lab.devices]


def test_all_for_one_replaces_every_context(together: System) -> None:
    """Requests to the others get ContextLost that names the loss it comes of; all work again."""
    one, two, three = together.devices
    kept = [device.put(ONES).result(WAIT) for device in together.devices]
    slow = [device.run(time.sleep, 60) for device in (one, three)]
    os.kill(pid_of(together, two), signal.SIGKILL)
    for device, reply in zip((one, three), slow, strict=True):
        with pytest.raises(
            ContextLost, match=rf"{device.name}( of \w+)? lost its context of generation 1"
        ) as e:
            reply.result(WAIT)
        assert "shares state with a device that was lost" in str(e.value)
        cause = e.value.__cause__
        assert isinstance(cause, ContextLost)
        assert cause.generation == 1
        assert re.match(rf"{two.name}( of \w+)? lost its context of generation 1", str(cause))
        assert cause.name in ("SIGKILL", "")  # nothing yet, if it takes long to be reaped
        assert "cpu1" in str(cause)
    assert generations(together) == [2, 2, 2]
    for ref in kept:
        with pytest.raises(StaleRef):
            blas.scal(ref, 2.0)
    assert all(works(device) for device in together.devices)
    assert generations(together) == [2, 2, 2]
    assert [d.state for d in together.devices] == ["running"] * 3
    restarts = [n.restarts for n in together.tree().walk() if n.kind == "device"]
    assert restarts == [1, 1, 1]


def test_rest_for_one_leaves_what_comes_before(pipeline: System) -> None:
    """The middle takes the last with it; the first does not notice."""
    one, two, three = pipeline.devices
    kept = one.put(ONES).result(WAIT)
    slow = three.run(time.sleep, 60)
    with pytest.raises(ContextLost):
        pipeline.inject("segfault", two).result(WAIT)
    with pytest.raises(ContextLost) as caught:
        slow.result(WAIT)
    assert isinstance(caught.value.__cause__, ContextLost)
    assert generations(pipeline) == [1, 2, 2]
    assert (one.get(blas.gemm(kept, kept)).result(WAIT) == 4.0).all()
    with pytest.raises(ContextLost):
        pipeline.inject("kill", three).result(WAIT)
    assert settle(lambda: [d.state for d in pipeline.devices] == ["running"] * 3)
    assert generations(pipeline) == [1, 2, 3]
    with pytest.raises(ContextLost):
        pipeline.inject("kill", one).result(WAIT)
    assert settle(lambda: generations(pipeline) == [2, 3, 4])
    assert all(works(device) for device in pipeline.devices)


def test_two_losses_at_once_replace_each_context_once(together: System) -> None:
    """What has been replaced for the first loss is not replaced again for the second."""
    for _ in range(5):
        before = generations(together)
        for pid in [pid_of(together, device) for device in together.devices[:2]]:
            with suppress(ProcessLookupError):  # the first loss may have taken it along
                os.kill(pid, signal.SIGKILL)
        came = [n + 1 for n in before]
        assert settle(partial(lambda came: generations(together) == came, came))
        assert settle(lambda: {d.state for d in together.devices} == {"running"})
        assert all(works(device) for device in together.devices)
        assert generations(together) == came


def test_they_share_one_budget_and_one_circuit(nothing_left: None) -> None:
    """Three losses anywhere are allowed; the fourth opens all; reset of one closes all."""
    with System("host", 2, recover="stale", strategy="all_for_one", max_restarts=3) as lab:
        one, two = lab.devices
        for device in (one, two, one, two):
            with pytest.raises(ContextLost):
                lab.inject("kill", device).result(WAIT)
            assert settle(lambda: "restarting" not in [d.state for d in lab.devices])
        assert settle(lambda: [d.state for d in lab.devices] == ["circuit open"] * 2)
        both = {"cpu0", "cpu1"}
        assert settle(lambda: {e.device for e in lab.events.history(CircuitOpened)} == both)
        for device in lab.devices:
            took = []
            for _ in range(5):
                begun = time.perf_counter()
                with pytest.raises(CircuitOpen, match=r"reset\(\)") as caught:
                    device.put(ONES)
                took.append(time.perf_counter() - begun)
                assert isinstance(caught.value.__cause__, ContextLost)
            assert min(took) < 0.1
        one.reset()
        assert settle(lambda: [d.state for d in lab.devices] == ["running"] * 2)
        assert settle(lambda: {e.device for e in lab.events.history(CircuitClosed)} == both)
        assert all(works(device) for device in lab.devices)
        for device in (one, two, one):  # the budget is a new one
            with pytest.raises(ContextLost):
                lab.inject("kill", device).result(WAIT)
        assert settle(lambda: [d.state for d in lab.devices] == ["running"] * 2)


def test_the_end_of_a_pipeline_rests_alone(nothing_left: None) -> None:
    """What comes before goes on; after a reset the order is as before."""
    with System("host", 2, recover="stale", strategy="rest_for_one", max_restarts=0) as lab:
        one, two = lab.ready(WAIT).devices
        with pytest.raises(ContextLost):
            lab.inject("kill", two).result(WAIT)
        assert settle(lambda: two.state == "circuit open")
        assert (one.state, one.generation) == ("running", 1)
        two.reset()
        assert settle(lambda: two.state == "running")
        with pytest.raises(ContextLost):
            lab.inject("kill", one).result(WAIT)
        assert settle(lambda: [d.state for d in lab.devices] == ["circuit open"] * 2)
        two.reset()
        assert settle(lambda: [d.state for d in lab.devices] == ["running"] * 2)
        assert works(one)
        assert works(two)


def test_each_group_has_a_strategy_of_its_own(nothing_left: None) -> None:
    """A group's order is the one it names; a device in no group stands alone."""
    groups: Groups = [("all_for_one", [0, 2]), ("rest_for_one", [4, 3])]
    with System("host", 5, recover="stale", strategy=groups, max_restarts=1000) as lab:
        for lost, came in [
            (0, [2, 1, 2, 1, 1]),
            (1, [2, 2, 2, 1, 1]),
            (4, [2, 2, 2, 2, 2]),
            (3, [2, 2, 2, 3, 2]),
        ]:
            with pytest.raises(ContextLost):
                lab.inject("kill", lab.devices[lost]).result(WAIT)
            assert settle(partial(lambda came: generations(lab) == came, came))
            assert all(works(device) for device in lab.devices)
            assert generations(lab) == came


def test_one_group_that_gives_up_leaves_the_others_open(nothing_left: None) -> None:
    """Each has a budget and a circuit of its own."""
    groups: Groups = [("all_for_one", [0, 1]), ("all_for_one", [2, 3])]
    with System("host", 4, recover="stale", strategy=groups, max_restarts=0) as lab:
        with pytest.raises(ContextLost):
            lab.inject("kill", lab.devices[1]).result(WAIT)
        assert settle(lambda: [d.state for d in lab.devices[:2]] == ["circuit open"] * 2)
        assert [d.state for d in lab.devices[2:]] == ["running"] * 2
        assert all(works(device) for device in lab.devices[2:])
        lab.devices[0].reset()
        assert all(works(device) for device in lab.devices)


def test_a_strategy_that_does_not_exist_is_refused() -> None:
    """With those that do."""
    with pytest.raises(InvalidArgument, match="one_for_one or all_for_one or rest_for_one"):
        System("host", recover="stale", strategy="some_for_one")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match=r"a list of groups as \('all_for_one', \[0, 1\]\)"):
        System("host", 2, strategy=[("some_for_one", [0])])  # type: ignore[list-item]


@pytest.mark.parametrize("groups", [[[0, 2]], [[0, 0]], [[0], [0, 1]], [[]], [[-1]], [["0"]]])
def test_a_group_of_devices_that_cannot_be_is_refused(groups: list[list[int]]) -> None:
    """With the positions that there are."""
    with pytest.raises(InvalidArgument, match=r"0 to 1|\[0, 1\]"):
        System("host", 2, strategy=[("all_for_one", one) for one in groups])


def test_a_loss_before_the_others_are_up_is_one_start_more(nothing_left: None) -> None:
    """A context that is still starting is replaced as well, and nothing of it is left."""
    with System("host", 2, recover="stale", strategy="all_for_one", max_restarts=1000) as lab:
        one, two = lab.devices
        for _ in range(5):
            with pytest.raises(ContextLost):
                lab.inject("kill", one).result(WAIT)
            two.replace()
        assert works(one)
        assert works(two)
        pids = {e.pid for e in lab.events.history(ContextStarted)}
        assert len(pids) == len(lab.events.history(ContextStarted))


def test_a_suspended_device_that_is_used_while_its_group_restarts_has_one_context(
    nothing_left: None,
) -> None:
    """Both who used it and the restart had one started, and one of them was nobody's."""
    with System("host", 2, recover="stale", strategy="all_for_one", max_restarts=10) as lab:
        first, second = lab.ready(WAIT).devices
        first.put(ONES).result(WAIT)
        first.suspend()
        for turn in range(3):
            with pytest.raises(ContextLost):
                lab.inject("kill", second).result(WAIT)
            if turn < 2:
                second.ping().result(WAIT)
        for device in (first, second):  # the third restart is held back for a moment
            device.ping().result(WAIT)
        assert settle(lambda: len(lab._spawner.processes) <= 2)
        own = {
            supervisor.process.number
            for supervisor in lab._supervisors
            if supervisor.process is not None
        }
        assert lab._spawner.processes.keys() == own
