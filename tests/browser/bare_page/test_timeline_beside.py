"""What a timeline shows beside the work: cells, waits, memory, queues, and the minimap."""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from accel_lab.compute.events.lifecycle import ContextLost
from accel_lab.compute.events.samples import (
    CellRun,
    HostWait,
    LevelsSampled,
    NotebookSampled,
    Slice,
)
from accel_lab.views.scene.scene import Scene
from accel_lab.views.timeline import TimelineView
from tests.browser.bare_page.test_timeline import Bare
from tests.views.work import Recorded, tree, work

if TYPE_CHECKING:
    from tests.browser.jupyter import Tab

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

AXIS = 24
CELLS, WAITS, GAUGE = AXIS + 11, AXIS + 22 + 8, AXIS + 22 + 16 + 20 + 12
STREAM = AXIS + 22 + 16 + 20 + 24 + 13
NOW = 1010.0


def scene_of_a_session() -> Scene:
    scene = Scene()
    scene.add(tree("gpu0"))
    cells = (
        CellRun(1, "a = gpu0.put(x)", 1000.0, 1002.0, "done"),
        CellRun(2, "b = a @ a", 1002.5, 1005.0, "done"),
        CellRun(3, "<b>1</b> / 0", 1005.5, 1006.5, "failed"),
        CellRun(4, "spin(a)", 1007.0, None),
    )
    waits = (HostWait(1003.0, 1004.5), HostWait(1008.0, None))
    scene.add(NotebookSampled(cells=cells, waits=waits))
    levels = ((1000.5, 64 << 20), (1006.0, 512 << 20))
    scene.add(LevelsSampled(device="gpu0", levels=levels))
    done = [
        Slice(1, "Upload", "blas", "copy", 1000.5, 1001.5),
        Slice(2, "Gemm", "blas", "kernel", 1003.5, 1004.5, queued=1003.0),
        Slice(3, "saxpy", "blas", "kernel", 1005.6, 1006.2, queued=1005.5988),
    ]
    scene.add(
        work("gpu0", done, [Slice(4, "spin", "blas", "kernel", 1007.5, None, queued=1007.25)])
    )
    lost = ContextLost(
        device="gpu0", generation=1, cause="SIGKILL", in_flight=0, at=1006.25, code=0, name=""
    )
    scene.add(lost)
    return scene


class Session(Bare):
    """That session on a page, all of it shown."""

    def __init__(self, tab: "Tab", more: dict[str, Any] | None = None) -> None:
        scene = scene_of_a_session()
        view = TimelineView(Recorded(scene))
        state = view.fold(scene) | {"at": NOW} | (more or {})
        numbers = np.frombuffer(view.pack(scene), "<f8").tolist()
        super().__init__(tab.page, state, numbers)
        self.page.get_by_role("button", name="Everything").click()
        self.frame()
        box = self.canvas.bounding_box()
        assert box
        self.top = box["y"]
        self.first, self.last = 1000.5 - 0.19, NOW + 0.19  # with a margin

    def x(self, at: float) -> float:
        return (at - self.first) / (self.last - self.first) * self.width

    def detail(self, at: float, y: float) -> str:
        self.move(self.x(at), y)
        return self.text(".timeline-detail")


@pytest.fixture
def session(tab: "Tab") -> Iterator[Session]:
    tab.page.set_viewport_size({"width": 1400, "height": 900})
    session = Session(tab)
    yield session
    tab.check()


def test_a_cell_says_its_number_its_times_its_end_and_its_first_line(session: Session) -> None:
    assert "Cells" in session.text(".timeline-of-cells")
    said = session.detail(1003.0, CELLS)
    assert re.match(r"cell 2\s*done after 2.5 s · from \S+ to \S+ · b = a @ a", said), said
    assert "failed after 1 s" in session.detail(1006.0, CELLS)
    assert session.text(".timeline-detail").endswith("<b>1</b> / 0")
    assert "running for 3 s" in session.detail(1008.0, CELLS)
    assert session.detail(1002.2, CELLS) == session.detail(1000.4, STREAM), "nothing ran"


def test_a_wait_of_the_notebook_says_how_long_it_took(session: Session) -> None:
    assert session.text(".timeline-of-waits") == "Host waits"
    assert "the notebook waited 1.5 s for an answer" in session.detail(1004.0, WAITS)
    assert "has waited 2 s" in session.detail(1009.0, WAITS)
    assert session.pixel(session.x(1004.0), WAITS) != session.pixel(session.x(1002.2), WAITS)


def test_the_gauge_says_how_busy_a_device_was_and_what_it_held(session: Session) -> None:
    assert "100 % busy · memory 64 MiB" in session.detail(1001.0, GAUGE)
    assert "0 % busy · memory 512 MiB" in session.detail(1006.8, GAUGE)


