"""The timeline on a bare page with made-up work, and in a real JupyterLab with a real system."""

import base64
import json
import math
import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from accel_lab.compute.events.samples import Slice
from accel_lab.views.scene.scene import SLICES, Scene
from accel_lab.views.scene.tally import tally
from accel_lab.views.timeline import TimelineView
from accel_lab.views.widget import assets
from tests.views.test_chrome_trace import check
from tests.views.work import CASE, Recorded, tree, work

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.browser.jupyter import Notebook, Tab

    OpenNotebook = Callable[[list[str]], Notebook]

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

# Hosts the view as anywidget does; the bus is the page's own, as in a lab of several views.
HOST = """async ([source, css, state, columns, stamp]) => {
    const style = document.createElement("style");
    style.textContent = css;
    const root = document.createElement("div");
    root.className = "accel-lab";
    root.dataset.theme = "light";
    document.head.append(style);
    document.body.append(root);
    const text = `${source}\\nexport { Bus, mountTimeline };`;
    const url = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
    const { Bus, mountTimeline } = await import(url);
    window.bus = new Bus();
    window.paints = [];
    const frame = window.requestAnimationFrame.bind(window);
    window.requestAnimationFrame = (paint) => frame((at) => {
        const begin = performance.now();
        paint(at);
        window.paints.push(performance.now() - begin);
    });
    window.view = mountTimeline(root, window.bus);
    const bytes = Uint8Array.from(atob(columns), (c) => c.charCodeAt(0));
    window.view.columns(new DataView(bytes.buffer));
    window.view.take(state, stamp);
}"""
# The colour of the picture at (x, y), as #rrggbb.
PIXEL = """(canvas, [x, y]) => {
    const ratio = canvas.width / canvas.clientWidth;
    const [r, g, b] = canvas.getContext("2d").getImageData(x * ratio, y * ratio, 1, 1).data;
    return "#" + [r, g, b].map((c) => c.toString(16).padStart(2, "0")).join("");
}"""
SPIN = "#066aff"  # the colour of that name
KERNEL, ROW = "#008066", 24 + 20 + 26  # the colour of Gemm; where the second lane begins
MIDDLE = ROW + 20  # of that lane, beside the names


class Bare:
    """The view of a made-up state on a page of its own."""

    def __init__(self, page: "Page", state: dict[str, Any], columns: list[float]) -> None:
        self.page = page
        page.set_viewport_size({"width": 1280, "height": 900})  # whatever a test before it had
        page.goto("about:blank")
        page.set_content('<html lang="en"><title>view</title><body></body></html>')
        texts = [assets.source("timeline/timeline.js"), assets.style("timeline/timeline.css")]
        packed = base64.b64encode(np.array(columns, "<f8").tobytes()).decode()
        page.evaluate(HOST, [*texts, state, packed, 1001.5])
        self.canvas = page.locator(".timeline-canvas")
        self.frame()
        box = self.canvas.bounding_box()
        assert box
        self.left, self.top, self.width = box["x"], box["y"], box["width"]

    def frame(self) -> None:
        """Wait until what was asked for is painted."""
        self.page.evaluate(
            "() => new Promise((done) => setTimeout(() => requestAnimationFrame(() => "
            "requestAnimationFrame(done)), 0))"
        )

    def x(self, at: float) -> float:
        """Where a moment of the case lies when everything is shown: 1.25 s, and a margin."""
        return (at - 1000.225) / 1.3 * self.width

    def pixel(self, x: float, y: float) -> str:
        colour: str = self.canvas.evaluate(PIXEL, [x, y])
        return colour

    def move(self, x: float, y: float) -> None:
        self.page.mouse.move(self.left + x, self.top + y)
        self.frame()

    def bus(self, key: str) -> Any:
        return self.page.evaluate("(key) => window.bus.get(key)", key)

    def put(self, key: str, value: Any) -> None:
        self.page.evaluate("([key, value]) => window.bus.set(key, value)", [key, value])
        self.frame()

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)
        self.frame()

    def text(self, selector: str) -> str:
        return self.page.locator(selector).inner_text()

    def shown(self) -> str:
        return self.text(".timeline-shown")


