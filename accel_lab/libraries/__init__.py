"""One file per library: its messages, the Protocol that a backend meets, and its actor.

Each message has a lower-case function beside it that sends it to its operands' device.
"""

from accel_lab.compute.digest import DigestActor
from accel_lab.compute.fault import FaultActor
from accel_lab.compute.launch import LibraryActor
from accel_lab.compute.operators import Operators
from accel_lab.compute.transfer import DownloadActor, UploadActor
from accel_lab.compute.user_code import RunActor
from accel_lab.libraries import array
from accel_lab.libraries.array import ArrayActor
from accel_lab.libraries.blas import BlasActor
from accel_lab.libraries.fft import FftActor
from accel_lab.libraries.jit import JitActor
from accel_lab.libraries.rng import RngActor

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
