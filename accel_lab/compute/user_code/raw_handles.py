"""Vendors' handles for the user's code: lent while it runs, and put back as they were behind it.

Runs in a context, on the thread that runs the user's code.
"""

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

from accel_lab.errors import BackendUnavailable, InvalidArgument

_PLACE = (
    "is for code that runs on a device: call it in a function given to gpu.run or in a %%gpu cell, "
    "on the thread that runs it"
)


class RawHandles:
    """What is lent to the code that runs now."""

    def __init__(self, context: Any) -> None:
        self._context = context
        self._thread = threading.get_ident()
        self._lent: dict[str, Any] = {}

    @property
    def is_here(self) -> bool:
        """Whether this is the thread of the code that runs."""
        return threading.get_ident() == self._thread

    def handle(self, vendor: str, library: str) -> int:
        """Return the handle of a library on the active stream.

        Raises:
            BackendUnavailable: this device has no such handle.
        """
        lib = self._context.actors[library].lib
        lend = getattr(lib, "lend", None)
        handle = None if lend is None else lend()
        if handle is None:
            why = "it computes on the CPU" if lend is None else f"{vendor} is not installed"
            raise BackendUnavailable(f"this device has no handle of {vendor}: {why}")
        self._lent[library] = lib
        return int(handle)

    def stream(self) -> int:
        """Return the active stream.

        Raises:
            BackendUnavailable: this device has no streams.
        """
        pointer = getattr(self._context.active.native, "ptr", None)
        if pointer is None:
            raise BackendUnavailable("this device has no CUDA stream: it computes on the CPU")
        return int(pointer)

    def take_back(self) -> None:
        """Set every handle that was lent as its library needs it."""
        for lib in self._lent.values():
            lib.take_back()
        self._lent.clear()


_running: list[RawHandles] = []


@contextlib.contextmanager
def lending(context: Any) -> Iterator[None]:
    """Lend what the code asks for that runs in a `with` block."""
    handles = RawHandles(context)
    _running.append(handles)
    try:
        yield
    finally:
        _running.remove(handles)
        handles.take_back()


def of_running(call: str) -> RawHandles:
    """Return what is lent to the code that calls this.

    Raises:
        InvalidArgument: no code of the user's runs here.
    """
    if not _running or not _running[-1].is_here:
        raise InvalidArgument(f"raw.{call}() {_PLACE}")
    return _running[-1]
