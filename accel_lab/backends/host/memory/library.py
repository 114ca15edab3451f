"""Memory on the host: all of it is the host's, so what is asked of managed memory changes nothing.

A buffer that grows has a mapping that may not be touched, of which more and more may be.
"""

from typing import Any

import numpy as np

from accel_lab.backends.host.memory.blocks import HostBlock, HostGrowingBlock, HostSharedBlock
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.memory.exported import Exported, OpenedOnHost


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

    def shared(self, nbytes: int) -> HostSharedBlock:
        """Make memory of a file that other processes can map."""
        return HostSharedBlock(nbytes)

    def handle(self, block: HostSharedBlock, x: Any) -> tuple[bytes, bytes, int]:
        """Return where an array begins; the file is all that is needed."""
        return b"", b"", x.__array_interface__["data"][0] - block.address

    def read(self, source: Exported, out: Any, stream: object) -> None:
        """Copy it from the file.

        Raises:
            InvalidArgument: it is memory of a card.
        """
        del stream
        if source.handle:
            text = "Read: it is memory of a card, and this device is on the host"
            raise InvalidArgument(f"{text}; open it in a process that uses the card")
        np.copyto(out, OpenedOnHost(source).array.view(out.dtype))
