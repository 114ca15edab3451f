"""The canvas on a bare page, of a simulation that runs: no server and no kernel."""

import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from accel_lab import System
from accel_lab.actor import ActorRef
from accel_lab.blueprints.realtime import (
    AddSource,
    Describe,
    FluidSimulationActor,
    ParticleSystemActor,
    SetGravity,
    Splash,
)
from accel_lab.views.canvas.player import Player
from accel_lab.views.canvas.view import CanvasView
from accel_lab.views.widget import commands
from tests.browser.bare_page.test_lab_page import PLAIN, Bare
from tests.conftest import require

if TYPE_CHECKING:
    from tests.browser.jupyter import Tab

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

WAIT_S = 60.0
PIXELS = """() => {
    const one = document.querySelector("canvas.al-canvas-picture");
    const { width, height } = one;
    return [width, height, [...one.getContext("2d").getImageData(0, 0, width, height).data]];
}"""
DECODED = """async (bytes) => {
    const image = new Image();
    image.src = URL.createObjectURL(new Blob([new Uint8Array(bytes)], { type: "image/gif" }));
    await image.decode();
    return [image.naturalWidth, image.naturalHeight];
}"""
HATCHES = """() => {
    window.hatches = [];
    const one = document.querySelector(".al-canvas-hatch");
    new MutationObserver(() => window.hatches.push([one.hidden, one.textContent]))
        .observe(one, { attributes: true, attributeFilter: ["hidden"] });
}"""


class Shown(Bare):
    """A canvas on a page, which the test keeps up to date as the publisher does."""

    def until(self, done: Callable[[], Any]) -> None:
        """Send states, and carry out what the page asks for, until something is so."""
        end = time.monotonic() + WAIT_S
        while not done():
            assert time.monotonic() < end, self.view.sample()
            self.publish()
            sent = self.page.evaluate("() => window.sent.splice(0)")
            for message in sent:
                commands.obey(self.view, **message)
            self.page.wait_for_timeout(20)

    def picture(self) -> Any:
        """Return what is on the page, uint8[height, width, 3]."""
        width, height, pixels = self.page.evaluate(PIXELS)
        return np.array(pixels, np.uint8).reshape(height, width, 4)[:, :, :3]

    def frame(self) -> int:
        """Return the number of the picture that the page has shown last."""
        return self.view.source.delivery.arrived  # type: ignore[attr-defined, no-any-return]


@pytest.fixture
def lab() -> Iterator[System]:
    require("compiler")
    with System("host", devices=1, name="lab") as system:
        yield system


@pytest.fixture
def particles(lab: System) -> ActorRef[ParticleSystemActor]:
    rng = np.random.default_rng(0)
    (device,) = lab.devices
    grid = (np.stack(np.meshgrid(np.arange(12), np.arange(12)), -1).reshape(-1, 2) + 0.5) / 12
    x = device.put(grid.astype("float32"))
    v = device.put(rng.normal(size=grid.shape).astype("float32") / 4)
    return lab.spawn(
        lambda: ParticleSystemActor(device, x, v, radius=0.03, pixels=(64, 64)), name="discs"
    )


@pytest.fixture
def shown(tab: "Tab", particles: ActorRef[ParticleSystemActor]) -> Iterator[Shown]:
    tab.page.set_viewport_size({"width": 900, "height": 900})
    player = Player(particles, steps=4)
    end = player.on_news(lambda: None)
    try:
        yield Shown(tab.page, CanvasView(player))
        tab.check()
    finally:
        end()
        tab.page.emulate_media(**PLAIN)


def test_pictures_follow_each_other_until_it_is_paused_and_a_step_is_one(shown: Shown) -> None:
    shown.until(lambda: shown.frame() > 0)
    first = shown.picture()
    assert first.shape == (64, 64, 3)
    assert first.std() > 10, "discs"
    shown.until(lambda: shown.frame() > 5)
    assert (shown.picture() != first).any()
    shown.page.get_by_role("button", name="Pause").click()
    shown.until(lambda: not shown.view.source.playing)  # type: ignore[attr-defined]
    shown.until(lambda: shown.page.get_by_role("button", name="Play").count() == 1)

    def rests() -> bool:
        """Whether no step is done any more; those that were on their way may be."""
        still = shown.view.sample()["steps"]
        for _ in range(5):
            shown.publish()
            shown.page.wait_for_timeout(50)
        return bool(shown.view.sample()["steps"] == still)

    shown.until(rests)
    steps = shown.view.sample()["steps"]
    shown.page.get_by_role("button", name="Step").click()
    shown.until(lambda: shown.view.sample()["steps"] == steps + 4)
    shown.until(lambda: f"step {steps + 4}" in shown.find(".al-chips").inner_text())
    shown.until(lambda: np.array_equal(shown.picture(), _pixels(shown)))


