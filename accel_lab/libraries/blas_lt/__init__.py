"""Products of matrices that finish in one pass, by cuBLASLt.

Runs in both.
"""

from accel_lab.libraries.blas_lt.library import *  # noqa: F403 - blas_lt.library is blas_lt
