"""Arena segments that the card may read and write by itself."""

from typing import Any

from cupy.cuda import runtime

_PORTABLE = 1  # cudaHostRegisterPortable


class PinnedSegments:
    """Page-locks segments and releases them; for one thread at a time, any thread.

    Attributes:
        notes: why segments could not be page-locked; a segment works without, but slower.
    """

    def __init__(self, device: int) -> None:
        self._device = device
        self._registered: set[int] = set()
        self.notes: tuple[str, ...] = ()

    def add(self, view: Any) -> None:
        """Page-lock the memory of a uint8 array; blocks, about 0.1 s a GiB."""
        address = view.__array_interface__["data"][0]
        if not view.nbytes or address in self._registered:
            return
        runtime.setDevice(self._device)
        try:
            runtime.hostRegister(address, view.nbytes, _PORTABLE)
        except runtime.CUDARuntimeError as error:
            note = (
                f"host memory could not be page-locked ({error}), so copies run at a fraction of "
                "the link's speed; a larger `ulimit -l` may help"
            )
            if note not in self.notes:
                self.notes = (*self.notes, note)
        else:
            self._registered.add(address)

    def remove(self, view: Any) -> None:
        """Release the memory; blocks until no copy uses it."""
        address = view.__array_interface__["data"][0]
        if address in self._registered:
            self._registered.remove(address)
            runtime.setDevice(self._device)
            runtime.hostUnregister(address)
