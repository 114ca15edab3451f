"""The user's own kernels: compiled, launched.

Runs in both.
"""

from accel_lab.libraries.jit.library import *  # noqa: F403 - jit.library is jit
