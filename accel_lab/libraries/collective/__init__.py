"""Operations that several devices do together, as a sum over all of them.

Runs in both.
"""

from accel_lab.libraries.collective.library import *  # noqa: F403 - collective.library is collective
