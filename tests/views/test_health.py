"""The health strip without a browser."""

import json
import math
import re
import struct

import pytest

from accel_lab import System
from accel_lab.compute.events.samples import HealthSampled, Reading, SystemEnded
from accel_lab.views.health import HealthView, html, text, warning, words
from accel_lab.views.scene.scene import READINGS, Scene
from tests.views.made_up import lab as made_up
from tests.views.test_supervision import Recorded, Text

GIB = 2**30
MEMORY = Reading("memory", 12 * GIB, "B", 141 * GIB)
SPLIT = Reading("utilisation", None, "%", why="MIG")


def scene_of(*samples: HealthSampled) -> Scene:
    scene = Scene()
    for sample in samples:
        scene.add(sample)
    return scene


def sampled(*readings: Reading, source: str = "gpu0", at: float = 1.0) -> HealthSampled:
    return HealthSampled(source=source, model="NVIDIA H200", readings=readings, at=at)


@pytest.mark.parametrize(
    ("reading", "word"),
    [
        (Reading("temperature", 86.0, "°C", 90.0), "hot"),
        (Reading("temperature", 85.0, "°C", 90.0), ""),
        (Reading("temperature", 99.0, "°C"), ""),
        (Reading("memory", 96.0, "B", 100.0), "nearly full"),
        (Reading("process memory", 95.0, "B", 100.0), ""),
        (Reading("memory", None, "B", 100.0), ""),
        (Reading("throttling", 1, why="power cap"), "throttled"),
        (Reading("throttling", 0, why="idle"), ""),
        (Reading("ECC uncorrected", 1), "errors"),
        (Reading("ECC corrected", 9), ""),
        (Reading("power", 700.0, "W", 700.0), ""),
    ],
)
def test_what_somebody_should_look_at_is_called_by_a_word(reading: Reading, word: str) -> None:
    assert warning(reading) == word


def test_values_are_written_with_their_unit() -> None:
    pairs = [(1.2 * GIB, "B"), (2e6, "B/s"), (0.44, "%"), (43.0, "%"), (312.4, "W"), (0.0, "")]
    assert [words(value, unit) for value, unit in pairs] == [
        "1.2 GiB",
        "1.9 MiB/s",
        "0.4 %",
        "43 %",
        "312 W",
        "0",
    ]


def test_a_state_has_the_newest_sample_and_the_peak_of_all() -> None:
    hot = Reading("temperature", 88.0, "°C", 90.0)
    cool = Reading("temperature", 60.0, "°C", 90.0)
    view = HealthView(Recorded(scene_of(sampled(cool, at=1.0), sampled(hot, at=2.0))))
    [source] = view.sample()["sources"]
    assert source == {
        "name": "gpu0",
        "model": "NVIDIA H200",
        "samples": 2,
        "at": 2.0,
        "readings": [
            {
                "name": "temperature",
                "words": "88 °C",
                "limit": "slows down at 90 °C",
                "share": 0.9778,
                "top": 90.0,
                "peak": "88 °C",
                "warn": "hot",
            }
        ],
    }


def test_a_missing_value_says_why_and_is_never_a_zero() -> None:
    scene = scene_of(sampled(SPLIT, Reading("power", None, "W", why="no permission")))
    state = HealthView(Recorded(scene)).sample()
    said = ["n/a: MIG", "n/a: no permission"]
    assert [reading["missing"] for reading in state["sources"][0]["readings"]] == said
    for drawn in (text(state), html(state)):
        assert all(words in drawn for words in said)
        assert "0 %" not in drawn


def test_throttling_is_told_in_words() -> None:
    state = HealthView(
        Recorded(scene_of(sampled(Reading("throttling", 1, why="power cap, idle"))))
    ).sample()
    [reading] = state["sources"][0]["readings"]
    assert (reading["words"], reading["warn"]) == ("power cap, idle", "throttled")
    assert not {"means", "peak"} & reading.keys()
    assert "▲ throttled" in text(state)


def test_columns_hold_what_was_sampled_with_gaps_where_nothing_was() -> None:
    scene = scene_of(
        sampled(Reading("card", None, why="the card is lost"), at=1.0),
        sampled(MEMORY, Reading("power", 300.0, "W"), at=2.0),
        sampled(Reading("CPU", 5.0, "%"), source="notebook", at=2.5),
    )
    packed = HealthView(Recorded(scene)).pack(scene)
    values = struct.unpack(f"<{len(packed) // 8}d", packed)
    assert values[:2] == (1.0, 2.0)
    assert math.isnan(values[2])
    assert values[3] == 12 * GIB
    assert math.isnan(values[4])
    assert values[5:] == (300.0, 2.5, 5.0)


def test_two_minutes_of_eight_cards_travel_in_little() -> None:
    scene = Scene()
    for at in range(READINGS + 50):
        for card in range(8):
            readings = tuple(Reading(f"reading {i}", float(at), "W", 700.0) for i in range(15))
            scene.add(sampled(*readings, source=f"gpu{card}", at=float(at)))
    view = HealthView(Recorded(scene))
    assert len(view.pack(scene)) == 8 * READINGS * 16 * 8 < 130_000
    assert len(json.dumps(view.sample())) < 20_000


def test_text_and_table_say_the_same() -> None:
    scene = scene_of(sampled(MEMORY, SPLIT), sampled(MEMORY, source="gpu1"))
    scene.add(SystemEnded(name="lab"))
    state = HealthView(Recorded(scene)).sample()
    assert text(state) == (
        "health: health (closed)\n"
        "gpu0: NVIDIA H200\n"
        "  memory       12 GiB    of 141 GiB\n"
        "  utilisation  n/a: MIG\n"
        "gpu1: NVIDIA H200\n"
        "  memory       12 GiB    of 141 GiB"
    )
    cells = Text(html(state)).cells
    assert cells[6:16] == [
        *("gpu0: NVIDIA H200", "memory", "12 GiB", "of 141 GiB", ""),
        *("gpu0: NVIDIA H200", "utilisation", "n/a: MIG", "", ""),
    ]


def test_nothing_read_yet_says_so() -> None:
    assert text(HealthView(Recorded(Scene())).sample()).endswith("nothing read yet")


def test_a_made_up_lab_has_only_its_processes() -> None:
    lab = made_up(1)
    sources = HealthView(lab).sample()["sources"]
    assert [source["name"] for source in sources] == ["notebook", "gpu0"]
    assert sources[1]["readings"][0]["missing"] == "n/a: there is no process now"


def test_a_real_system_is_read() -> None:
    with System("host", name="lab") as lab:
        view = HealthView(lab)
        lines = str(view).splitlines()
    assert lines[0] == "lab: health"
    assert [line.split(":")[0] for line in lines if not line.startswith(" ")] == [
        "lab",
        "notebook",
        "cpu0",
    ]
    assert sum(bool(re.search(r"process memory +\S+ [MG]iB", line)) for line in lines) == 2
