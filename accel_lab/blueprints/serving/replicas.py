"""The replicas of one model: a pool of decoding servers, and the way into it and out."""

import threading
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from accel_lab.blueprints.patterns import DecodingServer, ModelReplicaPool, Stage
from accel_lab.blueprints.patterns.base.request import Stream
from accel_lab.blueprints.serving.model import Generation, TextModel
from accel_lab.blueprints.serving.steps import Steps
from accel_lab.compute.device import Device
from accel_lab.system import System

RETRIES = 5
"""So often one step is run again: a text that is half told can not be begun anew elsewhere."""
MANY = 1 << 16
"""So many may wait here: who shares the places has said before how many that are."""


class Replicas:
    """A pool of decoding servers with one model; closed when it is retired and has nothing left.

    Parameters:
        devices: one for each replica.
        patience_s: as of `ModelReplicaPool`.

    Attributes:
        is_retired: whether they are to be closed.
    """

    def __init__(
        self,
        lab: System,
        name: str,
        model: TextModel,
        devices: Sequence[Device],
        max_active: int,
        patience_s: float | None,
    ) -> None:
        self.model = model
        self._servers = [
            DecodingServer(
                lab,
                Stage(
                    build=lambda device: Steps(model, device),
                    devices=device,
                    parallelism=1,
                    retries=RETRIES,
                    name="step",
                ),
                max_active=max_active,
                name=f"{name} on {device.name}",
            )
            for device in devices
        ]
        stages = [
            Stage(partial(_begun, server), devices=device, inline=True, name=server.name)
            for server, device in zip(self._servers, devices, strict=True)
        ]
        self._pool = ModelReplicaPool(
            lab,
            stages,
            max_running=max_active,
            patience_s=patience_s,
            capacity=MANY,
            name=f"{name} replicas",
        )
        self._held, self.is_retired = 0, False
        self._lock = threading.Lock()

    def hold(self) -> None:
        """Count a text that is to be written here, so that they stay open for it."""
        with self._lock:
            self._held += 1

    def let_go(self) -> None:
        """Count a text less."""
        with self._lock:
            self._held -= 1
        self._close_if_done()

    def write(self, asked: Generation) -> Stream:
        """Return the tokens of a text as they come; does not wait."""
        self.hold()
        stream, over = self._pool.stream(asked), threading.Lock()

        def end() -> None:
            if over.acquire(blocking=False):  # a waiter may be called twice
                self.let_go()

        stream.reply.add_waiter(end)
        return stream

    def warm(self) -> None:
        """Have each replica write a token; waits."""
        asked = Generation((0,), 1)
        for reply in [server.ask(asked, limit=1) for server in self._servers]:
            reply.result()

    def retire(self) -> None:
        """Close them once the last text is written."""
        self.is_retired = True
        self._close_if_done()

    def close(self) -> None:
        """Close them now."""
        self._pool.close()
        for server in self._servers:
            server.close()

    def _close_if_done(self) -> None:
        with self._lock:
            done = self.is_retired and not self._held
        if done:
            self.close()


def _begun(server: DecodingServer, device: Device, asked: Generation) -> Stream:
    del device  # the server's
    return server.stream(asked, limit=asked.limit)


class Draft(NamedTuple):
    """A text that is wanted of whichever generation serves when it begins.

    Attributes:
        home: those of whose model its tokens are; they stay open until it is written.
    """

    asked: Generation
    home: Replicas

    def written_by(self, serving: Replicas) -> Stream:
        """Return its tokens: of those that serve, or of its home where they cannot read it."""
        whole = len(self.asked.tokens) + self.asked.limit
        new, own = serving.model, self.home.model
        fits = whole <= new.context and new.tokenizer.reads(own.tokenizer)
        return (serving if fits else self.home).write(self.asked)
