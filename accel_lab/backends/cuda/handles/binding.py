"""Keep a vendor's handle on the stream that is active, and say where its numbers are.

This module has no CUDA: what it calls is the library's.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from accel_lab.backends.cuda.device.device import CudaDevice
    from accel_lab.backends.cuda.device.stream import CudaStream


class HandleBinding:
    """One handle of a library, as cuBLAS's; for the dispatcher thread.

    Parameters:
        put: puts the handle on a stream, given its address, and sets what that undoes.
        point: says whether the numbers of calls to come, as alpha or a result, are on the device.
            A new handle takes them to be on the host. None for a library that has no such mode.
    """

    def __init__(
        self,
        device: "CudaDevice",
        put: Callable[[int], object],
        point: Callable[[bool], object] | None = None,
    ) -> None:
        self._device = device
        self._put = put
        self._point = point
        self._stream: CudaStream | None = None

    def bind(self) -> None:
        """Put the handle on the active stream, if it is not there."""
        stream = self._device.active
        if stream is not self._stream:
            self._put(stream.ptr)
            self._stream = stream

    def forget(self) -> None:
        """Put the handle on the active stream the next time, wherever it is."""
        self._stream = None

    @contextmanager
    def numbers_on_device(self) -> Iterator[None]:
        """Bind, and let results be written where they are needed, so that nothing waits."""
        assert self._point is not None, "this library has no pointer mode"
        self.bind()
        self._point(True)  # noqa: FBT003 - as the vendor's mode
        try:
            yield
        finally:
            self._point(False)  # noqa: FBT003 - as above
