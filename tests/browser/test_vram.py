"""The memory of the devices in a real JupyterLab, of a real system on the host."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.browser.jupyter import Notebook

    OpenNotebook = Callable[[list[str]], Notebook]

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

SHOW = """
import numpy as np
from accel_lab import System, views
from accel_lab import blas, fft
lab = System("host", devices=2, name="lab")
cpu, second = lab.devices
a = cpu.put(np.ones((1024, 1024), np.float32))
layers = [cpu.put(np.ones((512, 512), np.float32)) for _ in range(2)]
c = cpu.ask(blas.Gemm(a, a))
changed = cpu.run(np.add, a, 1, writes=())
spectrum = second.ask(fft.R2C(second.put(np.ones(1 << 18, np.float32))))
for answer in (c, changed, spectrum):
    answer.result()
del answer
views.vram(lab)
"""
USE = """
try:
    cpu.get(layers[0]).result()
except Exception as error:
    print(type(error).__name__)
print(changed.durability)
"""
LOSE = """
try:
    lab.inject("kill").result()
except Exception as error:
    print(type(error).__name__)
"""
OPEN = """
import numpy as np
from accel_lab import System, views
%load_ext accel_lab
lab = System("host", devices=1, name="lab")
gpu = lab.devices[0]
kept = gpu.put(np.ones((512, 512), np.float32))
"""
LEAVE = """%%gpu gpu
model = {"weights": np.ones((1024, 1024), np.float32), "bias": np.ones(1024, np.float32)}
history = [np.ones(1 << 16)]
"""
ASK = """
try:
    model.get()
except Exception as error:
    print(type(error).__name__)
"""
LONG = """
import numpy as np
from accel_lab import System, views
lab = System("host", devices=1, name="lab")
def {name}(x): return x * 2
kept = [lab.devices[0].run({name}, np.ones((256, 256))).result() for _ in range(6)]
views.vram(lab)
""".format(name="scaled_to_the_unit_of_the_reference_detector" * 3)
# Of the elements that a selector finds: those that leave the box around them.
LEFT = """(found, box) => found.filter((one) => {
    const seen = one.getBoundingClientRect();
    const { left, right } = one.closest(box).getBoundingClientRect();
    return seen.left < left - 1 || seen.right > right + 1;
}).length"""
# Of the rows of tables: those where a cell or button lies on another, or leaves the table's box.
COVERED = """(rows) => rows.filter((row) => {
    const { left, right } = row.closest(".vram-scroll").getBoundingClientRect();
    const seen = [...row.querySelectorAll("td, th")].filter((cell) => cell.offsetParent);
    const parts = seen.flatMap((cell) => {
        const buttons = [...cell.querySelectorAll("button")];
        return (buttons.length ? buttons : [cell]).map((one) => one.getBoundingClientRect());
    });
    return parts.some((one, at) => one.left < left - 1 || one.right > right + 1
        || parts.slice(at + 1).some((other) => one.left < other.right - 1
            && other.left < one.right - 1 && one.top < other.bottom - 1
            && other.top < one.bottom - 1));
}).length"""
A, LAYER, PRODUCT, CHANGED = 1, 2, 4, 5  # the numbers of the buffers, in the order of SHOW


def block(buffer: int, strip: str = "cpu0") -> str:
    """Return the selector of a buffer's block."""
    return f'.vram-block[data-key="{strip} {buffer}"]'


def row(buffer: int, strip: str = "cpu0", cell: str = "") -> str:
    """Return the selector of a buffer's row, or of a cell in it."""
    return f'tr[data-key="{strip} {buffer}"] {cell}'.strip()


@pytest.fixture
def notebook(open_notebook: "OpenNotebook") -> "Notebook":
    """Open a notebook that shows the memory of a system."""
    opened = open_notebook([SHOW, USE, LOSE, "del changed", "lab.close()"])
    opened.run(0)
    opened.wait(0)
    opened.expect(".al-badge").to_have_text("live")
    opened.expect(".vram-block").to_have_count(6)
    return opened


