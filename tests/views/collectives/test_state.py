"""Worlds as the view folds them, as text and as tables, without a browser."""

from typing import Any

import pytest
from msgspec import structs

from accel_lab.compute.events.collectives import WorldGivenUp
from accel_lab.compute.events.samples import SystemEnded, WorldsSampled
from accel_lab.compute.events.tree import State as DeviceState
from accel_lab.views.collectives import CollectivesView, html, text
from accel_lab.views.collectives.state import bandwidth, duration
from accel_lab.views.past.recording import retell
from accel_lab.views.scene.recap import recap
from accel_lab.views.scene.scene import Scene
from accel_lab.views.scene.worlds import KEPT
from accel_lab.views.scene.worlds.past import ENDED
from tests.views.collectives.worlds import AT, HEALED, ended, flight, look, scene_of, tree
from tests.views.test_supervision import Recorded, Text

TWO = ("gpu3", "gpu1")


def world_of(scene: Scene) -> Any:
    """Return the state of the one world."""
    (world,) = CollectivesView(Recorded(scene)).sample()["worlds"]
    return world


def words(scene: Scene) -> list[str]:
    return [rank["word"] for rank in world_of(scene)["ranks"]]


@pytest.mark.parametrize(
    ("sample", "expected"),
    [
        (look(), ["ready"] * 4),
        (look(flight((0.0, 0.1, -1.0, 0.2))), ["arrived", "arrived", "waited for", "arrived"]),
        (look(flight((-1.0,) * 4)), ["queued"] * 4),
        (look(flight((0.0, -1.0), TWO)), ["ready", "waited for", "ready", "arrived"]),
        (look(state="forming"), ["joining"] * 4),
        (look(state="given up"), ["out"] * 4),
    ],
    ids=["idle", "one is late", "nobody has begun", "two of them", "forming", "given up"],
)
def test_a_rank_is_told_in_a_word(sample: WorldsSampled, expected: list[str]) -> None:
    assert words(scene_of(tree(), sample)) == expected


@pytest.mark.parametrize(
    ("state", "word"),
    [
        ("restarting", "lost"),
        ("circuit open", "lost"),
        ("starting", "starting"),
        ("suspended", "suspended"),
    ],
)
def test_a_device_that_does_not_run_is_told_whatever_is_under_way(
    state: DeviceState, word: str
) -> None:
    scene = scene_of(tree(gpu1=state), look(flight((0.0, 0.1, -1.0, 0.2))))
    assert words(scene) == ["arrived", word, "waited for", "arrived"]


def test_what_is_under_way_says_for_how_long_and_who_is_missing() -> None:
    waiting = flight((0.0, 0.0004, -1.0, -1.0))
    world = world_of(scene_of(tree(), look(waiting, flight((-1.0,) * 4))))
    assert world["op"] == {
        "call": "all_reduce",
        "what": "64 MiB float32",
        "group": 9,
        "algorithm": "ring",
        "for": "1.2 s",
        "missing": ["gpu2", "gpu3"],
        "more": 1,
        "bytes": "128 MiB",
    }
    assert [rank.get("after") for rank in world["ranks"]] == ["first", "+400 µs", None, None]


def test_who_usually_begins_last_is_told_of_whole_operations_alone() -> None:
    whole = [ended(n) for n in range(3)]
    others = (ended(7, (0.0, 0.5)), ended(8, (0.0, -1.0, 0.0, 0.0), failure="gpu1 was late"))
    world = world_of(scene_of(tree(), *whole, *others, look()))
    assert world["late"] == {"device": "gpu2", "by": "6 ms", "of": 3, "warn": True}
    assert [rank["usual"] for rank in world["ranks"]] == ["first", "+1 ms", "+6 ms", "+2 ms"]
    assert (world["done"], world["failed"]) == (4, 1)
    few = world_of(scene_of(tree(), *whole[:2], look()))
    assert "late" not in few
    assert "usual" not in few["ranks"][0]
    punctual = [ended(n, (0.0, 0.0, 0.001, 0.0)) for n in range(3)]
    assert "warn" not in world_of(scene_of(tree(), *punctual, look()))["late"]


def test_bandwidths_are_shares_of_the_best_where_they_are_defined() -> None:
    measured = [ended(1, bus_gb_s=100.0), ended(2, bus_gb_s=250.0), ended(3, bus_gb_s=0.0)]
    world = world_of(scene_of(tree(), *measured, ended(4, failure="lost"), look()))
    assert world["bus"] == {"bars": [0.4, 1.0], "newest": "250 GB/s", "best": "250 GB/s"}
    assert "bus" not in world_of(scene_of(tree(), ended(bus_gb_s=0.0), look()))


def test_healing_is_told_the_newest_first_and_a_loss_once() -> None:
    given_up = WorldGivenUp(world="world1", epoch=2, reason="gpu1: its circuit is open", at=AT + 15)
    world = world_of(scene_of(tree(), *HEALED, given_up, look(state="given up")))
    assert [(one["epoch"], one["word"], one["what"]) for one in world["healing"]] == [
        (2, "given up", "gpu1: its circuit is open"),
        (2, "formed", "in 2.13 s"),
        (1, "broken", "gpu1 lost its context: its process ended with SIGKILL"),
        (1, "formed", "in 120 ms of gpu0, gpu1, gpu2, gpu3"),
    ]


