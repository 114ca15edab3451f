"""The worlds of a real system: watched while a rank is killed, recorded, and looked back at."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accel_lab import System
from accel_lab.errors import AccelError
from accel_lab.views import Recording, record
from accel_lab.views.collectives import CollectivesView, state_of
from accel_lab.views.collectives.state import bandwidth
from accel_lab.views.feed.client import FeedSource
from accel_lab.views.feed.lines import Topic, speaker
from accel_lab.views.lab import LabView
from accel_lab.views.past.rewound import Rewound
from accel_lab.views.scene.fact_lines import decode, encode
from accel_lab.views.scene.observer import observer_of
from accel_lab.views.scene.recap import recap
from accel_lab.views.scene.scene import Scene
from accel_lab.views.widget.view import View
from accel_lab.world.world import World

WAIT_S = 30
STAY_S = 20


@pytest.fixture
def lab() -> Iterator[System]:
    with System("host", 3, name="lab").ready() as lab:
        yield lab


def seen(view: View, wanted: Any) -> Any:
    """Look until the one world is so; return it."""
    until = time.monotonic() + WAIT_S
    while True:
        worlds = view.sample()["worlds"]
        if worlds and wanted(worlds[0]):
            return worlds[0]
        assert time.monotonic() < until, worlds
        time.sleep(0.01)


def killed_while_waited_for(lab: System, view: View) -> tuple[World, float]:
    """Have a rank let the others wait, and kill it.

    Return the world that has healed, and when the others waited.
    """
    world = lab.world().ready()
    ones = [device.put(np.ones(3)) for device in world.devices]
    world.all_reduce(ones).result(WAIT_S)
    late = world.devices[1].run(time.sleep, STAY_S)
    made = world.all_reduce(ones)
    waiting = seen(view, lambda one: one.get("op", {}).get("missing") == ["cpu1"])
    waited_at = time.time()
    assert [rank["word"] for rank in waiting["ranks"]] == ["arrived", "waited for", "arrived"]
    (pid,) = [node.pid for node in lab.tree().walk() if node.path == "lab/cpu1/context"]
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    for reply in (late, made):
        with pytest.raises(AccelError):
            reply.result(WAIT_S)
    seen(view, lambda one: one["state"] == "whole" and one["epoch"] == 2)
    return world, waited_at


def test_a_rank_is_waited_for_and_killed_and_the_world_heals(lab: System, tmp_path: Path) -> None:
    view = CollectivesView(lab)
    assert view.sample()["worlds"] == []
    assert "collectives" not in LabView(lab).sample()
    watched = observer_of(lab)
    past = Rewound(watched)  # from now on looks are kept
    with record(lab, tmp_path / "session.jsonl"):
        healed, waited_at = killed_while_waited_for(lab, view)
        world = seen(view, lambda one: not one.get("op"))
    assert [rank["word"] for rank in world["ranks"]] == ["ready"] * 3
    assert (world["done"], world["failed"]) == (1, 1)
    formed, broken, first = world["healing"]
    assert [one["word"] for one in (formed, broken, first)] == ["formed", "broken", "formed"]
    assert broken["what"] == "cpu1 lost its context: its process ended with SIGKILL"
    assert str(view).splitlines()[2] == "world1: whole, epoch 2, 3 ranks"
    assert LabView(lab).sample()["collectives"]["worlds"] == [world]

    with Recording.open(tmp_path / "session.jsonl") as recording:
        assert CollectivesView(recording).sample()["worlds"] == [world]
    heard = FeedSource("1", speaker(), Topic(system=1, name="lab", opened=0.0))
    for fact in recap(watched.look()):
        heard.hear(decode(encode(fact)))
    assert CollectivesView(heard).sample()["worlds"] == [world]
    healed.close()
    assert seen(view, lambda one: one["state"] == "closed")["healing"] == world["healing"]
    before = state_of(past.at(waited_at, Scene()))["worlds"][0]
    assert before["op"]["missing"] == ["cpu1"]
    assert (before["epoch"], before["done"], len(before["healing"])) == (1, 1, 1)


def test_the_slowest_link_is_told_once_it_was_measured_and_until_a_rank_is_new(lab: System) -> None:
    world, view = lab.world().ready(), CollectivesView(lab)
    world.all_reduce([device.put(np.ones(1 << 15)) for device in world.devices]).result(WAIT_S)
    assert "link" not in seen(view, lambda one: "bus" in one)["bus"]
    lab.topology.measure(1 << 16, rounds=1)
    pairs = [(0, 1), (1, 2), (2, 0)]
    figures = [lab.topology.bandwidth(a, b) for a, b in pairs]
    slowest = min(one.gb_per_s for one in figures if one is not None)
    assert seen(view, lambda one: "link" in one["bus"])["bus"]["link"] == bandwidth(slowest)
    with pytest.raises(AccelError):
        lab.inject("kill", 1).result(WAIT_S)
    seen(view, lambda one: one["epoch"] == 2 and "link" not in one["bus"])
