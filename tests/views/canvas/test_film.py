"""Films: what other programs read of them, and what is left when one cannot be written."""

import gc
import os
import stat
import subprocess
import sys
import time
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accel_lab import System, views
from accel_lab.blueprints.realtime import FluidSimulationActor, Picture, Splash, Step
from accel_lab.errors import ContextLost, FilmError, InvalidArgument
from accel_lab.views.canvas.film import Film
from accel_lab.views.canvas.mp4 import ffmpeg
from accel_lab.views.canvas.player import Player
from accel_lab.views.canvas.view import CanvasView
from accel_lab.views.widget import commands
from tests.conftest import require

HEIGHT, WIDTH = 12, 20
WAIT_S = 60.0

# A program in the place of ffmpeg: it writes down what it was told, and the pictures as they came.
RECORDER = """#!{python}
import json, sys
with open(sys.argv[-1], "wb") as file:
    file.write(json.dumps(sys.argv[1:]).encode() + b"\\n" + sys.stdin.buffer.read())
"""
FAILING = """#!{python}
import sys
sys.stdin.buffer.read({size})
sys.stderr.write("first\\nno room for a film\\n")
sys.exit(7)
"""


@pytest.fixture(scope="module")
def lab() -> Iterator[System]:
    require("compiler")
    with System("host", devices=1, name="lab") as system:
        yield system
        system.check()


def begin(lab: System) -> Any:
    (device,) = lab.devices
    actor = lab.spawn(lambda: FluidSimulationActor(device, HEIGHT, WIDTH, sweeps=5))
    actor.ask(Splash(10.0, 6.0, 4.0, velocity=(9.0, 4.0), dye=(0.9, 0.1, 0.5))).result()
    return actor


@pytest.fixture
def fluid(lab: System) -> Iterator[Any]:
    actor = begin(lab)
    yield actor
    actor.stop()


def by_hand(lab: System, pictures: int, steps: int = 1) -> list[Any]:
    """Return the pictures of the same simulation, stepped without a canvas."""
    actor = begin(lab)
    found = []
    for _ in range(pictures):
        actor.ask(Step(steps)).result()
        found.append(actor.ask(Picture()).result())
    actor.stop()
    return found


def read_gif(path: Path) -> tuple[list[Any], Any]:
    from PIL import Image, ImageSequence

    with Image.open(path) as image:
        frames = [np.array(one.convert("RGB")) for one in ImageSequence.Iterator(image)]
        return frames, image.info


def film(
    path: Path, *, most: int = 100, rate_hz: float = 25.0, size: Any = (HEIGHT, WIDTH)
) -> Film:
    return Film(path, size, most=most, rate_hz=rate_hz, of=None)


def noise(seed: int, shape: tuple[int, int] = (HEIGHT, WIDTH)) -> Any:
    return np.random.default_rng(seed).integers(0, 256, (*shape, 3), np.uint8)


def program(path: Path, text: str) -> None:
    path.mkdir()
    ffmpeg = path / "ffmpeg"
    ffmpeg.write_text(text.format(python=sys.executable, size=3 * HEIGHT * WIDTH))
    ffmpeg.chmod(ffmpeg.stat().st_mode | stat.S_IXUSR)


def test_a_film_has_each_picture_though_no_page_shows_one(
    lab: System, fluid: Any, tmp_path: Path
) -> None:
    canvas = views.canvas(fluid, steps=2)
    going = canvas.record(tmp_path / "dye.gif", pictures=6, rate_hz=20)
    assert going.wait(WAIT_S) == tmp_path / "dye.gif"
    frames, about = read_gif(going.path)
    assert (about["duration"], about["loop"]) == (50, 0)
    np.testing.assert_array_equal(frames, by_hand(lab, 6, steps=2))
    assert list(tmp_path.iterdir()) == [going.path]
    assert "dye.gif: 6 pictures, 0.3 s" in str(canvas)
    assert repr(going) == "<Film dye.gif: 6 pictures>"
    assert "data:image/gif;base64,R0lGODlh" in going._repr_html_()
    until_closed(canvas.source.player)


def until_closed(player: Player) -> None:
    thread = player._thread
    if thread is not None:
        thread.join(WAIT_S)
    assert not player.is_open


