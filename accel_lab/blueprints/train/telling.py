"""What a trainer tells of its steps, and where the time of a step went."""

import math
import time
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from typing import Any, Self

import numpy as np

from accel_lab.actor.events import Subscription
from accel_lab.compute.device import Device
from accel_lab.compute.events.collectives import CollectiveEnded
from accel_lab.compute.events.training import StepTrained
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.display.table import in_one_line

FAULTS = 8
"""So many of the newest faults of a step are told."""
_TOKENS = ("int32", "int64")
_MATRIX = 2
_made: Counter[str] = Counter()


class Watch:
    """Measures a step, from `with` to its end.

    Attributes:
        seconds: what it took.
        exchanging_s, waiting_s: of each device, as `StepTrained` has them.
    """

    def __init__(self, devices: Sequence[Device]) -> None:
        self.devices = tuple(devices)
        self.seconds = 0.0
        self.exchanging_s: tuple[float, ...] = ()
        self.waiting_s: tuple[float, ...] = ()
        self._ended: deque[CollectiveEnded] = deque()
        self._following: Subscription | None = None

    def __enter__(self) -> Self:
        if len(self.devices) > 1:
            events = self.devices[0].events
            self._following = events.subscribe(self._ended.append, CollectiveEnded)
        self._at, self._clock = time.time(), time.perf_counter()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds = time.perf_counter() - self._clock
        if self._following is not None:
            self._following.close()
        names = [device.name for device in self.devices]
        self.exchanging_s, self.waiting_s = spent(names, self._ended, self._at)


def spent(
    names: Sequence[str], ended: Iterable[CollectiveEnded], since: float
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return how long each device was in operations that all had begun, and in others.

    Of operations that overlap, the one that the device began first has the moment.

    Parameters:
        since: what was before counts nothing, wall seconds.
    """
    parts: dict[str, list[tuple[float, float, float]]] = {name: [] for name in names}
    for one in ended:
        if one.failure or not one.ranks:
            continue
        begin = one.at - one.seconds
        together = begin + max(one.waited_s)
        for name, waited in zip(one.ranks, one.waited_s, strict=True):
            if name in parts:
                parts[name].append((begin + waited, together, one.at))
    exchanging, waiting = [], []
    for own in parts.values():
        until, exchanged, waited = since, 0.0, 0.0
        for begin, together, end in sorted(own):
            after = max(until, begin)
            if after < end:
                waited += max(0.0, together - after)
                exchanged += end - max(together, after)
                until = end
        exchanging.append(exchanged)
        waiting.append(waited)
    return tuple(exchanging), tuple(waiting)


class Telling:
    """Publishes a trainer's steps under a name of its own."""

    def __init__(self, kind: str, devices: Sequence[Device]) -> None:
        _made[kind] += 1
        self.name = kind if _made[kind] == 1 else f"{kind} {_made[kind]}"
        self._step = self._faults = 0
        self._generations = {one.name: one.generation for one in devices}

    def tell(
        self,
        watch: Watch,
        step: int,
        batch: Sequence[Any],
        *,
        loss: float,
        rate: float,
        norm: float | None,
        faults: Sequence[Exception],
    ) -> None:
        """Publish a step that is whole; `faults` are all of the trainer's so far."""
        count, noun = _amount(batch)
        new = faults[self._faults :][-FAULTS:]
        before = self._generations
        now = self._generations = {one.name: one.generation for one in watch.devices}
        watch.devices[0].events.publish(
            StepTrained(
                trainer=self.name,
                step=step,
                loss=_finite(loss),
                rate=float(rate),
                norm=_finite(norm),
                count=count,
                noun=noun,
                seconds=watch.seconds,
                ranks=tuple(device.name for device in watch.devices),
                exchanging_s=watch.exchanging_s,
                waiting_s=watch.waiting_s,
                faults=tuple(in_one_line(f"{type(one).__name__}: {one}", 160) for one in new),
                lost=tuple(name for name, one in now.items() if before.get(name, one) < one),
                again=max(0, self._step - step + 1),
            )
        )
        self._step, self._faults = step, len(faults)


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _amount(batch: Sequence[Any]) -> tuple[int, str]:
    """Return how many rows a batch has; of a matrix of numbers of tokens, how many of these."""
    for one in batch:
        if isinstance(one, np.ndarray | AccelRef) and one.shape:
            if len(one.shape) == _MATRIX and str(one.dtype) in _TOKENS:
                return one.shape[0] * one.shape[1], "tokens"
            return one.shape[0], "rows"
    return 0, ""
