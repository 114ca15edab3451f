"""Which picture a page is sent: the newest one, when the one before it has arrived there.

So a slow page has fewer pictures and never older ones.
"""

import time
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

UNHEARD_S = 1.0
"""A page that has not said by then that a picture is there is given the next one."""


class Frame(NamedTuple):
    """A picture of a simulation.

    Attributes:
        number: of the picture, from 1.
        pixels: uint8[height, width, 3].
        generation: of the device that painted it.
        steps: how many the simulation had been sent.
    """

    number: int
    pixels: NDArray[np.uint8]
    generation: int
    steps: int


class Delivery:
    """What is sent to the pages of one widget.

    Attributes:
        offered: what they are to show; None before the first picture.
        arrived: the number of the newest picture that one of them has shown.
    """

    def __init__(self) -> None:
        self.offered: Frame | None = None
        self.arrived = 0
        self._offered_at = -float("inf")

    def offer(self, newest: Frame | None) -> None:
        """Offer this picture, unless the one before is on its way."""
        offered = self.offered
        if newest is None or (offered is not None and newest.number == offered.number):
            return
        is_there = offered is None or self.arrived >= offered.number
        if is_there or time.monotonic() - self._offered_at >= UNHEARD_S:
            self._offered_at = time.monotonic()
            self.offered = newest

    def heard(self, number: int) -> None:
        """Note which picture a page has shown."""
        self.arrived = max(self.arrived, number)
