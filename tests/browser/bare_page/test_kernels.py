"""The kernel table on a bare page, of made-up work: no server and no kernel."""

import csv
import io
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from accel_lab.compute.events.samples import Slice, WorkTraced
from accel_lab.views.kernels import LISTED, KernelsView
from accel_lab.views.lab import LabView
from accel_lab.views.scene.scene import Scene
from accel_lab.views.widget import assets
from tests.browser.bare_page.test_lab_page import PLAIN, Bare
from tests.views.work import Recorded, tree

if TYPE_CHECKING:
    from tests.browser.jupyter import Tab

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

AT = 1_700_000_000.0
# The table with a bus that the test can see, and a field of another program's beside it.
MOUNT = """async (source) => {
    const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
    const { Bus, mountKernels } = await import(url);
    const root = document.createElement("div");
    root.className = "accel-lab";
    document.body.append(root);
    window.bus = new Bus();
    window.heard = [];
    window.bus.watch("kernel", (value) => window.heard.push(value));
    window.table = mountKernels(root, window.bus);
}"""


def scene() -> Scene:
    """Return work of three kinds on two devices, sent by cells that are known."""
    made = Scene()
    made.add(tree("gpu0", "gpu1"))

    def ran(seq: int, name: str, stream: str, seconds: float) -> Slice:
        kind: Any = "function" if stream == "run" else "kernel"
        return Slice(seq, name, stream, kind, AT + seq, AT + seq + seconds)

    done = (
        ran(1, "gemm", "blas", 0.5),
        ran(2, "gemm", "blas", 0.25),
        ran(3, "saxpy", "jit", 0.125),
        ran(4, "double", "run", 0.0625),
    )
    cells = ((1, 3), (2, 4), (3, 7), (4, None))
    made.add(
        WorkTraced(
            device="gpu0",
            generation=1,
            done=done,
            running=(),
            cells=cells,
            dropped=9,
            at=AT + 6,
        )
    )
    again = (ran(1, "gemm", "blas", 0.03125),)
    running = (Slice(2, "spin", "jit", "kernel", AT + 2, None),)
    made.add(
        WorkTraced(
            device="gpu1",
            generation=1,
            done=again,
            running=running,
            cells=((1, 8),),
            at=AT + 6,
        )
    )
    return made


@pytest.fixture
def bare(tab: "Tab") -> Iterator[Bare]:
    yield Bare(tab.page, KernelsView(Recorded(scene())))
    tab.page.emulate_media(**PLAIN)
    tab.check()


def names(bare: Bare) -> list[str]:
    return bare.find(".al-kernels-row .al-kernels-what").all_text_contents()


def sort(bare: Bare, title: str) -> None:
    bare.page.get_by_role("columnheader", name=title, exact=True).get_by_role("button").click()


def sorted_by(bare: Bare) -> dict[str, str]:
    """Return how the heads say that rows are sorted."""
    found: dict[str, str] = bare.find("th[aria-sort]").evaluate_all(
        "(all) => Object.fromEntries(all.map((th) => "
        "[th.querySelector('button').firstChild.data, th.ariaSort]))"
    )
    return {title: order for title, order in found.items() if order != "none"}


def test_rows_are_sorted_by_the_heads_with_the_pointer_and_with_keys(bare: Bare) -> None:
    bare.expect(".al-kernels-row").to_have_count(5)
    assert names(bare) == ["gemm", "saxpy", "double", "gemm", "spin"]
    assert sorted_by(bare) == {"Total": "descending"}
    sort(bare, "Total")
    bare.expect(".al-kernels-row .al-kernels-what >> nth=0").to_have_text("spin")
    assert sorted_by(bare) == {"Total": "ascending"}
    sort(bare, "Kernel")
    bare.expect(".al-kernels-row .al-kernels-what >> nth=0").to_have_text("double")
    assert names(bare) == ["double", "gemm", "gemm", "saxpy", "spin"]
    head = bare.page.get_by_role("columnheader", name="Calls", exact=True).get_by_role("button")
    head.press("Enter")
    bare.expect(".al-kernels-row .al-kernels-calls >> nth=0").to_have_text("2")
    assert sorted_by(bare) == {"Calls": "descending"}
    bare.expect("[role=status]").to_have_text("sorted by Calls, descending")
    cells = bare.find(".al-kernels-row >> nth=0").locator("td").all_text_contents()
    assert cells[:4] == ["gpu0/blas", "2", "750 ms", "375 ms"]
    assert cells[4] == "500 ms"
    assert cells[5].startswith(f"{100 * 0.75 / 0.96875:.1f} %")
    assert cells[7] == "3\N{EN DASH}4"


