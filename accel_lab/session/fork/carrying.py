"""Carry what a fork takes along from the devices of one system to those of another.

Arrays go as bytes through the host. Those that share memory go together, and share it there. What
is no array, as a kernel or a factorization, is made again by the messages that have made it.
"""

import time
from collections.abc import Iterable
from typing import Any

from accel_lab.compute.device import Device
from accel_lab.compute.lineage.history import Restore, Slice
from accel_lab.compute.lineage.lineage import Lineage
from accel_lab.compute.lineage.recorded_message import decode
from accel_lab.compute.message.buffer import AccelRef, Ref
from accel_lab.errors import CannotKeep
from accel_lab.journal.replay.repeat import restored
from accel_lab.session.buffers.plans import why_not_again
from accel_lab.session.buffers.rebuilding import send_again
from accel_lab.session.fork.layout import bytes_of, looked, looks_of

_OWN_RECORD = 'it is not an array, and only a System(recover="replay") makes it again'


class Carrying:
    """What is on one device, and how another one can have it.

    Attributes:
        lost: why something cannot be carried, by its number.
        answers: of functions that returned no array, by the number of their handle.

    Parameters:
        lineage: tells what makes what is no array; None where nothing is recorded for that.
        contents: of the system, for what messages took from the arena.
        until: when to give up, as `time.monotonic` tells.
    """

    def __init__(
        self,
        device: Device,
        refs: Iterable[Ref[Any]],
        lineage: Lineage | None,
        contents: Any,
        until: float,
    ) -> None:
        self._device = device
        self._lineage = lineage
        self._contents = contents
        self._until = until
        self._arrays: dict[int, AccelRef] = {}
        self._things: list[int] = []
        self.answers: dict[int, Any] = {}
        for ref in refs:
            if not isinstance(ref, AccelRef):
                ref.result(self._left_s)
                self._things.append(ref.id)
                continue
            answer = ref.result(self._left_s)
            if ref.known:
                self._arrays[ref.id] = ref
            else:  # of a function that has returned no array
                self.answers[ref.id] = answer
        self.lost = {id_: why for id_ in self._things if (why := self._why_not(id_))}
        self._things = [id_ for id_ in self._things if id_ not in self.lost]

    @property
    def _left_s(self) -> float:
        left = self._until - time.monotonic()
        if left <= 0:
            raise TimeoutError(f"what {self._device.name} has is not carried in time")
        return left

    def _why_not(self, id_: int) -> str:
        """Return why what is no array cannot be made again; empty where it can."""
        if self._lineage is None:
            return _OWN_RECORD
        found = self._slice([id_])
        return found.lost.get(id_, "") or why_not_again(found)

    def _slice(self, ids: list[int]) -> Slice:
        if self._lineage is None:
            return Slice([], {})
        with self._lineage.still():
            return self._lineage.slice(ids)

    def to(self, device: Device) -> dict[int, Ref[Any]]:
        """Make all of it on a device of another system; return it by the numbers that it had.

        Raises:
            AccelError: it cannot be made there.
            TimeoutError: not in time.
        """
        made: dict[int, Ref[Any]] = {}
        for family in self._families():
            members = [self._arrays[id_] for id_ in family]
            if len(members) == 1:
                made[family[0]] = device.put(members[0], timeout_s=self._left_s)
            else:
                refs = self._together(device, members)
                made |= dict(zip(family, refs, strict=True))
        made |= self._again(device)
        for ref in made.values():
            ref.result(self._left_s)
        return made

    def _families(self) -> list[list[int]]:
        """Return the arrays in sets of which no two may share memory."""
        if self._lineage is None:
            return [list(self._arrays)] if self._arrays else []
        return [sorted(one) for one in self._lineage.families(self._arrays.keys())]

    def _together(self, device: Device, members: list[AccelRef]) -> list[AccelRef]:
        """Make arrays that may share memory: their bytes once, and what looks into these."""
        source, found = self._device, dict[int, AccelRef]()
        memories = source.run(looks_of, *members, writes=()).result(self._left_s)
        for looks in memories:
            if len(looks) == 1:
                (at,) = looks
                found[at] = device.put(members[at], timeout_s=self._left_s)
                continue
            data = source.run(bytes_of, next(iter(looks)), *members, writes=())
            root = device.put(data.result(self._left_s), timeout_s=self._left_s)
            for at, look in looks.items():
                found[at] = device.run(looked, root, look, pure=True)
        return [found[at] for at in range(len(members))]

    def _again(self, device: Device) -> dict[int, Ref[Any]]:
        """Make what is no array."""
        refs: dict[int, Ref[Any]] = {}
        for step in self._slice(self._things).steps if self._things else ():
            if isinstance(step, Restore):
                point = step.checkpoint
                data = self._content(point.key)
                refs[point.id] = restored(device, data, point.shape, point.dtype, point.axes)
            else:
                assert self._lineage is not None
                kept = self._lineage.content_key(step.seq) if step.in_arena else ""
                pieces = [self._content(kept)] if kept else None
                send_again(device, decode(step.data), pieces, kept, refs)
        return {id_: refs[id_] for id_ in self._things if id_ in refs}

    def _content(self, key: str) -> bytes:
        data: bytes | None = self._contents.get(key)
        if data is None:
            raise CannotKeep("bytes that make it again are not kept any more", lost={})
        return data
