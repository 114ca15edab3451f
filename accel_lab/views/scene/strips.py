"""What lies beside the slices on the axis of time, packed: waits, levels of memory, queue times."""

from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from accel_lab.views.scene.scene import Scene

WAITS = 512
LEVELS = 512
"""How many of the newest are packed, of the notebook and of each device."""
OF_WAITS, OF_LEVELS, OF_QUEUED = 1.0, 2.0, 3.0
_OPEN = float("nan")


def pack_strips(scene: Scene, devices: Sequence[str], queued: Iterable[float]) -> bytes:
    """Return strips as little-endian Float64, each as its kind, whose it is, a count, and columns.

    Of waits the columns are start and end, which is not a number while it goes on; of a device's
    levels when and how many bytes; of slices, in the order in which they are packed, when their
    context took them up, 0 where that is not known. Times are wall seconds. A device is its number
    among `devices`. What is empty is left out.
    """
    return b"".join(_strips(scene, devices, array("d", queued)))


def _strips(scene: Scene, devices: Sequence[str], queued: "array[float]") -> Iterator[bytes]:
    waits = list(islice(reversed(scene.waits.values()), WAITS))[::-1]
    if waits:
        ends = [_OPEN if one.end is None else one.end for one in waits]
        yield _strip(OF_WAITS, 0, [one.start for one in waits], ends)
    for device, levels in scene.levels.items():
        if device in devices and levels:
            newest = list(islice(reversed(levels), LEVELS))[::-1]
            times, sizes = zip(*newest, strict=True)
            yield _strip(OF_LEVELS, devices.index(device), times, sizes)
    if any(queued):
        yield _strip(OF_QUEUED, 0, queued)


def _strip(kind: float, of: int, *columns: Iterable[float]) -> bytes:
    values = [array("d", column) for column in columns]
    return b"".join((array("d", (kind, of, len(values[0]))), *values))
