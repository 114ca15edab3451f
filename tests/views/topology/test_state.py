"""Links as the view folds them, as text and as a table, without a browser."""

from pathlib import Path
from typing import Any

import pytest

from accel_lab import System, views
from accel_lab.compute.events.samples import PeersSampled
from accel_lab.views.lab import LabView
from accel_lab.views.past.recording import retell
from accel_lab.views.past.rewound import Rewound
from accel_lab.views.scene.observer import observer_of
from accel_lab.views.scene.recap import recap
from accel_lab.views.scene.scene import Scene
from accel_lab.views.topology import TopologyView
from accel_lab.views.topology.words import html, text
from tests.views.collectives.worlds import scene_of
from tests.views.test_supervision import Recorded
from tests.views.topology.links import AT, GPUS, peers

SPEEDS = {("gpu0", "gpu1"): 390.0, ("gpu1", "gpu0"): 195.0, ("gpu0", "gpu2"): 26.04}


def state_of(scene: Scene) -> Any:
    return TopologyView(Recorded(scene)).sample()


def test_a_cell_has_the_link_and_its_share_of_the_fastest() -> None:
    state = state_of(scene_of(peers(SPEEDS, stale=[("gpu1", "gpu0")])))
    assert state["devices"] == list(GPUS)
    assert state["islands"] == [["gpu0", "gpu1"], ["gpu2"]]
    assert [row[at] for at, row in enumerate(state["rows"])] == [None] * 3
    near = {"link": "18 NVLink", "way": "ipc"}
    assert state["rows"][0][1] == near | {"speed": "390 GB/s", "share": 1.0}
    assert state["rows"][1][0] == near | {"speed": "195 GB/s", "share": 0.5, "stale": True}
    assert state["rows"][0][2]["speed"] == "26 GB/s"
    assert state["rows"][0][2]["apart"]
    assert state["rows"][2][1] == {"link": "SYS, not reachable", "apart": True}
    assert (state["measured"], state["stale"]) == ("64 MiB", 1)


def test_text_and_table_say_the_same() -> None:
    state = state_of(scene_of(peers(SPEEDS, stale=[("gpu1", "gpu0")])))
    words, table = text(state), html(state)
    for said in ("390 GB/s, 18 NVLink", "195 GB/s, stale, 18 NVLink", "26 GB/s, SYS"):
        assert said in table
        assert said.split(",")[0] in words
    for said in ("2 islands: gpu0, gpu1; gpu2", "measured with 64 MiB", "measure(anew=False)"):
        assert said in words
        assert said in table
    assert "not measured" in text(state_of(scene_of(peers())))


@pytest.mark.parametrize("tell", [recap, retell])
def test_a_scene_is_told_again_with_its_links(tell: Any) -> None:
    scene = scene_of(peers(), peers(SPEEDS, at=AT + 1))
    twin = scene.copy()
    scene.add(peers({("gpu0", "gpu1"): 1.0}, at=AT + 2))
    assert state_of(scene)["rows"][0][1]["speed"] == "1 GB/s"
    assert state_of(twin)["rows"][0][1]["speed"] == "390 GB/s"
    again = scene_of(*tell(scene))
    assert again.peers == scene.peers


def test_what_is_not_known_is_said() -> None:
    assert text(state_of(Scene())) == "topology: topology, no other device"
    unknown = state_of(scene_of(PeersSampled(devices=GPUS)))
    assert text(unknown) == "topology: topology, links not known yet"
    assert "nobody looked at the links" in text({**state_of(Scene()), "replay": {}})
    with System("host", 1, name="one") as lab:
        assert "no other device" in str(views.topology(lab))


def test_links_of_a_system_are_drawn_recorded_and_looked_back_at(tmp_path: Path) -> None:
    with System("host", 2, max_restarts=9) as lab:
        view, whole = views.topology(lab), LabView(lab)
        lab.ready()
        observer = observer_of(lab)
        seen_so_far = observer.seen
        assert str(view).count("shared memory") == 2
        assert "topology" not in whole.sample()
        with views.record(lab, tmp_path / "x.jsonl", rate_hz=30):
            before = observer.scene.at
            lab.topology.measure(1 << 16, rounds=1)
            state = view.sample()
            lab.devices[1].replace()
            lab.ready()
            later = view.sample()
        assert "topology" in whole.sample()
        with observer.lock:
            assert observer.seen is seen_so_far
            then = Rewound(observer).at(before, Scene())
        assert then.peers is not None
        assert not then.peers.is_measured
    figure = lab.topology.bandwidth(0, 1)
    assert figure is not None
    assert state["rows"][0][1]["speed"] == f"{figure.gb_per_s:.3g} GB/s"
    assert "stale" not in state
    assert later["stale"] == 2
    past = views.Recording.open(tmp_path / "x.jsonl")
    past.player.seek(len(past))
    assert TopologyView(past.player).sample()["rows"] == later["rows"]
