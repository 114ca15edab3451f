"""Who keeps a buffer, as the views show it: the names of the notebook that lead to its handle."""

import time
from collections.abc import Callable, Collection

import msgspec

from accel_lab.compute.events.samples import Block, KeptObject, MemorySampled
from accel_lab.compute.residency.kept_objects import kept_objects
from accel_lab.compute.residency.notebook_names import Held, Namespace, held_in, notebook

EVERY_S = 0.5
OBJECTS = 100
"""How many objects of a device are told, the largest."""


class Names:
    """The names that hold buffers, looked for at most every half second; keeps nothing alive.

    Parameters:
        namespace: where to look; the notebook's, which is None outside IPython.
    """

    def __init__(self, namespace: Callable[[], Namespace | None] | None = None) -> None:
        self._namespace = namespace or notebook
        self._at = float("-inf")
        self._held: Held = {}

    def held(self, devices: Collection[object]) -> Held:
        """Return what the names hold of these devices; any thread, never raises."""
        now = time.monotonic()
        if now - self._at >= EVERY_S:
            self._at = now
            try:
                self._held = held_in(self._namespace(), devices)
            except Exception:  # noqa: BLE001 - a view is not worth it
                self._held = {}
        return self._held

    def put(self, sample: MemorySampled, devices: Collection[object]) -> MemorySampled:
        """Return a sample that knows who keeps its blocks, and what is kept but gone."""
        names: dict[int, tuple[str, ...]] = {}
        stale: dict[int, tuple[str, ...]] = {}
        for (device, generation), by_id in self.held(devices).items():
            if device == sample.device:
                names |= by_id
                if generation < sample.generation:
                    stale |= by_id
        objects = self._objects(sample, devices)
        if not names and not objects:
            return sample
        blocks = tuple(_kept(block, names) for block in sample.blocks) if names else sample.blocks
        lost = tuple(stale.items())
        return msgspec.structs.replace(sample, blocks=blocks, stale=lost, objects=objects)

    def _objects(
        self, sample: MemorySampled, devices: Collection[object]
    ) -> tuple[KeptObject, ...]:
        """Return the objects on the device of a sample; of one that is suspended none is there."""
        for device in devices:
            if getattr(device, "name", None) == sample.device:
                if getattr(device, "state", "") == "suspended":
                    return ()
                found = kept_objects(device, self._namespace())[:OBJECTS]
                return tuple(one for one in found if one.generation == sample.generation)
        return ()


def _kept(block: Block, names: dict[int, tuple[str, ...]]) -> Block:
    kept_by = tuple(name for id_ in block.ids for name in names.get(id_, ()))
    return msgspec.structs.replace(block, kept_by=kept_by) if kept_by else block
