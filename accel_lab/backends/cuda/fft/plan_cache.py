"""Plans kept for the next use; the least recently used is dropped first.

What a plan holds on the device must outlive the work that uses it, and cuFFT does not say that
destroying a plan waits. So an evicted plan is retired behind a fence, and destroyed once the device
has passed it. This module has no CUDA.
"""

from collections import OrderedDict, deque
from collections.abc import Callable, Hashable
from typing import Any, Generic, Protocol, TypeVar

MOST_RETIRED = 16


class Kept(Protocol):
    """A plan."""

    held_bytes: int

    def destroy(self) -> None:
        """Give back what it holds; nothing uses it any more."""


class Fences(Protocol):
    """Points in the device's work."""

    def record(self) -> Any:
        """Return the point after all that is enqueued."""

    def passed(self, fence: Any) -> bool:
        """Whether the device has passed it."""

    def wait(self, fence: Any) -> None:
        """Block until the device has passed it."""


P = TypeVar("P", bound=Kept)


class Plans(Generic[P]):
    """Keeps at most `most` plans that hold at most `most_bytes` together; for one thread.

    Attributes:
        hits: how often a plan was there.
        misses: how often one was made.
        held_bytes: what the plans hold.
    """

    def __init__(
        self, make: Callable[[Any], P], fences: Fences, *, most: int, most_bytes: int
    ) -> None:
        self._make = make
        self._fences = fences
        self._most = most
        self._most_bytes = most_bytes
        self._plans: OrderedDict[Hashable, P] = OrderedDict()
        self._retired: deque[tuple[Any, P]] = deque()
        self.hits = 0
        self.misses = 0
        self.held_bytes = 0

    def __len__(self) -> int:
        return len(self._plans)

    def use(self, key: Hashable) -> P:
        """Return the plan of this key; what `make` raises leaves everything as it was."""
        plan = self._plans.get(key)
        if plan is not None:
            self.hits += 1
            self._plans.move_to_end(key)
            return plan
        plan = self._make(key)
        self.misses += 1
        self._plans[key] = plan
        self.held_bytes += plan.held_bytes
        while len(self._plans) > 1 and (
            len(self._plans) > self._most or self.held_bytes > self._most_bytes
        ):
            _, oldest = self._plans.popitem(last=False)
            self.held_bytes -= oldest.held_bytes
            self._retired.append((self._fences.record(), oldest))
        self._sweep()
        return plan

    def close(self) -> None:
        """Wait for the device and destroy every plan."""
        self._fences.wait(self._fences.record())
        plans = [*(plan for _, plan in self._retired), *self._plans.values()]
        self._retired.clear()
        self._plans.clear()
        self.held_bytes = 0
        for plan in plans:
            plan.destroy()

    def _sweep(self) -> None:
        """Destroy retired plans that the device is done with; wait when there are too many."""
        retired = self._retired
        while retired:
            fence, plan = retired[0]
            if not self._fences.passed(fence):
                if len(retired) <= MOST_RETIRED:
                    return
                self._fences.wait(fence)
            retired.popleft()
            plan.destroy()
