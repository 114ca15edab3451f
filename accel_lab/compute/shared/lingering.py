"""Memory that its owner has let go, and that another process has open still.

CUDA leaves undefined what becomes of memory that is freed while another process has it open.
"""

from collections import deque
from typing import NamedTuple

from accel_lab.compute.shared.shared_file import SharedFile


class _Kept(NamedTuple):
    file: SharedFile
    memory: object
    nbytes: int


class Lingering:
    """What this process keeps for others; any thread, and finalizers."""

    def __init__(self) -> None:
        self._kept: deque[_Kept] = deque()

    @property
    def nbytes(self) -> int:
        """How much it is."""
        return sum(one.nbytes for one in list(self._kept))

    def let_go(self, file: SharedFile, memory: object, nbytes: int) -> None:
        """Free memory as soon as nobody has its file open."""
        if not file.close():
            self._kept.append(_Kept(file, memory, nbytes))

    def sweep(self) -> int:
        """Free what nobody has open any more; return how many bytes of it there were."""
        freed = 0
        for _ in range(len(self._kept)):
            try:
                one = self._kept.popleft()
            except IndexError:
                break
            if one.file.close():
                freed += one.nbytes
            else:
                self._kept.append(one)
        return freed


LINGERING = Lingering()
"""That of this process."""
