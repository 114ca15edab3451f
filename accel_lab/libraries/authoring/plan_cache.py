"""Plans kept for the next use; the least recently used is dropped first.

What a plan holds on the device must outlive the work that uses it, and vendors do not say that
destroying a plan waits. So an evicted plan is retired behind a fence, and destroyed once the device
has passed it.
"""

import sys
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Mapping
from typing import Any, Generic, Protocol, TypeVar

from accel_lab.compute.execution.buffer_table import Buffer
from accel_lab.compute.message.operation import Operation

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


class PlanCache(Generic[P]):
    """Keeps at most `most` plans that hold at most `most_bytes` together; for one thread.

    Parameters:
        make: makes the plan of a key, and of what else `use` was given.
        fences: None where all that is enqueued is done when the call returns, as on the host.

    Attributes:
        hits: how often a plan was there.
        misses: how often one was made.
        held_bytes: what the plans hold.
    """

    def __init__(
        self, make: Callable[..., P], fences: Fences | None = None, *, most: int, most_bytes: int
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

    def use(self, key: Hashable, *given: Any) -> P:
        """Return the plan of this key; what `make` raises leaves everything as it was.

        Parameters:
            key: all that a plan depends on, as `static_fields` of a message.
            given: passed to `make` after the key, where there is no plan yet.
        """
        plan = self._plans.get(key)
        if plan is not None:
            self.hits += 1
            self._plans.move_to_end(key)
            return plan
        plan = self._make(key, *given)
        self.misses += 1
        self._plans[key] = plan
        self.held_bytes += plan.held_bytes
        while len(self._plans) > 1 and (
            len(self._plans) > self._most or self.held_bytes > self._most_bytes
        ):
            oldest = self._take_oldest()
            if self._fences is None:
                oldest.destroy()
            else:
                self._retired.append((self._fences.record(), oldest))
        if self._fences is not None:
            self._sweep(self._fences)
        return plan

    def keep_all(self) -> None:
        """Drop no plan any more, however many there are: a graph uses them again by itself."""
        self._most, self._most_bytes = sys.maxsize, sys.maxsize

    def statistics(self) -> Mapping[str, int]:
        """Return how many plans there are, and how often one was there or not; any thread."""
        return {"plans": len(self._plans), "hits": self.hits, "misses": self.misses}

    def shrink(self) -> bool:
        """Destroy the half that was used longest ago; whether there was any.

        The device has passed all that uses one.
        """
        had = bool(self._retired or self._plans)
        while self._retired:
            _, plan = self._retired.popleft()
            plan.destroy()
        for _ in range((len(self._plans) + 1) // 2):
            self._take_oldest().destroy()
        return had

    def close(self) -> None:
        """Wait for the device and destroy every plan."""
        if self._fences is not None:
            self._fences.wait(self._fences.record())
        plans = [*(plan for _, plan in self._retired), *self._plans.values()]
        self._retired.clear()
        self._plans.clear()
        self.held_bytes = 0
        for plan in plans:
            plan.destroy()

    def _take_oldest(self) -> P:
        _, oldest = self._plans.popitem(last=False)
        self.held_bytes -= oldest.held_bytes
        return oldest

    def _sweep(self, fences: Fences) -> None:
        """Destroy retired plans that the device is done with; wait when there are too many."""
        retired = self._retired
        while retired:
            fence, plan = retired[0]
            if not fences.passed(fence):
                if len(retired) <= MOST_RETIRED:
                    return
                fences.wait(fence)
            retired.popleft()
            plan.destroy()


def keep_all(library: object) -> None:
    """Have the caches of a backend's library, and of its parts, drop no plan any more."""
    parts = list(getattr(library, "__dict__", {}).values())
    for part in parts:
        for one in (part, *getattr(part, "__dict__", {}).values()):
            if isinstance(one, PlanCache):
                one.keep_all()


def static_fields(message: Operation[Any]) -> Hashable:
    """Return what a plan of a message may depend on, but for its operands' contents and addresses.

    That is its type, its options, and of each operand shape, dtype and strides. An option that a
    plan does not depend on, as a factor, makes more plans than there need be: write the key by hand
    then.
    """
    fields = [_static(getattr(message, name)) for name in message.__struct_fields__]
    return type(message), *fields


def _static(value: Any) -> Hashable:
    if isinstance(value, Buffer):
        return value.shape, str(value.dtype), getattr(value.array, "strides", None)
    if isinstance(value, (list, tuple)):
        return tuple(map(_static, value))
    return value  # type: ignore[no-any-return]
