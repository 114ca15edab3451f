"""What `gpu.resident` asks of a device, and of whoever starts its contexts."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from accel_lab.compute.events.samples import MemorySampled
from accel_lab.compute.message.buffer import Ref
from accel_lab.compute.wire.side_channel import Downward


class AskedDevice(Protocol):
    """A device, as far as a table of what it holds has to know it."""

    name: str

    @property
    def generation(self) -> int:
        """Which context answers."""

    @property
    def state(self) -> str:
        """What it is doing, as `Device.state`."""

    @property
    def in_flight(self) -> int:
        """How many messages are sent and not answered."""

    def run(self, function: Callable[..., Any], *operands: Any, pure: bool = ...) -> Any:
        """Call a function in the context."""

    def ping(self) -> object:
        """Send a message that does nothing."""

    def holds(self, ref: Ref[Any]) -> bool:
        """Whether a buffer is, or is about to be, in the current generation."""


class Counts(Protocol):
    """What a context tells of itself."""

    @property
    def statistics(self) -> Mapping[str, Mapping[str, int]]:
        """What each library counts."""

    @property
    def total_bytes(self) -> int | None:
        """The device's memory; None until its first context was up."""


class Sampled(Protocol):
    """How its memory was seen while it worked."""

    @property
    def memory(self) -> MemorySampled | None:
        """The newest sample."""


class Sending(Protocol):
    """Its requests."""

    def flush(self) -> None:
        """Send what waits for company."""


class AskedContext(Protocol):
    """The context of one device, whichever generation it is in."""

    @property
    def health(self) -> Counts:
        """What it has told."""

    @property
    def sampler(self) -> Sampled:
        """How it was seen."""

    @property
    def requests(self) -> Sending:
        """What was sent to it."""

    def tell(self, packet: Downward) -> None:
        """Send it a packet beside its messages, if there is one."""
