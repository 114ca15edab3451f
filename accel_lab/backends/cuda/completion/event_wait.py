"""How threads wait for the events of one card."""

import ctypes
import threading
from functools import cache
from time import perf_counter, sleep
from typing import Any

from cupy.cuda import runtime

from accel_lab.backends.cuda.completion.host_function import HostFunctionWait
from accel_lab.compute.machine.loaded_driver import loaded_driver
from accel_lab.compute.streams.strategies import HostFn, Polled, Strategy, Sync

_NOT_READY = 600
# Between two looks at an event a wait sleeps: short at first, then a hundredth of what it has
# waited. A wait in the driver that sleeps too was measured to end up to a millisecond late in a
# virtual machine, and one that spins would take a core.
_SLEEP_S = (20e-6, 200e-6)


class EventWait:
    """Waits in the way that was chosen; any thread, without the interpreter's lock.

    Attributes:
        strategy: that way.
    """

    def __init__(self, device: int) -> None:
        self.strategy: Strategy = Polled()
        self._device = device
        self._own = threading.local()
        self._made: list[HostFunctionWait] = []  # they outlive their threads: CUDA may still call

    def until(self, event: int) -> None:
        """Return when an event has fired.

        Raises:
            CUDARuntimeError: the device is in error.
        """
        runtime.setDevice(self._device)
        if isinstance(self.strategy, Sync):
            runtime.eventSynchronize(event)
        elif isinstance(self.strategy, HostFn):
            self._host_function().until(event, self.strategy.watchdog_s)
        else:
            _poll(event)

    def _host_function(self) -> HostFunctionWait:
        """Return the calling thread's own, whose stream nothing else is enqueued on."""
        wait: HostFunctionWait | None = getattr(self._own, "wait", None)
        if wait is None:
            stream: int = runtime.streamCreateWithFlags(runtime.streamNonBlocking)

            def enqueue(event: int, function: int, argument: int) -> None:
                runtime.streamWaitEvent(stream, event)
                status = _driver().cuLaunchHostFunc(stream, function, argument)
                if status:
                    raise runtime.CUDARuntimeError(status)

            wait = self._own.wait = HostFunctionWait(enqueue, _has_fired)
            self._made.append(wait)
        return wait


def fired(status: int) -> bool:
    """Read the answer to a query of a stream or an event.

    Raises:
        CUDARuntimeError: the device is in error.
    """
    if status == 0:
        return True
    if status == _NOT_READY:
        return False
    raise runtime.CUDARuntimeError(status)


def _has_fired(event: int) -> bool:
    return fired(runtime.eventQuery(event))


def _poll(event: int) -> None:
    begin = perf_counter()
    while not _has_fired(event):
        sleep(min(max((perf_counter() - begin) / 100, _SLEEP_S[0]), _SLEEP_S[1]))


@cache
def _driver() -> Any:
    driver = loaded_driver()
    assert driver is not None
    pointer = ctypes.c_void_p
    driver.cuLaunchHostFunc.argtypes = [pointer, pointer, pointer]
    return driver
