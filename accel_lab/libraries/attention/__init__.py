"""Attention, its gradients, and caches of keys and values.

Runs in both.
"""

from accel_lab.libraries.attention.library import *  # noqa: F403 - attention.library is attention
