"""The canvas without a browser: its picture, what the page may ask, and which picture is sent."""

import io
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from accel_lab import System, views
from accel_lab.actor import Actor, Message, handles
from accel_lab.blueprints.realtime import Describe, FluidSimulationActor, Splash, Step
from accel_lab.display.table import WIDTH
from accel_lab.errors import ActorStopped, InvalidArgument
from accel_lab.views.canvas.player import Player
from accel_lab.views.canvas.png import png
from accel_lab.views.canvas.view import CanvasView
from accel_lab.views.widget import commands
from tests.conftest import require


@pytest.fixture(scope="module")
def lab() -> Iterator[System]:
    require("compiler")
    with System("host", devices=1, name="lab") as system:
        yield system
        system.check()


@pytest.fixture
def fluid(lab: System) -> Iterator[Any]:
    (device,) = lab.devices
    actor = lab.spawn(lambda: FluidSimulationActor(device, 12, 20, sweeps=5), name="fluid")
    actor.ask(Splash(10.0, 6.0, 4.0, velocity=(9.0, 4.0), dye=(0.9, 0.1, 0.5))).result()
    yield actor
    actor.stop()


def read(data: bytes) -> Any:
    """Return the pixels of a PNG file as Matplotlib reads it."""
    from matplotlib.image import imread

    return np.round(imread(io.BytesIO(data), format="png")[:, :, :3] * 255).astype(np.uint8)


@pytest.mark.parametrize("shape", [(1, 1, 3), (7, 300, 3), (64, 5, 3)])
def test_a_png_file_has_the_pixels(shape: tuple[int, int, int]) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, shape, np.uint8)
    np.testing.assert_array_equal(read(png(pixels)), pixels)


def test_where_nothing_is_live_it_is_one_picture_with_its_measures(fluid: Any) -> None:
    fluid.ask(Step(3)).result()
    view = views.canvas(fluid)
    assert type(view) is CanvasView
    drawn, _ = view._repr_mimebundle_()
    assert max(map(len, drawn["text/plain"].splitlines())) <= WIDTH
    assert drawn["text/plain"].startswith("fluid on lab/cpu0: step 3, 20 by 12 pixels\n  kinetic")
    assert '<img alt="fluid on lab/cpu0: step 3' in drawn["text/html"]
    assert "largest divergence" in drawn["text/html"]
    frame = view.source.delivery.offered
    assert frame is not None
    assert frame.pixels.shape == (12, 20, 3)
    assert frame.pixels.max() > 100
    assert fluid.ask(Describe()).result().steps == 3, "it was looked at, and not stepped"


def played(player: Player, pictures: int) -> None:
    """Turn a player without its thread."""
    for _ in range(pictures):
        assert player.turn() is not None


def test_the_newest_picture_is_sent_when_the_one_before_has_arrived(fluid: Any) -> None:
    player = Player(fluid, steps=2)
    view = CanvasView(player)
    played(player, 1)
    assert view.sample()["frame"] == 1
    played(player, 3)
    state = view.sample()
    assert state["frame"] == 1, "the page has not said that it has the first"
    first = view.pack(player.look())
    commands.obey(view, do="shown", frame=1)
    state = view.sample()
    assert (state["frame"], state["steps"]) == (4, 8), "two were left out"
    assert view.pack(player.look()) != first
    played(player, 1)
    player.delivery._offered_at = (
        time.monotonic() - 2
    )  # a page that says nothing is given the next one
    assert view.sample()["frame"] == 5


def test_it_stands_still_goes_on_by_one_and_plays(fluid: Any) -> None:
    player = Player(fluid, steps=2)
    view = CanvasView(player)
    played(player, 2)
    commands.obey(view, do="pause")
    commands.obey(view, do="step")
    played(player, 1)
    assert fluid.ask(Describe()).result().steps == 6
    assert not view.sample()["playing"]
    commands.obey(view, do="play")
    played(player, 1)
    assert fluid.ask(Describe()).result().steps == 8


