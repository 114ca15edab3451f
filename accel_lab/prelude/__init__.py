"""Import what most notebooks begin with: `from accel_lab.prelude import *`.

A module beside this one has what a kind of program needs: `from accel_lab.prelude.train import *`.
Nothing is opened, and no optional package is imported.

Runs in the notebook's process.
"""

from accel_lab import errors as errors
from accel_lab import views as views
from accel_lab.compute.message.buffer import AccelRef as AccelRef
from accel_lab.default import default_system as default_system
from accel_lab.libraries import array as array
from accel_lab.libraries import blas as blas
from accel_lab.libraries import fft as fft
from accel_lab.libraries import jit as jit
from accel_lab.libraries import rng as rng
from accel_lab.libraries import solver as solver
from accel_lab.libraries import sparse as sparse
from accel_lab.libraries import tensor as tensor
from accel_lab.system import System as System

__all__ = [
    "AccelRef",
    "System",
    "array",
    "blas",
    "default_system",
    "errors",
    "fft",
    "jit",
    "rng",
    "solver",
    "sparse",
    "tensor",
    "views",
]
