"""For how long something has been open, whatever becomes of the clock on the wall."""

import time


class Uptime:
    """Seconds since a moment on the wall's clock, which is asked once; they never decrease.

    Parameters:
        opened: the moment, in wall seconds.
    """

    def __init__(self, opened: float) -> None:
        self._since = time.monotonic() - max(0.0, time.time() - opened)

    @property
    def seconds(self) -> float:
        """How many have passed."""
        return time.monotonic() - self._since
