"""Sends messages that name no device, and keys to the device that is theirs."""

import itertools
import threading
import time
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

import numpy.typing as npt

from accel_lab.actor.events import EventStream
from accel_lab.compute.device import Device
from accel_lab.compute.events.placement import Figures, MessagePlaced, ShardMoved
from accel_lab.compute.message.buffer import AccelRef, Ref
from accel_lab.compute.message.operation import OWN_TIMEOUT, Operation
from accel_lab.compute.message.validation import require_bytes
from accel_lab.compute.placement.measured import Measured, Reservation
from accel_lab.compute.placement.policies import Choice, Hints, LeastLoaded, Policy, choose
from accel_lab.errors import CircuitOpen, InvalidArgument, NoDevice, QueueFull

DEPTH = 64
LOOK_S = 0.0005
ROOM_S = 60.0
HOMES = 4096
"""Of so many keys, those asked for last, it is known which device they had."""
GONE = ("circuit open", "stopped")
"""States of a device whose keys others have meanwhile."""


class Placement:
    """Chooses the device of each message for `lab.ask`; any thread.

    Attributes:
        policy: chooses among the devices that may take a message; can be set, to one of
            `RoundRobin`, `LeastLoaded`, `MemoryAware`, `Affinity`, or a function of your own.
        depth: how many messages a device may have outstanding before another one waits for room.
    """

    def __init__(self, devices: Sequence[Device], events: EventStream) -> None:
        self.policy: Policy = LeastLoaded()
        self.depth = DEPTH
        self._devices = {one.name: one for one in devices}
        self._events = events
        self._measured = {one.name: Measured(one) for one in devices}
        self._lock = threading.RLock()  # a finalizer may ask in the middle
        self._homes: dict[tuple[type, str | bytes | int], str] = {}
        self._placements = itertools.count(1)

    def ask(
        self,
        message: Operation[Any],
        hints: Hints,
        near: Ref[Any] | Device | None,
        timeout_s: float | None,
        *,
        nowait: bool,
    ) -> Any:
        """Send a message where it belongs; `System.ask` says how.

        Raises:
            NoDevice: none may take it.
            QueueFull: no room in time.
        """
        if not isinstance(message, Operation):
            text = f"ask() takes a message, as blas.Gemm(a, b), not a {type(message).__name__}"
            raise InvalidArgument(text)
        if hints.nbytes:
            require_bytes(hints.nbytes, "nbytes")
        if near is not None:
            hints = hints._replace(near=self._of(near).name)
        pinned = self._pinned(message)
        deadline = time.monotonic() + ROOM_S
        fresh = False
        while True:
            figures = self._figures(fresh=fresh)
            choice = self._decide(figures, hints, pinned)
            if choice.chosen is not None:
                measured = self._measured[choice.chosen.device]
                try:
                    reply = measured.device.ask(message, timeout_s=timeout_s, nowait=nowait)
                except CircuitOpen:
                    if pinned is None:
                        continue  # it was lost meanwhile: its figures say so now
                    raise
                with self._lock:
                    measured.last_placed = next(self._placements)
                    if hints.nbytes:
                        measured.promise(hints.nbytes)
                self._tell(message, choice, choice.chosen, figures)
                return reply
            if fresh:
                self._wait_for_room(choice, deadline, nowait=nowait)
            fresh = True  # one may have answered since it was looked at

    def _figures(self, *, fresh: bool) -> tuple[Figures, ...]:
        with self._lock:
            return tuple([one.figures(fresh=fresh) for one in self._measured.values()])

    def _wait_for_room(self, choice: Choice, deadline: float, *, nowait: bool) -> None:
        """Let a moment pass.

        Raises:
            QueueFull: no time is left.
        """
        if nowait or time.monotonic() > deadline:
            raise QueueFull(f"no device has room: {choice.reason}")
        for device in self._devices.values():
            device.requests.pump.require_free()
        time.sleep(LOOK_S)

    def _decide(self, figures: tuple[Figures, ...], hints: Hints, pinned: Device | None) -> Choice:
        """Choose the device of a message, or wait for room."""
        if pinned is not None:
            (chosen,) = [one for one in figures if one.device == pinned.name]
            return Choice(chosen, "its operands lie there", {})
        return choose(self.policy, figures, hints, self.depth)

    def _tell(
        self, message: object, choice: Choice, chosen: Figures, figures: tuple[Figures, ...]
    ) -> None:
        """Publish where a message went, and why."""
        self._events.publish(
            MessagePlaced(
                message=type(message).__name__,
                device=chosen.device,
                reason=choice.reason,
                candidates=figures,
                refused=dict(choice.refused),
            )
        )

    def _pinned(self, message: Operation[Any]) -> Device | None:
        """Return the device of a message's operands; None where it has none.

        Raises:
            InvalidArgument: they lie on several, or in another system.
        """
        found = {ref.device.name: ref for ref in message.operands()}
        if not found:
            return None
        if len(found) > 1:
            first, other = list(found)[:2]
            raise InvalidArgument(
                f"operands of {type(message).__name__} lie on {first} and on {other}; copy one "
                f'first: lab.device("{first}").put(ref)'
            )
        return self._of(next(iter(found.values())))

    def _of(self, what: Ref[Any] | Device) -> Device:
        """Return a device of this system, or that of a handle."""
        device = what.device if isinstance(what, Ref) else what
        if device not in self._devices.values():
            raise InvalidArgument(f"{what!r} is of no device of this system")
        return device

    def reserve(self, nbytes: int, device: Device | None = None) -> Reservation:
        """Keep memory of a device from messages that are placed, until it is closed.

        Parameters:
            device: which; one that the policy chooses among those with room when not given.

        Raises:
            NoDevice: none has so much free, or that one has not.
        """
        wanted = require_bytes(nbytes, "nbytes")
        if not wanted:
            raise InvalidArgument("nbytes is how many bytes to reserve, 1 at least")
        names = list(self._measured) if device is None else [self._of(device).name]
        with self._lock:
            figures = [self._measured[name].figures() for name in names]
            # Not held up by full queues: nothing is sent.
            depth = 1 + max(one.outstanding for one in figures)
            chosen = choose(self.policy, figures, Hints(wanted), depth).chosen
            assert chosen is not None
            measured = self._measured[chosen.device]
            reservation = Reservation(measured.device, wanted)
            measured.reservations.append(reservation)
        return reservation

    def device_of(self, key: str | bytes | int) -> Device:
        """Return the device of a key: the same for as long as its circuit is not open.

        Rendezvous hashing (Thaler and Ravishankar, 1998): each device has a weight for each key,
        and the highest has it. So of two devices the order never depends on a third.

        Raises:
            NoDevice: every device's circuit is open.
        """
        for device in self._devices.values():
            if device.state == "circuit open":
                device.probe()
        there = [one for one in self._devices.values() if one.state not in GONE]
        if not there:
            why = {one.name: f"it is {one.state}" for one in self._devices.values()}
            raise NoDevice(f"no device can have the key {key!r}", why=why)
        home = max(there, key=lambda one: _weight(key, one.name))
        self._note_home(key, home)
        return home

    def _note_home(self, key: str | bytes | int, home: Device) -> None:
        """Tell where a key has gone since it was asked for last."""
        typed = type(key), key  # True is another key than 1
        with self._lock:
            name = self._homes.pop(typed, home.name)
            self._homes[typed] = home.name
            if len(self._homes) > HOMES:
                del self._homes[next(iter(self._homes))]
        if name == home.name:
            return
        before = self._devices[name]
        why = f"{name} is {before.state}" if before.state in GONE else f"{home.name} is back"
        self._events.publish(ShardMoved(key=repr(key), before=name, device=home.name, reason=why))


