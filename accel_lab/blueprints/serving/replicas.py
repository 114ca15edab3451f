"""The replicas of one model: a decoding server each, and the way to others and out."""

import threading
from collections.abc import Iterator, Sequence

from accel_lab.blueprints.patterns import DecodingServer, Stage
from accel_lab.blueprints.serving.model import Generation, TextModel
from accel_lab.blueprints.serving.steps import Steps
from accel_lab.compute.device import Device
from accel_lab.pipeline.stage import NO_WORK
from accel_lab.system import System

RETRIES = 5
"""So often one step is run again: a text that is half told can not be begun anew elsewhere."""


class Replicas:
    """Decoding servers with the same model; closed when they are retired and have nothing left.

    Parameters:
        devices: one for each replica.
    """

    def __init__(
        self, lab: System, name: str, model: TextModel, devices: Sequence[Device], max_active: int
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
        self._devices = list(devices)
        self._writing = [0] * len(self._servers)
        self._held, self._retired = 0, False
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

    def write(self, asked: Generation) -> Iterator[int]:
        """Yield the tokens of a text from the replica that writes fewest; blocks.

        Closed before its end, it takes the text back.
        """
        with self._lock:
            usable = [place for place, one in enumerate(self._devices) if one.state not in NO_WORK]
            able = usable or range(len(self._servers))
            place = min(able, key=self._writing.__getitem__)
            self._writing[place] += 1
        stream = self._servers[place].stream(asked, limit=asked.limit)
        try:
            yield from stream
        finally:
            stream.cancel()
            with self._lock:
                self._writing[place] -= 1

    def warm(self) -> None:
        """Have each replica write a token; waits."""
        asked = Generation((0,), 1)
        for reply in [server.ask(asked, limit=1) for server in self._servers]:
            reply.result()

    def retire(self) -> None:
        """Close them once the last text is written."""
        self._retired = True
        self._close_if_done()

    def close(self) -> None:
        """Close them now."""
        for server in self._servers:
            server.close()

    def _close_if_done(self) -> None:
        with self._lock:
            done = self._retired and not self._held
        if done:
            self.close()
