"""The rules of placement over made-up figures, and 10,000 messages on a clock of its own."""

import heapq
from collections import deque
from collections.abc import Sequence

import pytest

from accel_lab.compute.events.placement import Figures
from accel_lab.compute.events.tree import State
from accel_lab.compute.placement.measured import Speed
from accel_lab.compute.placement.placement import DEPTH
from accel_lab.compute.placement.policies import (
    Affinity,
    Hints,
    LeastLoaded,
    MemoryAware,
    Policy,
    RoundRobin,
    choose,
)
from accel_lab.errors import InvalidArgument, NoDevice

GIB = 1 << 30


def chosen(policy: Policy, figures: Sequence[Figures], hints: Hints = Hints()) -> str:  # noqa: B008
    choice = choose(policy, figures, hints, DEPTH)
    assert choice.chosen is not None
    return choice.chosen.device


class SimulatedDevice:
    """Does one message after the other, each in `seconds`."""

    def __init__(self, name: str, seconds: float, free_bytes: int) -> None:
        self.name, self.seconds, self.free_bytes = name, seconds, free_bytes
        self.speed, self.ends = Speed(), deque[float]()
        self.placed = self.answered = self.turn = 0
        self.end = 0.0

    def take(self, now: float) -> float:
        """Queue a message and return when it will be done."""
        self.end = max(now, self.end) + self.seconds
        self.ends.append(self.end)
        self.placed += 1
        return self.end

    def figures(self, now: float) -> Figures:
        while self.ends and self.ends[0] <= now:
            self.ends.popleft()
            self.answered += 1
        waiting = len(self.ends)
        self.speed.look(now, self.answered, busy=waiting > 0)
        return Figures(
            self.name, "running", waiting, self.speed.seconds, self.free_bytes, 0.0, self.turn
        )


def makespan(
    policy: Policy, devices: list[SimulatedDevice], messages: int, *, depth: int = DEPTH
) -> float:
    """Return when the last of many messages is done, all of which are there at once."""
    now, pending = 0.0, list[float]()
    by_name = {one.name: one for one in devices}
    while messages:
        figures = [one.figures(now) for one in devices]
        choice = choose(policy, figures, Hints(nbytes=1 << 20), depth)
        if choice.chosen is None:  # the caller waits until one is done
            now = max(now, heapq.heappop(pending))
            continue
        by_name[choice.chosen.device].turn = -messages
        heapq.heappush(pending, by_name[choice.chosen.device].take(now))
        messages -= 1
        now += 20e-6  # what sending takes
    return max(one.end for one in devices)


@pytest.mark.parametrize("fast_s", [0.0005, 0.003])
def test_ten_thousand_messages_are_near_the_ideal_schedule(fast_s: float) -> None:
    """Four devices: one slow, one full. In turn, without a bound, it takes much longer."""
    count, slow_s = 10_000, 6 * fast_s
    ideal = count / (2 / fast_s + 1 / slow_s)

    def four() -> list[SimulatedDevice]:
        return [
            SimulatedDevice("slow", slow_s, GIB),
            SimulatedDevice("full", fast_s, 1000),
            SimulatedDevice("a", fast_s, GIB),
            SimulatedDevice("b", fast_s, GIB),
        ]

    devices = four()
    assert makespan(LeastLoaded(), devices, count) <= 1.15 * ideal
    assert devices[1].placed == 0
    assert sum(one.placed for one in devices) == count
    few = count // 10
    assert makespan(RoundRobin(), four(), few, depth=few) > 1.5 * ideal / 10


def test_each_policy_follows_its_figures() -> None:
    figures = [
        Figures("a", outstanding=3, seconds=1.0, free_bytes=5, last_placed=1),
        Figures("b", outstanding=1, seconds=9.0, free_bytes=9, last_placed=2),
        Figures("c", outstanding=5, seconds=1.0, free_bytes=7, last_placed=0),
    ]
    assert chosen(LeastLoaded(), figures) == "a"
    assert chosen(RoundRobin(), figures) == "c"
    assert chosen(MemoryAware(), figures) == "b"
    assert chosen(lambda candidates, hints: candidates[1], figures) == "b"  # noqa: ARG005
    assert chosen(RoundRobin(), figures, Hints(priority=1)) == "a"
    assert chosen(LeastLoaded(), figures, Hints(near="b")) == "b"
    with pytest.raises(InvalidArgument, match="return one of the figures"):
        chosen(lambda candidates, hints: Figures("d"), figures)  # noqa: ARG005
    ring = Affinity(lambda a, b: (ord(b) - ord(a)) % 3 or 3)
    assert chosen(ring, figures, Hints(near="b")) == "c"


@pytest.mark.parametrize("state", ["suspended", "restarting", "circuit open", "stopped"])
def test_who_does_not_run_is_chosen_only_if_nobody_else_can(state: State) -> None:
    busy = Figures("b", outstanding=DEPTH - 1)
    down = Figures("a", state)
    choice = choose(LeastLoaded(), [down, busy], Hints(), DEPTH)
    assert choice.chosen == busy
    assert "a" in choice.refused
    if state in ("suspended", "restarting"):
        assert chosen(LeastLoaded(), [down]) == "a", "its message waits for the context"
    else:
        with pytest.raises(NoDevice) as caught:
            choose(LeastLoaded(), [down], Hints(), DEPTH)
        assert caught.value.why.keys() == {"a"}


def test_what_no_device_can_take_says_why_of_each() -> None:
    figures = [
        Figures("a", capability=9.0, free_bytes=100),
        Figures("b", capability=7.5, free_bytes=GIB),
        Figures("c", "circuit open", capability=9.0, free_bytes=GIB),
    ]
    with pytest.raises(
        NoDevice, match=r"a: 100 B.*b: .*7\.5, not 8.*c: its circuit is open"
    ) as one:
        choose(LeastLoaded(), figures, Hints(nbytes=GIB, capability=8.0), DEPTH)
    assert list(one.value.why) == ["a", "b", "c"]
    assert one.value.copy().why == one.value.why


def test_full_queues_are_waited_for_unless_a_message_has_priority() -> None:
    full = [Figures("a", outstanding=DEPTH, seconds=2.0), Figures("b", outstanding=DEPTH)]
    assert choose(LeastLoaded(), full, Hints(), DEPTH).chosen is None
    assert choose(LeastLoaded(), full, Hints(priority=1), DEPTH).chosen is not None
