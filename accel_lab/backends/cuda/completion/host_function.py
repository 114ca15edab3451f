"""Waiting for an event by a host function that CUDA calls behind it.

The function is the C library's `sem_post`: it needs no interpreter, so it waits for no lock that a
thread of Python has. This module has no CUDA: what it calls is given.
"""

from collections.abc import Callable

from accel_lab.compute.streams.semaphore import Semaphore, post_address


class HostFunctionWait:
    """The waits of one thread.

    CUDA calls no host function after an error. So the event is asked for whenever the watchdog's
    time is over, which tells an error as well.

    Parameters:
        enqueue: has CUDA call the function at an address, with an argument, behind an event.
        fired: whether an event has fired; raises what the device raised.
    """

    def __init__(
        self, enqueue: Callable[[int, int, int], object], fired: Callable[[int], bool]
    ) -> None:
        self._enqueue = enqueue
        self._fired = fired
        self._semaphore = Semaphore()

    def until(self, event: int, watchdog_s: float) -> None:
        """Sleep until an event fires; raises what the device raised."""
        if self._fired(event):
            return
        self._enqueue(event, post_address(), self._semaphore.address)
        while not self._fired(event):  # a post may be a late one of an event before
            self._semaphore.wait(watchdog_s)
