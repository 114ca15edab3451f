"""A supervised GPU workbench for notebooks.

`System` opens devices; `blas.gemm(a, b)` sends a typed message to the device that holds `a`;
what comes back is a handle that is an operand at once. A fault on the device costs its buffers,
never the notebook. `gpu` is the first device of a system that opens itself when it is first asked
for; `from accel_lab import gpu` asks.
"""

from typing import TYPE_CHECKING, Any

from accel_lab import actor as actor
from accel_lab import errors as errors
from accel_lab import views as views
from accel_lab.compute import events as events
from accel_lab.compute.buffer import AccelRef as AccelRef
from accel_lab.compute.device import Device as Device
from accel_lab.default import default_system as default_system
from accel_lab.extension import load_ipython_extension as load_ipython_extension
from accel_lab.extension import unload_ipython_extension as unload_ipython_extension
from accel_lab.journal.journal import Journal as Journal
from accel_lab.journal.replay import Replay as Replay
from accel_lab.libraries import array as array
from accel_lab.libraries import blas as blas
from accel_lab.libraries import fft as fft
from accel_lab.libraries import jit as jit
from accel_lab.libraries import rng as rng
from accel_lab.system import System as System

__all__ = [
    "AccelRef",
    "Device",
    "Journal",
    "Replay",
    "System",
    "actor",
    "array",
    "blas",
    "default_system",
    "errors",
    "events",
    "fft",
    "gpu",
    "jit",
    "rng",
    "views",
]

gpu: Device
"""The device of `default_system()`, opened when this name is first asked for."""

if not TYPE_CHECKING:  # else every name would be there for a type checker

    def __getattr__(name: str) -> Any:
        """Return the device of the default system, as it is now (PEP 562)."""
        if name == "gpu":
            return default_system().devices[0]
        text = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(text)
