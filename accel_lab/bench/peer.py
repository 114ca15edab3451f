"""The peer: the backend's own array library, called without us, inside the context.

The notebook's process never imports CUDA. So a peer's loop travels as a name, and the module
that has it, `backends/<name>/baseline.py`, is imported where it runs.
"""

from importlib import import_module
from typing import Any, NamedTuple

from accel_lab.compute.device import Device


def call(backend: str, name: str, *arguments: Any) -> Any:
    """Call a function of a backend's baseline; runs inside the context."""
    baseline = import_module(f"accel_lab.backends.{backend}.baseline")
    return getattr(baseline, name)(*arguments)


class Peer(NamedTuple):
    """Calls the baseline of a backend in the context of a device."""

    device: Device
    backend: str

    def __call__(self, name: str, *arguments: Any) -> Any:
        """Call a function of the baseline and return its answer; blocks until it is there."""
        return self.device.run(call, self.backend, name, *arguments).result()

    def seconds(self, name: str, *arguments: Any) -> float:
        """Call a function that measures itself and return its seconds."""
        return float(self(name, *arguments))

    def samples(self, name: str, *arguments: Any) -> list[float]:
        """Call a function that measures each of its calls and return their seconds."""
        return [float(sample) for sample in self(name, *arguments)]
