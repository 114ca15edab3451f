"""Modules: several kernels of one source or one binary.

Runs in both.
"""

from accel_lab.libraries.module.library import *  # noqa: F403 - module.library is module
