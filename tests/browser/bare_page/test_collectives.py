"""The collectives view on a bare page, of a real system: no server and no kernel."""

import os
import signal
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from accel_lab import System
from accel_lab.errors import AccelError
from accel_lab.views.collectives import CollectivesView
from tests.browser.bare_page.test_lab_page import PLAIN, Bare

if TYPE_CHECKING:
    from tests.browser.jupyter import Tab

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

WAIT_S = 30


@pytest.fixture
def lab() -> Iterator[System]:
    with System("host", 3, name="lab").ready() as lab:
        yield lab


@pytest.fixture
def bare(tab: "Tab", lab: System) -> Iterator[Bare]:
    tab.page.set_viewport_size({"width": 900, "height": 900})
    yield Bare(tab.page, CollectivesView(lab))
    tab.page.emulate_media(**PLAIN)
    tab.check()


def publish_until(bare: Bare, wanted: Any) -> None:
    """Have the page get what is seen, until the world is so."""
    until = time.monotonic() + WAIT_S
    while not wanted(bare.view.sample()["worlds"][0]):
        assert time.monotonic() < until, bare.view.sample()
        time.sleep(0.01)
    bare.publish()


def words(bare: Bare) -> list[str]:
    return bare.find(".al-collectives-world > * .al-word").all_text_contents()


def test_a_rank_is_waited_for_and_killed_and_the_world_heals(bare: Bare, lab: System) -> None:
    from tests.browser.jupyter import axe

    bare.expect(".al-collectives-note").to_contain_text("No world was opened")
    world = lab.world(name="ring").ready()
    ones = [device.put(np.ones(1 << 16, np.float32)) for device in world.devices]
    for _ in range(3):
        world.all_reduce(ones).result(WAIT_S)
    late = world.devices[1].run(time.sleep, WAIT_S)
    made = world.all_reduce(ones)
    publish_until(bare, lambda one: one.get("op", {}).get("missing") == ["cpu1"])
    row = '.al-collectives-table tr[data-device="{}"]'
    bare.expect(row.format("cpu1")).to_contain_text("waited for")
    bare.expect(row.format("cpu2")).to_contain_text("arrived")
    bare.expect('.al-ring-rank[data-word="waited for"] .al-ring-name').to_have_text("cpu1")
    bare.expect(".al-collectives-op").to_contain_text("all_reduce of 256 KiB float32, ring, for ")
    bare.expect(".al-collectives-op").to_contain_text("waits for cpu1")
    forth = bare.find("button[data-step] >> nth=1")
    forth.click()
    bare.expect(".al-ring-part text").to_have_text(["0", "1", "2"])
    forth.click()
    bare.expect(".al-collectives-steps").to_contain_text("step 2 of 4")
    bare.expect(".al-ring-part text").to_have_text(["2", "0", "1"])
    for scheme in ("light", "dark"):
        bare.page.emulate_media(color_scheme=scheme)
        bare.expect(".accel-lab").to_have_attribute("data-theme", scheme)
        bare.shoot(f"collectives-{scheme}")
        said, kept = axe(bare.find(".accel-lab"))
        # Of the drawing axe sees no background; it is hidden from readers, who have the table.
        assert [one for one in said if not one["html"].startswith("<text")] == []
        assert "color-contrast" in kept

    (pid,) = [node.pid for node in lab.tree().walk() if node.path == "lab/cpu1/context"]
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    for reply in (late, made):
        with pytest.raises(AccelError):
            reply.result(WAIT_S)
    publish_until(bare, lambda one: one["state"] == "whole" and one["epoch"] == 2)
    bare.expect(".al-collectives-name").to_contain_text("epoch 2")
    bare.expect(".al-collectives-healing li >> nth=1").to_contain_text(
        "brokencpu1 lost its context: its process ended with SIGKILL"
    )
    bare.expect("p.al-sr[role=status]").to_contain_text("ring: epoch 2 formed in ")
    bare.expect('.al-ring-rank[data-word="ready"]').to_have_count(3)
    bare.expect(".al-collectives-name").to_contain_text("1 failed")

    button = bare.page.get_by_role("button", name="cpu2", exact=True)
    button.press("Enter")
    bare.expect(row.format("cpu2") + " button").to_have_attribute("aria-pressed", "true")
    button.press("Enter")
    bare.expect(row.format("cpu2") + " button").to_have_attribute("aria-pressed", "false")
    bare.page.emulate_media(reduced_motion="reduce")
    bare.page.set_viewport_size({"width": 480, "height": 900})
    fits = "() => document.documentElement.scrollWidth <= window.innerWidth"
    assert bare.page.evaluate(fits)