def test_rows_are_searched_and_filtered_by_device(bare: Bare) -> None:
    search = bare.page.get_by_role("searchbox", name="Search kernels")
    search.fill("gemm")
    bare.expect(".al-kernels-row").to_have_count(2)
    bare.page.get_by_label("Only this device").select_option("gpu1")
    bare.expect(".al-kernels-row").to_have_count(1)
    bare.expect(".al-kernels-row .al-kernels-percent").to_have_text("100.0 %")
    search.fill("saxpy")
    bare.expect(".al-kernels-note").to_contain_text("No kernel on gpu1 matches “saxpy”.")
    bare.publish()
    assert search.input_value() == "saxpy", "a new state leaves what was typed"
    search.fill("")
    bare.page.get_by_label("Only this device").select_option("")
    bare.expect(".al-kernels-row").to_have_count(5)
    bare.expect(".al-kernels-note").to_contain_text("9 messages were not traced")


def test_a_row_is_walked_to_chosen_and_let_go(bare: Bare) -> None:
    source = assets.source("kernels/kernels.js")
    export = "export default standalone(mountKernels);"
    assert export in source
    bare.page.evaluate(MOUNT, source.replace(export, "export { Bus, mountKernels };"))
    table = bare.find("body > .accel-lab")
    state = bare.view.sample()
    bare.page.evaluate("(state) => window.table.take(state)", state)
    rows = table.locator(".al-kernels-row")
    table.locator(".al-kernels-row >> nth=4").wait_for()

    def heard() -> Any:
        return bare.page.evaluate("() => window.heard")

    rows.nth(1).click()
    assert heard() == [{"name": "saxpy", "cells": [7]}]
    bare.page.keyboard.press("ArrowUp")
    bare.page.keyboard.press("Enter")
    assert heard()[1:] == [{"name": "gemm", "cells": [3, 4]}]
    selected = table.locator('.al-kernels-row[aria-selected="true"]')
    assert selected.count() == 1, "not the other device's of that name"
    bare.page.keyboard.press("Escape")
    assert heard()[2:] == [None]
    bare.page.evaluate("() => window.bus.set('kernel', { name: 'gemm', cells: [] })")
    bare.page.wait_for_function(
        "() => document.querySelectorAll('body > .accel-lab [aria-selected=\"true\"]').length === 2"
    )
    table.get_by_role("button", name="Clear the selection of gemm").click()
    assert heard()[4:] == [None]
    bare.page.keyboard.press("Escape")
    assert len(heard()) == 5
    # What was chosen follows what its cells are, and a second press lets it go.
    rows.nth(1).click()
    (saxpy,) = [row for row in state["kernels"] if row["name"] == "saxpy"]
    saxpy["cells"] = [[7, 7], [9, 9]]
    bare.page.evaluate("(state) => window.table.take(state)", state)
    assert heard()[5:] == [{"name": "saxpy", "cells": [7]}, {"name": "saxpy", "cells": [7, 9]}]
    rows.nth(1).click()
    assert heard()[7:] == [None]


def test_rows_are_copied_as_csv_even_where_the_browser_has_no_clipboard(bare: Bare) -> None:
    bare.page.evaluate(
        """() => {
            Object.defineProperty(navigator, 'clipboard', { value: undefined, configurable: true });
            document.addEventListener('copy', () => {
                window.copied = document.activeElement.value;
            });
        }"""
    )
    bare.page.get_by_role("searchbox").fill("gemm")
    bare.expect(".al-kernels-row").to_have_count(2)
    copy = bare.page.get_by_role("button", name="Copy as CSV")
    copy.click()
    bare.expect("[role=status]").to_have_text("2 rows copied")
    copied = list(csv.DictReader(io.StringIO(bare.page.evaluate("() => window.copied"))))
    found = [(row["kernel"], row["device"], row["calls"], row["total_s"]) for row in copied]
    assert found == [("gemm", "gpu0", "2", "0.75"), ("gemm", "gpu1", "1", "0.03125")]
    assert [row["cells"] for row in copied] == ["3-4", "8"]
    assert bare.page.evaluate("() => document.activeElement.textContent") == "Copy as CSV"
    bare.page.evaluate(
        """() => Object.defineProperty(navigator, 'clipboard', { configurable: true, value:
            { writeText: async (text) => { window.copied = text.length; } } })"""
    )
    copy.click()
    bare.page.wait_for_function("() => typeof window.copied === 'number'")


