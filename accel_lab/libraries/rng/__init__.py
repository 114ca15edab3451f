"""Random numbers.

Runs in both.
"""

from accel_lab.libraries.rng.library import *  # noqa: F403 - rng.library is rng