def test_memory_is_seen_chosen_freed_kept_lost_and_closed(notebook: "Notebook") -> None:
    view, expect = notebook.view, notebook.expect

    # Everything has its place, and neighbours are as wide as they are large.
    expect(".vram-head").to_have_count(2)
    expect(".vram-head >> nth=0").to_contain_text("14 MiB of")
    expect(".vram-head >> nth=0").to_contain_text("5 blocks · a new block may have")
    expect(".vram-legend").to_contain_text("Gemm4 MiB")
    expect(row(LAYER, cell="th")).to_have_text("layers[0]")
    expect(f"{block(A)} .vram-label").to_have_text("a")
    expect(f"{block(LAYER)} .vram-label").to_have_text("layers[0]")
    expect(".vram-history").to_have_count(2)
    expect(".vram-axis >> nth=0").to_contain_text("peak 14 MiB")
    expect(".vram-kept").to_contain_text("kept for recovery")
    wide, narrow = (view.locator(block(one)).bounding_box() for one in (A, LAYER))
    assert wide is not None
    assert narrow is not None
    assert wide["width"] == pytest.approx(4 * narrow["width"], rel=0.05)
    too_wide = view.locator(".vram-strip").evaluate_all(
        "(strips) => strips.filter((strip) => strip.scrollWidth > strip.clientWidth).length"
    )
    assert too_wide == 0

    # The pointer shows, a click chooses.
    view.locator(block(LAYER)).hover()
    expect(".vram-inspector").to_contain_text("layers[0] · 1 MiB · float32[512, 512]")
    expect(".vram-inspector").to_contain_text("made by Allocate #3 · generation 1 · buffer 2")
    expect(row(LAYER)).to_have_class("vram-row vram-pointed")
    view.locator(row(PRODUCT, cell="th")).click()
    expect(block(PRODUCT)).to_have_attribute("aria-selected", "true")
    expect(".vram-selected strong").to_have_text("cpu0")

    # The keyboard does, too, and JupyterLab hears nothing of it.
    before = notebook.active_cell()
    keyboard = notebook.page.keyboard
    view.locator(block(PRODUCT)).focus()
    for key in ("Home", "ArrowRight", "ArrowLeft", "End", "d", "d", "a", "x"):
        keyboard.press(key)
    expect(".vram-strip >> nth=0 >> .vram-block >> nth=-1").to_be_focused()
    keyboard.press("Home")
    keyboard.press("Enter")
    expect(".vram-strip >> nth=0 >> .vram-block >> nth=0").to_have_attribute(
        "aria-selected", "true"
    )
    keyboard.press("Tab")
    expect("[data-strip=cpu1] .vram-block").to_be_focused()
    keyboard.press("Tab")
    expect(".vram-scroll").to_be_focused()
    assert notebook.active_cell() == before

    # The buttons do what they say.
    view.locator(row(LAYER)).get_by_role("button", name="Free").click()
    expect("[role=status]").to_have_text(
        "Buffer 2 of cpu0 is freed; what uses it now fails with StaleRef"
    )
    expect(block(LAYER)).to_have_count(0)
    view.locator(row(CHANGED)).get_by_role("button", name="Checkpoint").click()
    expect("[role=status]").to_contain_text("Buffer 5 of cpu0 is checkpointed")
    notebook.run(1)
    notebook.wait(1)
    assert notebook.printed(1) == "StaleRef\ncheckpointed\n"


def test_what_is_lost_is_hatched_until_its_name_goes(notebook: "Notebook") -> None:
    view, expect = notebook.view, notebook.expect
    check_accessible(notebook, "light")
    notebook.run(2)
    expect(block(CHANGED, "cpu0 lost")).to_have_count(1)
    expect(block(A)).to_have_count(1)
    expect(row(CHANGED, "cpu0 lost", ".vram-generation")).to_have_text("1, lost")
    expect(".vram-fault").to_have_count(1)
    expect(".vram-head >> nth=1").to_contain_text("1 block of generation 1 lost with it, 4 MiB")
    hatched = view.locator(block(CHANGED, "cpu0 lost"))
    assert "repeating-linear-gradient(135deg" in hatched.evaluate(
        "(block) => getComputedStyle(block).backgroundImage"
    )
    check_accessible(notebook, "dark")
    notebook.run(3)
    expect(block(CHANGED, "cpu0 lost")).to_have_count(0)
    notebook.run(4)
    expect(".al-badge").to_have_text("closed · last state")
    expect(".vram-button").to_have_count(0)
    expect(block(A)).to_have_count(1)


