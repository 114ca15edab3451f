"""Supervision and health in a real JupyterLab, over a real system whose contexts really die."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Locator

    from tests.browser.jupyter import Notebook

    OpenNotebook = Callable[[list[str]], Notebook]

SCREENSHOTS = Path(__file__).parents[2] / "screenshots"

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

SUPERVISION = """
from accel_lab import System, views
lab = System("host", devices=2, name="lab", max_restarts=1).ready()
views.supervision(lab)"""
HEALTH = "views.health(lab)"
FAULT = "tr.al-supervision-fault"
# Whether what a cell has would fit with a longer text.
FITS = """(tag, text) => {
    const [node, before] = [tag.firstChild, tag.firstChild.data];
    node.data = text;
    const { scrollWidth, clientWidth } = tag.closest("td");
    node.data = before;
    return scrollWidth <= clientWidth;
}"""
# How many of some elements have more text than they show.
CUT = """(found) => found.filter((one) => {
    const cell = one.closest("td");
    const [text, room] = [one.getBoundingClientRect(), cell.getBoundingClientRect()];
    return cell.scrollWidth > cell.clientWidth || text.right > room.right + 1
        || getComputedStyle(cell).whiteSpace === "nowrap";
}).length"""
TOOK = re.compile(r"^\d+(\.\d)? m?s$")


@pytest.fixture
def show(open_notebook: "OpenNotebook") -> "Callable[..., Notebook]":
    """Open a notebook and run its first two cells: supervision, then health."""

    def opened(*cells: str) -> "Notebook":
        notebook = open_notebook([SUPERVISION, HEALTH, *cells])
        for cell in (0, 1):
            notebook.run(cell)
            notebook.wait(cell)
        notebook.page.locator(".jp-Notebook .accel-lab").nth(1).wait_for()
        notebook.expect(".al-badge").to_have_text("live")
        return notebook

    return opened


def inject(notebook: "Notebook", fault: str, device: str = "cpu0") -> None:
    """Cause a fault as a person does."""
    ask(notebook, fault, device)
    notebook.view.get_by_role("button", name=f"Inject {fault}", exact=True).click()


def ask(notebook: "Notebook", fault: str, device: str = "cpu0") -> None:
    """Choose a fault, up to the question."""
    notebook.view.get_by_label("Fault", exact=True).select_option(fault)
    notebook.view.get_by_label("On this device").select_option(device)
    notebook.view.get_by_role("button", name="Inject fault").click()


def test_faults_are_rows_with_their_recovery_and_a_circuit_can_be_reset(
    show: "Callable[..., Notebook]",
) -> None:
    notebook = show("'a cell below'", "lab.close()")
    notebook.expect(FAULT).to_have_count(0)
    a_killed_context_is_a_row(notebook)
    a_row_unfolds_and_is_walked(notebook)
    a_circuit_opens_and_is_reset(notebook)
    rows_are_filtered(notebook)
    health = health_is_read(notebook)
    for theme in ("light", "dark"):
        notebook.theme(f"JupyterLab {theme.title()}")
        notebook.page.wait_for_function(
            "(theme) => [...document.querySelectorAll('.jp-Notebook .accel-lab')]"
            ".every((view) => view.dataset.theme === theme)",
            arg=theme,
        )
        notebook.view.locator(f"{FAULT} .al-supervision-fold").nth(1).click()
        notebook.view.locator(FAULT).first.focus()
        notebook.screenshot(f"supervision-{theme}")
        health.screenshot(path=SCREENSHOTS / f"health-{theme}.png")
        assert doubts(notebook) == []
    notebook.run(3)
    notebook.expect(".al-badge").to_have_text("closed · last state")
    notebook.expect(".al-supervision-inject").to_have_count(0)
    notebook.expect(FAULT).to_have_count(3)
    assert complaints(notebook) == []  # what was asked for is no error


@pytest.mark.parametrize("block", ["time.sleep(15)", "await asyncio.sleep(15)"])
def test_a_button_is_obeyed_while_a_cell_runs(show: "Callable[..., Notebook]", block: str) -> None:
    notebook = show(f"import asyncio, time\n{block}")
    notebook.run(2)
    inject(notebook, "kill")
    notebook.expect(f"{FAULT} .al-supervision-outcome", timeout_s=10).to_have_text("recovered")


def test_a_fault_on_purpose_asks_first_and_its_code_is_whole(
    show: "Callable[..., Notebook]",
) -> None:
    notebook = show("import numpy as np\nkept = [lab.devices[0].put(np.ones(9)) for _ in range(6)]")
    notebook.run(2)
    expect, view, keyboard = notebook.expect, notebook.view, notebook.page.keyboard
    ask(notebook, "kill")
    expect(".al-supervision-effect").to_have_text(
        "This will kill cpu0's process; 6 arrays will be rebuilt."
    )
    expect('[data-do="cancel"]').to_be_focused()
    for theme in ("light", "dark"):
        notebook.theme(f"JupyterLab {theme.title()}")
        notebook.screenshot(f"supervision-confirm-{theme}")
        assert doubts(notebook) == []
    view.locator('[data-do="cancel"]').focus()
    keyboard.press("Enter")
    expect(".al-supervision-confirm").to_have_count(0)
    expect('[data-do="inject"]').to_be_focused()
    assert view.get_by_label("Fault", exact=True).input_value() == "kill"
    keyboard.press("Enter")
    keyboard.press("Escape")
    expect(".al-supervision-confirm").to_have_count(0)
    expect(FAULT).to_have_count(0)
    inject(notebook, "poison")
    expect(f"{FAULT} .al-supervision-code").to_have_text("CUDA_ERROR_ILLEGAL_ADDRESS (700)")
    for width in (1400, 900, 600):
        view.evaluate("(view, width) => { view.style.width = `${width}px`; }", width)
        whole = view.locator(f"{FAULT} .al-supervision-code, {FAULT} .al-supervision-decision")
        assert whole.evaluate_all(CUT) == 0, f"at {width} px"
        notebook.screenshot(f"supervision-code-{width}")


def a_killed_context_is_a_row(notebook: "Notebook") -> None:
    expect = notebook.expect
    inject(notebook, "kill")
    expect(FAULT).to_have_count(1)
    expect(f"{FAULT} .al-supervision-outcome").to_have_text("recovered")
    expect(f"{FAULT} .al-supervision-actor").to_have_text("cpu0")
    expect(f"{FAULT} .al-supervision-event").to_have_text("context lost")
    expect(f"{FAULT} .al-supervision-cause").to_have_text(" its process ended with SIGKILL")
    expect(f"{FAULT} .al-supervision-decision").to_contain_text("restart")
    expect(f"{FAULT} .al-supervision-generation").to_have_text("g1 → g2")
    assert notebook.view.locator(f"{FAULT} .al-supervision-generation *").evaluate(
        FITS, "g98 → g99"
    )
    expect(f"{FAULT} .al-supervision-took").to_have_text(TOOK)
    expect(".al-sr[role=status]").to_have_text(  # which is said once, soon after the row is there
        re.compile(r"^cpu0: context lost, its process ended with SIGKILL, recover(ed in |ing$)")
    )


def a_row_unfolds_and_is_walked(notebook: "Notebook") -> None:
    expect, view = notebook.expect, notebook.view
    view.locator(f"{FAULT} .al-supervision-fold").click()
    expect(".al-supervision-step").not_to_have_count(0)
    steps = view.locator(".al-supervision-step .al-supervision-said").all_text_contents()
    assert "generation 1 → 2" in steps
    assert "context lost, 1 request in flight" in steps
    assert any("started as process" in step for step in steps)
    view.locator(f"{FAULT} .al-supervision-what").click()
    expect(FAULT).to_have_attribute("aria-selected", "true")
    expect(".al-supervision-related").to_have_count(2)  # the start of its device, too
    before = notebook.active_cell()
    for key in ("ArrowLeft", "ArrowDown", "Home", "d", "d", "a", "x", "m", "Space", "Space"):
        notebook.page.keyboard.press(key)
    assert notebook.active_cell() == before  # JupyterLab heard nothing
    expect(".al-supervision-step").to_have_count(0)


def a_circuit_opens_and_is_reset(notebook: "Notebook") -> None:
    """Lose a second context, of a budget of one restart."""
    expect, view = notebook.expect, notebook.view
    inject(notebook, "poison")
    expect(FAULT).to_have_count(2)
    expect(".al-supervision-circuit .al-word").to_have_text("cpu0: circuit open")
    expect(f"{FAULT} .al-supervision-outcome >> nth=0").to_have_text("circuit open")
    expect(f"{FAULT} .al-supervision-cause >> nth=0").to_contain_text(
        "CUDA_ERROR_ILLEGAL_ADDRESS (700)"
    )
    notebook.screenshot("supervision-circuit")
    view.get_by_role("button", name="Reset circuit of cpu0").click()
    expect(".al-supervision-circuit").to_have_count(0)
    expect(f"{FAULT} .al-supervision-outcome >> nth=0").to_have_text("recovered")
    expect(f"{FAULT} .al-supervision-decision >> nth=0").to_contain_text("circuit closed")
    expect(f"{FAULT} .al-supervision-generation >> nth=0").to_have_text("g2 → g3")


def rows_are_filtered(notebook: "Notebook") -> None:
    """Have a library fail on the other device, and look at it alone."""
    expect, view = notebook.expect, notebook.view
    inject(notebook, "library", "cpu1")
    expect(f"{FAULT} .al-supervision-actor >> nth=0").to_have_text("cpu1/fault")
    expect(FAULT).to_have_count(3)
    view.get_by_role("button", name="Faults", exact=True).click()
    expect("tr.al-supervision-note").to_have_count(0)
    view.get_by_label("Only this device").select_option("cpu1")
    expect(FAULT).to_have_count(1)
    view.get_by_label("Only this device").select_option("")
    view.get_by_role("button", name="All", exact=True).click()
    expect(FAULT).to_have_count(3)
    expect("tr.al-supervision-note").to_have_count(2)


def health_is_read(notebook: "Notebook") -> "Locator":
    """Return the second view, once it has drawn a line."""
    health = notebook.page.locator(".jp-Notebook .accel-lab").nth(1)
    tile = health.get_by_role("group", name="cpu0").locator('[data-reading="process memory"]')
    tile.locator(".al-health-line").wait_for(state="attached")
    assert re.match(r"\d+ MiB$", tile.locator("strong").inner_text())
    assert health.get_by_role("group").count() == 3
    return health


def complaints(notebook: "Notebook") -> list[Any]:
    """Return every error that a cell of the notebook shows.

    On a slow machine a cell says that its device is starting, which is none.
    """
    found: list[Any] = notebook.page.evaluate(
        """() => window.jupyterapp.shell.currentWidget.content.widgets
            .flatMap(({ model }) => model.outputs?.toJSON() ?? [])
            .filter(({ name, output_type }) => name === 'stderr' || output_type === 'error')
            .filter(({ text }) => !/^accel_lab: (re)?starting cpu0…\\n$/.test(String(text)))"""
    )
    return found


def doubts(notebook: "Notebook") -> list[dict[str, str]]:
    """Return what axe finds wrong, or cannot tell, of all views on the page."""
    from tests.browser.jupyter import axe

    # JupyterLab's body is 0 high, so axe would take all text for invisible and skip its contrast.
    notebook.page.evaluate("() => { document.body.style.height = '100vh'; }")
    found: list[dict[str, str]] = []
    views = notebook.page.locator(".jp-Notebook .accel-lab")
    for i in range(views.count()):
        view = views.nth(i)
        view.evaluate("(view) => view.scrollIntoView({ block: 'center' })")
        said, kept = axe(view)
        found += said
        assert "color-contrast" in kept
    return found