def test_pictures_larger_than_a_palette_are_near(tmp_path: Path) -> None:
    y, x = np.mgrid[:200, :300] / 100
    pixels = np.stack([127 + 120 * np.sin(x + i * y) for i in range(3)], -1).astype(np.uint8)
    one = film(tmp_path / "large.GIF", size=(200, 300), rate_hz=50)
    one.add(pixels)
    one.add(pixels[::-1].copy())
    frames, about = read_gif(one.stop())
    assert about["duration"] == 20
    assert np.abs(frames[0].astype(int) - pixels).mean() < 6
    assert np.abs(frames[1].astype(int) - pixels[::-1]).mean() < 6


def test_no_picture_is_kept(tmp_path: Path) -> None:
    held = []
    with film(tmp_path / "a.gif") as one:
        for seed in range(5):
            pixels = noise(seed)
            one.add(pixels)
            held.append(weakref.ref(pixels))
        del pixels
        gc.collect()
        assert [ref() for ref in held] == [None] * 5
    assert len(read_gif(one.path)[0]) == 5


def test_a_kill_leaves_out_pictures_and_shows_no_wrong_one(
    lab: System, fluid: Any, tmp_path: Path
) -> None:
    expected = [one.tobytes() for one in by_hand(lab, 40)]
    going = views.canvas(fluid).record(tmp_path / "kill.gif", pictures=20)
    while going.pictures < 5 and going.running:
        assert not going._ended.wait(0.01)
    fault = lab.inject("kill")
    frames, _ = read_gif(going.wait(WAIT_S))
    with pytest.raises(ContextLost):
        fault.result()
    places = [expected.index(one.tobytes()) for one in frames]
    assert places == sorted(places)
    assert len(places) == 20
    assert lab.devices[0].generation > 1


def test_the_last_page_that_is_closed_ends_the_film(fluid: Any, tmp_path: Path) -> None:
    player = Player(fluid)
    view = CanvasView(player)
    close = player.on_news(lambda: None)
    going = view.record(tmp_path / "closed.gif")
    while not going.pictures:
        assert not going._ended.wait(0.01)
    close()
    assert len(read_gif(going.wait(WAIT_S))[0]) == going.pictures
    until_closed(player)


def test_a_film_ends_with_its_simulation(lab: System, tmp_path: Path) -> None:
    actor = begin(lab)
    going = views.canvas(actor).record(tmp_path / "stopped.gif")
    while not going.pictures:
        assert not going._ended.wait(0.01)
    actor.stop()
    assert going.wait(WAIT_S).is_file()


def test_a_canvas_plays_without_a_page_until_it_is_paused(fluid: Any) -> None:
    canvas = views.canvas(fluid)
    player = canvas.source.player
    assert not player.is_open
    canvas.play()
    assert player.is_open
    while player.newest is None or player.newest.number < 3:
        assert player.is_open
        time.sleep(0.01)
    canvas.pause()
    until_closed(player)
    canvas.play()
    assert player.is_open
    canvas.pause()
    until_closed(player)


