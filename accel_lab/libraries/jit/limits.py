"""What a compiled kernel allows on its device: known once it is compiled, checked at the call."""

import math
from typing import NamedTuple

from accel_lab.display.sizes import compared
from accel_lab.errors import InvalidArgument

MOST_THREADS = 1024


class Limits(NamedTuple):
    """The limits of the launches of one kernel.

    Attributes:
        name: the kernel's, template arguments included.
        shared_bytes: the shared memory that a block may have.
        own_shared_bytes: what of it the kernel takes for itself.
        threads: how many a block may have.
        registers: how many each of them takes; 0 where nothing tells.
        read_only: of each parameter, whether it is a `const T*`.
        together: how many threads a cooperative launch may have; 0 where only the device tells.
        why_not: why it cannot be launched so; empty if it can.
    """

    name: str
    shared_bytes: int
    own_shared_bytes: int = 0
    threads: int = MOST_THREADS
    registers: int = 0
    read_only: tuple[bool, ...] = ()
    together: int = 0
    why_not: str = ""

    def check(self, block: tuple[int, int, int], shared_bytes: int) -> None:
        """Refuse a launch that the device would refuse.

        Raises:
            InvalidArgument: more threads or shared memory than there can be.
        """
        threads = math.prod(block)
        if threads > self.threads:
            why = f", with {self.registers} registers a thread," if self.registers else ""
            raise InvalidArgument(
                f"{self.name}: block {block} has {threads} threads; this kernel{why} runs at most "
                f"{self.threads}"
            )
        taken = self.own_shared_bytes + shared_bytes
        if taken > self.shared_bytes:
            write = compared(taken, self.shared_bytes)
            own = (
                f", and {write(self.own_shared_bytes)} of its own," if self.own_shared_bytes else ""
            )
            raise InvalidArgument(
                f"{self.name}: {write(shared_bytes)} of shared memory{own} are more than the "
                f"{write(self.shared_bytes)} that a block of this device has"
            )

    def check_together(self, grid: tuple[int, int, int], block: tuple[int, int, int]) -> None:
        """Refuse a cooperative launch that cannot be.

        Raises:
            InvalidArgument: the blocks cannot all be there at once.
        """
        if self.why_not:
            raise InvalidArgument(f"{self.name}: cooperative=True {self.why_not}")
        threads = math.prod(grid) * math.prod(block)
        if self.together and threads > self.together:
            raise InvalidArgument(
                f"{self.name}: a cooperative launch has all its blocks on the device at once; grid "
                f"{grid} of block {block} has {threads} threads, and {self.together} fit"
            )
