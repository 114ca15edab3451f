"""Which failures of a step are faults, after which it is done again."""

from collections.abc import Iterable

from accel_lab.compute.device import Device
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.errors import ContextLost, DependencyFailed, GroupAborted, StaleRef
from accel_lab.libraries.collective import CommunicatorLost

_FAULTS = (CommunicatorLost, ContextLost, DependencyFailed, GroupAborted, StaleRef)


def first_of(error: BaseException) -> BaseException:
    """Return what an error comes of: the failure of an operand, or of another rank's part."""
    while isinstance(error, DependencyFailed | GroupAborted) and error.__cause__ is not None:
        error = error.__cause__
    return error


def is_fault(error: BaseException) -> bool:
    """Whether a context was lost, or what others wanted of it, and not the program is wrong."""
    return isinstance(first_of(error), _FAULTS)


class Hearing:
    """Has nobody told of failures among what is sent to devices from now on.

    For who does all of it again if any of it fails: what each of many messages lost with a context
    failed with says nothing more. It is called again and again, before anything that waits.

    Attributes:
        sent: the handles that tell whether all went well, for who waits for them.
    """

    def __init__(self, devices: Iterable[Device]) -> None:
        self.sent: list[AccelRef] = []
        self._heard = {device: device.last_number for device in devices}

    def __call__(self) -> None:
        """Hear of what was sent since the last time and is not answered."""
        for device, number in self._heard.items():
            self._heard[device] = device.last_number
            for at, reply in reversed([*device.requests.answers.pending.items()]):
                if at <= number:
                    break
                reply.add_waiter(_do_nothing)


def _do_nothing() -> None:
    """Be called when a message is done."""
