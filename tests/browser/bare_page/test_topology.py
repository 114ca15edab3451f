"""The topology view on a bare page, of a real system whose devices are measured."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from accel_lab import System
from accel_lab.views.lab import LabView
from accel_lab.views.topology import TopologyView
from tests.browser.bare_page.test_lab_page import PLAIN, Bare
from tests.browser.bare_page.test_patterns import look
from tests.views.collectives.worlds import scene_of
from tests.views.test_supervision import Recorded
from tests.views.topology.links import peers

if TYPE_CHECKING:
    from tests.browser.jupyter import Tab

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]


@pytest.fixture
def page(tab: "Tab") -> Iterator[Any]:
    tab.page.set_viewport_size({"width": 900, "height": 900})
    yield tab.page
    tab.page.emulate_media(**PLAIN)
    tab.check()


def test_links_are_measured_and_a_new_context_makes_figures_stale(page: Any) -> None:
    with System("host", 4, name="lab", max_restarts=9).ready() as lab:
        bare = Bare(page, TopologyView(lab))
        cell = '[data-from="cpu0"][data-to="cpu{}"]'
        bare.expect(cell.format(1)).to_have_text("shared memory")
        bare.expect(".al-topology-notes").to_contain_text("Not measured")
        lab.topology.measure(1 << 20, rounds=1)
        lab.devices[3].replace()
        lab.ready()
        bare.publish()
        bare.expect(cell.format(1)).to_contain_text("GB/s")
        bare.expect(cell.format(1)).not_to_contain_text("stale")
        bare.expect(cell.format(3)).to_contain_text("stale")
        bare.expect(".al-topology-stale").to_have_count(6)
        look(bare, "topology")
        page.set_viewport_size({"width": 1100, "height": 900})
        bare = Bare(page, LabView(lab))
        page.get_by_role("tab", name="Peers").click()
        bare.expect(cell.format(1)).to_be_visible()
        bare.shoot("lab-topology")


def test_cards_that_are_apart_are_drawn(page: Any) -> None:
    speeds = {("gpu0", "gpu1"): 390.0, ("gpu1", "gpu0"): 388.0, ("gpu0", "gpu2"): 26.0}
    bare = Bare(page, TopologyView(Recorded(scene_of(peers(speeds, stale=[("gpu1", "gpu0")])))))
    bare.expect(".al-topology-apart").to_have_count(4)
    bare.expect(".al-topology-notes").to_contain_text("2 islands: gpu0, gpu1; gpu2")
    look(bare, "topology-cards")
