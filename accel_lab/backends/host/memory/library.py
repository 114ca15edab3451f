"""Memory on the host: all of it is the host's, so what is asked of managed memory changes nothing.

A buffer that grows has a mapping that may not be touched, of which more and more may be.
"""

from typing import Any

import numpy as np

from accel_lab.backends.host.memory.blocks import HostBlock, HostGrowingBlock


class HostMemory:
    """Makes memory of the process's own."""

    def managed(self, nbytes: int) -> HostBlock:
        """Make memory."""
        data = np.empty(max(nbytes, 1), np.uint8)
        return HostBlock(data.__array_interface__["data"][0], data)

    def growing(self, reserved_bytes: int) -> HostGrowingBlock:
        """Reserve addresses."""
        return HostGrowingBlock(reserved_bytes)

    def clear(self, array: Any) -> None:
        """Write zeros."""
        array.reshape(-1).view(np.uint8)[...] = 0

    def prefetch(self, block: HostBlock, nbytes: int, to: str) -> None:
        """Do nothing: it is there."""

    def advise(self, block: HostBlock, nbytes: int, advice: str, of: str) -> None:
        """Do nothing: there is one place."""

    def attach(self, block: HostBlock, stream: object) -> None:
        """Do nothing: there is one stream."""
