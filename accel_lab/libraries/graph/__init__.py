"""Recorded blocks of messages: as CUDA graphs on `cuda`, as the recorded list on `host`.

Runs in both.
"""

from accel_lab.libraries.graph.library import *  # noqa: F403 - graph.library is graph
