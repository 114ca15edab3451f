"""Patterns and an agent in a real JupyterLab: seen while they serve, and when a page is opened."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from tests.project import ROOT

if TYPE_CHECKING:
    from tests.browser.jupyter import Notebook

    OpenNotebook = Callable[[list[str]], Notebook]

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(180)]

SERVE = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from accel_lab import System, views
from tests.views.patterns.serving import serve
lab = System("host", devices=1, name="lab").ready()
serving = serve(lab)
views.agents(serving.agent)"""
GO_ON = """
serving.gate.set()
ended = [reply.result(20) for reply in serving.replies]
views.patterns(lab)"""
CLOSE = "lab.close()"


def test_a_graph_and_patterns_are_live(open_notebook: "OpenNotebook") -> None:
    notebook = open_notebook([SERVE, GO_ON, CLOSE])
    notebook.run(0)
    notebook.wait(0)
    notebook.expect(".al-badge").to_have_text("live")
    notebook.expect(".al-agents-running").to_have_attribute("data-node", "check")
    notebook.run(1)
    notebook.wait(1)
    notebook.expect(".al-agents-node[data-node='check'] .al-agents-words").to_have_text("4 done")
    notebook.expect(".al-agents-running").to_have_count(0)
    panels = notebook.page.locator(".al-patterns-one")
    panels.nth(3).wait_for()
    assert panels.nth(2).locator(".al-patterns-figure").nth(2).inner_text() == "Answered\n7"
    notebook.run(2)
    notebook.wait(2)
