"""The lab view in a real JupyterLab, of a real system on the host."""

import re
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.browser.jupyter import Notebook

    OpenNotebook = Callable[[list[str]], Notebook]

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

SHOW = """
import numpy as np
from accel_lab import System, blas, views
lab = System("host", devices=2, name="lab").ready()
cpu = lab.devices[0]
a = cpu.put(np.ones((256, 256), np.float32))
c = blas.gemm(a, a)
c.result()
lab.flush()
views.lab(lab)
"""
LOSE = """
try:
    lab.inject("kill").result()
except Exception as error:
    print(type(error).__name__)
"""
RUN = "import time; long = cpu.run(time.sleep, 60)"
FAIL = "blas.gemm(a, cpu.put(np.ones((3, 3), np.float32)))"
PARTS = ["tree", "supervision", "timeline", "kernels", "vram", "health", "journal"]


def row(path: str, cell: str = "") -> str:
    """Return the selector of an actor's row, or of a cell in it."""
    return f'.al-lab-tree tr[data-path="lab{path}"] {cell}'.strip()


@pytest.fixture
def notebook(open_notebook: "OpenNotebook") -> "Notebook":
    """Open a notebook that shows the lab of a system."""
    notebook = open_notebook([SHOW, LOSE, "lab", FAIL, "%tb", "lab.close()", RUN, "cpu.replace()"])
    notebook.page.set_viewport_size({"width": 1700, "height": 1000})
    notebook.run(0)
    notebook.wait(0)
    notebook.expect(".al-lab-bar .al-badge").to_have_text("live")
    return notebook


def test_the_parts_of_a_lab_are_seen_chosen_folded_paused_and_replayed(
    notebook: "Notebook",
) -> None:
    parts = notebook.view.locator(".al-lab-part")
    assert set(parts.evaluate_all("(all) => all.map((part) => part.dataset.part)")) >= set(PARTS)
    notebook.expect(row("/cpu1", ".al-state")).to_have_text("idle")
    notebook.expect(".al-lab-vram .vram-strip").to_have_count(1)
    notebook.page.set_viewport_size({"width": 2200, "height": 1000})
    notebook.expect(".al-lab-wide").to_have_count(1)
    wide, until = boxes(notebook), time.monotonic() + 10
    while wide["tree"]["x"] != wide["supervision"]["x"] and time.monotonic() < until:
        wide = boxes(notebook)  # a loaded browser is in the middle of laying them out
    assert wide["timeline"]["x"] < wide["tree"]["x"] == wide["supervision"]["x"]
    all_columns_are_seen(notebook)

    a_row_is_what_all_parts_look_at(notebook)
    a_fault_is_seen_in_every_part(notebook)
    a_folded_part_stays_folded(notebook)
    a_paused_lab_holds_still(notebook)
    the_journal_takes_all_parts_back(notebook)
    for theme in ("light", "dark"):
        check_accessible(notebook, theme)

    notebook.page.set_viewport_size({"width": 1000, "height": 1000})
    notebook.expect(".al-lab-wide").to_have_count(0)
    narrow = boxes(notebook)
    assert narrow["timeline"]["x"] == narrow["tree"]["x"], "one column"
    assert narrow["timeline"]["y"] < narrow["tree"]["y"]
    notebook.screenshot("lab-narrow")


SEEN = """() => {
    const outer = document.querySelector(".jp-WindowedPanel-outer").getBoundingClientRect();
    const all = [...document.querySelectorAll(
        ".jp-Notebook .al-lab-pane, .jp-Notebook .al-lab-bar, .jp-Notebook .al-lab-foot")];
    return all.map((one) => {
        const { left, top, right, bottom } = one.getBoundingClientRect();
        const seen = left >= outer.left && top >= outer.top - 1
            && right <= outer.right && bottom <= outer.bottom + 1;
        return [one.dataset.pane ?? one.className, seen];
    });
}"""


