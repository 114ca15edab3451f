"""Arrays of NumPy's in the place of a message's, which the host computes."""

from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from accel_lab.backends.wgpu.device.device_array import DeviceArray

if TYPE_CHECKING:
    from accel_lab.backends.wgpu.device.device import WgpuDevice


class Mirrors:
    """The copies of one message's operands: those overlap that do so on the device.

    Attributes:
        nbytes: how much was copied, to the host and back.

    Parameters:
        operands: arrays, and things that are none.
    """

    def __init__(self, device: "WgpuDevice", operands: Sequence[Any]) -> None:
        self._device = device
        self.nbytes = 0
        self._made: dict[int, tuple[Any, Any]] = {}
        self._wholes: dict[int, Any] = {}
        self._shared = {
            id(one.block)
            for pair in combinations(operands, 2)
            if pair[0] is not pair[1] and device.same_memory(*pair)
            for one in pair
        }

    def of(self, array: Any) -> Any:
        """Return a copy of an array of the device, always the same; a thing as it is."""
        if not isinstance(array, DeviceArray):
            return array
        if id(array) not in self._made:
            self._made[id(array)] = array, self._copied(array)
        return self._made[id(array)][1]

    def blank(self, array: DeviceArray) -> Any:
        """Return memory like that of an array, with nothing in it."""
        return np.empty(array.shape, array.dtype)

    def made(self, mirror: Any) -> DeviceArray:
        """Return a new array of the device with these elements."""
        array = self._device.empty(mirror.shape, str(mirror.dtype))
        self.write(array, mirror)
        return array

    def write(self, array: DeviceArray, mirror: Any) -> None:
        """Copy elements to an array of the device."""
        self.nbytes += mirror.nbytes
        self._device.upload(array, 0, np.ascontiguousarray(mirror).reshape(-1).view(np.uint8))

    def _copied(self, array: DeviceArray) -> Any:
        if id(array.block) not in self._shared:
            self.nbytes += array.nbytes
            return self._device.read(array)
        whole = self._wholes.get(id(array.block))
        if whole is None:
            block = array.block
            whole = self._device.read(DeviceArray(block, block.whole, self._device))
            self._wholes[id(block)] = whole
            self.nbytes += whole.nbytes
        memory = whole.reshape(-1).view(np.uint8)
        start = array.offset * array.dtype.itemsize
        return np.ndarray(array.shape, array.dtype, memory, start, array.strides)
