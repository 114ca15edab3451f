"""Show the quickstart in the terminal: compute, kill the context's process, go on.

On a terminal the device tree stays below the lines and follows what happens; elsewhere the tour
is plain lines, and the tree is printed where it changes.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
from rich.console import Console
from rich.live import Live
from rich.text import Text

from accel_lab.compute.device import Device
from accel_lab.compute.events import lifecycle as facts
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.errors import ContextLost
from accel_lab.libraries.blas import library as blas
from accel_lab.system import System
from accel_lab.views.tree import state_of, text

LIMIT_S = 60.0
LOOK_S = 1.5
SHORT_S = 0.1
FRAMES_HZ = 10
TOLERANCE = 1e-3
STYLES = {"busy": "green", "starting": "yellow", "restarting": "yellow", "stopped": "dim"}
STORY = (
    facts.ContextExited,
    facts.GenerationChanged,
    facts.ContextLost,
    facts.ContextStarted,
    facts.BuffersRebuilt,
)


class Differs(Exception):
    """The tour did not end as it must."""


def tour(backend: str = "auto", console: Console | None = None) -> bool:
    """Run the tour and tell whether everything was as it must be; blocks for some seconds.

    Raises:
        AccelError: the backend cannot run, or a request failed that should not.
    """
    console = console or Console()
    begin = time.perf_counter()
    lab = System(backend, devices=1)
    stage = Stage(console, lab)
    try:
        with stage.live():
            _open(stage, lab)
            _tour(stage, lab)
        _close(stage, lab)
    except Differs as difference:
        stage.say(f"✗ {difference}", "red")
        return False
    finally:
        lab.close()
    stage.say(f"Everything worked. {time.perf_counter() - begin:.1f} s.", "green")
    return True


class Stage:
    """Where the tour speaks: lines, and a tree that is live where it can be."""

    def __init__(self, console: Console, lab: System) -> None:
        self._console = console
        self._lab = lab
        self.is_live = console.is_terminal and not console.is_dumb_terminal

    @contextmanager
    def live(self) -> Iterator[None]:
        """Keep the tree below the lines."""
        if not self.is_live:
            yield
            return
        with Live(console=self._console, get_renderable=self._drawn, refresh_per_second=FRAMES_HZ):
            yield

    def heading(self, words: str) -> None:
        """Begin a part of the tour."""
        self.say(f"\n{words}", "bold")

    def say(self, words: str, style: str = "") -> None:
        """Print a line, or several, without breaking them where they are not for a terminal."""
        self._console.print(Text(words, style), soft_wrap=not self.is_live)

    @property
    def pause_s(self) -> float:
        """How long the device is kept busy, so that it can be seen."""
        return LOOK_S if self.is_live else SHORT_S

    def tree(self) -> None:
        """Show the tree as it is now, and leave time to look at it where it is live."""
        if self.is_live:
            time.sleep(LOOK_S)
        else:
            self.say(text(state_of(self._lab.tree())))

    def _drawn(self) -> Text:
        """Draw the tree; the display's own thread."""
        tree = Text("\n" + text(state_of(self._lab.tree())), no_wrap=True, overflow="ellipsis")
        for state, style in STYLES.items():
            tree.highlight_words([state], style)
        return tree


def _open(stage: Stage, lab: System) -> None:
    stage.heading("Open a system")
    lab.ready()
    device = lab.devices[0]
    stage.say(
        f"{device.name} is {lab.tree().children[0].detail}.\n"
        f"A child process drives it: its context, generation {device.generation}."
    )
    stage.tree()


def _tour(stage: Stage, lab: System) -> None:
    device = lab.devices[0]
    random = np.random.default_rng(0)
    a, b, c = (random.standard_normal((512, 512), dtype=np.float32) for _ in range(3))
    expected = 2 * (a @ b) + c

    stage.heading("Compute 2 a @ b + c: two messages, the second sent before the first is done")
    x, y, z = (device.put(array) for array in (a, b, c))
    device.run(time.sleep, stage.pause_s)
    total = blas.axpy(blas.gemm(x, y), z, alpha=2.0)
    stage.say(f"sent:  {total!r}")
    saved = _same(device, total, expected)
    stage.say(f"done:  {total!r}")
    stage.say("✓ equal to NumPy's", "green")

    stage.heading("Kill the context's process, as Linux does when memory runs out")
    before, begin = device.generation, time.time()
    busy = device.run(time.sleep, stage.pause_s)  # the kill and a product wait behind it
    fault = lab.inject("kill", device)
    behind = blas.gemm(x, y)
    with suppress(ContextLost):  # its answer may just have left, or be lost too
        busy.result(LIMIT_S)
    lost = _raises(ContextLost, lambda: fault.result(LIMIT_S))
    stage.say(f"{type(lost).__name__}: {lost}", "yellow")

    stage.heading("Go on in the same process: accel_lab rebuilds the arrays behind your handles")
    again = blas.axpy(behind, z, alpha=2.0).result(LIMIT_S)
    back = time.time()
    stage.say(f"again: {again!r}")
    _same(device, again, saved)
    _same(device, total, saved)
    stage.say("✓ the same result", "green")
    if device.generation != before + 1:
        raise Differs(f"{device.name} is at generation {device.generation}, not {before + 1}")
    _story(stage, lab, begin, back)
    stage.tree()


def _story(stage: Stage, lab: System, begin: float, back: float) -> None:
    """Tell what the event stream has of the loss; times are wall seconds."""
    story = [event for event in lab.events.history(*STORY) if event.at >= begin]
    start = story[0].at
    for event in story:
        if isinstance(event, facts.GenerationChanged):
            change = f" {event.before} → {event.after}"
        else:
            change = ""
        stage.say(f"  +{event.at - start:.3f} s  {type(event).__name__}{change}")
    stage.say(f"  +{back - start:.3f} s  first result of the new generation")


def _same(device: Device, ref: AccelRef, expected: Any) -> Any:
    """Fetch a buffer and compare it; return the array."""
    found = device.get(ref).result(LIMIT_S)
    if not np.allclose(found, expected, rtol=TOLERANCE, atol=TOLERANCE):
        worst = float(np.abs(found - expected).max())
        raise Differs(f"the result is not NumPy's: they differ by up to {worst:g}")
    return found


def _raises(kind: type[Exception], act: Callable[[], object]) -> Exception:
    try:
        act()
    except kind as error:
        return error
    raise Differs(f"no {kind.__name__} was raised")


def _close(stage: Stage, lab: System) -> None:
    stage.heading("Close")
    lab.check()
    lab.close()
    stage.say("every process has ended, and no failure was missed")
