"""The values view on a bare page, of a real system whose arrays are looked at."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from accel_lab import System
from accel_lab.views.lab import LabView
from accel_lab.views.values import ValuesView
from tests.browser.bare_page.test_lab_page import PLAIN, Bare
from tests.browser.bare_page.test_patterns import look

if TYPE_CHECKING:
    from tests.browser.jupyter import Tab

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]


@pytest.fixture
def page(tab: "Tab") -> Iterator[Any]:
    tab.page.set_viewport_size({"width": 900, "height": 900})
    yield tab.page
    tab.page.emulate_media(**PLAIN)
    tab.check()


def test_histograms_grow_and_what_is_not_finite_is_marked(page: Any) -> None:
    random = np.random.default_rng(0)
    with System("host", 1, name="lab").ready() as lab:
        bare = Bare(page, ValuesView(lab))
        bare.expect(".al-values-note").to_contain_text("Nothing was looked at")
        for step in range(1, 31):
            values = random.normal(scale=3 / step**0.5, size=4000).astype("float32")
            if step == 20:
                values[:5] = np.nan
            lab.observe("weights", lab.devices[0].put(values))
        lab.observe("bias of the last layer", lab.devices[0].put(np.zeros(8, "float32")))
        bare.publish()
        series = '[data-series="weights"]'
        bare.expect(f"{series} .al-values-name").to_contain_text("float32[4000] on cpu0")
        bare.expect(f"{series} .al-values-name").to_contain_text("30 looks")
        bare.expect(f"{series} .al-values-mark").to_have_attribute("data-look", "20")
        bare.expect(f"{series} .al-values-mark").to_have_count(1)
        drawn = bare.find(f"{series} .al-values-shade-3").first.get_attribute("d")
        assert drawn is not None
        assert drawn.count("M") >= 30
        bare.expect(f"{series} .al-values-bars").to_be_visible()
        look(bare, "values")
        page.set_viewport_size({"width": 1100, "height": 900})
        bare = Bare(page, LabView(lab))
        page.get_by_role("tab", name="Values").click()
        bare.expect('[data-series="weights"] .al-values-heat').to_be_visible()
        bare.shoot("lab-values")
