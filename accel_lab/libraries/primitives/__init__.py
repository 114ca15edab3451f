"""Reduce, scan, sort, select and count vectors, with operators of CUDA's or of your own.

Runs in both.
"""

from accel_lab.libraries.primitives.library import *  # noqa: F403 - primitives.library is primitives
