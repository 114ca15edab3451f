"""How a launch runs, and what a kernel allows on its device: known once it is compiled."""

import math
from typing import NamedTuple

from accel_lab.display.sizes import compared
from accel_lab.errors import InvalidArgument

MOST_THREADS = 1024
MOST_IN_A_CLUSTER = 8
"""So many blocks every card of compute capability 9.0 has in one (CUDA's portable size)."""


class LaunchOptions(NamedTuple):
    """The options of one launch, beside its grid and block.

    Attributes:
        cooperative: whether all blocks are there at once.
        cluster: the blocks of a cluster, (x, y, z); None for none.
        programmatic: whether it may begin before the kernel ahead of it has ended.
    """

    cooperative: bool = False
    cluster: tuple[int, int, int] | None = None
    programmatic: bool = False


PLAIN = LaunchOptions()


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
        no_cluster: why it has no clusters, likewise.
        no_programmatic: why it has to wait for the kernel ahead.
        no_maps: why it takes no tensor maps.
    """

    name: str
    shared_bytes: int
    own_shared_bytes: int = 0
    threads: int = MOST_THREADS
    registers: int = 0
    read_only: tuple[bool, ...] = ()
    together: int = 0
    why_not: str = ""
    no_cluster: str = ""
    no_programmatic: str = ""
    no_maps: str = ""

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

    def check_options(
        self, grid: tuple[int, int, int], block: tuple[int, int, int], options: LaunchOptions
    ) -> None:
        """Refuse a launch whose blocks cannot run so.

        Raises:
            InvalidArgument: the device or the kernel has no such launches.
        """
        if options.cooperative:
            self._check_together(grid, block)
        if options.cluster is not None and self.no_cluster:
            raise InvalidArgument(f"{self.name}: cluster={options.cluster} {self.no_cluster}")
        if options.programmatic and self.no_programmatic:
            raise InvalidArgument(f"{self.name}: programmatic=True {self.no_programmatic}")

    def check_maps(self) -> None:
        """Refuse tensor maps where there are none.

        Raises:
            InvalidArgument: the device has no TMA.
        """
        if self.no_maps:
            raise InvalidArgument(f"{self.name}: a tensor map {self.no_maps}")

    def _check_together(self, grid: tuple[int, int, int], block: tuple[int, int, int]) -> None:
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
