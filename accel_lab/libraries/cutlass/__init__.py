"""Products of matrices by CUTLASS's templates.

Runs in both.
"""

from accel_lab.libraries.cutlass.library import *  # noqa: F403 - cutlass.library is cutlass