def test_a_world_out_of_use_stays_until_there_is_another() -> None:
    scene = scene_of(tree(), *HEALED, look(), WorldsSampled(worlds=(), at=AT + 21))
    assert world_of(scene)["state"] == "closed"
    assert words(scene) == ["out"] * 4
    scene.add(look(name="world2"))
    assert world_of(scene)["name"] == "world2"
    for number in range(2 * KEPT):
        scene.add(look(name=f"other{number}"))
    assert len(scene.worlds._pasts) <= KEPT + 1


def test_a_closed_system_has_nothing_under_way() -> None:
    scene = scene_of(tree(), look(flight((0.0, 0.1, -1.0, 0.2))), SystemEnded(name="lab"))
    world = world_of(scene)
    assert "op" not in world
    assert world["state"] == "closed"


@pytest.mark.parametrize("told", [recap, retell])
def test_a_scene_is_told_again_with_its_worlds(told: Any) -> None:
    scene = scene_of(tree(), *HEALED, ended(), ended(2, failure="lost"), look(flight((0.0,) * 4)))
    for number in range(2 * ENDED):  # more than is kept
        scene.add(ended(number))
    again = scene_of(*told(scene))
    assert world_of(again) == world_of(scene)
    assert (world_of(again)["done"], world_of(again)["failed"]) == (2 * ENDED + 1, 1)
    scene.add(WorldsSampled(worlds=(), at=AT + 21))
    assert world_of(scene_of(*told(scene)))["state"] == "closed"


def test_text_and_tables_say_the_same() -> None:
    scene = scene_of(tree(gpu1="restarting"), *HEALED, *(ended(n) for n in range(3)))
    scene.add(ended(4, failure="AllReduce (group 4) was aborted: gpu1 lost its context"))
    scene.add(look(flight((0.0, -1.0, -1.0, 0.0003))))
    state = CollectivesView(Recorded(scene)).sample()
    lines = text(state).splitlines()
    assert lines[:2] == ["lab: collectives", ""]
    assert lines[2] == "world1: whole, epoch 2, 4 ranks"
    assert lines[5].split() == ["1", "gpu1", "⊗", "lost", "+1", "ms"]
    told = [
        "all_reduce of 64 MiB float32, ring, for 1.2 s; waits for gpu1, gpu2",
        "gpu2 begins last, by 6 ms (median of 3)",
        "bus bandwidth 200 GB/s, best 200 GB/s",
        "3 done, 1 failed",
        "AllReduce (group 4) was aborted: gpu1 lost its context",
        "gpu1 lost its context: its process ended with SIGKILL",
    ]
    drawn = html(state)
    for said in told:
        assert said in text(state)
        assert said in drawn
    cells = Text(drawn).cells
    assert [cell for cell in cells if cell in ("◐ waited for", "⊗ lost", "● arrived")] == [
        "● arrived",
        "⊗ lost",
        "◐ waited for",
        "● arrived",
    ]
    assert "style=" not in drawn


def test_no_world_is_said() -> None:
    state = CollectivesView(Recorded(scene_of(tree()))).sample()
    assert state["worlds"] == []
    assert text(state) == "lab: collectives, no world was opened"
    assert "no world was opened" in html(state)


def test_durations_and_bandwidths_have_three_digits() -> None:
    seconds = (0.0, 5e-8, 0.00034, 0.0125, 0.9996, 1.24, 61.0)
    assert [duration(one) for one in seconds] == [
        "0 s",
        "50 ns",
        "340 µs",
        "12.5 ms",
        "1 s",
        "1.24 s",
        "61 s",
    ]
    assert [bandwidth(one) for one in (0.0123, 0.9, 1.26, 211.4)] == [
        "12.3 MB/s",
        "900 MB/s",
        "1.26 GB/s",
        "211 GB/s",
    ]


def test_the_steps_of_the_ring_are_those_of_what_is_shown() -> None:
    ring = world_of(scene_of(tree(), look(), ended()))["ring"]
    assert (ring["call"], ring["part"], len(ring["steps"])) == ("all_reduce", "16 MiB", 6)
    assert ring["steps"][0] == ["folds", [0, 1, 2, 3]]
    assert ring["steps"][3] == ["passes", [1, 2, 3, 0]]
    assert "ring" in world_of(scene_of(tree(), look(flight((0.0, 0.1, -1.0, 0.2)))))
    assert "ring" not in world_of(scene_of(tree(), look())), "nothing was done"
    assert "ring" not in world_of(scene_of(tree(), look(flight((0.0, -1.0), TWO)))), "of two ranks"


def test_the_link_stands_beside_the_bandwidth_where_it_was_measured() -> None:
    (one,) = look().worlds
    measured = WorldsSampled(worlds=(structs.replace(one, link_gb_s=240.0),), at=AT + 20)
    scene = scene_of(tree(), measured, ended())
    assert world_of(scene)["bus"]["link"] == "240 GB/s"
    drawn = text(CollectivesView(Recorded(scene)).sample())
    assert "bus bandwidth 200 GB/s, best 200 GB/s, slowest link 240 GB/s as measured" in drawn
    assert "all_reduce in 6 steps: each rank sends 16 MiB at most to the next one" in drawn
    assert "link" not in world_of(scene_of(tree(), look(), ended()))["bus"]