def test_the_button_records_to_the_working_directory(
    fluid: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    view = CanvasView(Player(fluid))
    assert "film" not in view.sample()
    commands.obey(view, do="record")
    going = view.source.player.film
    assert going is not None
    assert going.path.parent == tmp_path
    assert going.path.match("fluid-*.gif")
    with pytest.raises(InvalidArgument, match=r"record: fluid-.*\.gif is not over; stop\(\)"):
        view.record("other.gif")
    while not going.pictures:
        assert not going._ended.wait(0.01)
    assert view.sample()["film"]["running"]
    commands.obey(view, do="stop")
    assert view.sample()["film"] | {"told": ""} == {"running": False, "told": "", "failed": False}
    assert len(read_gif(going.path)[0]) == going.pictures

    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(FilmError, match=r"\.gif file needs Pillow: .*install pillow"):
        commands.obey(view, do="record")
    assert view.sample()["film"]["failed"]
    assert "needs Pillow" in view.text(view.sample())
    view.source.player.refused = "before"
    monkeypatch.undo()
    view.record(tmp_path / "again.gif", pictures=2).wait(WAIT_S)
    assert view.sample()["film"]["told"].startswith("again.gif: ")


def test_an_mp4_without_ffmpeg_is_refused(
    fluid: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    view = CanvasView(Player(fluid))
    with pytest.raises(FilmError, match=r"\.mp4 file needs ffmpeg: .*install imageio-ffmpeg"):
        view.record("a.mp4")


def test_what_cannot_be_recorded_is_refused(fluid: Any, tmp_path: Path) -> None:
    canvas = views.canvas(fluid)
    for wrong in ("a.avi", "gif", 3):
        with pytest.raises(InvalidArgument, match=r"record: path must end in \.gif or \.mp4, not"):
            canvas.record(wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="record: pictures must be an int from 1"):
        canvas.record(tmp_path / "a.gif", pictures=0)
    with pytest.raises(InvalidArgument, match="record: rate_hz must be a number from 1 up to 50"):
        canvas.record(tmp_path / "a.gif", rate_hz=60)
    with pytest.raises(FilmError, match=r"none/a\.gif cannot be written: there is no such folder"):
        canvas.record(tmp_path / "none" / "a.gif")
    (tmp_path / ".b.gif.part").mkdir()
    with pytest.raises(FilmError, match=r"b\.gif cannot be written: .*directory"):
        canvas.record(tmp_path / "b.gif")
    assert canvas.source.player.film is None


def test_a_full_disk_ends_the_film_and_leaves_the_file_that_was_there(tmp_path: Path) -> None:
    path = tmp_path / "full.gif"
    path.write_bytes(b"before")
    (tmp_path / ".full.gif.part").symlink_to("/dev/full")
    one = film(path, size=(200, 300))
    while one.running:
        one.add(noise(0, (200, 300)))
    with pytest.raises(FilmError, match=r"full\.gif was not written: .*No space left"):
        one.wait(WAIT_S)
    assert path.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [path]
    assert "was not written" in repr(one)


def test_a_film_without_a_picture_is_no_file(tmp_path: Path) -> None:
    one = film(tmp_path / "none.gif")
    with pytest.raises(TimeoutError, match=r"none\.gif: 0 pictures, recording> goes on after 0 s"):
        one.wait(0)
    with pytest.raises(FilmError, match="ended before there was a picture"):
        one.stop()
    assert list(tmp_path.iterdir()) == []


def test_ffmpeg_is_told_what_comes_and_gets_each_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path / "bin", RECORDER)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    pictures = [noise(seed) for seed in range(3)]
    with film(tmp_path / "a.mp4", rate_hz=12.5) as one:
        for pixels in pictures:
            one.add(pixels[:, ::-1])  # not in one piece
    told, _, raw = one.path.read_bytes().partition(b"\n")
    assert b'"-pix_fmt", "rgb24", "-video_size", "20x12"' in told
    assert b'"-framerate", "12.5"' in told
    assert raw == b"".join(pixels[:, ::-1].tobytes() for pixels in pictures)


@pytest.mark.parametrize("pictures", [1, 200])
def test_an_ffmpeg_that_fails_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pictures: int
) -> None:
    program(tmp_path / "bin", FAILING)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    one = film(tmp_path / "a.mp4", most=1000)
    for _ in range(pictures):
        one.add(noise(0))
    with pytest.raises(FilmError, match=r"a\.mp4 was not written: ffmpeg failed: no room for a f"):
        one.stop()
    assert not one.path.exists()


@pytest.mark.parametrize("size", [(12, 20), (33, 47)])
def test_an_mp4_has_the_pictures_as_ffmpeg_reads_them(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    require("ffmpeg")
    height, width = size
    y, x = np.mgrid[:height, :width]
    pictures = [
        np.stack([60 + 3 * x + k, 60 + 3 * y, 120 + 0 * x], -1).astype(np.uint8) for k in range(8)
    ]
    with film(tmp_path / "a.mp4", size=size) as one:
        for pixels in pictures:
            one.add(pixels)
    read = [str(ffmpeg()), "-loglevel", "error", "-i", str(one.path), "-f", "rawvideo"]
    raw = subprocess.run([*read, "-pix_fmt", "rgb24", "-"], check=True, capture_output=True).stdout
    even = height + height % 2, width + width % 2
    frames = np.frombuffer(raw, np.uint8).reshape(-1, *even, 3)[:, :height, :width]
    assert len(frames) == 8
    assert np.abs(frames.astype(int) - pictures).mean() < 8


def test_a_program_that_ends_before_its_film_leaves_a_whole_one(tmp_path: Path) -> None:
    code = """
import numpy as np
from accel_lab.views.canvas.film import Film
one = Film("left.gif", (4, 5), most=9, rate_hz=25, of=None)
one.add(np.zeros((4, 5, 3), np.uint8))
"""
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=os.environ, check=True)
    assert len(read_gif(tmp_path / "left.gif")[0]) == 1
