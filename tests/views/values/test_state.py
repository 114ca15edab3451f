"""Series as the view folds them, as text and as pictures, without a browser."""

import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from accel_lab import System, views
from accel_lab.compute.events.samples import SystemEnded
from accel_lab.views.lab import LabView
from accel_lab.views.past.recording import retell
from accel_lab.views.past.rewound import Rewound
from accel_lab.views.scene.observations import POINTS, SERIES
from accel_lab.views.scene.observer import observer_of
from accel_lab.views.scene.recap import recap
from accel_lab.views.scene.scene import Scene
from accel_lab.views.values import ValuesView
from accel_lab.views.values.picture import picture
from accel_lab.views.values.state import levels_of
from accel_lab.views.values.words import html, text
from tests.views.collectives.worlds import scene_of
from tests.views.test_supervision import Recorded
from tests.views.values.looks import AT, look, looks


def state_of(scene: Scene) -> Any:
    return ValuesView(Recorded(scene)).sample()


def test_a_series_says_what_its_newest_look_saw() -> None:
    (one,) = state_of(scene_of(*looks(3)))["series"]
    assert (one["look"], one["at"], one["cell"]) == (3, AT + 3, 7)
    assert (one["least"], one["mean"], one["most"]) == ("-1", "0.08333", "1")
    assert (one["device"], one["array"]) == ("cpu0", "float32[10, 10]")
    assert "nans" not in one
    assert one["curve"]["looks"] == [1, 2, 3]
    assert one["curve"]["least"] == [-3.0, -1.5, -1.0]
    assert one["curve"]["levels"] == ["239200"] * 3
    assert one["counts"] == [10, 20, 60, 10, 0, 0]


@given(st.lists(st.integers(0, 10**6), max_size=20))
def test_levels_tell_none_from_few(counts: list[int]) -> None:
    levels = list(map(int, levels_of(counts)))
    assert [level > 0 for level in levels] == [count > 0 for count in counts]
    assert max(levels, default=9) == 9 or not any(counts)
    rising = [level for _, level in sorted(zip(counts, levels, strict=True))]
    assert rising == sorted(rising)


@settings(max_examples=12, deadline=None)
@given(count=st.integers(1, 5 * POINTS))
def test_many_looks_are_thinned_evenly_and_the_ends_stay(count: int) -> None:
    scene = scene_of(*looks(count))
    (one,) = state_of(scene)["series"]
    drawn = one["curve"]["looks"]
    assert min(count, POINTS // 2) <= len(drawn) <= POINTS + 1
    assert (drawn[0], drawn[-1]) == (1, count)
    assert len({b - a for a, b in pairwise(drawn[:-1])}) <= 1
    for told in (recap, retell):
        again = scene_of(*told(scene))
        assert state_of(again)["series"][0]["look"] == count
        assert set(state_of(again)["series"][0]["curve"]["looks"]) <= set(drawn)


def test_a_copy_and_the_past_go_on_by_themselves() -> None:
    scene = scene_of(*looks(20))
    twin, then = scene.copy(), scene.observations.until(AT + 6.5)
    assert scene.observations.until(AT).series == {}
    scene.add(look(21))
    assert state_of(twin)["series"][0]["look"] == 20
    assert then.series["w", "cpu0"].newest.look == 6


def test_so_many_series_are_kept() -> None:
    scene = Scene()
    for number in range(2 * SERIES):
        scene.add(structs.replace(look(1, name=f"w{number}"), at=AT + number))
    names = [name for name, _ in scene.observations.series]
    assert names == [f"w{number}" for number in range(SERIES, 2 * SERIES)]


def test_what_is_not_finite_is_said_and_drawn() -> None:
    scene = scene_of(*looks(3), look(4, nans=2), look(5, finite=False), look(6))
    scene.add(SystemEnded(name="lab"))
    (one,) = state_of(scene)["series"]
    assert one["curve"]["bad"] == [0, 0, 0, 2, 100, 0]
    drawn = picture(one)
    assert drawn.count('class="b"') == 2
    assert len(re.findall(r"M[\d.]+ [\d.]+h0", drawn)) == 2  # the mean has a gap
    nothing = scene_of(look(1, finite=False))
    assert "no finite number, 100 Inf" in text(state_of(nothing))
    assert "histogram none" in text(state_of(nothing))
    assert "<svg" in picture(state_of(nothing)["series"][0])


def test_text_and_pictures_say_the_same() -> None:
    state = state_of(scene_of(*looks(4)))
    assert text(state).splitlines() == [
        "values: values",
        "",
        "w on cpu0, float32[10, 10], 4 looks, -0.75 to 0.75, mean 0.0625",
        "  histogram -0.75 ▂▃█▂   0.75",
    ]
    page = html(state)
    assert 'src="data:image/svg+xml;base64,' in page
    assert "float32[10, 10], 4 looks, -0.75 to 0.75" in page
    empty = state_of(Scene())
    assert text(empty) == "values: values, nothing was looked at"
    assert html(empty) == "<p>values: values, nothing was looked at</p>"


@pytest.mark.parametrize("values", [[1e308, -1e308], [5.0, 5.0], [-1e-300, 1e-300]])
def test_a_picture_of_extreme_ranges_has_numbers_alone(values: list[float]) -> None:
    one = structs.replace(look(1), least=min(values), most=max(values), mean=0.0)
    drawn = picture(state_of(scene_of(one))["series"][0])
    assert not re.search("nan|inf|e[+-]", drawn.partition("</style>")[2].partition("<text")[0])


def test_looks_of_a_system_are_drawn_recorded_and_looked_back_at(tmp_path: Path) -> None:
    with System("host", 1) as lab:
        view, whole = views.values(lab), LabView(lab)
        observer = observer_of(lab)
        seen_so_far = observer.seen
        assert "values" not in whole.sample()
        with views.record(lab, tmp_path / "x.jsonl", rate_hz=30):
            x = lab.devices[0].put(np.arange(10.0))
            seen = [lab.observe("x", x * factor) for factor in (1.0, 2.0)]
            state = view.sample()
        assert "values" in whole.sample()
        with observer.lock:
            assert observer.seen is seen_so_far
            then = Rewound(observer).at(seen[0].at, Scene())
        assert then.observations.series["x", "cpu0"].newest == seen[0]
        still = view._repr_mimebundle_()[0]
    assert state["series"][0]["curve"]["most"] == [9.0, 18.0]
    assert "x on cpu0, float64[10], 2 looks, 0 to 18, mean 9" in still["text/plain"]
    past = views.Recording.open(tmp_path / "x.jsonl")
    past.player.seek(len(past))
    assert ValuesView(past.player).sample()["series"] == state["series"]
