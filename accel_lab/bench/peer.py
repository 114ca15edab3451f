"""The peer: the backend's own array library, called without accel_lab, inside the context.

The notebook's process never imports CUDA. So what a peer does travels as a name, and the module
that has it, in `backends/<name>/baseline`, is imported where it runs.
"""

from typing import Any, NamedTuple

from accel_lab.bench import calls
from accel_lab.compute.device import Device


def call(backend: str, what: str, *arguments: Any) -> Any:
    """Call a function of a backend's baseline, as "device.versions"; runs inside the context."""
    return calls.function(backend, what)(*arguments)


class Peer(NamedTuple):
    """Calls the baseline of a backend in the context of a device; blocks for the answers."""

    device: Device
    backend: str

    def __call__(self, what: str, *arguments: Any) -> Any:
        """Call a function of the baseline and return its answer."""
        return self.device.run(call, self.backend, what, *arguments).result()

    def label(self, what: str, *arguments: Any) -> str:
        """Return the name of a call, empty where its library is not installed."""
        return str(self.device.run(calls.label, self.backend, what, *arguments).result())

    def many(self, what: str, arguments: tuple[Any, ...], count: int) -> float:
        """Make a call `count` times in a row and wait once; return the seconds."""
        return float(self.device.run(calls.many, self.backend, what, arguments, count).result())

    def each(self, what: str, arguments: tuple[Any, ...], count: int) -> list[float]:
        """Make a call `count` times and wait for each; return their seconds."""
        answer = self.device.run(calls.each, self.backend, what, arguments, count).result()
        return [float(seconds) for seconds in answer]
