"""Which request has broken a context, as far as that can be known without trying."""

from collections.abc import Collection, Mapping

from accel_lab.compute.lineage.recorded_message import Step
from accel_lab.compute.requests.answers import InFlight
from accel_lab.errors import ContextLost

OWN_SIGNALS = ("SIGSEGV", "SIGBUS", "SIGILL", "SIGFPE", "SIGABRT")
OF_KERNELS = frozenset((700, 710, *range(714, 720)))
"""The codes of a device that an instruction of a kernel has brought about."""


def culprit_of(
    in_flight: InFlight, steps: Mapping[int, Step], error: ContextLost, executing: int
) -> int:
    """Return the request that has broken the context; 0 where that is not known."""
    pending: Collection[int] = in_flight.pending.keys()
    if not _by_its_own_doing(error):
        return 0
    if len(pending) == 1:
        return next(iter(pending))
    if executing in pending:
        return executing
    if error.code in OF_KERNELS:  # it ran behind its launch: the kernels of libraries do not fault
        users = [seq for seq in pending if seq not in steps or steps[seq].runs_user_code]
        return users[0] if len(users) == 1 else 0
    return 0


def _by_its_own_doing(error: ContextLost) -> bool:
    """Whether the context was ended by something that it did, not from outside."""
    ended = error.name in OWN_SIGNALS or error.name.startswith("exit status")
    return error.code != 0 or ended
