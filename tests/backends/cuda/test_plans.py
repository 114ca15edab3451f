"""Which plans are kept, and when an evicted one may be destroyed; no CUDA needed."""

from collections import OrderedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel_lab.backends.cuda.fft.plan_cache import MOST_RETIRED, Plans


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

    def plans(self, most: int = 4, most_bytes: int = 1000) -> Plans[Plan]:
        return Plans(self.make, self, most=most, most_bytes=most_bytes)

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