class Shard:
    """One key of many: what is asked of it goes to the key's device. Nothing here blocks."""

    def __init__(self, key: str | bytes | int, placement: Placement) -> None:
        if not isinstance(key, str | bytes | int):
            raise InvalidArgument(f"a key is a str, bytes or an int, not a {type(key).__name__}")
        self.key = key
        self._placement = placement

    @property
    def device(self) -> Device:
        """The device that the key has now."""
        return self._placement.device_of(self.key)

    def ask(
        self,
        message: Operation[Any],
        *,
        timeout_s: float | None = OWN_TIMEOUT,
        nowait: bool = False,
    ) -> Any:
        """Send a message there, as `Device.ask`."""
        return self.device.ask(message, timeout_s=timeout_s, nowait=nowait)

    def put(self, array: npt.ArrayLike, *, timeout_s: float = 60.0) -> AccelRef:
        """Copy an array there, as `Device.put`."""
        return self.device.put(array, timeout_s=timeout_s)

    def run(self, function: Any, *operands: Any, **options: Any) -> Any:
        """Call a function there, as `Device.run`."""
        return self.device.run(function, *operands, **options)

    def __repr__(self) -> str:
        return f"<Shard {self.key!r}>"


def _weight(key: str | bytes | int, name: str) -> bytes:
    """Return what a device scores for a key, in every process the same."""
    told = key if isinstance(key, bytes) else str(key).encode()
    kind = type(key).__name__.encode()
    return blake2b(b"\0".join((kind, name.encode(), told)), digest_size=8).digest()
