"""The lab of the first minute without a browser: its button crashes a device, and it says so."""

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from accel_lab.compute.events.lifecycle import (
    BuffersRebuilt,
    CircuitOpened,
    ContextLost,
    ContextStarted,
    GenerationChanged,
)
from accel_lab.errors import ContextLost as Lost
from accel_lab.errors import InvalidArgument
from accel_lab.system import System
from accel_lab.views.first_minute import FirstMinuteView, crash_of
from accel_lab.views.lab import LabView
from accel_lab.views.scene.scene import Scene
from tests.views.made_up import lab as made_up

WAIT_S = 20.0
LOST = ContextLost(at=10.0, device="gpu0", generation=1, cause="it broke", in_flight=1, name="E")
CHANGED = GenerationChanged(at=10.0, device="gpu0", before=1, after=2)
STARTED = ContextStarted(at=10.1, device="gpu0", generation=2, pid=1, seconds=0.1)


@pytest.fixture
def system() -> Iterator[System]:
    with System("host", name="real") as lab:
        yield lab.ready()


def rebuilt(buffers: int, lost: int = 0, at: float = 10.2) -> BuffersRebuilt:
    return BuffersRebuilt(
        at=at,
        device="gpu0",
        generation=2,
        buffers=buffers,
        lost=lost,
        messages=1,
        requests=(),
        seconds=0.1,
    )


def said(*facts: Any) -> tuple[str, str]:
    scene = Scene()
    for fact in facts:
        scene.add(fact)
    crash = crash_of(scene, ("gpu0",))
    assert crash["device"] == "gpu0"
    return crash["outcome"], crash["said"]


def await_rebuilt(view: FirstMinuteView, generation: int, arrays: str) -> None:
    """Wait until it says of a generation how many arrays were rebuilt; a context is up before."""
    end = time.monotonic() + WAIT_S
    while True:
        state = view.sample()
        nodes = state["tree"]["root"]["children"]
        said = state["crash"]["said"]
        if nodes[0]["generation"] == generation and said.endswith(f", {arrays} rebuilt"):
            assert state["crash"]["outcome"] == "recovered"
            return
        assert time.monotonic() < end, state["crash"]
        time.sleep(0.02)


def test_before_a_crash_nothing_is_said() -> None:
    assert said() == ("", "")
    assert said(STARTED) == ("", "")


def test_a_crash_is_told_from_the_loss_to_the_last_array() -> None:
    assert said(CHANGED, LOST) == ("recovering", "gpu0 crashed: E, recovering")
    assert said(CHANGED, LOST, STARTED) == ("recovered", "recovered in 0.1 s")
    whole = (CHANGED, LOST, STARTED)
    assert said(*whole, rebuilt(3)) == ("recovered", "recovered in 0.2 s, 3 arrays rebuilt")
    soon = said(*whole, rebuilt(1, at=10.04))
    assert soon == ("recovered", "recovered in 0.1 s, 1 array rebuilt")
    assert said(*whole, rebuilt(2, lost=1))[1] == "recovered in 0.2 s, 2 arrays rebuilt, 1 lost"


def test_a_fast_recovery_is_told_in_milliseconds() -> None:
    started = ContextStarted(at=10.052, device="gpu0", generation=2, pid=1, seconds=0.05)
    assert said(CHANGED, LOST, started)[1] == "recovered in 52 ms"


def test_only_the_last_loss_counts_and_a_replace_is_none() -> None:
    asked = ContextLost(at=20.0, device="gpu0", generation=2, cause="", in_flight=0, asked=True)
    again = GenerationChanged(at=20.0, device="gpu0", before=2, after=3)
    whole = (CHANGED, LOST, STARTED, rebuilt(3))
    assert said(*whole, again, asked)[1] == "recovered in 0.2 s, 3 arrays rebuilt"
    second = ContextLost(at=20.0, device="gpu0", generation=2, cause="it broke", in_flight=0)
    assert said(*whole, again, second) == ("recovering", "gpu0 crashed: context lost, recovering")
    opened = CircuitOpened(at=20.1, device="gpu0", cause="it broke")
    assert said(*whole, again, second, opened)[0] == "circuit open"


def test_an_idle_device_is_crashed_and_what_it_held_is_rebuilt(system: System) -> None:
    view = FirstMinuteView(system)
    held = [system.devices[0].put(np.full(8, n)).result() for n in range(3)]
    assert view.sample()["crash"] == {"device": "cpu0", "outcome": "", "said": ""}
    view.do_crash()
    await_rebuilt(view, 2, "3 arrays")
    assert [one.get()[0] for one in held] == [0, 1, 2]
    system.check()  # the failure was asked for


def test_a_busy_device_is_crashed_at_once(system: System) -> None:
    view = FirstMinuteView(system)
    held = system.devices[0].put(np.arange(8.0)).result()
    busy = system.devices[0].run(time.sleep, 100.0)
    end = time.monotonic() + WAIT_S
    while not system.tree().in_flight:  # it is sent, and not begun
        assert time.monotonic() < end
        time.sleep(0.01)
    view.do_crash()
    with pytest.raises(Lost, match="SIGKILL"):
        busy.result(WAIT_S)
    await_rebuilt(view, 2, "1 array")
    assert held.get()[7] == 7


def test_a_lab_has_the_button_only_where_it_is_asked_for(system: System) -> None:
    assert "crash" not in LabView(system).sample()


def test_what_is_only_looked_at_is_not_crashed(system: System) -> None:
    source = made_up(1)
    with pytest.raises(InvalidArgument, match="only looked at"):
        FirstMinuteView(source).do_crash()
    view = FirstMinuteView(system)
    system.close()
    with pytest.raises(InvalidArgument, match="no device is running"):
        view.do_crash()
