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
        text = f"buffer {ref.id} was freed; compute or put() it again"
        return StaleRef(text, remedy=_FREED, buffer=ref.id)
    if ref.generation == generation:
        why = dropped.get(ref.id, "")
        text = f"buffer {ref.id} was dropped when {name} was suspended: {why}"
        return StaleRef(f"{text}; compute or put() it again", remedy=_DROPPED, buffer=ref.id)
    error = StaleRef("", buffer=ref.id)
    say_why(error, name, generation, recovery, born=f"generation {ref.generation}")
    return error


def say_why(
    error: StaleRef,
    name: str,
    generation: int,
    recovery: Recovery | None,
    born: str = "an earlier generation",
) -> None:
    """Complete what is said of a buffer that a loss has cost, now or when a context missed it.

    Parameters:
        born: says of which generation it is.
    """
    if recovery is not None and (why := recovery.lost.get(error.buffer, "")):
        text = f"could not be made again for generation {generation}: {why}"
        error.remedy = _NOT_MADE_AGAIN
    elif recovery is None or not error.args[0]:
        text = f"is of {born}; {name} is at {generation}, and what it held before is gone"
        if recovery is None:
            error.remedy = _NOT_RECOVERED
    else:
        return  # a context has said what is known
    error.args = (f"buffer {error.buffer} {text}; compute or put() it again",)
