"""The kernel table in a real JupyterLab, of a real system: sorted, searched, chosen, copied."""

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.browser.jupyter import Notebook

    OpenNotebook = Callable[[list[str]], Notebook]

SCREENSHOTS = Path(__file__).parents[2] / "screenshots"

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

SHOW = """
%load_ext accel_lab
import json
import numpy as np
from accel_lab import System, blas, views
lab = System("host", devices=2, name="lab").ready()
views.kernels(lab)"""
# Until work is traced; what follows is traced as long as the table is on the page.
WARM = """
trace = views.timeline(lab).source
def slices():
    with trace.lock:
        return [(one.name, device, one.start, one.end) for _, device, one in trace.look().slices]
while {device for _, device, _, _ in slices()} != {"cpu0", "cpu1"}:
    for device in lab.devices:
        device.put(np.ones(3)).result()"""
GEMMS = """
a = lab.devices[0].put(np.ones((128, 128), np.float32))
for _ in range(10):
    blas.gemm(a, a).result()"""
FUNCTION = """
def double(x):
    return 2 * x
print(lab.devices[1].run(double, 21).result())"""
CELL = """%%gpu cpu1
sum(range(100_000))"""
# The test's own sums, of the slices that the page's views have been sent.
SUMS = """
sums = {}
for name, device, start, end in slices():
    calls, total, longest = sums.get(f"{name} on {device}", (0, 0, 0))
    sums[f"{name} on {device}"] = calls + 1, total + end - start, max(longest, end - start)
print(json.dumps(sums))"""
ROW = ".al-kernels-row"
NAMES = f"{ROW} .al-kernels-what"


def test_what_kernels_cost_is_sorted_searched_chosen_and_copied(
    open_notebook: "OpenNotebook",
) -> None:
    notebook = open_notebook([SHOW, WARM, GEMMS, FUNCTION, CELL, SUMS, "lab.close()"])
    for cell in range(5):
        notebook.run(cell)
        notebook.wait(cell, 60)
    expect, view = notebook.expect, notebook.view
    expect(f'{NAMES} >> text="double"').to_be_visible()
    expect(f'{NAMES} >> text="gpu cell 5"').to_be_visible()
    notebook.run(5)
    notebook.wait(5)
    expect(".al-badge").to_have_text("live")

    copied = copy(notebook)
    rows_are_what_the_slices_sum_to(copied, json.loads(notebook.printed(5)))
    cells = {row["kernel"]: row["cells"] for row in copied}
    assert (cells["Gemm"], cells["double"], cells["gpu cell 5"]) == ("3", "4", "5")

    view.get_by_role("columnheader", name="Calls", exact=True).get_by_role("button").click()
    expect('th[aria-sort="descending"]').to_have_text("Calls")
    figures = [int(text.replace(",", "")) for text in texts(notebook, f"{ROW} .al-kernels-calls")]
    assert figures == sorted(figures, reverse=True)
    view.get_by_role("searchbox", name="Search kernels").fill("gem")
    expect(NAMES).to_have_text(["Gemm"])
    a_row_is_chosen_and_let_go(notebook)
    view.get_by_role("searchbox", name="Search kernels").fill("")
    view.get_by_label("Only this device").select_option("cpu1")
    expect(f'{NAMES} >> text="Gemm"').to_have_count(0)
    view.get_by_label("Only this device").select_option("")
    for theme in ("light", "dark"):
        for width in (1400, 900):
            is_accessible(notebook, theme, width)
    notebook.run(6)
    expect(".al-badge").to_have_text("closed \N{MIDDLE DOT} last state")
    expect(f'{NAMES} >> text="Gemm"').to_have_count(1)


def texts(notebook: "Notebook", selector: str) -> list[str]:
    return notebook.view.locator(selector).all_text_contents()


def copy(notebook: "Notebook") -> list[dict[str, str]]:
    """Press the button, and read what the browser would paste."""
    notebook.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    notebook.view.get_by_role("button", name="Copy as CSV").click()
    notebook.expect("[role=status]").to_contain_text("copied")
    pasted = notebook.page.evaluate("() => navigator.clipboard.readText()")
    return list(csv.DictReader(io.StringIO(pasted)))


def rows_are_what_the_slices_sum_to(rows: list[dict[str, str]], sums: dict[str, Any]) -> None:
    found = {f"{row['kernel']} on {row['device']}": row for row in rows}
    assert found.keys() == sums.keys()
    for key, (calls, total, longest) in sums.items():
        assert int(found[key]["calls"]) == calls
        assert float(found[key]["total_s"]) == pytest.approx(total, abs=1e-6)
        assert float(found[key]["mean_s"]) == pytest.approx(total / calls, abs=1e-6)
        assert float(found[key]["max_s"]) == pytest.approx(longest, abs=1e-6)


def a_row_is_chosen_and_let_go(notebook: "Notebook") -> None:
    """Choose it with keys that JupyterLab must not hear."""
    before = notebook.active_cell()
    notebook.view.locator(ROW).focus()
    notebook.page.keyboard.press("Enter")
    notebook.expect(ROW).to_have_attribute("aria-selected", "true")
    notebook.expect('[aria-label="Clear the selection of Gemm"]').to_be_visible()
    for key in ("d", "d", "a", "x", "Space", "Space", "Escape"):
        notebook.page.keyboard.press(key)
    notebook.expect(ROW).to_have_attribute("aria-selected", "false")
    assert notebook.active_cell() == before


def is_accessible(notebook: "Notebook", theme: str, width: int) -> None:
    from tests.browser.jupyter import axe

    notebook.page.set_viewport_size({"width": width, "height": 900})
    notebook.theme(f"JupyterLab {theme.title()}")
    notebook.page.wait_for_function(
        "(theme) => document.querySelector('.jp-Notebook .accel-lab').dataset.theme === theme",
        arg=theme,
    )
    notebook.view.locator(ROW).first.click()
    notebook.screenshot(f"kernels-{theme}-{width}")
    # JupyterLab's body is 0 high, so axe would take all text for invisible and skip its contrast.
    notebook.page.evaluate("() => { document.body.style.height = '100vh'; }")
    notebook.view.evaluate("(view) => view.scrollIntoView({ block: 'center' })")
    said, kept = axe(notebook.view)
    assert said == []
    assert "color-contrast" in kept
    notebook.view.locator(ROW).first.click()