@pytest.fixture
def bare(tab: "Tab") -> Iterator[Bare]:
    """Show everything of the case."""
    bare = Bare(tab.page, CASE["state"] | {"at": 1001.5}, CASE["columns"])
    bare.page.get_by_role("button", name="Everything").click()
    bare.frame()
    yield bare
    tab.check()


HEIGHTS = """() => [".timeline-foot", ".timeline-names"].map(
    (one) => document.querySelector(one).getBoundingClientRect().height)"""


def test_the_legend_takes_one_line_of_a_narrow_timeline_until_it_is_opened(bare: Bare) -> None:
    bare.page.set_viewport_size({"width": 650, "height": 900})
    bare.frame()
    closed, names = bare.page.evaluate(HEIGHTS)
    assert closed < 34
    bare.move(bare.x(1000.55), MIDDLE)
    assert "Gemm #" in bare.text(".timeline-detail")
    assert bare.page.evaluate(HEIGHTS) == [closed, names], "nothing moves under the pointer"
    bare.page.locator(".timeline-legend summary").click()
    bare.frame()
    opened, _ = bare.page.evaluate(HEIGHTS)
    assert opened > 2 * closed
    assert bare.page.get_by_text("ended with its context", exact=True).is_visible()


def test_what_is_under_the_pointer_is_told(bare: Bare) -> None:
    assert bare.shown() == "1.3 s shown"
    assert bare.pixel(bare.x(1000.7), MIDDLE) == KERNEL
    assert bare.pixel(bare.x(1000.8), MIDDLE) == "#ffffff"
    bare.move(bare.x(1000.55), MIDDLE)
    assert "Gemm #2" in bare.text(".timeline-detail")
    assert "kernel · gpu0/blas · from" in bare.text(".timeline-detail")
    assert bare.text(".timeline-detail").endswith("250 ms")
    assert abs(bare.bus("cursor") - 1000.55) < 0.005
    bare.move(bare.x(1001.125) - 8, 34)
    assert bare.text(".timeline-detail").startswith("context lost: SIGKILL")
    bare.move(bare.x(1001.2), MIDDLE + 72)
    assert "Run #8" in bare.text(".timeline-detail")
    assert "running for 750 ms" in bare.text(".timeline-detail")
    bare.page.mouse.move(0, 0)
    bare.frame()
    assert bare.bus("cursor") is None


def test_the_cursor_the_span_and_the_selection_of_other_views_are_drawn(bare: Bare) -> None:
    before = bare.pixel(bare.x(1000.8), MIDDLE)
    bare.put("cursor", 1000.8)
    assert bare.pixel(round(bare.x(1000.8)) + 0.2, MIDDLE) != before
    bare.put("cursor", None)
    bare.put("span", [1000.78, 1000.82])
    assert bare.pixel(bare.x(1000.8), MIDDLE) != before
    assert "Brush 40 ms" in bare.text(".timeline-tools")
    bare.page.locator("[data-row='1']").focus()
    bare.press("Escape")
    assert bare.bus("span") is None
    bare.put("selection", "lab/gpu1/context/blas")
    assert bare.page.locator(".timeline-selected .timeline-heading").inner_text() == "gpu1"
    assert bare.pixel(bare.x(1000.3), 130) != "#ffffff"
    bare.put("selection", None)


def test_keys_of_a_row_go_from_slice_to_slice_and_say_it(bare: Bare) -> None:
    bare.page.locator("[data-row='1']").focus()
    bare.press("ArrowLeft")
    assert bare.text("[role=status]").startswith("Gemm #3, kernel")
    bare.press("ArrowLeft")
    assert bare.text("[role=status]").startswith("Gemm #2, kernel")
    bare.press("ArrowDown", "ArrowDown", "ArrowRight")
    assert bare.text("[role=status]").startswith("Run #8, function")
    bare.press("Enter")
    assert bare.bus("selection") == "lab/gpu1"


