"""What another process needs to open memory of a device, and that memory as it has it there.

It is opened by any process of the same user on the same machine that can import accel_lab. What is
opened stays allocated until it is closed, or until its owner ends.
"""

import math
import os
import sys
from typing import Any, NamedTuple

import numpy as np

from accel_lab.compute.arrays.dtypes import itemsize, numpy_dtype
from accel_lab.compute.machine.memfd_mapping import Mapping
from accel_lab.compute.shared.card_memory import HANDLE_BYTES, CardMemory
from accel_lab.compute.shared.shared_file import OpenedFile, Place
from accel_lab.errors import InvalidArgument
from accel_lab.uncopied import Uncopied


class Exported(NamedTuple):
    """What another process needs to open memory; it pickles, and holds nothing.

    Attributes:
        place: of the file that says who has it open; on `host` the memory itself.
        handle: of the allocation, as `cuIpcGetMemHandle` gives it; b"" on `host`.
        card: which one it is on, as `cuDeviceGetUuid` tells; b"" on `host`.
        offset: where in the allocation it begins, in bytes.
        shape, dtype: of the array, which is in C order.
        generation: of the device that has it; 0 where it is of no device.
    """

    place: Place
    handle: bytes
    card: bytes
    offset: int
    shape: tuple[int, ...]
    dtype: str
    generation: int = 0

    @property
    def nbytes(self) -> int:
        """How much the array has."""
        return math.prod(self.shape) * itemsize(self.dtype)

    def open(self) -> "Opened":
        """Open it here.

        Raises:
            OwnerGone: its process has ended or lost its device, or has given it back.
            InvalidArgument: it is on a card, and this process has no CUDA or does not see that one;
                or it is nothing that was exported.
        """
        require_exported("open", self.place, self.handle, self.offset)
        return OpenedOnCard(self) if self.handle else OpenedOnHost(self)

    def require_fit(self, nbytes: int) -> None:
        """Refuse what is not all in the file or the allocation, which has so many bytes.

        Raises:
            InvalidArgument: it is not.
        """
        if min((self.offset, *self.shape)) < 0 or self.offset + self.nbytes > nbytes:
            text = f"{self.dtype}{list(self.shape)} from byte {self.offset}"
            raise InvalidArgument(f"{text} does not fit into the {nbytes} bytes that were exported")


def require_exported(what: str, place: tuple[int, ...], handle: bytes, offset: int) -> None:
    """Refuse what no export has made.

    Raises:
        InvalidArgument: it is that.
    """
    numbers = (*place, offset)
    if len(place) != len(Place._fields) or any(type(one) is not int for one in numbers):
        text = f"four ints and an offset, not {place!r} and {offset!r}"
    elif offset < 0:
        text = f"an offset from 0, not {offset}"
    elif len(handle) not in (0, HANDLE_BYTES):
        text = f"a handle of {HANDLE_BYTES} bytes or none, not of {len(handle)}"
    else:
        return
    raise InvalidArgument(f"{what}: it is nothing that was exported, which has {text}")


class Opened(Uncopied):
    """An array of another process.

    It is open until this is gone, and all arrays that were made of it. What its owner writes is
    seen at once, so the two have to agree about who writes when.
    """

    _instead = "send what it was opened with"

    def __init__(self, exported: Exported) -> None:
        self.exported = exported
        self.file = OpenedFile(exported.place)

    @property
    def shape(self) -> tuple[int, ...]:
        """Its extents."""
        return self.exported.shape

    @property
    def dtype(self) -> Any:
        """Its dtype."""
        return numpy_dtype(self.exported.dtype)

    def require_owner(self) -> None:
        """Refuse it once its owner has ended.

        Raises:
            OwnerGone: it has.
        """
        self.file.require_owner()

    @property
    def array(self) -> Any:
        """The array, NumPy's or CuPy's, on that memory.

        Raises:
            OwnerGone: its owner has ended.
        """
        raise NotImplementedError


class OpenedOnHost(Opened):
    """One in memory of the host: `np.asarray` takes it."""

    def __init__(self, exported: Exported) -> None:
        super().__init__(exported)
        self._bytes = _Bytes(exported, self.file)

    @property
    def array(self) -> Any:
        """NumPy's array on that memory."""
        self.require_owner()
        return np.asarray(self._bytes).view(self.dtype).reshape(self.shape)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.array(self.array, dtype, copy=copy)


class _Bytes:
    """The bytes of an array; arrays on them keep the file locked."""

    def __init__(self, exported: Exported, file: OpenedFile) -> None:
        exported.require_fit(os.fstat(file.fd).st_size)
        self._file = file
        self._mapping = Mapping(file.fd, max(exported.offset + exported.nbytes, 1))
        self.__array_interface__ = {
            "version": 3,
            "data": (self._mapping.address + exported.offset, False),
            "shape": (exported.nbytes,),
            "typestr": "|u1",
        }


class OpenedOnCard(Opened):
    """One in memory of a card: `torch.as_tensor` and `cupy.asarray` take it.

    bfloat16 and float8 are integers of their bits there.
    """

    def __init__(self, exported: Exported) -> None:
        super().__init__(exported)
        self._memory = CardMemory(exported.handle, exported.card, self.file)
        exported.require_fit(self._memory.nbytes)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        self.require_owner()
        width = itemsize(self.exported.dtype)
        plain = self.dtype.kind in "?biufc"
        return {
            "version": 3,
            "shape": self.shape,
            "typestr": self.dtype.str if plain else f"<u{width}" if width > 1 else "|u1",
            "data": (self._memory.address + self.exported.offset, False),
            "strides": None,
            "stream": None,
        }

    @property
    def array(self) -> Any:
        """CuPy's array on that memory.

        Raises:
            InvalidArgument: this process has not imported CuPy.
        """
        cupy = sys.modules.get("cupy")
        if cupy is None:
            text = "import cupy before, or have torch.as_tensor(opened, device='cuda') take it"
            raise InvalidArgument(f"an array of a card is CuPy's: {text}")
        return cupy.asarray(self)
