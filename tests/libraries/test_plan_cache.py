"""Which plans are kept, and when an evicted one may be destroyed."""

from collections import OrderedDict
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel_lab.backends.host.device import HostBackend
from accel_lab.compute.execution.buffer_table import Buffer
from accel_lab.compute.execution.context import Context
from accel_lab.compute.execution.launch import LibraryActor
from accel_lab.compute.execution.stream import Storage
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.operation import Operation
from accel_lab.errors import OutOfMemory
from accel_lab.libraries.authoring.plan_cache import MOST_RETIRED, PlanCache, static_fields


class Plan:
    """Knows whether it is destroyed while the device may still use it."""

    def __init__(self, device: "Device", key: int) -> None:
        self.device = device
        self.key = key
        self.held_bytes = 10 * key
        self.used_at = 0
        self.destroyed = False

    def destroy(self) -> None:
        assert not self.destroyed
        assert self.used_at <= self.device.done
        self.destroyed = True


class Device:
    """Counts what is enqueued and what is done."""

    def __init__(self) -> None:
        self.enqueued = 0
        self.done = 0
        self.waits = 0
        self.made: list[Plan] = []

    def record(self) -> int:
        return self.enqueued

    def passed(self, fence: int) -> bool:
        return self.done >= fence

    def wait(self, fence: int) -> None:
        self.waits += 1
        self.done = max(self.done, fence)

    def make(self, key: int) -> Plan:
        if key < 0:
            msg = "no such plan"
            raise ValueError(msg)
        self.made.append(Plan(self, key))
        return self.made[-1]

    def plans(self, most: int = 4, most_bytes: int = 1000) -> PlanCache[Plan]:
        return PlanCache(self.make, self, most=most, most_bytes=most_bytes)

    def enqueue(self, plan: Plan) -> None:
        assert not plan.destroyed
        self.enqueued += 1
        plan.used_at = self.enqueued


@given(st.lists(st.tuples(st.integers(0, 9), st.booleans()), max_size=80), st.integers(1, 5))
def test_the_least_recently_used_plan_goes_first(keys: list[tuple[int, bool]], most: int) -> None:
    """A model in plain Python; nothing is destroyed before the device is done with it."""
    device = Device()
    plans = device.plans(most, most_bytes=150)
    model: OrderedDict[int, None] = OrderedDict()
    hits = 0
    for key, finish in keys:
        hits += key in model
        device.enqueue(plans.use(key))
        model[key] = None
        model.move_to_end(key)
        while len(model) > 1 and (len(model) > most or 10 * sum(model) > 150):
            model.popitem(last=False)
        assert list(plans._plans) == list(model)
        assert plans.held_bytes == 10 * sum(model)
        if finish:
            device.done = device.enqueued
    assert (plans.hits, plans.misses) == (hits, len(keys) - hits)
    assert plans.statistics() == {
        "plans": len(model),
        "hits": hits,
        "misses": len(keys) - hits,
    }
    plans.close()
    assert all(plan.destroyed for plan in device.made)
    assert len(plans) == plans.held_bytes == 0


def test_an_evicted_plan_waits_for_its_work() -> None:
    device = Device()
    plans = device.plans(most=1)
    first = plans.use(1)
    device.enqueue(first)
    plans.use(2)
    assert not first.destroyed
    device.done = device.enqueued
    plans.use(3)
    assert first.destroyed
    assert device.waits == 0


def test_retired_plans_do_not_pile_up() -> None:
    device = Device()
    plans = device.plans(most=1)
    for key in range(MOST_RETIRED + 10):
        device.enqueue(plans.use(key))
    assert sum(not plan.destroyed for plan in device.made) <= MOST_RETIRED + 1
    assert device.waits > 0


def test_a_plan_that_cannot_be_made_changes_nothing() -> None:
    device = Device()
    plans = device.plans(most=1)
    kept = plans.use(1)
    with pytest.raises(ValueError, match="no such plan"):
        plans.use(-1)
    assert plans.use(1) is kept
    assert (plans.hits, plans.misses, plans.held_bytes) == (1, 1, 10)


def test_one_plan_is_kept_however_large() -> None:
    plans = Device().plans(most=4, most_bytes=5)
    plans.use(9)
    assert len(plans) == 1


