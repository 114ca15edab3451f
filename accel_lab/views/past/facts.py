"""A journal's entries as the facts that were seen then, so that a session of old can be watched.

A journal tells less than a session saw. It has no addresses, so blocks lie one after the other in
the order in which they were made; no times of work, so nothing is traced; and that a message was
answered it says only by a result's digest, a failure or a loss, so in flight is what one of these
came later for.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

from accel_lab.actor.events import Event
from accel_lab.compute.events.samples import TreeSampled
from accel_lab.compute.events.tree import Node
from accel_lab.display.clock import time_of_day
from accel_lab.display.counts import counted
from accel_lab.journal.entries.entry import Entry
from accel_lab.views.past.device import JournalDevice
from accel_lab.views.scene.scene import Scene, Topic

Place = tuple[str, str]
"""The session and the device."""


UNTOLD: dict[Topic, str] = {
    "addresses": "a journal has no addresses",
    "work": "a journal has no times of work",
    "health": "a journal has no readings",
    "cells": "a journal does not say when cells ran",
    "mailbox": "a journal does not say when a message was begun",
    "in flight": "a journal does not say when a message was answered",
}
"""What no journal tells."""
UNTOLD_OF_A_GAP: dict[Topic, str] = {
    "memory": "what was there before {} is not recorded",
    "restarts": "what was before {} is not recorded",
}
"""What a journal does not tell after a gap."""


class Entries(Protocol):
    """What is folded."""

    @property
    def gaps(self) -> Sequence[int]:
        """The entries before which others of their session are gone."""

    def entries(self, steps: range) -> Iterable[Entry]:
        """Return entries by their numbers."""

    def in_flight(self, place: Place, position: int) -> int:
        """Return how many messages to a device were sent before and answered after a position."""


class JournalFold:
    """The scene after some entries of a journal; of several sessions that of the last entry."""

    def __init__(self, past: Entries) -> None:
        self.scene = Scene()
        self.scene.unrecorded.update(UNTOLD)
        self._past = past
        self._position = 0
        self._session = ""
        self._facts: dict[str, dict[str, Any]] = {}  # of each session
        self._devices: dict[Place, JournalDevice] = {}
        self._changed: set[Place] = set()  # whose memory is no longer what the scene shows

    def advance(self, steps: range) -> None:
        """Take the next entries, and look at what they leave."""
        at = self.scene.at
        gaps = set(self._past.gaps)
        for entry in self._past.entries(steps):
            at = entry.at
            if entry.number in gaps:
                self._lose_track(entry)
            for fact in self._take(entry):
                self.scene.add(fact)
        self._position = steps.stop
        if self._session:
            for fact in self._look(at):
                self.scene.add(fact)

    def copy(self) -> "JournalFold":
        """Return one that goes on by itself."""
        twin = JournalFold(self._past)
        vars(twin).update(vars(self))
        twin.scene = self.scene.copy()
        twin._facts = dict(self._facts)
        twin._devices = {place: device.copy() for place, device in self._devices.items()}
        twin._changed = set(self._changed)
        return twin

    def _take(self, entry: Entry) -> Iterable[Event]:
        if entry.session != self._session:
            self._session = entry.session
            self._changed |= self._devices.keys()
        if entry.kind == "session":
            self._open(entry)
            return ()
        place = entry.session, entry.device
        device = self._devices.get(place)
        if device is None:
            device = JournalDevice(entry.device, generation=entry.generation)
            self._devices[place] = device
        self._changed.add(place)
        return device.take(entry)

    def _lose_track(self, entry: Entry) -> None:
        """Know no more of a session's devices: entries before this one are gone."""
        if (entry.session, entry.device) not in self._devices and entry.device:
            self._devices[entry.session, entry.device] = JournalDevice(entry.device)
        for place, device in self._devices.items():
            if place[0] == entry.session:
                device.lose_track(entry.at)
                self._changed.add(place)

    def _open(self, entry: Entry) -> None:
        if entry.session in self._facts:
            return  # it was told again to a store that had kept nothing
        facts = self._facts[entry.session] = entry.fields
        began = facts.get("started", entry.at)
        for name, model in facts.get("devices", {}).items():
            self._devices[entry.session, name] = JournalDevice(name, model, began=began)

    def _look(self, at: float) -> Iterator[Event]:
        """Yield what a look at the system would have shown."""
        for name in sorted({name for _, name in self._changed}):
            device = self._devices.get((self._session, name)) or JournalDevice(name)
            yield device.memory(at)
        self._changed.clear()
        since = max(
            (device.since for place, device in self._devices.items() if place[0] == self._session),
            default=0.0,
        )
        for topic, why in UNTOLD_OF_A_GAP.items():
            if since:
                self.scene.unrecorded[topic] = why.format(time_of_day(since))
            else:
                self.scene.unrecorded.pop(topic, None)
        yield TreeSampled(at=at, root=self._tree())

    def _tree(self) -> Node:
        facts = self._facts.get(self._session, {})
        name = str(facts.get("system", self._session))
        nodes = tuple(
            device.node(name, self._past.in_flight(place, self._position))
            for place, device in self._devices.items()
            if place[0] == self._session
        )
        backend = f"{facts['backend']} backend, " if "backend" in facts else ""
        return Node(
            name=name,
            path=name,
            kind="system",
            state="running",
            detail=f"{backend}{counted(len(nodes), 'device')}",
            children=nodes,
        )
