"""Memory of a device that other processes open, and what is read of theirs."""

import contextlib
import os
import pickle
from typing import Any, ClassVar, Protocol

from accel_lab.compute.device import Device, device_first
from accel_lab.compute.execution.buffer_table import Buffer
from accel_lab.compute.execution.launch import Launch, LibraryActor, handles
from accel_lab.compute.execution.stream import SpecialMemory, SpecialStorage
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.shared.lingering import LINGERING, OFFERED
from accel_lab.compute.shared.shared_file import OpenedFile, Place, SharedFile
from accel_lab.compute.wire.codec import Answer
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.authoring.operand import describe
from accel_lab.libraries.memory.exported import Exported
from accel_lab.libraries.memory.messages import Export, Read, Shared
from accel_lab.libraries.memory.special import SHARED, Block, bytes_of


class SharedBlock(Block, Protocol):
    """An allocation by itself, which other processes open.

    Attributes:
        file: says who has it open.
        nbytes: what it takes.
    """

    file: SharedFile
    nbytes: int


class SharedMemory:
    """Memory that other processes may have open; freed once they have not, and nothing here is."""

    def __init__(self, block: SharedBlock, used_bytes: int) -> None:
        self.block = block
        self.nbytes, self.used_bytes = block.nbytes, used_bytes

    @property
    def kind(self) -> str:
        """What makes such memory again."""
        return SHARED

    def array(self, shape: tuple[int, ...], dtype: str) -> Any:
        """Return the array in C order at its begin."""
        return self.block.array(shape, dtype)

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            LINGERING.let_go(self.block.file, self.block, self.nbytes)


class SharingLibrary(Protocol):
    """What a backend provides for that."""

    def shared(self, nbytes: int) -> SharedBlock:
        """Make memory that other processes can open; it is not cleared."""

    def handle(self, block: Any, x: Any) -> tuple[bytes, bytes, int]:
        """Return the handle of an allocation, its card, and where in it an array begins.

        Raises:
            InvalidArgument: the driver gives none.
        """

    def read(self, source: Exported, out: Any, stream: Any) -> None:
        """Copy another process's array, and have it closed again; blocks.

        Raises:
            InvalidArgument: it is memory of another kind, or cannot be opened here.
        """


class SharingActor(LibraryActor):
    """Makes, exports and reads memory that several processes have."""

    library: ClassVar = "memory"
    lib: Any

    @handles(Shared)
    def shared(self, m: Shared, launch: Launch) -> None:
        """Make it."""
        spec = m.infer()
        self.lib.clear(launch.take_special(self._shared(bytes_of(spec), launch.seq)))

    def _shared(self, nbytes: int, now: int) -> SpecialMemory:
        LINGERING.sweep()
        self.context.make_room(nbytes, now, self.context.backend.largest_free_bytes)
        return SharedMemory(self.lib.shared(nbytes), nbytes)

    @handles(Export)
    def export(self, m: Export, launch: Launch) -> None:
        """Answer behind what has written it."""
        LINGERING.sweep()
        memory, array = _shared_of(m.x), launch.read(m.x)
        if not array.flags.c_contiguous:
            text = f"Export: x is {describe(m.x)}, a view with gaps; export what it is a view of"
            raise InvalidArgument(text)
        handle, card, offset = self.lib.handle(memory.block, array)
        place, generation = memory.block.file.place, self.context.generation
        told = Exported(place, handle, card, offset, m.x.shape, str(m.x.dtype), generation)
        report = Answer(launch.seq, pickle.dumps(told), True, [])  # noqa: FBT003
        launch.finish = lambda: [report]

    @handles(Read)
    def read(self, m: Read, launch: Launch) -> None:
        """Copy it beside the dispatcher, while its owner lives.

        Raises:
            InvalidArgument: it is this context's own.
            OwnerGone: its owner has ended, or has given it back.
        """
        if m.place[0] == os.getpid():
            raise InvalidArgument("Read: this device has exported it itself; use the buffer")
        file, out = OpenedFile(Place(*m.place)), launch.empty()
        source = Exported(file.place, m.handle, m.card, m.offset, m.shape, m.dtype)

        def copy(worker: Any) -> None:
            try:
                if source.nbytes:
                    self.lib.read(source, out, worker.stream)
                file.require_owner()  # what ended meanwhile was perhaps not read as it was
            finally:
                file.close()

        launch.blocking(copy)

    def give_way(self) -> bool:
        """Free what other processes have let go of, and else what any library does."""
        return bool(LINGERING.sweep()) or super().give_way()

    def trim(self) -> None:
        """Free what other processes have let go of, and what any library holds for later."""
        LINGERING.sweep()
        super().trim()

    def statistics(self) -> dict[str, int]:
        """Count what was freed here and others have open; any thread."""
        nbytes = LINGERING.nbytes + OFFERED.nbytes
        return {"freed, and open elsewhere": nbytes} if nbytes else {}


def read(device: Device, exported: Exported) -> AccelRef:
    """Make a buffer of what another process has exported, as it is when the device reads it.

    It is a copy: what becomes of the other process, or what that writes, does not change it. A loss
    of the device does take it, unless it is checkpointed.

    Raises:
        InvalidArgument: it is nothing that was exported.
    """
    if not isinstance(exported, Exported):
        text = f"read: exported is {exported!r}, and not what memory.export or memory.offer gave"
        raise InvalidArgument(text)
    _, handle, card, offset, shape, dtype, _ = exported
    return device_first(device).ask(Read(shape, dtype, tuple(exported.place), handle, card, offset))


def _shared_of(x: AccelRef) -> SharedMemory:
    """Return the shared memory of a buffer.

    Raises:
        InvalidArgument: it has none.
    """
    assert isinstance(x, Buffer)
    memory = x.storage.memory if isinstance(x.storage, SpecialStorage) else None
    if isinstance(memory, SharedMemory):
        return memory
    text = f"Export: x is {describe(x)} in memory that is this device's alone"
    raise InvalidArgument(f"{text}; copy it to memory.shared(…), and export that")
