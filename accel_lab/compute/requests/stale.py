"""Why a buffer is not on its device any more, and what to do."""

from collections.abc import Mapping

from accel_lab.compute.message.buffer import FREED, AccelRef
from accel_lab.compute.recovery.recovery import Recovery
from accel_lab.errors import StaleRef

_FREED = "put or compute it again; free() gives the buffer back for good."
_DROPPED = "put or compute it again; suspend() without drop=True gives nothing up."
_NOT_MADE_AGAIN = (
    "put or compute it again. What no message makes again survives the next fault as a copy: "
    "gpu.checkpoint(ref); ref.durability says beforehand."
)
_NOT_RECOVERED = (
    'put or compute it again. A System(recover="replay"), the default, would make buffers again '
    "by itself."
)


def stale(
    ref: AccelRef, name: str, generation: int, dropped: Mapping[int, str], recovery: Recovery | None
) -> StaleRef:
    """Return the error that says so.

    Parameters:
        name: the device's.
        generation: the one that the device is at.
        dropped: why buffers were given up while the device was suspended.
        recovery: what makes buffers again; None if nothing does.
    """
    if ref.generation == FREED:
        return StaleRef(f"buffer {ref.id} was freed; compute or put() it again", remedy=_FREED)
    if ref.generation == generation:
        why = dropped.get(ref.id, "")
        text = f"buffer {ref.id} was dropped when {name} was suspended: {why}"
        return StaleRef(f"{text}; compute or put() it again", remedy=_DROPPED)
    if recovery is not None and (why := recovery.lost.get(ref.id, "")):
        return StaleRef(
            f"buffer {ref.id} of generation {ref.generation} could not be made again for "
            f"generation {generation}: {why}; compute or put() it again",
            remedy=_NOT_MADE_AGAIN,
        )
    return StaleRef(
        f"buffer {ref.id} is of generation {ref.generation}; {name} is at {generation}, and what "
        "it held before is gone: compute or put() it again",
        remedy=_NOT_RECOVERED if recovery is None else "",
    )