def test_a_control_sends_its_message_and_paints_anew_though_it_stands_still(fluid: Any) -> None:
    player = Player(fluid)
    view = CanvasView(player)
    played(player, 1)
    commands.obey(view, do="pause")
    before = player.newest
    commands.obey(view, do="set", name="show", value=2)
    commands.obey(view, do="set", name="lift", value=12.5)
    played(player, 1)
    assert before is not None
    assert player.newest is not None
    assert (player.newest.pixels != before.pixels).any()
    controls = {one["name"]: one for one in view.sample()["controls"]}
    assert controls["lift"]["value"] == 12.5
    assert controls["show"]["choices"][controls["show"]["value"]] == "pressure"
    assert fluid.ask(Describe()).result().steps == 1
    for name, value, text in (
        ("heat", 1, "fluid has no control 'heat'; it has show, viscosity, eddies, lift"),
        ("lift", 51, "set lift must be a number from -50 up to 50, not 51"),
        ("lift", "high", "set lift must be a number"),
    ):
        with pytest.raises(InvalidArgument, match=text):
            commands.obey(view, do="set", name=name, value=value)


def test_a_simulation_that_stops_ends_its_canvas(lab: System) -> None:
    (device,) = lab.devices
    actor = lab.spawn(lambda: FluidSimulationActor(device, 8, 8))
    player = Player(actor)
    view = CanvasView(player)
    end = player.on_news(lambda: None)
    actor.stop()
    with pytest.raises(ActorStopped):
        actor.ask(Step()).result()
    until(lambda: player._thread is None)
    assert view.sample()["closed"]
    assert player.ended
    end()


def until(done: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not done():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_who_follows_again_after_the_end_sees_it_play(fluid: Any) -> None:
    player = Player(fluid)
    view = CanvasView(player)

    def steps() -> int:
        view.do_shown(view.sample()["frame"])
        number: int = view.sample()["steps"]
        return number

    for _ in range(2):
        before = steps()
        end = player.on_news(lambda: None)
        until(lambda: steps() > before + 2)  # noqa: B023 - it is done before the next one
        end()
        until(lambda: player._thread is None)
    still = fluid.ask(Describe()).result().steps
    time.sleep(0.1)
    assert fluid.ask(Describe()).result().steps == still


def test_what_is_no_simulation_is_refused(lab: System) -> None:
    class Other(Actor):
        pass

    other = lab.spawn(Other)
    for wrong, text in ((3, "not int"), (lab, "not System"), (other, "is a Other")):
        with pytest.raises(InvalidArgument, match=f"takes the address of a Simulation.*{text}"):
            views.canvas(wrong)  # type: ignore[arg-type]
    other.stop()


def test_a_canvas_is_the_same_when_asked_for_again(fluid: Any) -> None:
    first = views.canvas(fluid)
    assert views.canvas(fluid, steps=3).source is first.source
    assert first.source.player.steps == 3
    with pytest.raises(InvalidArgument, match="canvas: steps must be an int from 1"):
        views.canvas(fluid, steps=0)


class Nap(Message[None], frozen=True):
    """Have the simulation answer nobody until the event is set."""

    until: threading.Event


class Napping(FluidSimulationActor):
    """A simulation that may be busy for longer than a canvas waits."""

    @handles(Nap)
    def nap(self, m: Nap) -> None:
        m.until.wait(30)


def test_a_simulation_that_is_long_busy_is_told_and_shown_again(
    lab: System, monkeypatch: pytest.MonkeyPatch
) -> None:
    (device,) = lab.devices
    actor = lab.spawn(lambda: Napping(device, 8, 8))
    player, module = Player(actor), sys.modules[Player.__module__]
    monkeypatch.setattr(module, "ANSWER_S", 0.05)
    player.play(playing=False)
    awake = threading.Event()
    napping = actor.ask(Nap(awake))
    assert player.turn() is not None
    assert "TimeoutError: no answer within" in CanvasView(player).sample()["problem"]
    awake.set()
    napping.result()
    monkeypatch.setattr(module, "ANSWER_S", 60.0)
    assert player.turn() is not None
    assert player.problem == ""
    assert player.newest is not None
    actor.stop()
