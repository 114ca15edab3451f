"""Memory on cuda: managed memory by the driver, and addresses that are reserved and mapped."""

import ctypes
from typing import TYPE_CHECKING, Any

from cupy.cuda import runtime

from accel_lab.backends.cuda.graph.driver import call
from accel_lab.backends.cuda.memory.growing import CudaGrowingBlock
from accel_lab.backends.cuda.memory.managed import CudaBlock
from accel_lab.backends.cuda.memory.shared import CudaSharedBlock
from accel_lab.compute.machine.loaded_driver import card_id
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.memory.exported import Exported, OpenedOnHost

if TYPE_CHECKING:
    from accel_lab.backends.cuda.device.device import CudaDevice

ADVICE = {
    "set_read_mostly": 1,
    "unset_read_mostly": 2,
    "set_preferred_location": 3,
    "unset_preferred_location": 4,
    "set_accessed_by": 5,
    "unset_accessed_by": 6,
}
"""CUmem_advise."""
HOST = -1  # CU_DEVICE_CPU
GLOBAL, SINGLE = 1, 4  # CU_MEM_ATTACH_GLOBAL, CU_MEM_ATTACH_SINGLE


class CudaMemory:
    """Makes memory of one card; used by the dispatcher thread."""

    def __init__(self, device: "CudaDevice") -> None:
        self._device = device

    def managed(self, nbytes: int) -> CudaBlock:
        """Make managed memory (cudaMallocManaged).

        Raises:
            InvalidArgument: the card and the host cannot use such memory at the same time.
            CUDARuntimeError: there is none.
        """
        attribute = runtime.cudaDevAttrConcurrentManagedAccess
        if not runtime.deviceGetAttribute(attribute, self._device.index):
            text = "Managed: this card and the host cannot use managed memory at the same time"
            raise InvalidArgument(f"{text} (concurrentManagedAccess is 0)")
        made = CudaBlock(nbytes)
        self._device.managed.add(made)
        return made

    def growing(self, reserved_bytes: int) -> CudaGrowingBlock:
        """Reserve addresses (cuMemAddressReserve)."""
        return CudaGrowingBlock(self._device.index, reserved_bytes)

    def clear(self, array: Any) -> None:
        """Write zeros, on the active stream."""
        if array.nbytes:
            stream = self._device.active.ptr
            runtime.memsetAsync(array.data.ptr, 0, array.nbytes, stream)

    def prefetch(self, block: CudaBlock, nbytes: int, to: str) -> None:
        """Have it move (cuMemPrefetchAsync), on the active stream."""
        if nbytes:
            place = self._device.index if to == "device" else HOST
            call("cuMemPrefetchAsync", block.pointer, block.size, place, self._stream())

    def advise(self, block: CudaBlock, nbytes: int, advice: str, of: str) -> None:
        """Give an advice (cuMemAdvise)."""
        if nbytes:
            place = self._device.index if of == "device" else HOST
            call("cuMemAdvise", block.pointer, block.size, ADVICE[advice], place)

    def attach(self, block: CudaBlock, stream: Any) -> None:
        """Say which stream uses it (cuStreamAttachMemAsync)."""
        flag = GLOBAL if stream is None else SINGLE
        own = self._stream() if stream is None else ctypes.c_void_p(stream.ptr)
        call("cuStreamAttachMemAsync", own, block.pointer, ctypes.c_size_t(0), flag)

    def shared(self, nbytes: int) -> CudaSharedBlock:
        """Make an allocation by itself (cudaMalloc)."""
        block = CudaSharedBlock(nbytes)
        self._device.shared_files.add(block.file)
        return block

    def handle(self, block: CudaSharedBlock, x: Any) -> tuple[bytes, bytes, int]:
        """Return its handle (cuIpcGetMemHandle) and the card (cuDeviceGetUuid).

        Raises:
            InvalidArgument: the driver gives none.
        """
        found = self._device.export(block.array(x.shape, "uint8") if not x.size else x)
        card = card_id(self._device.index)
        if found is None or not card:
            raise InvalidArgument("Export: the driver gives no handle of memory on this card")
        return found[0], card, found[1]

    def read(self, source: Exported, out: Any, stream: Any) -> None:
        """Copy it on the card, from a card that is a peer (cudaIpcOpenMemHandle), or from the host.

        Raises:
            InvalidArgument: it cannot be opened here, or does not fit into what was exported.
        """
        if not source.handle:
            there = OpenedOnHost(source).array  # keeps it mapped until it is copied
            at, kind = there.__array_interface__["data"][0], runtime.memcpyHostToDevice
            runtime.memcpyAsync(out.data.ptr, at, out.nbytes, kind, stream.ptr)
            runtime.streamSynchronize(stream.ptr)
            return
        try:
            base = runtime.ipcOpenMemHandle(source.handle)
        except runtime.CUDARuntimeError as error:
            text = f"Read: memory of another process cannot be opened here: {error}"
            raise InvalidArgument(text) from error
        try:
            size, start = ctypes.c_size_t(), ctypes.c_uint64(base)
            call("cuMemGetAddressRange_v2", None, ctypes.byref(size), start)
            source.require_fit(size.value)
            at, kind = base + source.offset, runtime.memcpyDefault
            runtime.memcpyAsync(out.data.ptr, at, out.nbytes, kind, stream.ptr)
            runtime.streamSynchronize(stream.ptr)
        finally:
            runtime.ipcCloseMemHandle(base)

    def _stream(self) -> Any:
        return ctypes.c_void_p(self._device.active.ptr)
