"""Faults at chosen moments: with the third call of a function, say."""

import functools
import threading
from collections.abc import Callable, Mapping
from typing import Any, get_args

from accel_lab.compute.actors.fault import Fault, Inject
from accel_lab.compute.device import Device
from accel_lab.errors import InvalidArgument


class Faults:
    """Strikes when a function is called for the n-th time; any thread.

    Attributes:
        calls: how often the function was called.
        struck: the calls at which something was struck, in order.

    Parameters:
        script: what strikes at which call, counted from 1. A word is a fault of `lab.inject`, as
            `kill`: it goes to the device that the function is called with, ahead of what the
            function sends. An exception is raised in place of the call.
    """

    def __init__(self, script: Mapping[int, Fault | BaseException]) -> None:
        for number, one in script.items():
            if not isinstance(one, BaseException) and one not in get_args(Fault):
                known = ", ".join(get_args(Fault))
                raise InvalidArgument(
                    f"call {number}: {one!r} is no exception, and none of {known}"
                )
        self._script = dict(script)
        self._lock = threading.Lock()
        self.calls = 0
        self.struck: list[int] = []

    def into(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that does the same, and at its time is struck."""

        @functools.wraps(function)
        def called(*args: Any) -> Any:
            with self._lock:
                self.calls += 1
                number, fault = self.calls, self._script.get(self.calls)
                if fault is not None:
                    self.struck.append(number)
            if isinstance(fault, BaseException):
                raise fault
            if fault is not None:
                device = next((one for one in args if isinstance(one, Device)), None)
                if device is None:
                    raise InvalidArgument(f"call {number}: {fault} needs a device as an argument")
                device.ask(Inject(fault)).add_waiter(lambda: None)  # its failure is heard
            return function(*args)

        return called
