"""Sample a device while it runs, through the side channel; it answers when it can."""

from collections import deque
from collections.abc import Callable, Iterable
from typing import Protocol

from accel_lab.compute.events.samples import Block, MemorySampled, Slice, WorkTraced
from accel_lab.compute.lineage.senders import Begins
from accel_lab.compute.supervision.context_health import ContextHealth
from accel_lab.compute.wire.side_channel import Blocks, Downward, Look, Traced

UNREAD = 64
"""How many answers wait for somebody to look."""


class Seen(Protocol):
    """What is seen: the context of one device."""

    name: str
    health: ContextHealth

    @property
    def generation(self) -> int:
        """Which context answers."""

    def tell(self, packet: Downward) -> None:
        """Send a packet to it, if there is one."""


class DeviceSampler:
    """What is known of one device's memory and work.

    Parameters:
        cells: tells which notebook cells have sent a request, by its number, and all later ones.
    """

    def __init__(self, device: Seen, cells: Callable[[int], Begins] = lambda _: ()) -> None:
        self._device = device
        self._cells = cells
        self._answers: deque[MemorySampled | WorkTraced] = deque(maxlen=UNREAD)
        self._blocks: list[Block] = []
        self._done: list[Slice] = []
        self._running: list[Slice] = []
        self.closely = 0
        """How many need all of its work traced, whatever that costs those who compute."""
        self.memory: MemorySampled | None = None
        """The newest sample of its memory, whoever has asked for it."""

    def look(self, *, memory: bool, work: bool) -> list[MemorySampled | WorkTraced]:
        """Return what has been answered, and ask again; any thread, does not block."""
        if memory or work:
            self._device.tell(Look(memory, work, self.closely > 0))
        return [self._answers.popleft() for _ in range(len(self._answers))]

    # The system thread.

    def lost(self) -> None:
        """Forget what was answered in part: its context is gone."""
        for part in (self._blocks, self._done, self._running):
            part.clear()
        device = self._device
        self._answers.append(
            WorkTraced(device=device.name, generation=device.generation, done=(), running=())
        )

    def emptied(self) -> None:
        """Its context was given up in order: the device holds nothing."""
        self.lost()
        device = self._device
        self.memory = MemorySampled(
            device=device.name,
            generation=device.generation,
            used_bytes=0,
            total_bytes=device.health.total_bytes,
            blocks=(),
            unlisted=0,
            free_bytes=device.health.total_bytes or 0,
        )
        self._answers.append(self.memory)

    def heard(self, packet: Blocks | Traced) -> None:
        """Take a part of an answer."""
        device = self._device
        if isinstance(packet, Blocks):
            self._blocks += packet.blocks
            if packet.last:
                sample = MemorySampled(
                    device=device.name,
                    generation=device.generation,
                    used_bytes=packet.used_bytes,
                    total_bytes=device.health.total_bytes,
                    blocks=tuple(self._blocks),
                    unlisted=packet.unlisted,
                    free_bytes=packet.free_bytes,
                )
                self._blocks.clear()
                self._answers.append(sample)
                self.memory = sample
            return
        self._done += packet.done
        self._running += packet.running
        if packet.last:
            traced = WorkTraced(
                device=device.name,
                generation=device.generation,
                done=tuple(self._done),
                running=tuple(self._running),
                dropped=packet.dropped,
                cells=self._cells_of((*self._done, *self._running)),
            )
            self._done.clear()
            self._running.clear()
            self._answers.append(traced)

    def _cells_of(self, slices: Iterable[Slice]) -> Begins:
        """Return which cells have sent these, and what is later than the first of them."""
        first = min((one.seq for one in slices if one.kind != "untraced"), default=None)
        return () if first is None else self._cells(first)
