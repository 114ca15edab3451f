"""One file or folder per library: its messages, the Protocol that a backend meets, and its actor.

Each message has a lower-case function beside it that sends it to its operands' device.

Runs in both.
"""

from accel_lab.compute.actors.digest import DigestActor
from accel_lab.compute.actors.fault import FaultActor
from accel_lab.compute.actors.run import RunActor
from accel_lab.compute.actors.transfer import DownloadActor, UploadActor
from accel_lab.compute.execution.launch import LibraryActor
from accel_lab.compute.message.operators import Operators
from accel_lab.libraries.array import library as array
from accel_lab.libraries.array.library import ArrayActor
from accel_lab.libraries.blas import library as blas
from accel_lab.libraries.blas.library import BlasActor
from accel_lab.libraries.fft import library as fft
from accel_lab.libraries.fft.library import FftActor
from accel_lab.libraries.jit import library as jit
from accel_lab.libraries.jit.library import JitActor
from accel_lab.libraries.rng import library as rng
from accel_lab.libraries.rng.library import RngActor

__all__ = ["ACTORS", "array", "blas", "fft", "jit", "rng"]

ACTORS: list[type[LibraryActor]] = [
    UploadActor,
    DownloadActor,
    DigestActor,
    RunActor,
    FaultActor,
    ArrayActor,
    BlasActor,
    FftActor,
    JitActor,
    RngActor,
]
"""The library actors of every context, in the order in which they start."""

Operators.functions = array