def test_very_many_kernels_are_drawn_and_the_others_are_one_row(tab: "Tab") -> None:
    made = Scene()
    made.add(tree("gpu0"))
    done = [
        Slice(n, f"kernel {n}", "jit", "kernel", AT + n, AT + n + (n + 1) / 1024)
        for n in range(LISTED + 50)
    ]
    made.add(WorkTraced(device="gpu0", generation=1, done=tuple(done), running=()))
    bare = Bare(tab.page, KernelsView(Recorded(made)))
    bare.expect(".al-kernels-row").to_have_count(LISTED + 1)
    bare.expect(".al-kernels-row >> nth=-1").to_contain_text("50 more")
    bare.expect(".al-kernels-note").to_contain_text("The 50 kernels that took the least")
    bare.find(".al-kernels-rest").click()
    bare.expect('[aria-selected="true"]').to_have_count(0)
    tab.check()


@pytest.mark.parametrize("width", [1400, 900, 420])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_table_is_accessible_and_has_no_row_that_is_cut(
    bare: Bare, scheme: Any, width: int
) -> None:
    from tests.browser.jupyter import axe

    bare.page.emulate_media(color_scheme=scheme)
    bare.page.set_viewport_size({"width": width, "height": 800})
    bare.expect(f'.accel-lab[data-theme="{scheme}"]').to_have_count(1)
    bare.page.evaluate(
        "(dark) => { document.body.style.background = dark ? '#16191d' : '#fff'; }",
        scheme == "dark",
    )
    bare.find(".al-kernels-row").nth(1).click()
    bare.shoot(f"kernels-{scheme}-{width}")
    said, kept = axe(bare.find(".accel-lab"))
    assert said == []
    assert {"color-contrast", "aria-required-children"} <= kept
    running = bare.find(".al-kernels-row").nth(4).get_by_text("running")
    assert running.evaluate_all("(all) => all.filter((one) => one.checkVisibility()).length") == 1
    scroll = bare.find(".al-kernels-scroll")
    assert scroll.evaluate("(one) => one.scrollWidth <= one.clientWidth")


def test_it_is_a_part_of_the_lab_after_the_timeline(tab: "Tab") -> None:
    tab.page.set_viewport_size({"width": 1300, "height": 900})
    bare = Bare(tab.page, LabView(Recorded(scene())))
    bare.expect(".al-lab-kernels .al-kernels-row").to_have_count(5)
    bare.shoot("lab-with-kernels")
    tab.check()


# How many pixels of the timeline have a colour, by the custom property that names it.
PAINTED = """(canvas, names) => {
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    const style = getComputedStyle(canvas);
    return names.map((name) => {
        const hex = style.getPropertyValue(name).trim();
        const [r, g, b] = [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
        let count = 0;
        for (let i = 0; i < data.length; i += 4) {
            if (data[i] === r && data[i + 1] === g && data[i + 2] === b) count += 1;
        }
        return count;
    });
}"""


def test_the_timeline_shows_the_slices_of_the_row_that_is_chosen(tab: "Tab") -> None:
    tab.page.set_viewport_size({"width": 1300, "height": 900})
    bare = Bare(tab.page, LabView(Recorded(scene())))
    bare.expect(".al-lab-kernels .al-kernels-row").to_have_count(5)
    bare.page.get_by_role("button", name="Everything").click()
    swatches = bare.find(".al-kernels-swatch").evaluate_all(
        "(all) => Object.fromEntries(all.map((one) => "
        "[one.nextSibling.textContent, one.style.background.match(/--[\\w-]+/)[0]]))"
    )
    gemm, saxpy = swatches["gemm"], swatches["saxpy"]
    canvas = bare.find(".al-lab-timeline .timeline-canvas")

    def is_painted(*, of_gemm: bool, of_saxpy: bool) -> None:
        """Wait until slices of these names are at full strength, and of the others are not."""
        bare.page.wait_for_function(
            f"([canvas, names, wanted]) => String(({PAINTED})(canvas, names).map((n) => n > 20))"
            " === String(wanted)",
            arg=[canvas.element_handle(), [gemm, saxpy], [of_gemm, of_saxpy]],
        )

    is_painted(of_gemm=True, of_saxpy=True)
    bare.find(".al-kernels-row").filter(has_text="saxpy").click()
    is_painted(of_gemm=False, of_saxpy=True)
    bare.find(".al-kernels-row").filter(has_text="gpu0/blas").click()
    is_painted(of_gemm=True, of_saxpy=False)
    bare.page.keyboard.press("Escape")
    is_painted(of_gemm=True, of_saxpy=True)
    tab.check()
