"""What optimizers have in common: slots beside each parameter, and one step for all of them.

A step is handle expressions, element by element, which a context computes together.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from itertools import accumulate
from typing import ClassVar, TypeAlias

from accel_lab.blueprints.train.optimizers.schedules import Schedule
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.errors import InvalidArgument
from accel_lab.libraries import array

Buffers: TypeAlias = dict[str, AccelRef]
Shape: TypeAlias = tuple[int, ...]
SEPARATOR = ":"
"""Between the name of a parameter and that of a slot."""
SMALL = 1 << 16
"""Vectors of so many elements at most are joined, for a step of each costs its messages alone."""


class Into:
    """Where the results of one parameter are written; None is a new buffer.

    The last operation of each takes it: `array.add(…, out=into("mean"))`.
    """

    def __init__(self, name: str, out: Mapping[str, AccelRef]) -> None:
        self._name, self._out = name, out

    def __call__(self, slot: str = "") -> AccelRef | None:
        """Return where a slot is written, or the parameter itself."""
        return self._out.get(slot_name(self._name, slot))


class Optimizer(ABC):
    """Makes new parameters and slots of gradients.

    Attributes:
        rate: the learning rate, or a schedule of it.
        is_elementwise: whether an element after a step depends on no other, so that a parameter may
            be cut into pieces.
    """

    is_elementwise: ClassVar[bool] = True

    def __init__(self, rate: float | Schedule) -> None:
        if not callable(rate) and not rate >= 0:
            raise InvalidArgument(f"{type(self).__name__}: rate is {rate!r}; it is at least 0")
        self.rate = rate

    def require_elementwise(self, trainer: str) -> None:
        """Refuse to work on pieces of parameters where that gives other numbers.

        Raises:
            InvalidArgument: it does.
        """
        if not self.is_elementwise:
            text = f"{type(self).__name__} looks at whole parameters, and they are cut into pieces"
            raise InvalidArgument(f"{trainer}: {text}; take one as AdamW")

    def rate_at(self, step: int) -> float:
        """Return the learning rate of a step; the first is 0.

        Raises:
            InvalidArgument: the schedule has come to none.
        """
        rate = float(self.rate(step) if callable(self.rate) else self.rate)
        if not 0 <= rate < math.inf:
            text = f"the rate of step {step} is {rate!r}; it is at least 0, and finite"
            raise InvalidArgument(f"{type(self).__name__}: {text}")
        return rate

    @abstractmethod
    def slots(self, shape: Shape) -> dict[str, Shape]:
        """Return the names and shapes of what is kept beside a parameter; they begin as zeros."""

    @abstractmethod
    def one(
        self, p: AccelRef, g: AccelRef, slots: Buffers, into: Into, step: int, rate: float
    ) -> tuple[AccelRef, Buffers]:
        """Return a parameter and its slots after a step; the first is 1."""

    def begin(self, parameters: Mapping[str, AccelRef]) -> Buffers:
        """Return the slots of parameters, as `w:mean`, before the first step."""
        made = {}
        for name, ref in parameters.items():
            if SEPARATOR in name:
                text = f"a parameter is called {name!r}; names have no {SEPARATOR!r}"
                raise InvalidArgument(f"{type(self).__name__}: {text}")
            for slot, shape in self.slots(ref.shape).items():
                made[slot_name(name, slot)] = array.zeros(ref.device, shape, ref.dtype)
        return made

    def step(
        self,
        number: int,
        parameters: Mapping[str, AccelRef],
        gradients: Mapping[str, AccelRef],
        slots: Mapping[str, AccelRef],
        *,
        rate: float | None = None,
        out: Mapping[str, AccelRef] | None = None,
    ) -> tuple[Buffers, Buffers]:
        """Return the parameters and slots after a step; nothing blocks.

        Parameters:
            number: of the step, from 1.
            rate: the learning rate; that of the schedule when not given.
            out: where results are written, by the names of parameters and slots; that may be the
                parameters and slots themselves. New buffers where it has none.

        Raises:
            InvalidArgument: a gradient or slot is missing, or has another shape or dtype.
        """
        kind = type(self).__name__
        if type(number) is not int or number < 1:
            raise InvalidArgument(f"{kind}: number is {number!r}; it is an integer from 1")
        used = self.rate_at(number - 1) if rate is None else rate
        made: Buffers = {}
        kept: Buffers = {}
        for name, p in parameters.items():
            g = gradients.get(name)
            if g is None or g.shape != p.shape or g.dtype != p.dtype:
                found = "is missing" if g is None else f"is {g.label}"
                text = f"the gradient of {name!r} {found}, and the parameter is {p.label}"
                raise InvalidArgument(f"{kind}: {text}")
            missing = [x for x in self.slots(p.shape) if slot_name(name, x) not in slots]
            if missing:
                text = f"slot {slot_name(name, missing[0])!r} is missing; begin() makes the first"
                raise InvalidArgument(f"{kind}: {text}")
        joined = [] if out else self._joined(parameters)
        alone = [[name] for name in parameters if not any(name in names for names in joined)]
        for names in (*alone, *joined):
            own = {
                slot: _together(slots, names, slot)
                for slot in self.slots(parameters[names[0]].shape)
            }
            p, g = _together(parameters, names), _together(gradients, names)
            into = Into(names[0], out or {})
            after, kept_of = self.one(p, g, own, into, number, used)
            sizes = [parameters[name].size for name in names]
            for slot, ref in {"": after, **kept_of}.items():
                parts = zip(names, _apart(ref, sizes), strict=True)
                (kept if slot else made).update(
                    {slot_name(name, slot): part for name, part in parts}
                )
        return {name: made[name] for name in parameters}, kept

    def _joined(self, parameters: Mapping[str, AccelRef]) -> list[list[str]]:
        """Return which parameters take a step as one vector, those of each dtype."""
        groups: dict[str, list[str]] = {}
        if self.is_elementwise and set(self.slots((1,)).values()) <= {(1,)}:
            for name, ref in parameters.items():
                if len(ref.shape) == 1 and 0 < ref.size <= SMALL:
                    groups.setdefault(ref.dtype, []).append(name)
        return [names for names in groups.values() if len(names) > 1]


def _together(of: Mapping[str, AccelRef], names: list[str], slot: str = "") -> AccelRef:
    """Return vectors as one, or what is alone as it is."""
    refs = [of[slot_name(name, slot)] for name in names]
    return refs[0] if len(refs) == 1 else array.concatenate(refs)


def _apart(ref: AccelRef, sizes: list[int]) -> list[AccelRef]:
    """Return the parts of what was together, as views."""
    if len(sizes) == 1:
        return [ref]
    return [ref[end - size : end] for size, end in zip(sizes, accumulate(sizes), strict=True)]


def slot_name(name: str, slot: str) -> str:
    """Return the name of a parameter's slot; its own without one."""
    return f"{name}{SEPARATOR}{slot}" if slot else name


def require_share(optimizer: Optimizer, **shares: float) -> None:
    """Refuse numbers that are not from 0 to below 1.

    Raises:
        InvalidArgument: one is not.
    """
    for name, share in shares.items():
        if not 0 <= share < 1:
            kind = type(optimizer).__name__
            raise InvalidArgument(f"{kind}: {name} is {share!r}; it is from 0 to below 1")


def require_least(optimizer: Optimizer, **numbers: float) -> None:
    """Refuse numbers below 0.

    Raises:
        InvalidArgument: one is.
    """
    for name, number in numbers.items():
        if not number >= 0:
            kind = type(optimizer).__name__
            raise InvalidArgument(f"{kind}: {name} is {number!r}; it is at least 0")
