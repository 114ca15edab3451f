"""Arrays of any process of the user's that a device of another one reads."""

import contextlib
from typing import Any, Self

import numpy as np

from accel_lab.compute.arrays import dtypes
from accel_lab.compute.arrays.cuda_arrays import device_array
from accel_lab.compute.shared.lingering import OFFERED
from accel_lab.compute.shared.shared_file import SharedFile
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.memory.exported import Exported
from accel_lab.uncopied import Uncopied


class Offer(Uncopied):
    """An array of this process that others open, for as long as this lives and they have it open.

    An array of PyTorch's or CuPy's on a card is offered where it lies. One of NumPy's is copied to
    memory that can be shared.

    Attributes:
        exported: what they need.

    Raises:
        InvalidArgument: its memory is of an allocator that shares nothing.
        MemoryError: the system gives no descriptor, or no memory.
    """

    _instead = "send its `exported`"
    _file: SharedFile | None = None

    def __init__(self, array: Any) -> None:
        OFFERED.sweep()
        found = device_array(array)
        if found is None:
            given = np.asarray(array)
            dtype, shape = dtypes.canonical(given.dtype), given.shape
            given = np.asarray(given, dtypes.numpy_dtype(dtype), order="C")  # it may be swapped
            file = SharedFile(given.nbytes)
            mapping = file.map()
            mapping.bytes()[: given.nbytes] = given.reshape(-1).view(np.uint8)
            self._memory: object = mapping
            self.exported = Exported(file.place, b"", b"", 0, shape, dtype)
        else:
            on_card, stream = found
            export = on_card.settle(stream, share=True)
            if export is None:
                text = "no other process can open the array: it is empty, or of an allocator that "
                raise InvalidArgument(f"{text}shares nothing, as PyTorch's expandable segments")
            file = SharedFile(1)
            handle, offset = export
            spec = on_card.shape, on_card.dtype
            self._memory = on_card
            self.exported = Exported(file.place, handle, on_card.card(), offset, *spec)
        self._file = file

    def close(self) -> None:
        """Offer it no more; what others have open stays until they let go of it."""
        file, self._file = self._file, None
        if file is not None:
            OFFERED.let_go(file, self._memory, self.exported.nbytes)
            self._memory = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self.close()


def offer(array: Any) -> Offer:
    """Let devices of other processes read an array of this one: `memory.read(gpu, it.exported)`."""
    return Offer(array)