def _pixels(shown: Shown) -> Any:
    frame = shown.view.source.delivery.offered  # type: ignore[attr-defined]
    return frame.pixels


def test_a_slider_sends_its_message_and_shows_what_became_of_it(
    shown: Shown, particles: ActorRef[ParticleSystemActor]
) -> None:
    shown.until(lambda: shown.frame() > 0)
    slider = shown.page.get_by_label("gravity x")
    slider.fill("2.5")
    shown.until(lambda: particles.ask(Describe()).result().controls[0].value == 2.5)
    particles.ask(SetGravity(-1.0, 0.0)).result()  # from elsewhere: the slider follows
    shown.until(lambda: slider.input_value() == "-1")
    shown.until(lambda: "-1" in shown.find(".al-canvas-control >> nth=0").inner_text())


def test_a_film_is_recorded_that_a_browser_shows(
    shown: Shown, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))  # without ffmpeg it is a GIF
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    player = shown.view.source.player  # type: ignore[attr-defined]
    shown.until(lambda: shown.frame() > 0)
    shown.page.get_by_role("button", name="Record").click()
    shown.until(lambda: player.film is not None and player.film.pictures > 2)
    shown.until(lambda: "recording particles-" in shown.find(".al-canvas-film").inner_text())
    shown.shoot("canvas-recording")
    shown.page.get_by_role("button", name="Stop recording").click()
    shown.until(lambda: not player.film.running)
    said = f"{player.film.path.name}: {player.film.pictures} pictures"
    shown.until(lambda: said in shown.find(".al-canvas-film").inner_text())
    size = shown.page.evaluate(DECODED, list(player.film.path.read_bytes()))
    assert size == [64, 64]


def test_a_kill_is_a_hatch_and_the_picture_goes_on(shown: Shown, lab: System) -> None:
    shown.until(lambda: shown.frame() > 2)
    shown.page.evaluate(HATCHES)
    steps = shown.view.sample()["steps"]
    fault = lab.inject("kill")
    shown.until(lambda: shown.page.evaluate("() => window.hatches.length") > 0)
    shown.shoot("canvas-hatch")
    shown.until(lambda: shown.view.sample()["painted"] == 2)
    shown.until(lambda: shown.view.sample()["steps"] > steps + 8)
    shown.until(lambda: shown.find(".al-canvas-hatch").is_hidden())
    hatches = shown.page.evaluate("() => window.hatches")
    assert [hidden for hidden, _ in hatches] == [False, True]
    assert hatches[0][1].startswith("context lost")
    shown.until(lambda: "generation 2" in shown.find(".al-chips").inner_text())
    assert fault.error is not None
    with pytest.raises(type(fault.error)):
        fault.result()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_fluid_is_accessible_and_fits_a_narrow_page(tab: "Tab", lab: System, scheme: Any) -> None:
    from tests.browser.jupyter import axe

    (device,) = lab.devices
    fluid = lab.spawn(lambda: FluidSimulationActor(device, 32, 48, lift=30, eddies=2))
    fluid.ask(AddSource(Splash(24, 28, 4, dye=(6, 2.5, 0.8)))).result()
    tab.page.emulate_media(color_scheme=scheme)
    player = Player(fluid, steps=8)
    end = player.on_news(lambda: None)
    try:
        shown = Shown(tab.page, CanvasView(player))
        shown.page.evaluate(
            "(dark) => { document.body.style.background = dark ? '#16191d' : '#fff'; }",
            scheme == "dark",
        )
        shown.until(lambda: shown.frame() > 1)
        player.play(playing=False)
        for width in (900, 380):
            shown.page.set_viewport_size({"width": width, "height": 900})
            shown.expect(f'.accel-lab[data-theme="{scheme}"]').to_have_count(1)
            shown.shoot(f"canvas-{scheme}-{width}")
            box = "(one) => one.scrollWidth <= one.clientWidth + 1"
            assert shown.find(".accel-lab").evaluate(box)
            said, kept = axe(shown.find(".accel-lab"))
            assert said == []
            assert "color-contrast" in kept
        tab.check()
    finally:
        end()
        tab.page.emulate_media(**PLAIN)
