"""Who reaches whom among the devices of a system, over what, and how fast that was.

A figure is of the two contexts between which it was measured: with a new generation of either it
is stale, and says so, until it is measured again.
"""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import permutations
from operator import methodcaller
from typing import Any, NamedTuple, Self

import msgspec

from accel_lab.compute.device import Device
from accel_lab.compute.events.samples import PeerLook, PeersSampled
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.builtin import Allocate
from accel_lab.compute.message.validation import require_bytes, require_count
from accel_lab.compute.peers import drawing
from accel_lab.compute.peers.link import SAME, Link, distance
from accel_lab.compute.transfer.ways import Taken, Ways
from accel_lab.errors import InvalidArgument
from accel_lab.uncopied import Uncopied

MEASURED_BYTES = 64 << 20
ROUNDS = 3
FIRST_S = 0.3
AGAIN_S = 1.0
NOTHING = (-1,)
"""The generations for which a look was of no use."""
"""How long the first look waits for the links; later ones take what is known."""
LIMIT_S = 120.0
"""How long one copy of a measurement may take."""

Links = Mapping[tuple[str, str], Link]


class Figure(NamedTuple):
    """What was measured from one device to another.

    Attributes:
        gb_per_s: the fastest of the copies, in 10**9 bytes a second.
        nbytes: how large each of them was.
        way: how they went.
        stale: whether one of the two has another context by now.
    """

    gb_per_s: float
    nbytes: int
    way: str
    stale: bool


class _Measured(NamedTuple):
    figure: Figure
    generations: tuple[int, int]


