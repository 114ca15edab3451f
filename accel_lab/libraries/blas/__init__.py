"""Products of matrices and vectors.

Runs in both.
"""

from accel_lab.libraries.blas.library import *  # noqa: F403 - blas.library is blas
