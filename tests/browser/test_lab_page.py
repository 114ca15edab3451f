"""The lab and its compact form on a bare page, of made-up facts: no server and no kernel."""

import json
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from accel_lab.compute.samples import Slice, TreeSampled
from accel_lab.views import assets
from accel_lab.views.lab import LabView
from accel_lab.views.scene import Scene
from accel_lab.views.view import View
from tests.views.made_up import lab as made_up
from tests.views.test_supervision import KILLED
from tests.views.work import Recorded, work

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

    from tests.browser.jupyter import Tab

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

# Hosts a view as anywidget does, of a model that the test sets.
HOST = """async ([source, css, state, columns]) => {
    const style = document.createElement("style");
    style.textContent = css;
    document.head.append(style);
    const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
    const view = (await import(url)).default;
    const bytes = (text) => new DataView(Uint8Array.from(text).buffer);
    const heard = {};
    const values = { state: bytes(state), columns: bytes(columns), stamp: Date.now() / 1000 };
    window.sent = [];
    window.model = {
        get: (name) => values[name],
        set(name, value) {
            values[name] = name === "stamp" ? value : bytes(value);
            for (const call of heard[`change:${name}`] ?? []) call();
        },
        on: (event, call) => (heard[event] ??= []).push(call),
        off() {},
        send: (message) => window.sent.push(message),
    };
    view.render({ model: window.model, el: document.querySelector("main") });
    setInterval(() => window.model.set("stamp", Date.now() / 1000), 500);
}"""


class Bare:
    """A view on a page of its own."""

    def __init__(self, page: "Page", view: View) -> None:
        self.page, self.view = page, view
        page.goto("about:blank")
        page.set_content('<html lang="en"><title>view</title><body><main></main></body></html>')
        texts = [assets.source(f"{view.name}.js"), assets.style(f"{view.name}.css")]
        page.evaluate(HOST, [*texts, *self.sample()])

    def sample(self) -> list[list[int]]:
        """Return the state and the columns as they travel."""
        columns = self.view.pack(self.view.source.look())
        return [list(json.dumps(self.view.sample()).encode()), list(columns)]

    def find(self, selector: str) -> "Locator":
        return self.page.locator(selector)

    def expect(self, selector: str) -> Any:
        from playwright.sync_api import expect

        return expect(self.find(selector))


@pytest.fixture
def source() -> Recorded:
    """Return a system that lost a context long ago, and works since."""
    scene = Scene()
    scene.add(TreeSampled(root=made_up(2).tree()))
    for fact in KILLED:
        scene.add(fact)
    now = time.time()
    scene.add(work("gpu0", [Slice(1, "Gemm", "blas", "kernel", now - 3, now - 2)]))
    return Recorded(scene)


@pytest.fixture
def bare(tab: "Tab", source: Recorded) -> Iterator[Bare]:
    tab.page.emulate_media()
    tab.page.set_viewport_size({"width": 1300, "height": 1000})
    yield Bare(tab.page, LabView(source))
    tab.check()


def test_a_fault_that_is_chosen_is_brought_into_sight_of_the_timeline(bare: Bare) -> None:
    bare.expect(".timeline-summary").not_to_contain_text("NaN")
    follow = bare.page.get_by_role("button", name="Follow live", exact=True)
    bare.expect('.timeline-button[data-do="follow"]').to_have_attribute("aria-pressed", "true")
    fault = bare.find(".al-lab-supervision tbody tr").filter(has_text="context lost")
    fault.first.click()
    bare.expect('.timeline-button[data-do="follow"]').to_have_attribute("aria-pressed", "false")
    clock = "(at) => new Date(at * 1000).toTimeString().slice(0, 8)"
    middle = [bare.page.evaluate(clock, at) for at in (KILLED[0].at - 5, KILLED[0].at + 5)]
    bare.expect(".timeline-summary").to_contain_text(f"Shown is from {middle[0]}.000")
    bare.expect(".timeline-summary").to_contain_text(f"to {middle[1]}.000")
    bare.expect('.al-lab-tree tr[data-path="lab/gpu0"]').to_have_attribute("aria-selected", "true")
    follow.click()
    bare.expect('.timeline-button[data-do="follow"]').to_have_attribute("aria-pressed", "true")
    bare.expect(".timeline-summary").not_to_contain_text(middle[0])