@pytest.mark.parametrize("width", [1400, 900])
def test_all_of_a_lab_is_seen_in_a_notebook_without_scrolling_and_stays_as_arranged(
    notebook: "Notebook", width: int
) -> None:
    notebook.page.set_viewport_size({"width": width, "height": 900})
    for theme in ("Light", "Dark"):
        notebook.theme(f"JupyterLab {theme}")
        all_of_a_lab_is_seen(notebook)
        notebook.page.screenshot(path=shots() / f"lab-page-{width}-{theme}.png")
    # What is arranged stays so after the page was loaded anew.
    notebook.view.get_by_role("tab", name="Health").click()
    notebook.view.get_by_role("button", name="Actors", exact=True).click()
    notebook.reload()
    notebook.expect(".al-health-scroll").to_be_visible()
    notebook.expect(".al-lab-tree .al-lab-body").to_be_hidden()
    notebook.view.get_by_role("button", name="Actors", exact=True).click()
    notebook.view.get_by_role("tab", name="Supervision").click()
    notebook.expect(".al-lab-tree .al-lab-body").to_be_visible()
    notebook.theme("JupyterLab Light")


def all_of_a_lab_is_seen(notebook: "Notebook") -> None:
    notebook.view.evaluate("(view) => view.scrollIntoView({ block: 'center' })")
    notebook.expect(".al-lab-foot [role=slider]").to_be_in_viewport(ratio=1)
    notebook.page.wait_for_function(f"() => ({SEEN})().every(([, seen]) => seen)")
    assert len(notebook.page.evaluate(SEEN)) >= 5
    notebook.expect(row("/cpu0", ".al-memory")).to_be_in_viewport()
    notebook.expect(row("/cpu0", ".al-restarts")).to_be_in_viewport()
    notebook.expect(".al-lab-supervision tbody tr >> nth=0").to_be_in_viewport()


def shots() -> Any:
    """Return the folder of pictures for people to look at."""
    from tests.browser.jupyter import SCREENSHOTS

    SCREENSHOTS.mkdir(exist_ok=True)
    return SCREENSHOTS


def a_row_is_what_all_parts_look_at(notebook: "Notebook") -> None:
    notebook.view.locator(row("/cpu0", ".al-label")).click()
    notebook.expect(".al-lab-picked").to_have_text("cpu0")
    notebook.expect(row("/cpu0")).to_have_attribute("aria-selected", "true")
    notebook.expect(".al-lab-inspector").to_contain_text("float32[256, 256] · by Gemm")
    notebook.view.locator('.vram-strip [data-key="cpu0 1"]').click()
    notebook.expect(".al-lab-picked").to_have_text("cpu0")
    notebook.view.get_by_role("button", name="Clear selected").click()
    notebook.expect(".al-lab-picked").to_have_count(0)
    notebook.expect('.al-lab-tree [aria-selected="true"]').to_have_count(0)
    before = notebook.active_cell()
    for key in ("d", "d", "a", "Enter"):
        notebook.view.locator(".al-lab-button").press(key)
    notebook.expect(".al-lab-bar .al-badge").to_have_text("paused")
    notebook.view.locator(".al-lab-button").press("Enter")
    notebook.expect(".al-lab-bar .al-badge").to_have_text("live")
    assert notebook.active_cell() == before, "keys stay in the view"


def a_fault_is_seen_in_every_part(notebook: "Notebook") -> None:
    notebook.run(1)
    notebook.wait(1)
    assert notebook.printed(1) == "ContextLost\n"
    notebook.expect(row("/cpu0", ".al-tag")).to_have_text("g2")
    incident = notebook.view.locator(".al-lab-supervision tbody tr").filter(has_text="context lost")
    incident.first.click()
    notebook.expect(row("/cpu0")).to_have_attribute("aria-selected", "true")
    notebook.expect(".al-lab-inspector").to_contain_text("cpu0: context lost")
    all_columns_are_seen(notebook)
    for name, words in (("decision", "restart"), ("generation", "g1 → g2"), ("took", " ")):
        notebook.expect(f"tr.al-supervision-fault .al-supervision-{name} >> nth=0").to_contain_text(
            words
        )


