"""How much of a pool was in use at most, where counting each piece would cost too much.

To ask a pool what is in use takes the longer, the more pieces there are. What is taken is an upper
bound meanwhile: the pool is asked only when that could be a new maximum.
"""

from collections.abc import Callable
from time import perf_counter

from accel_lab.compute.execution.backend import Peak

SLACK_BYTES = 1 << 20
SLACK_SHARE = 64
"""By how much less than the maximum may be told: bytes, or a part of it where that is more."""
CHEAP_S = 20e-6
"""Where the pool takes longer to answer, that becomes as many times more."""
_PIECE_BYTES = 512


class PoolPeak:
    """Counts what is taken from a pool, from now on; the thread that takes it.

    Parameters:
        used: asks the pool how many bytes are in use.
    """

    def __init__(self, used: Callable[[], int]) -> None:
        self._used = used
        self._before = self._most = 0
        self._look()
        self._before = self._most

    def took(self, nbytes: int) -> None:
        """Count what was taken just now."""
        self._bound += -(-nbytes // _PIECE_BYTES) * _PIECE_BYTES
        if self._bound > self._look_above:
            self._look()

    def tell(self) -> Peak:
        """Return what was in use at the beginning, and at most since."""
        self._look()
        return Peak(self._before, self._most, "in use")

    def _look(self) -> None:
        began = perf_counter()
        self._bound = used = self._used()
        dear = max(1.0, (perf_counter() - began) / CHEAP_S)
        self._most = max(self._most, used)
        slack = max(SLACK_BYTES, self._most // SLACK_SHARE)
        self._look_above = self._most + int(slack * dear)
