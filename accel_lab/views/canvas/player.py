"""What steps a simulation and fetches its pictures, for a view and for a film.

A thread of its own waits for the device. A page is given the newest picture, a film each one.
"""

import threading
import time
import weakref
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from accel_lab import open_systems
from accel_lab.actor.actor import ActorRef
from accel_lab.blueprints.realtime.simulation import (
    Control,
    Describe,
    Description,
    Measure,
    Picture,
    Simulation,
    Step,
)
from accel_lab.errors import AccelError, ActorStopped, InvalidArgument, SystemClosed
from accel_lab.system import System
from accel_lab.uncopied import Uncopied
from accel_lab.views.canvas.delivery import Delivery, Frame
from accel_lab.views.canvas.film import Film
from accel_lab.views.scene.observer import Lab, Observer, Want, observer_of
from accel_lab.views.scene.scene import Scene
from accel_lab.views.widget.publisher import MAX_HZ

ANSWER_S = 60.0
MEASURE_S = 0.5
AGAIN_S = 0.5
"""How long it waits after a failure, before it tries again."""


class Player(Uncopied):
    """The source of a canvas: the scene of the simulation's system, and its pictures.

    Parameters:
        steps: how many a picture.

    Attributes:
        described: the simulation, as it last described itself.
        newest: its newest picture; None before the first one.
        delivery: what of it the page is given.
        film: the last one that was begun, if any.
        refused: why the page's button began none; empty when it did.
        problem: why there is no new picture; empty while there is.
        rate_hz: how many pictures came in the last second.
    """

    def __init__(self, actor: ActorRef[Simulation], *, steps: int = 1) -> None:
        self.actor = actor
        self.steps = steps
        self.described: Description = _describe(actor)
        self.playing = True
        self.newest: Frame | None = None
        self.delivery = Delivery()
        self.film: Film | None = None
        self.refused = ""
        self.measured: list[float] = []
        self.problem = ""
        self.rate_hz = 0.0
        self._observer: Observer = observer_of(_system_of(self.described))
        self.lock = self._observer.lock
        self._told_at = -float("inf")
        self._arrivals: list[float] = []
        self._single = 0
        self._repaint = True
        self._stopped = False
        self._unseen = False
        self._followers: list[Callable[[], None]] = []
        self._wake = threading.Condition()
        self._thread: threading.Thread | None = None

    @property
    def player(self) -> "Player":
        """Itself: a page that looks on has another source, which says whose pictures it shows."""
        return self

    @property
    def lab(self) -> Lab | None:
        """The simulation's system."""
        return self._observer.lab

    @property
    def ended(self) -> bool:
        """Whether there will be no other picture."""
        return self._observer.ended or not self.actor.is_alive

    def want(self, holder: object, wants: Iterable[Want]) -> None:
        """Sample this as long as `holder` lives."""
        self._observer.want(holder, wants)

    def look(self) -> Scene:
        """Return the scene, and offer the newest picture if the page has the one before."""
        self.delivery.offer(self.newest)
        return self._observer.look()

    def scene(self) -> Scene:
        """Return the scene, and offer nothing."""
        return self._observer.look()

    def see(self) -> None:
        """Have a picture painted now, if there is none yet; waits for it."""
        if self.newest is None and not self.ended:
            try:
                self._paint()
            except (AccelError, TimeoutError) as error:
                self.problem = _first_line(error)

    def on_news(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Play from now on, until what this returns is called."""
        self._followers.append(callback)
        unfollow = self._observer.on_news(callback)
        with self._wake:
            self._begin()

        def end() -> None:
            unfollow()
            with self._wake:
                if callback in self._followers:
                    self._followers.remove(callback)
                if not self._followers:
                    self._stopped = True
                    self._unseen = False
                self._wake.notify_all()

        return end

    def _begin(self) -> None:
        """Have the thread run; who holds `_wake`."""
        self._stopped = False
        if self._thread is None:
            args = (weakref.ref(self),)
            self._thread = threading.Thread(
                target=_play, args=args, name="accel_lab canvas", daemon=True
            )
            self._thread.start()

    @property
    def is_open(self) -> bool:
        """Whether it plays, or would if it did not stand still."""
        return self._thread is not None

    def heard(self, number: int) -> None:
        """Note which picture the page has shown."""
        self.delivery.heard(number)
        if self.newest is not None and self.newest.number > self.delivery.arrived:
            self._nudge()

    def play(self, *, playing: bool, unseen: bool = False) -> None:
        """Go on, or stand still.

        Parameters:
            unseen: go on though no page shows it, until one that does is closed.
        """
        with self._wake:
            self.playing = playing
            if unseen:
                self._begin()
            elif self._unseen and not self._followers:
                self._stopped = True
            self._unseen = playing and (unseen or self._unseen)
            self._wake.notify_all()
        self._nudge()

    def record(self, path: str | Path, *, most: int, rate_hz: float) -> Film:
        """Write each picture from now on to a film, until it ends or all pages are closed.

        Raises:
            FilmError: what writes such a file is not installed, or it cannot be written there.
            InvalidArgument: it is neither a .gif nor an .mp4, or another film is not over.
        """
        with self._wake:
            if self.film is not None and self.film.running:
                name = self.film.path.name
                raise InvalidArgument(f"record: {name} is not over; stop() that film first")
            size = self.described.size
            film = self.film = Film(path, size, most=most, rate_hz=rate_hz, of=self)
            self.refused = ""
            self._begin()
        self._nudge()
        return film

    def step(self) -> None:
        """Go on by one picture, and stand still."""
        with self._wake:
            self.playing = False
            self._single += 1
            self._wake.notify_all()

    def set(self, name: str, value: float) -> None:
        """Send the message of a control, and wait for what becomes of it.

        Raises:
            InvalidArgument: there is no such control, or it does not take the value.
        """
        control = self.control(name)
        self.actor.ask(control.message(value)).result(ANSWER_S)
        self.described = _describe(self.actor)
        with self._wake:
            self._told_at = -float("inf")
            self._repaint = True
            self._wake.notify_all()
        self._nudge()

    def control(self, name: str) -> Control:
        """Return a control.

        Raises:
            InvalidArgument: there is no such.
        """
        for one in self.described.controls:
            if one.name == name:
                return one
        names = ", ".join(one.name for one in self.described.controls) or "none"
        raise InvalidArgument(f"{self.described.title} has no control {name!r}; it has {names}")

    def _nudge(self) -> None:
        for follower in list(self._followers):
            follower()

    def turn(self) -> float | None:
        """Do what is next, and return how long to wait after it; None at the end.

        Runs in the player's thread.
        """
        with self._wake:
            idle = not (self.playing or self._single or self._repaint)
            if self._is_over():
                self._thread = None  # who follows later has another
                self._unseen = False
                return None
            if idle:
                self._wake.wait(AGAIN_S)
                return 0.0
            steps = self.steps if self.playing or self._single else 0
            self._single = max(0, self._single - 1)
            self._repaint = False
        began = time.monotonic()
        try:
            if steps:
                self.actor.ask(Step(steps)).result()
            self._paint()
        except (AccelError, TimeoutError) as error:  # the simulation may have much to do
            if isinstance(error, ActorStopped | SystemClosed):
                self._nudge()
                return AGAIN_S  # the next turn is the end
            self.problem = _first_line(error)
            self._repaint = True
            self._nudge()
            return AGAIN_S
        self.problem = ""
        self._nudge()
        if not self._followers and self.film is not None and self.film.running:
            return 0.0  # a film that nobody watches is made as fast as it can be
        return max(0.0, 1 / MAX_HZ - (time.monotonic() - began))

    def _is_over(self) -> bool:
        """Whether nobody asks for another picture; who holds `_wake`."""
        filmed = self.film is not None and not self.film.running
        unasked = filmed and not (self._followers or self._unseen)
        return self._stopped or self.ended or unasked

    def _paint(self) -> None:
        """Fetch a picture, and the measures: now and then while it plays, else each time."""
        self.described = _describe(self.actor)
        if not self.playing or time.monotonic() - self._told_at >= MEASURE_S:
            self._told_at = time.monotonic()
            self.measured = [float(one) for one in self.actor.ask(Measure()).result()]
        pixels = self.actor.ask(Picture()).result()
        now = time.monotonic()
        self._arrivals = [at for at in self._arrivals if now - at < 1] + [now]
        self.rate_hz = float(len(self._arrivals))
        number = 1 if self.newest is None else self.newest.number + 1
        generation = self.described.device.generation
        self.newest = Frame(number, pixels, generation, self.described.steps)
        if self.film is not None:
            self.film.add(pixels)


def _play(player: "weakref.ref[Player]") -> None:
    """Turn a player for as long as somebody holds it, and end its film."""
    film: Film | None = None
    while (one := player()) is not None:
        pause, film = one.turn(), one.film
        del one
        if pause is None:
            break
        time.sleep(pause)
    if film is not None:
        film.finish()


def _describe(actor: ActorRef[Any]) -> Description:
    """Ask a simulation what it is; waits for it.

    Raises:
        InvalidArgument: it is no actor, or none that is a simulation.
    """
    what = "a canvas takes the address of a Simulation, as lab.spawn returns it"
    if not isinstance(actor, ActorRef):
        raise InvalidArgument(f"{what}, not {type(actor).__name__}")
    try:
        return actor.ask(Describe()).result(ANSWER_S)
    except InvalidArgument as error:
        raise InvalidArgument(f"{what}; {actor.name} is a {actor.kind}") from error


def _system_of(described: Description) -> System:
    """Return the system that has the simulation's device.

    Raises:
        SystemClosed: it was closed.
    """
    for system in open_systems.running():
        if described.device in system.devices:
            return system
    raise SystemClosed(f"the system of {described.device.name} was closed")


def _first_line(error: AccelError | TimeoutError) -> str:
    return f"{type(error).__name__}: {error}".partition("\n")[0]
