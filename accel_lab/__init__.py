"""A supervised GPU workbench for notebooks.

`System` opens devices; `blas.gemm(a, b)` sends a typed message to the device that holds `a`;
what comes back is a handle that is an operand at once. A fault on the device costs its buffers,
never the notebook.
"""

from accel_lab import actor as actor
from accel_lab import errors as errors
from accel_lab import views as views
from accel_lab.compute import events as events
from accel_lab.compute.buffer import AccelRef as AccelRef
from accel_lab.compute.device import Device as Device
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
    "errors",
    "events",
    "fft",
    "jit",
    "rng",
    "views",
]