def test_a_plan_is_made_of_its_key_and_of_what_else_is_given() -> None:
    made: list[tuple[Any, ...]] = []

    def make(*given: Any) -> Plan:
        made.append(given)
        return Plan(Device(), 1)

    plans = PlanCache(make, most=1, most_bytes=10)
    first = plans.use("a", "of a")
    assert plans.use("a", "of another") is first
    assert made == [("a", "of a")]


def test_without_fences_an_evicted_plan_goes_at_once() -> None:
    device = Device()
    plans = PlanCache(device.make, most=1, most_bytes=1000)
    first = plans.use(1)
    plans.use(2)
    assert first.destroyed
    plans.close()
    assert [plan.destroyed for plan in device.made] == [True, True]


def test_shrinking_destroys_what_was_used_longest_ago_first() -> None:
    device = Device()
    plans = device.plans(most=5)
    for key in (1, 2, 3, 4, 5, 1):
        device.enqueue(plans.use(key))
    device.enqueue(plans.use(6))  # 2 is retired
    device.done = device.enqueued
    left = []
    while plans.shrink():
        left.append([plan.key for plan in device.made if not plan.destroyed])
        assert plans.held_bytes == 10 * sum(left[-1])
    assert left == [[1, 6], [6], []]
    assert plans.use(3).key == 3


class Solve(Operation[AccelRef], frozen=True, array_like=True, eq=False, tag=90):
    """A message with operands and options."""

    library: ClassVar[str] = "test"
    a: AccelRef
    many: tuple[AccelRef, ...]
    axes: tuple[int, ...] | None = None
    lower: bool = False
    out: AccelRef | None = None


class Solve2(Solve, frozen=True, array_like=True, eq=False, tag=89):
    """Another message with the same fields."""


def placed(id_: int, array: Any) -> Buffer:
    buffer = Buffer(id_)
    stream: Any = None
    buffer.array = array
    storage = object.__new__(Storage)
    storage.users, storage.home = 0, stream
    buffer.fill(array, array.shape, str(array.dtype), storage)
    return buffer


def test_the_key_of_a_message_is_all_but_contents_and_addresses() -> None:
    x, y = np.ones((3, 4)), np.zeros((3, 4))

    def key(array: Any = x, second: Any = y, kind: type[Solve] = Solve, **options: Any) -> Any:
        return static_fields(kind(placed(1, array), (placed(2, second),), **options))

    same = key()
    assert hash(same) == hash(key(y, x))
    assert same == key(y, x)
    others = [
        key(x.T),
        key(np.ones((4, 3)).T),
        key(x.astype("float32")),
        key(x, x.T),
        key(axes=(0,)),
        key(lower=True),
        key(out=placed(3, x)),
        key(kind=Solve2),
    ]
    assert len({same, *others}) == len(others) + 1


class Cramped(HostBackend):
    """A device of 100 bytes, in which plans lie too."""

    def __init__(self) -> None:
        super().__init__(0)
        self.device = Device()
        self.planner = Planner(self.device)
        self.libraries = {"planned": lambda: self.planner}

    def empty(self, shape: tuple[int, ...], dtype: str) -> Any:
        array = super().empty(shape, dtype)
        if array.nbytes + self.planner.plans.held_bytes > 100:
            raise MemoryError("of a test")
        return array


class Planner:
    """A backend's part of a library that has plans."""

    def __init__(self, device: Device) -> None:
        self.plans = PlanCache(device.make, device, most=8, most_bytes=1000)
        self.statistics = self.plans.statistics
        self.give_way = self.plans.shrink
        self.close = self.trim = self.plans.close


class Planned(LibraryActor):
    """Owns its plans."""

    library = "planned"


@pytest.fixture
def cramped() -> Iterator[Context]:
    arena: Any = None
    context = Context(Cramped(), [Planned], arena, 1, {}, 100)
    yield context
    context.close()


def test_the_actor_counts_what_its_library_counts(cramped: Context) -> None:
    backend: Any = cramped.backend
    for key in (1, 2, 1):
        backend.planner.plans.use(key)
    assert cramped.actors["planned"].statistics() == {"plans": 2, "hits": 1, "misses": 2}


def test_plans_give_way_in_their_order_until_there_is_room(cramped: Context) -> None:
    backend: Any = cramped.backend
    plans = backend.planner.plans
    for key in (4, 3, 2, 1):
        plans.use(key)
    array, _ = cramped.allocate((60,), "uint8")
    assert array.nbytes == 60
    assert [plan.key for plan in backend.device.made if not plan.destroyed] == [2, 1]
    with pytest.raises(OutOfMemory):
        cramped.allocate((101,), "uint8")