def test_a_slice_says_how_long_it_was_queued_and_has_a_line_in_front(session: Session) -> None:
    before = session.pixel(session.x(1003.25), STREAM)
    assert "queued 500 ms, ran 1 s" in session.detail(1004.0, STREAM)
    session.move(session.x(1004.0), STREAM)
    assert session.pixel(session.x(1003.25), STREAM) != before
    assert "queued 1.2 ms, ran 600 ms" in session.detail(1006.0, STREAM)
    assert "queued 250 ms, running for 2.5 s" in session.detail(1009.0, STREAM)
    assert "queued" not in session.detail(1001.0, STREAM), "nobody knows"


def test_a_cells_band_and_a_faults_line_go_through_all_lanes(session: Session) -> None:
    session.page.mouse.move(0, 0)
    session.frame()
    inside, outside = (
        session.pixel(session.x(1003.2), STREAM + 10),
        session.pixel(session.x(1002.2), STREAM + 10),
    )
    assert inside != outside
    reds = {session.pixel(round(session.x(1006.25)) + 0.4, y) for y in (WAITS - 6, GAUGE, STREAM)}
    assert session.pixel(session.x(1006.35), STREAM) not in reds


def test_the_page_says_in_words_what_the_notebook_did(session: Session) -> None:
    summary = session.text(".timeline-summary")
    assert "cell 3 failed after 1 s; cell 4 running for 3 s" in summary
    assert "The notebook waited 2 times for answers." in summary


def test_cells_that_are_not_recorded_are_not_said_to_be_none(tab: "Tab") -> None:
    why = "a journal does not say when cells ran"
    session = Session(tab, {"cells": [], "cells_unrecorded": why})
    assert session.text(".timeline-of-cells") == "Cells not recorded"
    assert f"Cells are not recorded: {why}." in session.text(".timeline-summary")


def test_the_handle_of_the_minimap_is_dragged_and_has_keys(session: Session) -> None:
    handle = session.page.get_by_role("slider", name="Shown part of the time")
    session.canvas.focus()
    session.press("+", "+")
    assert session.shown() == "2.47 s shown"
    box = handle.bounding_box()
    assert box
    strip = session.page.locator(".timeline-map").bounding_box()
    assert strip
    assert box["width"] == pytest.approx(strip["width"] / 4, rel=0.05)
    y = box["y"] + 10
    session.page.mouse.move(box["x"] + box["width"] / 2, y)
    session.page.mouse.down()
    session.page.mouse.move(strip["x"] + 5, y, steps=4)
    session.page.mouse.up()
    session.frame()
    moved = handle.bounding_box()
    assert moved
    assert moved["x"] == pytest.approx(strip["x"], abs=3)
    assert session.shown() == "2.47 s shown"
    before = handle.get_attribute("aria-valuetext")
    handle.focus()
    session.press("PageUp")
    assert handle.get_attribute("aria-valuetext") != before
    later = handle.bounding_box()
    assert later
    assert later["x"] == pytest.approx(moved["x"] + moved["width"], abs=4)
    session.press("End", "Home")
    assert (
        session.page.get_by_role("button", name="Everything").get_attribute("aria-pressed")
        == "true"
    )


def test_a_click_beside_the_handle_brings_it_there(session: Session) -> None:
    session.canvas.focus()
    session.press("+", "+")
    strip = session.page.locator(".timeline-map").bounding_box()
    assert strip
    session.page.mouse.click(strip["x"] + strip["width"] - 4, strip["y"] + 10)
    session.frame()
    handle = session.page.locator(".timeline-handle").bounding_box()
    assert handle
    assert handle["x"] + handle["width"] == pytest.approx(strip["x"] + strip["width"], abs=4)


def test_a_picked_slice_is_asked_about_and_gets_arrows(tab: "Tab") -> None:
    about = {
        "of": ["gpu0", 2],
        "makers": [["gpu0", 1]],
        "users": [["gpu0", 3]],
        "group": [],
        "cell": 2,
        "why": "",
    }
    session = Session(tab, {"related": about})
    session.page.evaluate(
        "() => { window.sent = []; window.bus.command = (one) => window.sent.push(one); }"
    )
    between = session.pixel(session.x(1002.2), STREAM)
    session.move(session.x(1004.0), STREAM)
    session.page.mouse.down()
    session.page.mouse.up()
    session.frame()
    asked = session.page.evaluate("() => window.sent")
    assert asked == [{"do": "relate", "device": "gpu0", "seq": 2}]
    assert session.pixel(session.x(1002.2), STREAM) != between, "an arrow"
    assert "cell 2, made of 1 other, used by 1" in session.text(".timeline-detail")


def test_what_is_not_of_the_chosen_name_is_faint(session: Session) -> None:
    session.page.mouse.move(0, 0)
    session.frame()
    gemm, saxpy = (session.x(at) for at in (1004.2, 1006.1))
    before = session.pixel(gemm, STREAM), session.pixel(saxpy, STREAM)
    session.put("kernel", {"name": "saxpy", "cells": [1]})
    assert session.pixel(saxpy, STREAM) == before[1]
    assert session.pixel(gemm, STREAM) != before[0]
    session.put("kernel", None)
    assert session.pixel(gemm, STREAM) == before[0]
