"""Looks at what chosen results hold: their range and their histogram, computed on the device.

The messages that compute them are not recorded, and whoever asks waits for their small answers.
"""

import threading
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from math import isfinite, prod
from typing import Any
from weakref import WeakKeyDictionary

from accel_lab.actor.reply import Reply
from accel_lab.compute.arrays.dtypes import is_complex, is_float
from accel_lab.compute.device import Device
from accel_lab.compute.events.samples import ValuesSeen
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.operation import OWN_TIMEOUT, Operation
from accel_lab.compute.output import cell_origin
from accel_lab.errors import AccelError, InvalidArgument
from accel_lab.libraries.array.elementwise import Unary, Where
from accel_lab.libraries.array.library import Cast, Reshape
from accel_lab.libraries.array.reduction import Reduce, ReduceOp
from accel_lab.libraries.primitives.counting import HistogramEven
from accel_lab.telemetry.finite import PASSED_OVER, made
from accel_lab.telemetry.result_watch import ResultWatch

MOST_BINS = 64
LONGEST_NAME = 80


def observe(device: Device, name: str, x: AccelRef, bins: int) -> ValuesSeen:
    """Look at what an array holds now, publish that as a fact, and return it; blocks.

    Raises:
        InvalidArgument: it is no array of this device, or the name or the bins cannot be.
        AccelError: it could not be computed, as when the array is lost.
    """
    _require(bins, "bins", MOST_BINS)
    if type(name) is not str or not 0 < len(name) <= LONGEST_NAME:
        text = f"observe: name is {name!r}; it is text of 1 to {LONGEST_NAME} characters"
        raise InvalidArgument(text)
    cell = getattr(cell_origin.current(), "cell", None)
    return _published(device, name, x, bins, cell or None)


class ValuesWatch(ResultWatch):
    """Looks at what some messages of some devices make, until it is closed.

    Parameters:
        devices: those of one system.
        messages: the names of messages, as `Gemm`; none for all.
        every: of each name the first result is looked at, and each so-manieth after it.
    """

    _instead = "call watch_values() again"

    def __init__(
        self, devices: Iterable[Device], messages: Iterable[str], *, every: int, bins: int
    ) -> None:
        _require(bins, "bins", MOST_BINS)
        _require(every, "every")
        self._messages = frozenset(messages)
        super().__init__([_Watched(one, self._messages, every, bins) for one in devices])

    def __repr__(self) -> str:
        of = ", ".join(sorted(self._messages)) or "all messages"
        return f"<ValuesWatch of {of}>"


class _Watched:
    """One device."""

    def __init__(self, device: Device, messages: frozenset[str], every: int, bins: int) -> None:
        self.device = device
        self._messages = messages
        self._every = every
        self._bins = bins
        self._made: Counter[str] = Counter()

    def look(self, message: Operation[Any], _: int, reply: Reply[Any]) -> None:
        """Look at what a message has made or changed; blocks until it is known."""
        kind, title = type(message).__name__, message.title
        if self._messages and self._messages.isdisjoint((kind, title)):
            return
        if message.library in PASSED_OVER:
            return
        self._made[title] += 1
        if (self._made[title] - 1) % self._every:
            return
        cell = getattr(reply.origin, "cell", None) or None
        for field, ref in made(message, reply):
            name = f"{title}.{field}" if field else title
            with suppress(AccelError):  # the message failed, and whoever waits for it is told
                _published(self.device, name[:LONGEST_NAME], ref, self._bins, cell)


_looks: WeakKeyDictionary[Device, Counter[str]] = WeakKeyDictionary()
_counting = threading.Lock()


def _published(device: Device, name: str, x: AccelRef, bins: int, cell: int | None) -> ValuesSeen:
    found = _Look(device, x).summary(bins)
    with _counting:
        looks = _looks.setdefault(device, Counter())
        looks[name] += 1
        fact = ValuesSeen(
            device=device.name,
            name=name,
            look=looks[name],
            dtype=str(x.dtype),
            shape=tuple(x.shape),
            cell=cell,
            **found,
        )
    device.events.publish(fact)
    return fact


class _Look:
    """One array, as float32 or float64."""

    def __init__(self, device: Device, x: AccelRef) -> None:
        self._send = device.requests.outbox.send
        self._size = prod(x.shape)
        if is_complex(x.dtype):
            x = self._made(Unary("absolute", x))
        if x.dtype not in ("float32", "float64"):
            x = self._made(Cast(x, "float32" if is_float(x.dtype) else "float64"))
        self._x = x

    def summary(self, bins: int) -> dict[str, Any]:
        """Return what a fact says of the elements."""
        x, size = self._x, self._size
        finite = self._made(Unary("isfinite", x))
        count = int(self._number("sum", finite)) if size else 0
        nans = 0 if count == size else int(self._number("sum", self._made(Unary("isnan", x))))
        found: dict[str, Any] = {"nans": nans, "infs": size - count - nans, "counts": ()}
        if not count:
            return found | {"least": None, "most": None, "mean": None}

        def inside(other: float) -> AccelRef:
            return x if count == size else self._made(Where(finite, x, None, (other,)))

        least = float(self._number("min", inside(float("inf"))))
        most = float(self._number("max", inside(-float("inf"))))
        mean = float(self._number("sum", inside(0.0), dtype="float64")) / count
        counts: tuple[int, ...] = ()
        if least == most:
            counts = (count,)
        elif isfinite(most - least):  # what is not finite is in no bin
            flat = self._made(Reshape(x, (size,)))
            counts = tuple(map(int, self._made(HistogramEven(flat, bins, least, most)).get()))
        mean_or_none = mean if isfinite(mean) else None  # their sum may be too large
        return found | {"least": least, "most": most, "mean": mean_or_none, "counts": counts}

    def _made(self, message: Operation[Any]) -> AccelRef:
        reply = self._send(message, OWN_TIMEOUT, recorded=False)
        assert isinstance(reply, AccelRef)
        return reply

    def _number(self, op: ReduceOp, x: AccelRef, *, dtype: str | None = None) -> Any:
        return self._made(Reduce(op, x, dtype=dtype)).get()


def _require(value: int, name: str, most: int | None = None) -> None:
    if type(value) is not int or not 1 <= value <= (most or value):
        bound = f"from 1 to {most}" if most else "of at least 1"
        raise InvalidArgument(f"{name} is {value!r}; it is a whole number {bound}")
