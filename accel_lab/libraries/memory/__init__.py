"""Memory beside the pool: managed memory, buffers that grow where they are, and the pool itself.

Runs in both.
"""

from accel_lab.libraries.memory.library import *  # noqa: F403 - memory.library is memory
