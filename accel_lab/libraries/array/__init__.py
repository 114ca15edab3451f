"""Arrays: making them, arithmetic, reductions, indexing.

Runs in both.
"""

from accel_lab.libraries.array.library import *  # noqa: F403 - array.library is array
