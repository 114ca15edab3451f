"""The scrubber over the cells of a session on a bare page, of a real session."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import accel_lab
from accel_lab import blas, views
from accel_lab.views.widget import commands
from tests.browser.bare_page.test_lab_page import PLAIN, Bare
from tests.browser.bare_page.test_patterns import look

if TYPE_CHECKING:
    from tests.browser.jupyter import Tab

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(180)]


@pytest.fixture
def page(tab: "Tab", monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Any]:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    tab.page.set_viewport_size({"width": 900, "height": 900})
    yield tab.page
    tab.page.emulate_media(**PLAIN)
    tab.check()


def test_the_slider_goes_back_and_shows_what_has_changed(page: Any, tmp_path: Path) -> None:
    names: dict[str, Any] = {}
    with accel_lab.open(tmp_path / "run.lab", "host", names=names) as lab:
        bare = Bare(page, views.cells(lab))
        bare.expect(".al-cells-note").to_contain_text("No cell is committed yet")
        gpu = lab.devices[0]
        names["weights"] = gpu.put(np.linspace(-1, 1, 24 * 30).reshape(24, 30))
        names |= {"curve": gpu.put(np.sin(np.linspace(0, 9, 300))), "loss": 2.91, "kept": [1, 2]}
        lab._commit(4, "weights = gpu.put(np.linspace(-1, 1, 720).reshape(24, 30))\nloss = 2.91")
        part = names["weights"][3:9, 5:12]
        blas.scal(names["curve"], 0.5, out=names["curve"])
        gpu.run(lambda x: np.multiply(x, -1, out=x), part, writes=(part,), pure=False).result()
        names["loss"] = 0.42
        lab._commit(5, "train(weights)")
        bare.view.drawn()
        bare.publish()
        slider = bare.find(".al-cells-slider")
        bare.expect(".al-chip").to_have_text("as it is today")
        assert slider.input_value() == "2"
        slider.focus()
        page.keyboard.press("ArrowLeft")
        bare.expect(".al-cells-where").to_contain_text("looking")
        page.wait_for_function("() => window.sent.length === 1")
        (message,) = page.evaluate("() => window.sent")
        assert message == {"do": "seek", "position": 1}
        commands.obey(bare.view, **message)
        bare.publish()
        bare.expect(".al-cells-where").to_contain_text("after cell 4")
        bare.expect(".al-cells-source").to_contain_text("loss = 2.91")
        bare.expect(".al-cells-first").to_contain_text("makes curve differ")
        bare.expect("[data-name]").to_have_count(3)
        bare.expect('[data-name="loss"]').to_contain_text("2.91 -> 0.42")
        bare.expect('[data-name="curve"] path').to_have_count(2)
        outlined = '[data-name="weights"] .al-cells-differs'
        assert 0 < bare.find(outlined).count() < 16 * 30 / 2
        bare.expect('[data-list="same"]').to_contain_text("kept")
        look(bare, "cells")
        bare.obey('[data-step="1"]')
        page.wait_for_function("() => window.sent.length === 2")
        commands.obey(bare.view, **page.evaluate("() => window.sent.at(-1)"))
        bare.publish()
        bare.expect(".al-cells-where").to_contain_text("after cell 5")
    bare.publish()
    bare.expect(".al-badge").to_contain_text("closed")
    assert slider.is_disabled()
