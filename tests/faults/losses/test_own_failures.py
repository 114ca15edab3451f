"""What fails on our own side, on whichever thread, is told; no device falls silent for it."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

from accel_lab import Device, System, blas
from accel_lab.compute.events.lifecycle import ContextLost as ContextLostEvent
from accel_lab.compute.lineage.lineage import Lineage
from accel_lab.compute.lineage.recorder import Recorder
from accel_lab.compute.recovery.recovery import Recovered, Recovery
from accel_lab.compute.requests.answers import Answers
from accel_lab.compute.supervision.context_loss import Loss
from accel_lab.compute.supervision.context_supervisor import ContextSupervisor
from accel_lab.compute.suspension.suspension import Suspension
from accel_lab.errors import AccelError, ContextLost, StaleRef
from tests.faults.conftest import settle, works

WAIT = 30.0


class Broken(Exception):
    """What nobody has thought of."""


def breaks(
    patch: pytest.MonkeyPatch, lab: System, owner: type[Any], name: str, times: int = 1
) -> Callable[[], int]:
    """Have a method of this system's raise from now on, so often; returns how often it has.

    Systems of other tests may be open beside it, and their contexts beat.
    """
    broken = _parts(lab).get(owner, owner)  # else it is made anew in each loss
    method, raised = getattr(broken, name), list[None]()

    def raising(*args: Any, **options: Any) -> Any:
        if len(raised) < times:
            raised.append(None)
            raise Broken(name)
        return method(*args, **options)

    patch.setattr(broken, name, raising)
    return lambda: len(raised)


def _parts(lab: System) -> dict[type[Any], Any]:
    """Return what the system has for as long as it is open, by its class."""
    (supervisor,) = lab._supervisors
    requests, recovery = supervisor.requests, supervisor.recovery
    assert isinstance(recovery, Recovery)
    lineage = recovery._lineage
    parts = supervisor, supervisor.suspension, requests.answers, requests.recorder
    return {type(part): part for part in (*parts, recovery, lineage)}


def is_told(lab: System) -> bool:
    """Whether `check` raises what has failed, beside what anybody was told of."""
    try:
        lab.check()
    except Broken:
        return True
    except ExceptionGroup as several:
        return several.subgroup(Broken) is not None
    return False


@pytest.fixture
def lab(nothing_left: None) -> Iterator[System]:
    with System("host", recover="replay", max_restarts=1000) as system:
        yield system


@pytest.fixture
def cpu(lab: System) -> Device:
    return lab.devices[0]


@pytest.mark.parametrize(
    ("owner", "name", "times"),
    [
        (Recovery, "_wait_for_the_old", 1),
        (Recovery, "_plan", 1),
        (Lineage, "slice", 1),
        (Lineage, "steps_of", 1),
        (Recorder, "drain", 2),
        (ContextSupervisor, "_born", 1),
        (ContextSupervisor, "_explained_loss", 1),
        (ContextSupervisor, "_after", 1),
        (ContextSupervisor, "_take_in", 1),
        (Recovered, "marker", 1),
        (Loss, "_notice", 1),
    ],
)
def test_a_loss_is_answered_though_its_handling_fails(
    lab: System,
    cpu: Device,
    monkeypatch: pytest.MonkeyPatch,
    owner: type[Any],
    name: str,
    times: int,
) -> None:
    x = cpu.put(np.ones(4))
    cpu.get(x).result(WAIT)
    count = breaks(monkeypatch, lab, owner, name, times)
    lost = lab.inject("kill", cpu)
    behind = [blas.scal(x, float(k)) for k in range(3)]
    with pytest.raises(ContextLost):
        lost.result(WAIT)
    for k, ref in enumerate(behind):
        with suppress(AccelError):  # a result or a typed answer, in time
            np.testing.assert_array_equal(cpu.get(ref).result(WAIT), k * np.ones(4))
    assert works(cpu)
    assert count() == times
    assert is_told(lab)


def test_what_cannot_be_planned_is_given_up_and_says_why(
    lab: System, cpu: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The context that was to be filled is lost, with an event; the next begins with nothing."""
    x = cpu.put(np.ones(4))
    cpu.get(x).result(WAIT)
    breaks(monkeypatch, lab, Recovery, "_plan")
    with pytest.raises(ContextLost):
        lab.inject("kill", cpu).result(WAIT)
    assert works(cpu)
    assert cpu.generation == 3
    with pytest.raises(StaleRef, match=r"its recovery failed: Broken: _plan"):
        cpu.get(x)
    assert any("Broken" in event.cause for event in lab.events.history(ContextLostEvent))


@pytest.mark.parametrize("name", ["_done", "_answered", "_failed"])
def test_answers_that_cannot_be_taken_in_lose_their_context_and_not_their_requests(
    lab: System, cpu: Device, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Who happens to read gets no error of another's, and nobody waits for the rest of a frame."""
    x = cpu.put(np.ones(4))
    cpu.get(x).result(WAIT)
    breaks(monkeypatch, lab, Answers, name)
    replies = [cpu.ping(), cpu.run(len, [1, 2]), cpu.run(_fails), blas.scal(x, 2.0)]
    for reply in replies:
        with suppress(AccelError):
            reply.result(WAIT)
        assert reply.done
    assert works(cpu)
    assert cpu.generation == 2
    assert any("Broken" in event.cause for event in lab.events.history(ContextLostEvent))


def _fails() -> None:
    raise ValueError


def test_a_device_that_comes_back_goes_on_though_that_fails_here(
    lab: System, cpu: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = cpu.put(np.ones(4))
    lab.suspend()
    count = breaks(monkeypatch, lab, Suspension, "_fill")
    np.testing.assert_array_equal(cpu.get(x).result(WAIT), np.ones(4))
    assert count() == 1
    assert is_told(lab)


def test_the_record_goes_on_after_a_pass_that_has_failed(
    lab: System, cpu: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    cpu.put(np.ones(4)).result(WAIT)
    count = breaks(monkeypatch, lab, Recorder, "drain")
    x = cpu.put(np.ones(4))
    assert settle(lambda: count() == 1)
    before = len(lab.journal)
    cpu.get(x).result(WAIT)
    assert settle(lambda: len(lab.journal) > before)
    assert x.durability == "replayable"
    assert is_told(lab)