def test_objects_of_cells_are_seen_and_dropped(open_notebook: "OpenNotebook") -> None:
    notebook = open_notebook([OPEN, LEAVE, "views.vram(lab)", ASK, "lab.close()"])
    for cell in range(3):
        notebook.run(cell)
        notebook.wait(cell)
    view, expect = notebook.view, notebook.expect
    expect(".vram-object").to_have_count(2)
    model = ".vram-object >> nth=0"
    expect(f"{model} >> th").to_have_text("model")
    expect(f"{model} >> .vram-number").to_have_text("4 MiB")
    expect(f"{model} >> .vram-code >> nth=-1").to_have_text("model, %%gpu model")
    check_accessible(notebook, "light", "vram-objects-light")
    check_accessible(notebook, "dark", "vram-objects-dark")
    view.get_by_role("button", name="Drop object model of cpu0").click()
    expect("[role=status]").to_have_text(
        "Object model of cpu0 is dropped; what uses it now fails with StaleRef"
    )
    expect(".vram-object").to_have_count(1)
    expect(f"{model} >> th").to_have_text("history")
    notebook.run(3)
    notebook.wait(3)
    assert notebook.printed(3) == "StaleRef\n"
    notebook.run(4)
    expect(".al-badge").to_have_text("closed · last state")
    expect(".vram-object").to_have_count(1)
    expect(".vram-button").to_have_count(0)


def check_accessible(notebook: "Notebook", theme: str, name: str = "") -> None:
    """Have axe find nothing, in a theme of JupyterLab's."""
    from tests.browser.jupyter import axe

    notebook.theme(f"JupyterLab {theme.title()}")
    notebook.page.wait_for_function(
        "(theme) => document.querySelector('.jp-Notebook .accel-lab').dataset.theme === theme",
        arg=theme,
    )
    notebook.view.evaluate("(view) => view.scrollIntoView({ block: 'center' })")
    # JupyterLab's body is 0 high, so axe would take all text for invisible and skip its contrast.
    notebook.page.evaluate("() => { document.body.style.height = '100vh'; }")
    said, kept = axe(notebook.page.locator(".jp-Notebook .accel-lab"))
    assert said == []
    assert {"color-contrast", "aria-required-children", "aria-meter-name"} <= kept
    notebook.screenshot(name or f"vram-{theme}")


def test_nothing_covers_a_column_however_narrow_the_view_is(
    open_notebook: "OpenNotebook",
) -> None:
    notebook = open_notebook([OPEN, LEAVE, "views.vram(lab)"])
    for cell in range(3):
        notebook.run(cell)
        notebook.wait(cell)
    notebook.expect(".vram-row .vram-acts .vram-button >> nth=1").to_be_visible()
    notebook.expect(".vram-object .vram-acts .vram-button >> nth=1").to_be_visible()
    rows = notebook.view.locator(".vram-table tr")
    for theme in ("JupyterLab Light", "JupyterLab Dark"):
        notebook.theme(theme)
        for width in (1000, 900, 840, 700, 570, 480, 400):
            notebook.view.evaluate("(view, width) => { view.style.width = `${width}px`; }", width)
            assert rows.count() == 5
            assert rows.evaluate_all(COVERED) == 0, f"at {width} px"
            if width in (570, 400):
                notebook.screenshot(f"vram-{width}-{theme[-5:].strip().lower()}")
    notebook.theme("JupyterLab Light")


def test_a_long_name_is_read_from_its_beginning(open_notebook: "OpenNotebook") -> None:
    notebook = open_notebook([LONG])
    notebook.run(0)
    notebook.wait(0)
    notebook.expect(".vram-block .vram-label >> nth=0").to_be_visible()
    for found, box in ((".vram-label", ".vram-block"), (".vram-legend span", ".vram-legend")):
        assert notebook.view.locator(found).evaluate_all(LEFT, box) == 0
