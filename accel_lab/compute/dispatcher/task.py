"""A task that a context is running, as its control thread sees it from outside."""

from typing import Any, NamedTuple

from accel_lab.compute.events.samples import Slice, work_of
from accel_lab.compute.execution.stream import Stream
from accel_lab.compute.groups.group import Group


class Task(NamedTuple):
    """A message in execution, or several whose work is awaited together.

    Attributes:
        identity: the same for as long as it is the same.
        seq: the number of the request, of several the first's.
        message: of that request.
        stream: where it runs.
        timeout_s: how long it may take; None for ever.
        more: how many others are awaited with it.
        traced: whether the tracer has marked it.
        group: what it is a part of, with other devices, as long as it has not come to its end.
    """

    identity: object
    seq: int
    message: Any
    stream: Stream
    timeout_s: float | None
    more: int = 0
    traced: bool = False
    group: Group | None = None

    def slice(self, since: float) -> Slice:
        """Return it as running since then, in wall seconds."""
        message = self.message
        name = f"{message.title} and {self.more} more" if self.more else message.title
        place = None if self.group is None else self.group.place
        kind = work_of(message)
        return Slice(self.seq, name, self.stream.name, kind, since, None, place=place)
