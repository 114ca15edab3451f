"""The patterns and the agents view on a bare page, of a real system that serves."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from accel_lab import System
from accel_lab.errors import StageFailed
from accel_lab.views.agents import AgentsView
from accel_lab.views.lab import LabView
from accel_lab.views.patterns import PatternsView
from tests.browser.bare_page.test_lab_page import PLAIN, Bare
from tests.views.patterns.serving import WAIT_S, Serving, serve

if TYPE_CHECKING:
    from tests.browser.jupyter import Tab

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

FITS = "() => document.documentElement.scrollWidth <= window.innerWidth"


@pytest.fixture
def lab() -> Iterator[System]:
    with System("host", name="lab").ready() as lab:
        yield lab


@pytest.fixture
def serving(lab: System) -> Iterator[Serving]:
    found = serve(lab)
    yield found
    found.gate.set()


@pytest.fixture
def page(tab: "Tab") -> Iterator[Any]:
    tab.page.set_viewport_size({"width": 900, "height": 900})
    yield tab.page
    tab.page.emulate_media(**PLAIN)
    tab.check()


def look(bare: Bare, name: str) -> None:
    """Have it looked at in both themes and widths."""
    from tests.browser.jupyter import axe

    for width in (480, 900):
        bare.page.set_viewport_size({"width": width, "height": 2000})
        for scheme in ("light", "dark"):
            bare.page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            bare.expect(".accel-lab").to_have_attribute("data-theme", scheme)
            bare.shoot(f"{name}-{scheme}-{width}")
            said, kept = axe(bare.find(".accel-lab"))
            # Of a drawing axe sees no background; it is hidden from readers, who have the table.
            assert [one for one in said if not one["html"].startswith("<text")] == []
            assert "color-contrast" in kept
        assert bare.page.evaluate(FITS)


def test_patterns_show_who_waits_runs_and_is_answered(page: Any, lab: System) -> None:
    bare = Bare(page, PatternsView(lab))
    bare.expect(".al-patterns-note").to_contain_text("No pattern was made")
    serving = serve(lab)
    bare.publish()
    figure = '[data-pattern="{}"] .al-patterns-figure:has(dt:text-is("{}")) dd'
    bare.expect(figure.format("embeddings", "Answered")).to_have_text("8")
    bare.expect(figure.format("shared model", "Waiting")).to_have_text("2")
    bare.expect(figure.format("shared model", "Failed")).to_have_text("1")
    bare.expect('tr[data-part="research"]').to_have_class("al-patterns-at")
    bare.expect('tr[data-part="replica 0"]').to_contain_text("serves")
    decisions = '[data-pattern="embeddings"] .al-patterns-decisions li'
    bare.expect(f"{decisions} >> nth=0").to_contain_text("batch 5, 6, 7, 8")
    look(bare, "patterns")
    serving.gate.set()
    for reply in serving.replies:
        reply.result(WAIT_S)
    serving.fair.close()
    bare.publish()
    bare.expect(figure.format("shared model", "Waiting")).to_have_text("0")
    bare.expect('[data-pattern="shared model"] .al-patterns-name').to_contain_text("stopped")


def test_a_graph_shows_which_node_runs_and_where_runs_went(
    page: Any, lab: System, serving: Serving
) -> None:
    bare = Bare(page, AgentsView(lab))
    node, edge = '.al-agents-node[data-node="{}"]', '.al-agents-edge[data-from="{}"][data-to="{}"]'
    bare.expect(".al-agents-running").to_have_count(1)
    bare.expect(f"{node.format('check')} .al-agents-words").to_have_text("2 running")
    bare.expect(edge.format("plan", "search")).to_have_class("al-agents-edge al-agents-taken")
    bare.expect(edge.format("check", "answer")).to_have_class("al-agents-edge al-agents-chosen")
    look(bare, "agents")
    serving.gate.set()
    for reply in serving.replies:
        reply.result(WAIT_S)
    with pytest.raises(StageFailed):
        serving.agent.ask({"bad": True}).result(WAIT_S)
    bare.publish()
    bare.expect(".al-agents-running").to_have_count(0)
    bare.expect(f"{node.format('check')} .al-agents-words").to_have_text("4 done, 1 failed")
    bare.expect(node.format("check")).to_have_class("al-agents-node al-agents-failed")
    bare.expect('tr[data-row="check"] .al-agents-number').to_have_text(["0", "4", "1"])


def test_the_lab_has_both_as_tabs(page: Any, lab: System, serving: Serving) -> None:
    del serving
    page.set_viewport_size({"width": 1100, "height": 900})
    bare = Bare(page, LabView(lab))
    for title, found in (("Patterns", ".al-patterns-one"), ("Agents", ".al-agents-graph")):
        page.get_by_role("tab", name=title).click()
        bare.expect(f"{found} >> nth=0").to_be_visible()
        bare.shoot(f"lab-{title.lower()}")
