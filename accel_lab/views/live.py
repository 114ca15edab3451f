"""What every live view shares: two traits, and how they are sent. Importing it needs anywidget."""

import weakref
from abc import abstractmethod
from typing import Any

import msgspec
import traitlets
from anywidget import AnyWidget

from accel_lab.actor.events import ActorRestarted, ActorStarted, ActorStopped, Event
from accel_lab.compute.events import (
    CircuitClosed,
    CircuitOpened,
    ContextLost,
    ContextStarted,
    GenerationChanged,
    LibraryRestarted,
)
from accel_lab.views.publisher import PUBLISHER
from accel_lab.views.snapshots import Lab

# What is worth a look at once. Counts of messages wait for the next sample.
_TELLING: tuple[type[Event], ...] = (
    ActorRestarted,
    ActorStarted,
    ActorStopped,
    CircuitClosed,
    CircuitOpened,
    ContextLost,
    ContextStarted,
    GenerationChanged,
    LibraryRestarted,
)

BEAT_S = 1.0  # how often a view that does not change says that it is alive


class LiveView(AnyWidget):
    """A widget that the publisher thread keeps up to date until its lab closes.

    The state is JSON in bytes: at any size that costs the kernel less than a dict, and an unchanged
    state is recognised without a look inside.
    """

    state = traitlets.Bytes(read_only=True).tag(sync=True)
    stamp = traitlets.Float(read_only=True).tag(sync=True)

    def __init__(self, lab: Lab, *, rate_hz: float) -> None:
        self.discarded = False
        self._ended = False
        super().__init__()
        place = self._place = PUBLISHER.add(self, rate_hz=rate_hz)
        self._following = lab.events.subscribe(lambda _: place.nudge(), *_TELLING)
        weakref.finalize(self, self._following.close).atexit = False

    @abstractmethod
    def sample(self) -> dict[str, Any]:
        """Return what the front end draws; `closed` in it ends the updates."""

    @property
    def ended(self) -> bool:
        """Whether the last state was sent."""
        return self._ended

    def publish(self, at: float) -> bool:
        """Sample and send what changed, or a sign of life; the publisher's thread only."""
        sample = self.sample()
        body = msgspec.json.encode(sample)
        changed = body != self.state
        if changed or at - self.stamp >= BEAT_S:
            with self.hold_sync():  # one message
                self.set_trait("state", body)
                self.set_trait("stamp", at)
        if sample["closed"]:
            self._end()
        return changed

    def close(self) -> None:
        """Take the widget off every page and stop its updates; any thread, does not block."""
        self.discarded = True
        self._end()
        super().close()
        # ipywidgets puts None over the method; a view that was closed can still be read as text.
        self.__dict__.pop("_repr_mimebundle_", None)

    def _end(self) -> None:
        self._ended = True
        self._following.close()
