"""Sparse matrices.

Runs in both.
"""

from accel_lab.libraries.sparse.library import *  # noqa: F403 - sparse.library is sparse
