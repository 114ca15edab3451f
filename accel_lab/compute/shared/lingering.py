"""Memory that its owner has let go, and that another process has open still.

CUDA leaves undefined what becomes of memory that is freed while another process has it open.
"""

import _thread
import os
import time
from collections import deque
from typing import NamedTuple

from accel_lab.compute.shared.shared_file import SharedFile

_SWEEP_S = 0.2


class _Kept(NamedTuple):
    file: SharedFile
    memory: object
    nbytes: int


class Lingering:
    """What this process keeps for others; any thread, and finalizers.

    Parameters:
        by_itself: whether a thread sweeps it, as long as there is something.
    """

    def __init__(self, *, by_itself: bool = False) -> None:
        self._kept: deque[_Kept] = deque()
        self._by_itself, self._watched = by_itself, False

    @property
    def nbytes(self) -> int:
        """How much it is."""
        return sum(one.nbytes for one in list(self._kept))

    def let_go(self, file: SharedFile, memory: object, nbytes: int) -> None:
        """Free memory as soon as nobody has its file open."""
        if file.close():
            return
        self._kept.append(_Kept(file, memory, nbytes))
        if self._by_itself and not self._watched:
            self._watched = True
            # `Thread.start` waits for the thread, which a finalizer must not.
            try:
                _thread.start_new_thread(self._watch, ())
            except RuntimeError:  # this process ends, or may have no more threads: the next does it
                self._watched = False

    def _watch(self) -> None:
        """Sweep until nothing is left; more than one thread that does is fine."""
        while self._watched or self._kept:
            self._watched = True
            time.sleep(_SWEEP_S)
            try:
                self.sweep()
            finally:
                # First this, then the look: what comes between has a thread of its own.
                self._watched = False

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

    def forked(self) -> None:
        """Keep nothing in a child: it is its parent's, which sweeps it."""
        self._kept.clear()
        self._watched = False


LINGERING = Lingering()
"""That of this process's device, which frees memory in its own thread, between its messages."""
OFFERED = Lingering(by_itself=True)
"""What this process has offered; PyTorch, CuPy and the system take it back in any thread."""
os.register_at_fork(after_in_child=LINGERING.forked)
os.register_at_fork(after_in_child=OFFERED.forked)
