"""Canvases of this process on its dashboard: they are looked at, and nothing of them is changed."""

import re
from collections.abc import Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pytest

from accel_lab import System, views
from accel_lab.actor import ActorRef
from accel_lab.blueprints.realtime import AddSource, Describe, FluidSimulationActor, Splash
from accel_lab.errors import ContextLost
from tests.browser.server.test_dashboard import doubts
from tests.conftest import require

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.browser.jupyter import Tab

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

PIXELS = "(one) => one.toDataURL()"
STEPS = "(one) => Number(one.ariaLabel.split(' ').at(-1))"
LATER = "([one, steps]) => Number(one.ariaLabel.split(' ').at(-1)) > steps"
HATCHED = """(one) => {
    window.hatched = new Promise((done) => {
        new MutationObserver(() => one.hidden || done()).observe(one, { attributes: true });
    });
}"""


@pytest.fixture
def lab() -> Iterator[System]:
    require("compiler")
    with System("host", devices=1, name="lab") as system:
        yield system.ready()


def smoke(lab: System, name: str) -> ActorRef[FluidSimulationActor]:
    (device,) = lab.devices
    actor = lab.spawn(
        lambda: FluidSimulationActor(device, 48, 64, lift=20.0, fade=0.3, sweeps=8), name=name
    )
    actor.ask(AddSource(Splash(32, 42, 5, dye=(4, 2, 1)))).result()
    return actor


@pytest.fixture
def page(tab: "Tab", lab: System) -> "Iterator[Page]":
    if find_spec("panel") is None:
        pytest.skip("panel comes with the lab extra")
    with views.dashboard(lab) as served:
        tab.page.set_viewport_size({"width": 1200, "height": 1400})
        tab.page.goto(served.url)
        tab.page.locator(".al-dashboard-row").wait_for()
        yield tab.page
        tab.check()


def test_what_is_played_is_seen_and_a_kill_is_a_hatch(page: "Page", lab: System) -> None:
    from playwright.sync_api import expect

    from tests.browser.jupyter import SCREENSHOTS

    fluid = smoke(lab, "smoke")
    canvas = views.canvas(fluid)
    assert page.locator(".al-canvas-picture").count() == 0, "nobody plays it yet"
    canvas.play()
    picture = page.locator("canvas.al-canvas-picture[aria-label]")
    picture.wait_for()

    def plays() -> None:
        handle, steps = picture.element_handle(), picture.evaluate(STEPS)
        page.wait_for_function(LATER, arg=[handle, steps])

    first = picture.evaluate(PIXELS)
    plays()
    assert picture.evaluate(PIXELS) != first
    assert page.locator(".al-canvas-buttons").count() == 0
    expect(page.get_by_label("lift")).to_be_disabled()

    page.locator(".al-canvas-hatch").evaluate(HATCHED)
    fault = lab.inject("kill")
    page.evaluate("() => window.hatched")
    plays()
    expect(page.locator(".al-canvas-head .al-chips")).to_contain_text("generation 2")
    expect(page.locator(".al-canvas-hatch")).to_be_hidden()
    with pytest.raises(ContextLost):
        fault.result()

    SCREENSHOTS.mkdir(exist_ok=True)
    url = page.url
    for theme in ("light", "dark"):
        page.goto(f"{url}?theme={'default' if theme == 'light' else 'dark'}")
        picture.wait_for()
        view = page.locator(".accel-lab", has=page.locator(".al-canvas-stage"))
        expect(view).to_have_attribute("data-theme", theme)
        plays()
        page.screenshot(path=SCREENSHOTS / f"dashboard-canvas-{theme}.png", full_page=True)
        assert doubts(page) == []
    canvas.pause()
    expect(page.locator(".al-canvas-picture")).to_have_count(0)


def test_two_canvases_are_below_each_other_and_the_page_sets_nothing(
    page: "Page", lab: System
) -> None:
    from playwright.sync_api import expect

    first, second = smoke(lab, "a"), smoke(lab, "b")
    canvases: list[Any] = [views.canvas(one) for one in (first, second)]
    for one in canvases:
        one.play()
    pictures = page.locator("canvas.al-canvas-picture[aria-label]")
    expect(pictures).to_have_count(2)
    lift = page.get_by_label("lift").first
    before = first.ask(Describe()).result().controls[3].value
    lift.evaluate(
        """(one) => {
            one.disabled = false;
            one.value = 5;
            one.dispatchEvent(new Event("input", { bubbles: true }));
        }"""
    )
    seen = pictures.last.get_attribute("aria-label") or ""
    expect(pictures.last).not_to_have_attribute("aria-label", re.compile(re.escape(seen)))
    page.wait_for_timeout(500)  # a value is sent after a twentieth of a second
    assert first.ask(Describe()).result().controls[3].value == before == 20.0
    for one in canvases:
        one.pause()