def test_zooming_and_panning(bare: Bare) -> None:
    bare.canvas.focus()
    bare.press("+")
    assert bare.shown() == "650 ms shown"
    bare.press("-", "Home")
    assert bare.shown() == "1.3 s shown"
    bare.press("ArrowRight", "ArrowLeft")
    assert bare.pixel(bare.x(1000.7), MIDDLE) == KERNEL
    bare.move(bare.x(1000.6), MIDDLE)
    bare.page.mouse.wheel(0, -400)
    bare.frame()
    assert bare.shown() == "788 ms shown"
    assert abs(bare.bus("cursor") - 1000.6) < 0.005
    bare.press("Home")
    bare.page.mouse.down()
    bare.move(bare.x(1000.8), MIDDLE)
    bare.page.mouse.up()
    bare.frame()
    assert bare.pixel(bare.x(1000.8), MIDDLE) == KERNEL  # what was at 1000.6
    bare.press("End")
    assert bare.page.get_by_role("button", name="Follow live").get_attribute("aria-pressed") == (
        "true"
    )


def test_a_brush_sets_the_span_of_the_page(bare: Bare) -> None:
    bare.move(bare.x(1000.5), MIDDLE)
    bare.page.keyboard.down("Shift")
    bare.page.mouse.down()
    bare.move(bare.x(1000.75), MIDDLE)
    bare.page.mouse.up()
    bare.page.keyboard.up("Shift")
    assert bare.bus("span") == pytest.approx([1000.5, 1000.75], abs=0.005)
    assert bare.page.evaluate("() => getSelection().toString()") == ""


def test_the_same_in_words_as_a_table_and_as_a_trace(bare: Bare, tab: "Tab") -> None:
    assert "gpu0 g1→g2" in bare.text(".timeline-summary")
    bare.page.locator(".timeline-newest summary").click()
    bare.frame()
    firsts = bare.page.locator(".timeline-table tbody th").all_inner_texts()
    assert firsts == ["running", "3", "2", "1", "0"]
    assert bare.page.locator(".timeline-missed").inner_text() == "2 not shown"
    with tab.page.expect_download() as download:
        bare.page.get_by_role("button", name="Export").click()
    assert download.value.suggested_filename == "lab-timeline.json"
    assert json.loads(Path(download.value.path()).read_text()) == CASE["trace"]


def test_what_ended_with_its_context_is_hatched_and_names_stand_beside_what_is_narrow(
    tab: "Tab",
) -> None:
    works = [*CASE["state"]["works"], [1, "spin", "kernel", True]]
    running = [[3, 8, 1001.45]]  # 50 ms of 1.3 s, less than its words need
    marks = [[at, "gpu0", "fault", "lost"] for at in (1000.226, 1000.228)]
    marks.append([1000.23, "gpu0", "generation", "g1→g2"])
    more = {"works": works, "running": running, "marks": marks, "at": 1001.5}
    state = CASE["state"] | more
    first, count, *numbers = CASE["columns"]
    columns = np.array(numbers).reshape(4, -1).T.tolist()
    columns[1] = [1000.5, 1000.75, 2, 4]
    flat = [first, count, *(one[k] for k in range(4) for one in columns)]
    bare = Bare(tab.page, state, flat)
    written = """() => {
        window.written = [];
        const pen = CanvasRenderingContext2D.prototype;
        const fillText = pen.fillText;
        pen.fillText = function (...told) {
            window.written.push(told);
            return fillText.apply(this, told);
        };
    }"""
    bare.page.get_by_role("button", name="Everything").click()
    bare.frame()
    bare.page.evaluate(written)  # not what was written while it moved there
    bare.move(bare.x(1000.1), MIDDLE)
    bare.page.get_by_role("button", name="Everything").click()
    bare.page.wait_for_function("() => window.written.some(([text]) => text.includes(' · ended'))")
    bare.frame()
    texts = {text: x for text, x, _ in bare.page.evaluate("() => window.written")}
    # There is work on both sides of it, which words do not cover: they are cut to their box.
    (ended,) = [text for text in texts if text.startswith("spin #2 · ended")]
    assert ended.endswith("…")
    assert bare.x(1000.5) < texts[ended] < bare.x(1000.75)
    assert texts["Run #8 · running 50 ms"] < bare.x(1001.45) - 50
    assert bare.pixel(2, 34) != bare.pixel(0, 34), "the whole of a cross is seen at the edge"
    assert texts["g1→g2"] > 2 * 8, "beside it"
    bare.move(bare.x(1000.7), MIDDLE)
    assert bare.text(".timeline-detail").endswith("ended with its context after 250 ms")
    bare.page.mouse.move(0, 0)
    bare.frame()
    inside = {bare.pixel(bare.x(1000.74) - d, MIDDLE + 5 - d % 6) for d in range(12)}
    assert SPIN in inside, "hatched"
    assert len(inside) > 1, "and pale between"
    assert bare.pixel(bare.x(1000.75) - 1, MIDDLE) == "#b3261e", "the edge of the loss"
    tab.check()