def all_columns_are_seen(notebook: "Notebook") -> None:
    """Assert that what matters is never hidden, and that no column leaves its table."""
    for part, heads in (
        ("tree", {"Actor", "State", "Work", "Memory", "Restarts"}),
        ("supervision", {"Time", "Outcome", "Actor"}),
    ):
        found = notebook.view.locator(f".al-lab-{part} thead th:visible")
        assert heads <= set(found.all_inner_texts())
        assert cut(notebook, f".al-lab-{part} thead th", ".al-lab-part") == []


def a_folded_part_stays_folded(notebook: "Notebook") -> None:
    fold = notebook.view.get_by_role("button", name="Timeline", exact=True)
    fold.click()
    notebook.expect(".al-lab-timeline .al-lab-body").to_be_hidden()
    notebook.run(0)  # a new system, in a new view on the same page
    notebook.wait(0)
    notebook.expect(".al-lab-bar .al-badge").to_have_text("live")
    notebook.expect(".al-lab-timeline .al-lab-body").to_be_hidden()
    notebook.expect(".al-lab-pane-timeline .al-lab-title").to_have_text("Timeline")
    fold.click()
    notebook.expect(".timeline-canvas").to_be_visible()


def a_paused_lab_holds_still(notebook: "Notebook") -> None:
    notebook.run(2)
    notebook.wait(2)
    other = notebook.page.locator('.jp-Notebook .accel-lab:not(.al-lab) tr[data-path="lab/cpu0"]')
    other.filter(has_text="g1").wait_for()
    notebook.view.locator(".al-lab-bar").get_by_role("button", name="Pause").click()
    notebook.expect(".al-lab-bar .al-badge").to_have_text("paused")
    notebook.run(1)
    other.filter(has_text="g2").wait_for()
    notebook.expect(row("/cpu0", ".al-tag")).to_have_text("g1")
    notebook.view.locator(".al-lab-bar").get_by_role("button", name="Follow live").click()
    notebook.expect(row("/cpu0", ".al-tag")).to_have_text("g2")


def the_journal_takes_all_parts_back(notebook: "Notebook") -> None:
    foot = notebook.view.locator(".al-lab-foot")
    foot.get_by_role("button", name="To the start").click()
    notebook.expect(".al-lab-bar").to_contain_text("REPLAY entry 0 of")
    notebook.expect(".al-lab-vram").not_to_contain_text("Gemm")
    notebook.view.locator(".al-lab-bar").get_by_role("button", name="Back to live").click()
    notebook.expect(".al-lab-bar .al-badge").to_have_text("live")
    notebook.expect(row("/cpu0", ".al-tag")).to_have_text("g2")


# Of the shown elements that a selector finds: those that are cut, or that leave what scrolls them.
CUT = """(found, box) => found.filter((one) => {
    const seen = one.getBoundingClientRect();
    if (!seen.width) return false;
    const { left, right } = one.closest(box).getBoundingClientRect();
    return one.scrollWidth > one.clientWidth + 1 || seen.right > right + 1 || seen.left < left - 1;
}).map((one) => one.outerHTML)"""


def cut(notebook: "Notebook", selector: str, box: str) -> list[str]:
    """Return what of the view does not fit into the next `box` around it."""
    found: list[str] = notebook.view.locator(selector).evaluate_all(CUT, box)
    return found


