"""A launch whose arrays are NumPy's, for a library actor of the host."""

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from accel_lab.compute.execution.backend import Mirrors
from accel_lab.compute.execution.context import Context
from accel_lab.compute.execution.launch import Launch
from accel_lab.compute.execution.worker import Worker
from accel_lab.errors import AccelError, LibraryError

T = TypeVar("T")


class HostLaunch(Launch):
    """The same launch, as the host's actor sees it: with arrays of NumPy's for the device's."""

    def __init__(self, launch: Launch, mirrors: Mirrors) -> None:
        self.__dict__ = launch.__dict__
        self.comes_again = False  # what it would prepare reads nothing back
        self._mirrors = mirrors
        self._written: dict[int, Any] = {}

    def read(self, ref: Any) -> Any:
        """Return a copy of an operand, or the thing that it is."""
        return self._mirrors.of(super().read(ref))

    def write(self, ref: Any = None) -> Any:
        """Return what is copied back to the array to write."""
        ref = getattr(self.message, "out", None) if ref is None else ref
        if ref is None:
            return self.empty()
        array = super().write(ref)
        mirror = self._mirrors.of(array)
        if mirror is not array:  # else it is a thing, which the host has
            self._written[id(array)] = array, mirror
        return mirror

    def empty(self, shape: tuple[int, ...] | None = None) -> Any:
        """Allocate the result, and return what is copied there."""
        return self._blank(super().empty(shape))

    def empties(self, **shapes: tuple[int, ...]) -> Any:
        """Allocate the results, and return what is copied there."""
        made = super().empties(**shapes)
        if getattr(self.message, "out", None) is not None:
            return made  # `write` has seen to that
        return type(made)(*(None if one is None else self._blank(one) for one in made))

    def take(self, array: Any) -> None:
        """Make the result a copy of an array of NumPy's."""
        super().take(self._mirrors.made(array))

    def take_all(self, *arrays: Any) -> None:
        """Make the results copies of arrays of NumPy's."""
        super().take_all(*(None if one is None else self._mirrors.made(one) for one in arrays))

    def view(self, of: Any, array: Any, shape: tuple[int, ...], dtype: str) -> None:
        """Refuse a view: the host has but copies.

        Raises:
            LibraryError: always.
        """
        del of, array, shape, dtype
        kind, library = type(self.message).__name__, self.message.library
        text = f"{library}: {kind} makes a view, and the host has but a copy"
        raise LibraryError(text, library=library, name="NO_VIEW")

    def check(self, status: Any, judge: Callable[[Any], AccelError | None]) -> None:
        """Have a status decide that the host has computed."""
        super().check(self._mirrors.made(np.asarray(status)), judge)

    def defer(self, work: Callable[[], T], then: Callable[[T], object]) -> None:
        """Do it now."""
        self._look()
        then(work())

    def blocking(
        self, work: Callable[[Worker], T], then: Callable[[T], object] = lambda _: None
    ) -> None:
        """Do it now."""
        self._look()
        then(work(self.context.service(_worker)))

    def workspace(self, nbytes: int) -> Any:
        """Return memory of the host."""
        return np.empty(nbytes, np.uint8)

    def prepare(self, call: Any, *, reads: Any, writes: Any) -> None:
        """Prepare nothing: it has to be copied each time."""

    def write_back(self) -> None:
        """Copy what was written to the device."""
        for array, mirror in self._written.values():
            self._mirrors.write(array, mirror)

    def _blank(self, array: Any) -> Any:
        mirror = self._mirrors.blank(array)
        self._written[id(array)] = array, mirror
        return mirror


def _worker(context: Context) -> Worker:
    """Make what the host's libraries are given for a thread, and do without."""
    return Worker(context.backend.worker_stream(), context.scratch.for_worker())
