"""Which failures a fault of the campaign explains, and how often it costs a context."""

from collections.abc import Sequence

from accel_lab.errors import (
    AccelError,
    Cancelled,
    ContextLost,
    DeadlineExceeded,
    DependencyFailed,
    InvalidArgument,
    LibraryError,
    OutOfMemory,
    StaleRef,
    SystemClosed,
)
from tests.faults.campaign.plan import LOSSES, Scene
from tests.faults.campaign.twin import Sent

REASONS = {"wedge": "it has read no message for", "freeze": "it has given no sign of life for"}


def is_lost_with_journal(scene: Scene) -> bool:
    """Whether a context goes while the journal's store is away."""
    return scene.fault == "journal away" and scene.variant % 2 == 1


def moves(scene: Scene) -> tuple[int, int]:
    """Return how far the generation moves at least and at most, from before the phase."""
    least = most = 0
    if scene.fault in LOSSES or is_lost_with_journal(scene):
        # The loss of a context that is not up yet is no loss of buffers.
        least, most = int(scene.phase != "restarting"), 1
    elif scene.fault == "interrupt":
        most = scene.variant % 2
    elif scene.fault in ("library", "segment lost"):
        most = 1  # the fourth restart of a library within a minute is the context's
    first = int(scene.phase == "restarting")
    return first + least, first + most


def may(  # noqa: C901, PLR0911 - one for each class
    sent: Sent,
    error: AccelError,
    fault: str,
    *,
    before: Sequence[Sent],
    now: int,
    rebuilds: bool,
    closing: bool,
) -> bool:
    """Whether a request may fail so.

    Parameters:
        before: the requests that were sent before it.
        now: its device's generation.
        rebuilds: whether buffers are made again after a loss.
        closing: whether the system is being closed.
    """
    cells = (*sent.operands, *([] if sent.writes is None else [sent.writes]))
    refs = [cell.handle for cell in cells if cell.handle is not None]
    match error:
        case DeadlineExceeded():
            return fault == "hang" and now > sent.before
        case ContextLost():
            last = now if rebuilds else sent.after
            return sent.before <= error.generation <= last and error.generation < now
        case StaleRef():
            return any(ref.generation < now and not ref.is_valid for ref in refs)
        case DependencyFailed():
            if rebuilds and "could not be rebuilt" in str(error) and now > sent.before:
                return True
            cause = error.__cause__
            assert isinstance(cause, AccelError), (sent, error, "does not name what failed first")
            if error.unwritten:
                roots = [cell.root for cell in cells]
                wrote = [one for one in before if one.writes and one.writes.root in roots]
                return any(one.error is not None or one.reply is None for one in wrote)
            known = any(reply.failed for reply in (*refs, *sent.via))
            return known or (
                sent.family == "put"
                and may(
                    sent, cause, fault, before=before, now=now, rebuilds=rebuilds, closing=closing
                )
            )
        case InvalidArgument():  # a function may answer with a view, of which no twin knows
            return sent.family == "jit" and "with gaps" in str(error)
        case OutOfMemory():
            return fault == "out of memory"
        case LibraryError():
            if fault == "segment lost":
                return error.name == "SEGMENT" and "cannot be mapped" in str(error)
            return fault == "library"
        case Cancelled():
            return fault in ("cancel", "interrupt")
        case SystemClosed():
            return closing
    return False
