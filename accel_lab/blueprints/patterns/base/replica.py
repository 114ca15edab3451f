"""One replica of a pool, its speed by its completions, and the choice among several."""

import random
from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import Any, Literal

from accel_lab.blueprints.patterns.base.calls import Calls
from accel_lab.compute.device import Device
from accel_lab.pipeline.stage import NO_WORK

Policy = Literal["round_robin", "least_loaded", "two_choices", "prefix"]
NEWEST = 0.3
"""What the newest completion counts in a replica's speed."""
PREFIX = 16


class Replica:
    """One of them.

    Attributes:
        running: how many requests it has.
        seconds: for one request, by its completions; 0 while that is not known.
        chosen_at: which choice was its last.
        begun_at: when that was.
        rests_until: it is avoided until then.
        drains: whether it gets no more requests.
    """

    def __init__(self, name: str, calls: Calls) -> None:
        self.name, self.calls = name, calls
        self.running = self.completed = self.chosen_at = 0
        self.seconds = self.begun_at = self.rests_until = 0.0
        self.drains = False

    @property
    def device(self) -> Device | None:
        """Where it is; None in the notebook's process."""
        return next(iter(self.calls.stage.devices), None)

    @property
    def is_dead(self) -> bool:
        """Whether its device takes no work; one that rests is tried."""
        device = self.device
        if device is not None and device.state == "circuit open":
            device.probe()
        return device is not None and device.state in NO_WORK

    @property
    def expected_s(self) -> float:
        """How long one more request would take, those that it has included."""
        return (self.running + 1) * self.seconds / self.calls.stage.plan.parallelism

    def complete(self, seconds: float) -> None:
        """Take in how long a request took."""
        known = self.completed > 0
        self.seconds += (NEWEST if known else 1.0) * (seconds - self.seconds)
        self.completed += 1


class Chooser:
    """Chooses among replicas that have room."""

    def __init__(self, policy: Policy, prefix: Callable[[Any], Any], seed: int | None) -> None:
        self._policy, self._prefix = policy, prefix
        self._random = random.Random(seed)  # noqa: S311 - no secret

    def key(self, value: Any) -> bytes:
        """Return what says where a value belongs, for `prefix`."""
        return repr(self._prefix(value)).encode() if self._policy == "prefix" else b""

    def __call__(self, able: Sequence[Replica], key: bytes) -> Replica:
        """Return one of them."""
        if self._policy == "round_robin":
            return min(able, key=lambda one: one.chosen_at)
        if self._policy == "prefix":
            return max(able, key=lambda one: blake2b(key, key=one.name.encode()[-64:]).digest())
        if self._policy == "two_choices" and len(able) > 2:  # noqa: PLR2004 - both of two
            able = self._random.sample(list(able), 2)
        return min(able, key=lambda one: (one.expected_s, one.running, one.chosen_at))


def head_of(value: Any) -> Any:
    """Return the first items of a value that has some."""
    try:
        return value[:PREFIX]
    except (TypeError, KeyError, IndexError):
        return value