def test_a_hundred_thousand_slices_paint_within_a_frame(tab: "Tab") -> None:
    """At every zoom; and as density, so a slice below a pixel is still seen."""
    chance = random.Random(0)
    scene = Scene()
    scene.add(tree("gpu0", "gpu1"))
    streams = [(d, s) for d in ("gpu0", "gpu1") for s in ("blas", "fft", "upload", "run")]
    for device, stream in streams:
        kind: Any = {"upload": "copy", "run": "function"}.get(stream, "kernel")
        at, done = 1000.0, []
        for seq in range(SLICES // len(streams)):
            start = at + chance.expovariate(1 / 4e-5)
            at = start + chance.expovariate(1 / 6e-5)
            done.append(Slice(seq, "Gemm", stream, kind, start, at))
        scene.add(work(device, done))
    state = TimelineView(Recorded(scene)).fold(scene) | {"at": 1002.0}
    known = tally(scene)
    rows = [
        (one.start, one.end, one.seq, known.work(device, one)) for _, device, one in scene.slices
    ]
    columns: list[Any] = [0, len(rows), *(one[k] for k in range(4) for one in rows)]
    bare = Bare(tab.page, state, columns)
    assert bare.page.locator(".timeline-missed").count() == 0
    bare.canvas.focus()
    took: dict[str, float] = {}
    for _ in range(5):  # what else the machine does can only add to it
        for keys in ("Home", *("+" * 14)):
            bare.page.evaluate("() => { window.paints = []; }")
            bare.press(keys)
            bare.page.evaluate("() => new Promise((done) => setTimeout(done, 20))")
            paints = bare.page.evaluate("() => window.paints")
            took[bare.shown()] = min(max(paints), took.get(bare.shown(), math.inf))
        if (median := sorted(took.values())[len(took) // 2]) < 16:
            break
    assert median < 16, took  # ms
    bare.press("Home")
    column = [bare.pixel(bare.width / 4, y) for y in range(46, 68)]
    assert 5 <= column.count(KERNEL) <= 18  # about 60 % of 18 pixels
    tab.check()


REAL = """
import os, signal, time
import numpy as np
from accel_lab import System, blas, views
from accel_lab.compute.events.lifecycle import ContextStarted
lab = System("host", name="lab", recover="stale")
cpu = lab.devices[0]
a = cpu.put(np.ones((64, 64), np.float32))
a.result(20)
views.timeline(lab)"""
WORK = """
with lab.closely():
    while not views.timeline(lab).sample()["traced"]:  # until the context knows of that
        cpu.put(np.ones(8)).result(20)
        time.sleep(0.001)
    for _ in range(300):
        b = blas.gemm(a, a)
    b.result(20)
held = cpu.get(b)
sleeps = cpu.run(time.sleep, 60)"""
LOSE = """
mark = lab.events.published
os.kill(lab.events.history(ContextStarted)[-1].pid, signal.SIGKILL)
lab.events.wait_for(ContextStarted, 20, since=mark)
a = cpu.put(np.ones((64, 64), np.float32))
view = views.timeline(lab)
def count():
    return next(row["count"] for row in view.sample()["rows"] if row["stream"] == "blas")
while count() == 300:  # a new context is watched from the next look on
    blas.gemm(a, a).result(20)"""


LOST = re.compile(r"#\d+ ended with its context after.*cpu0 g1→g2")


def test_a_real_system_is_seen_while_it_works_and_after_a_loss(
    open_notebook: "OpenNotebook", tmp_path: Path
) -> None:
    export = f"print(views.timeline(lab).export({str(tmp_path / 'trace.json')!r}).name)"
    notebook = open_notebook([REAL, WORK, LOSE, export, "lab.close()"])
    notebook.run(0)
    notebook.wait(0)
    notebook.expect(".al-badge").to_have_text("live")
    notebook.expect(".timeline-heading").to_contain_text("nothing seen")
    notebook.run(1)
    notebook.expect(".timeline-running").to_have_text("1 running")
    notebook.expect("[data-row] .timeline-label").to_contain_text(["blas", "run"])
    notebook.expect(".timeline-summary").to_contain_text("runs on cpu0")
    shows_the_notebook(notebook)
    notebook.view.evaluate("(view) => view.scrollIntoView({ block: 'center' })")
    row = notebook.view.locator("[data-row]", has_text="run")
    row.focus()
    before = notebook.active_cell()
    keyboard = notebook.page.keyboard
    keyboard.press("ArrowRight")
    notebook.expect("[role=status]").to_contain_text("running for")
    for key in "ddabxmykj":
        keyboard.press(key)
    assert notebook.active_cell() == before
    # The open edge follows now: the slice reaches the right of the picture.
    box, lane = notebook.view.locator(".timeline-canvas").bounding_box(), row.bounding_box()
    assert box
    assert lane
    notebook.page.mouse.move(box["x"] + box["width"] * 0.965, lane["y"] + 13)
    notebook.expect(".timeline-detail").to_contain_text(re.compile(r"#\d+function · cpu0/run"))
    notebook.screenshot("timeline-running")
    notebook.run(2)
    notebook.expect(".timeline-running").to_have_count(0, timeout=20_000)
    notebook.expect(".timeline-summary").to_contain_text(LOST)
    notebook.wait(2)
    notebook.expect(".timeline-summary").not_to_contain_text("cpu0 blas: 300 done")
    notebook.run(3)
    notebook.wait(3)
    assert notebook.printed(3) == "trace.json\n"
    written = json.loads((tmp_path / "trace.json").read_text())
    with notebook.page.expect_download() as download:
        notebook.view.get_by_role("button", name="Export").click()
    downloaded = json.loads(Path(download.value.path()).read_text())
    for trace in (written, downloaded):
        check(trace)
        names = [e["name"] for e in trace["traceEvents"] if e["ph"] == "X"]
        assert names.count("Gemm") > 300
        assert any(e["name"] == "g1→g2" for e in trace["traceEvents"] if e["ph"] == "i")
    notebook.view.get_by_role("button", name="Everything").click()
    notebook.view.locator(".timeline-newest summary").click()
    for theme in ("Dark", "Light"):
        notebook.theme(f"JupyterLab {theme}")
        notebook.page.wait_for_function(
            "(theme) => document.querySelector('.accel-lab').dataset.theme === theme",
            arg=theme.lower(),
        )
        accessible(notebook)
        notebook.screenshot(f"timeline-{theme.lower()}")
    notebook.run(4)
    notebook.expect(".al-badge").to_have_text("closed · last state")


def shows_the_notebook(notebook: "Notebook") -> None:
    """Assert that the view says what the notebook did, and names the work."""
    notebook.expect(".timeline-summary").to_contain_text("cpu0 blas: 300 done")
    notebook.expect(".timeline-summary").to_contain_text("The newest cells: cell 1 done after")
    notebook.expect(".timeline-of-waits").to_have_text("Host waits")
    notebook.expect(".timeline-name").to_contain_text(["Gemm"])


def accessible(notebook: "Notebook") -> None:
    """Assert that axe finds nothing in the view."""
    from tests.browser.jupyter import axe

    # JupyterLab's body is 0 high, so axe would take all text for invisible and skip its contrast.
    notebook.page.evaluate("() => { document.body.style.height = '100vh'; }")
    said, kept = axe(notebook.page.locator(".accel-lab"))
    assert said == []
    assert {"color-contrast", "aria-required-children"} <= kept