class P2pTopology(Uncopied):
    """The links between the devices of one system; displays itself as a heat map.

    Any thread. Devices are given as such, by name or by position.

    Parameters:
        links: asks the backend for the link of each ordered pair, by name; may block.
        ways: of the copies between them.
    """

    _instead = "it is of a system of this process"

    def __init__(self, devices: Sequence[Device], links: Callable[[], Links], ways: Ways) -> None:
        self._devices = list(devices)
        self._ask = links
        self._ways = ways
        self._lock = threading.Lock()
        self._links: tuple[tuple[int, ...], Links] = (), {}
        self._measured: dict[tuple[str, str], _Measured] = {}
        self._sought: tuple[int, ...] = ()
        self._looked: tuple[object, PeersSampled] | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the devices, in the order of the system."""
        return tuple([device.name for device in self._devices])

    @property
    def direct(self) -> bool:
        """Whether one card may read another's memory, where the driver lets it (CUDA IPC).

        Off when not set: a loss of either card fails such a copy, and one that is staged is sent
        again. Copies that are sent after it was set go that way. Of no effect on `host`.
        """
        return self._ways.direct

    @direct.setter
    def direct(self, direct: bool) -> None:
        for (source, target), link in self.links.items() if direct else ():
            if not link.reachable:
                self._ways.refuse(source, target)
        self._ways.direct = bool(direct)

    @property
    def links(self) -> Links:
        """The link of each ordered pair of devices, by their names.

        The backend is asked for it again when a device has a new context. May block for that.
        """
        now = self._generations()
        then, links = self._links
        if now != then:
            links = self._ask()
            self._links = now, links
        return links

    def link(self, source: Device | str | int, target: Device | str | int) -> Link:
        """Return how one device reaches another.

        Raises:
            InvalidArgument: there is no such device.
        """
        a, b = self._device(source).name, self._device(target).name
        return Link(SAME, reachable=True) if a == b else self.links[a, b]

    def reachable(self, source: Device | str | int, target: Device | str | int) -> bool:
        """Whether a device can read another's memory, or, on `host`, share memory with it.

        Raises:
            InvalidArgument: there is no such device.
        """
        return self.link(source, target).reachable

    def distance(self, a: Device | str | int, b: Device | str | int) -> float:
        """Return how far two devices are from each other; 0 for one and the same.

        Raises:
            InvalidArgument: there is no such device.
        """
        return distance(self.link(a, b))

    @property
    def islands(self) -> tuple[tuple[str, ...], ...]:
        """The devices in groups of which each reaches the others, if need be by others of them."""
        return _islands(self.names, self.links)

    @property
    def copies(self) -> list[Taken]:
        """How many copies went from which device to which, and which way, so far."""
        return self._ways.taken()

    def measure(
        self,
        nbytes: int = MEASURED_BYTES,
        *,
        rounds: int = ROUNDS,
        anew: bool = True,
    ) -> Self:
        """Copy between each pair of devices, one pair after the other, and keep the speed.

        It is what a copy takes from the call until the target has answered, by the wall clock: the
        fastest of some after a first that does not count. So it has the cost of a message in it,
        which small copies show. Blocks; what else the devices do meanwhile slows it down. The
        copies are in the journal as any others, without their contents.

        Parameters:
            nbytes: how large each copy is.
            rounds: how many copies count.
            anew: whether to measure also those pairs that have a figure which is not stale.

        Raises:
            InvalidArgument: `nbytes` or `rounds` is no positive number.
            AccelError: a device takes no messages, or loses its context meanwhile.
            TimeoutError: a copy took longer than 120 s.
        """
        size = require_bytes(nbytes, "nbytes")
        if size is None:
            raise InvalidArgument("nbytes is how large each copy is, not None")
        count = require_count(rounds, "rounds")
        if not size or not count:
            raise InvalidArgument("measure() needs a byte and a round at least")
        for source in self._devices:
            targets = [
                target
                for target in self._devices
                if target is not source and (anew or self._is_open(source, target))
            ]
            if targets:
                filled = _filled(source, size)
                for target in targets:
                    self._measure(filled, target, count)
        return self

    def bandwidth(self, source: Device | str | int, target: Device | str | int) -> Figure | None:
        """Return what was measured from one device to another; None if nothing was.

        Raises:
            InvalidArgument: there is no such device.
        """
        a, b = self._device(source), self._device(target)
        with self._lock:
            measured = self._measured.get((a.name, b.name))
        if measured is None:
            return None
        return measured.figure._replace(stale=measured.generations != (a.generation, b.generation))

    def look(self) -> PeersSampled:
        """Return what is known; any thread, waits for the links 0.3 s at most, and the first time.

        Those of new contexts are asked for in a thread, and come with a later call: a driver may
        hang just when somebody wants to know why. Until then it has those of the old ones.
        """
        now = self._generations()
        if now not in (self._links[0], self._sought):
            is_first, self._sought = not self._sought, now
            seeker = threading.Thread(target=self._seek, name="accel_lab peers", daemon=True)
            seeker.start()
            seeker.join(FIRST_S if is_first else 0.0)
        then, links = self._links
        with self._lock:
            key = now, then, tuple(self._measured.values())
        if self._looked is None or self._looked[0] != key:
            self._looked = key, self._sample(links)
        return msgspec.structs.replace(self._looked[1], at=time.time())

    def _sample(self, links: Links) -> PeersSampled:
        names = self.names
        if not links:
            return PeersSampled(devices=names)
        looks = []
        for (source, target), link in links.items():
            look = PeerLook(source, target, link.text, link.reachable)
            if figure := self.bandwidth(source, target):
                look = msgspec.structs.replace(look, **figure._asdict())
            looks.append(look)
        return PeersSampled(devices=names, islands=_islands(names, links), links=tuple(looks))

    def _seek(self) -> None:
        try:
            self.links  # noqa: B018 - asks for them, and keeps them
        except Exception:  # noqa: BLE001 - the driver does not answer; who asks for them is told
            time.sleep(AGAIN_S)  # nobody waits for this thread then
            self._sought = NOTHING

    def _generations(self) -> tuple[int, ...]:
        return tuple([device.generation for device in self._devices])

    def _is_open(self, source: Device, target: Device) -> bool:
        figure = self.bandwidth(source, target)
        return figure is None or figure.stale

    def _measure(self, filled: AccelRef, target: Device, rounds: int) -> None:
        source = filled.device
        generations = source.generation, target.generation
        fastest, way = float("inf"), ""
        for turn in range(rounds + 1):
            begun = time.perf_counter()
            copied, way = target.copy_of(filled, kept_bytes=0)
            copied.result(LIMIT_S)
            seconds = time.perf_counter() - begun
            if turn:
                fastest = min(fastest, seconds)
            copied.free()
        figure = Figure(filled.nbytes / fastest / 1e9, filled.nbytes, way, stale=False)
        with self._lock:
            self._measured[source.name, target.name] = _Measured(figure, generations)

    def _device(self, given: Device | str | int) -> Device:
        for position, device in enumerate(self._devices):
            if given is device or given in (device.name, position):
                return device
        text = f"{given!r} is no device here; there are {', '.join(self.names)}"
        raise InvalidArgument(text)

    def _cells(self) -> drawing.Cells:
        links = self.links
        return {
            (a, b): drawing.Cell(links[a, b], self.bandwidth(a, b))
            for a, b in permutations(self.names, 2)
        }

    def __repr__(self) -> str:
        return drawing.text(self.names, self._cells(), self.islands, self.copies)

    def _repr_mimebundle_(self, **_: object) -> dict[str, Any]:
        """Give a notebook the table and the heat map."""
        html = drawing.html(self.names, self._cells(), self.islands, self.copies)
        return {"text/plain": repr(self), "text/html": html}


def _islands(names: Sequence[str], links: Links) -> tuple[tuple[str, ...], ...]:
    left, found = list(names), []
    while left:
        island = [left.pop(0)]
        for one in island:  # it grows meanwhile
            near = [b for b in left if links[one, b].reachable or links[b, one].reachable]
            island += near
            left = [b for b in left if b not in near]
        found.append(tuple([name for name in names if name in island]))
    return tuple(found)


def _filled(device: Device, nbytes: int) -> AccelRef:
    """Make a buffer whose memory is there: pages that nobody has written cost no reading."""
    made = device.ask(Allocate((nbytes,), "uint8"))
    device.run(methodcaller("fill", 1), made, called="fill").result(LIMIT_S)
    return made