def test_what_runs_is_said_above_all_parts_and_nothing_is_cut(notebook: "Notebook") -> None:
    notebook.run(6)
    notebook.wait(6)
    notebook.expect(".al-lab-running").to_contain_text(re.compile(r" #\d+ on cpu0/run · \d+ s"))
    before = notebook.view.locator(".al-lab-how-long").inner_text()
    notebook.expect(".al-lab-how-long").not_to_have_text(before)
    run = row("/cpu0/context/run", ".al-run")
    notebook.expect(run).to_contain_text(" running for ")
    notebook.expect(".al-journal-row .al-word.al-busy").to_have_text("running")
    newest = notebook.view.locator(".al-journal-row th").all_inner_texts()
    assert newest == sorted(newest, key=int, reverse=True), "the newest entry is the first"
    notebook.run(2)
    notebook.wait(2)
    compact = notebook.page.locator(".jp-Notebook .accel-lab").nth(1).locator(".al-compact-lines")
    compact.get_by_text(re.compile(r"▶ \w+ #\d+ on cpu0/run")).wait_for()

    notebook.page.evaluate("() => jupyterapp.commands.execute('application:toggle-left-area')")
    for width in (600, 1150, 1400):
        notebook.page.set_viewport_size({"width": width, "height": 1000})
        names = ".al-lab-tree .al-kind-library .al-label, .al-lab-tree .al-run"
        notebook.page.wait_for_function(
            "(wide) => document.querySelector('.al-lab').clientWidth < wide", arg=width
        )
        assert cut(notebook, names, "tr") == []
        assert cut(notebook, ".al-lab-tree .al-label", "th") == []
        assert cut(notebook, ".vram-acts .vram-button", ".vram-scroll") == []
    notebook.run(7)
    notebook.expect(row("/cpu0/context", ".al-mark")).to_have_text("restarted")
    assert cut(notebook, ".al-mark", "td") == []
    notebook.expect(".al-lab-running").to_have_count(0)
    notebook.expect(".timeline-summary").to_contain_text("ended with its context after")
    notebook.expect(".al-lab-journal .al-chips").not_to_contain_text("loss")  # it was asked for
    notebook.expect(".al-lab-supervision .al-chips").to_have_text("no faults")
    notebook.page.evaluate("() => jupyterapp.commands.execute('application:toggle-left-area')")


def boxes(notebook: "Notebook") -> dict[str, Any]:
    """Return where each part is on the page."""
    return {part: notebook.view.locator(f".al-lab-{part}").bounding_box() for part in PARTS}


def test_a_system_shows_itself_and_a_failed_cell_is_short(notebook: "Notebook") -> None:
    notebook.run(2)
    notebook.wait(2)
    compact = notebook.page.locator(".jp-Notebook .accel-lab").nth(1)
    compact.locator('tr[data-path="lab/cpu0"]').wait_for()
    assert compact.locator("tbody tr").count() == 3, "devices are folded at first"
    assert "no faults" in compact.locator(".al-compact-lines").inner_text()
    notebook.run(3)
    failed = notebook.page.locator(".jp-Cell").nth(3)
    failed.locator("details").wait_for()
    short = failed.locator(".jp-RenderedText").inner_text()
    assert "cell 3, line 1: blas.gemm" in short.replace("\N{NO-BREAK SPACE}", " ")
    assert "what to do" in short
    assert len(short.strip().splitlines()) == 4
    story = failed.locator("details pre")
    assert not story.is_visible()
    failed.locator("summary").click()
    assert "in infer" in story.inner_text()
    notebook.run(4)
    whole = notebook.page.locator(".jp-Cell").nth(4).locator(".jp-RenderedText")
    whole.wait_for()
    assert "Traceback (most recent call last)" in whole.inner_text()
    notebook.run(5)
    notebook.wait(5)
    notebook.expect(".al-lab-bar .al-badge").to_have_text("closed · last state")
    notebook.expect(".al-lab-button").to_have_count(0)


def check_accessible(notebook: "Notebook", theme: str) -> None:
    """Have axe find nothing, in a theme of JupyterLab's."""
    from tests.browser.jupyter import axe

    notebook.theme(f"JupyterLab {theme.title()}")
    notebook.page.wait_for_function(
        "(theme) => document.querySelector('.al-lab').dataset.theme === theme", arg=theme
    )
    notebook.view.evaluate("(view) => view.scrollIntoView({ block: 'center' })")
    # JupyterLab's body is 0 high, so axe would take all text for invisible and skip its contrast.
    notebook.page.evaluate("() => { document.body.style.height = '100vh'; }")
    said, kept = axe(notebook.page.locator(".al-lab"))
    # Of one digit, and of rows that are scrolled half out of sight, it cannot tell.
    unknown = ("partially obscured", "too short to determine")
    assert [one for one in said if not any(words in one["message"] for words in unknown)] == []
    assert "color-contrast" in kept
    notebook.screenshot(f"lab-{theme}")
