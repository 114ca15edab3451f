"""Follow a device's generation, to repeat what is needed when its buffers are gone."""

from collections.abc import Callable
from typing import Self

from accel_lab.actor.events import Event, EventStream, Listener, Subscription
from accel_lab.actor.unawaited import name_of, require_plain
from accel_lab.compute.events.lifecycle import GenerationChanged


class GenerationWatch:
    """The generations that a device comes to, for `async for`; ends when its system closes.

    It keeps only the newest: a loop that is slower than the losses is told once, of the last.
    Leaving `async with`, `close()`, or dropping the last reference ends it.
    """

    def __init__(self, listener: "Listener[GenerationChanged]") -> None:
        self._listener = listener

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> int:
        """Wait for a generation later than those told before, and return it.

        Raises:
            StopAsyncIteration: the system or this watch is closed.
        """
        changed = await self._listener.__anext__()
        return changed.after

    def close(self) -> None:
        """End the watch, from any thread."""
        self._listener.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()


def watch_generation(events: EventStream, device: str, *, ended: bool) -> GenerationWatch:
    """Watch one device from now on; a watch that has `ended` tells nothing."""

    def of_device(event: Event) -> bool:
        return isinstance(event, GenerationChanged) and event.device == device

    listener = events.listen(GenerationChanged, capacity=1, where=of_device)
    if ended:
        listener.close()
    return GenerationWatch(listener)


def call_with_generation(
    events: EventStream, device: str, callback: Callable[[int], object]
) -> Subscription:
    """Call `callback` with each new generation of one device, from now on."""
    listen = "write def, or async for generation in gpu.watch(): …"
    require_plain(callback, f"the callback {name_of(callback)}", listen)

    def changed(event: GenerationChanged) -> None:
        if event.device == device:
            callback(event.after)

    return events.subscribe(changed, GenerationChanged)
