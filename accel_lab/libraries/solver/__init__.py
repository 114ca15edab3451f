"""Factorizations of dense matrices, and what is solved with them.

Runs in both.
"""

from accel_lab.libraries.solver.library import *  # noqa: F403 - solver.library is solver
