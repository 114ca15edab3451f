"""What is told of a device that is suspended."""

from typing import Literal, NamedTuple

from accel_lab.display.counts import counted
from accel_lab.display.sizes import size

Keep = Literal["memory", "process"]


class Suspended(NamedTuple):
    """What waits on the host for a device.

    Attributes:
        device: its name.
        buffers, objects: how many there are.
        nbytes: what they take there; of a process that is kept, what its buffers take.
        lost: what was dropped, and why.
        keep: what was kept: "memory", and the process has ended, or the "process" with all it has.
    """

    device: str
    buffers: int = 0
    objects: int = 0
    nbytes: int = 0
    lost: tuple[tuple[str, str], ...] = ()
    keep: Keep = "memory"

    def __repr__(self) -> str:
        return f"<{self.device} is suspended: {self.text}>"

    @property
    def text(self) -> str:
        """Say what waits."""
        buffers = counted(self.buffers, "buffer")
        objects = counted(self.objects, "object")
        lost = f"; dropped: {', '.join(name for name, _ in self.lost)}" if self.lost else ""
        kept = ", in their process" if self.keep == "process" else ""
        return f"{buffers} and {objects} wait on the host{kept}, {size(self.nbytes)}{lost}"
