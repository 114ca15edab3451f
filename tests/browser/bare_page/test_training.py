"""The training view on a bare page, of a real trainer whose device is killed in the middle."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from accel_lab import System
from accel_lab.blueprints import train
from accel_lab.views.lab import LabView
from accel_lab.views.training import TrainingView
from tests.blueprints.train.digits import Killing, loss, parameters
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


def test_the_curve_grows_and_a_restart_is_marked(page: Any) -> None:
    with System("host", 2, name="lab").ready() as lab:
        bare = Bare(page, TrainingView(lab))
        bare.expect(".al-training-note").to_contain_text("No step was trained")
        optimizer = train.AdamW(train.Cosine(0.02, 40))
        batches = Killing(lab, 1, 12)
        trainer = train.DataParallelTrainer(
            lab.world(), loss, parameters(), optimizer, batches, clip_norm=1.0
        )
        trainer.run(6)
        bare.publish()
        figure = '.al-training-figure:has(dt:text-is("{}")) dd'
        bare.expect(figure.format("Step")).to_have_text("6")
        bare.expect(".al-training-mark").to_have_count(0)
        before = bare.find(".al-training-loss path").first.get_attribute("d")
        trainer.run(30)
        bare.publish()
        bare.expect(figure.format("Step")).to_have_text("30")
        bare.expect(".al-training-loss .al-training-curve path").not_to_have_attribute("d", before)
        bare.expect(".al-training-mark").to_have_attribute("data-step", "13")
        restarts = ".al-training-restarts li"
        bare.expect(restarts).to_have_count(1)
        bare.expect(restarts).to_contain_text("cpu1 lost its context")
        bare.expect("tr[data-rank] .al-training-bar").to_have_count(2)
        look(bare, "training")
        page.set_viewport_size({"width": 1100, "height": 900})
        bare = Bare(page, LabView(lab))
        page.get_by_role("tab", name="Training").click()
        bare.expect(".al-training-loss").to_be_visible()
        bare.shoot("lab-training")
