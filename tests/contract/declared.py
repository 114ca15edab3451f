"""Messages of what they declare: operands whose shapes fit, for the suite that all of them pass."""

import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any

import numpy as np

from accel_lab.backends import listed
from accel_lab.compute.device import Device
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.operation import operand_fields
from accel_lab.libraries.authoring.options import factors_of
from accel_lab.libraries.authoring.registration import messages
from accel_lab.libraries.authoring.shaped import Shaped, operands_in
from accel_lab.libraries.authoring.signature import BATCH, Signature, Taken, parse
from tests.contract.samples import Layout, place, small


@dataclass(frozen=True)
class Declared:
    """A message, and with which options.

    Attributes:
        options: what its fields are that are neither operands nor numbers.
        whole: whether it has the operands that may be None.
    """

    kind: type[Shaped[Any]]
    options: dict[str, Any] = field(default_factory=dict)
    whole: bool = False

    @property
    def row(self) -> str:
        """What a backend's table calls it."""
        return f"{self.kind.library}.{self.kind.__name__}"

    @property
    def signature(self) -> Signature:
        """What it takes and makes."""
        return parse(self.kind.shapes)

    @property
    def takes(self) -> dict[str, Taken]:
        """The operands it has."""
        _, optional, _ = operand_fields(self.kind)
        named = zip(operands_in(self.kind), self.signature.takes, strict=True)
        return {name: taken for name, taken in named if self.whole or name not in optional}

    @property
    def shared(self) -> set[str]:
        """The axes that several operands have; those at `...` are one."""
        seen = Counter(axis for taken in self.takes.values() for axis in taken.axes)
        return {axis for axis, times in seen.items() if times > 1}

    @property
    def axes(self) -> list[str]:
        """The names of the axes behind `...`."""
        found = {axis for taken in self.takes.values() for axis in taken.inner}
        return sorted(axis for axis in found if not axis.isdecimal())

    @property
    def offered(self) -> set[str]:
        """The dtypes for which some backend has it."""
        tables = [import_module(f"accel_lab.backends.{one}.support").SUPPORT for one in listed()]
        return set().union(*(table[self.row] for table in tables))

    @property
    def has_dots(self) -> bool:
        """Whether an operand may have any axes."""
        return any(BATCH in taken.axes for taken in self.takes.values())

    @property
    def has_out(self) -> bool:
        """Whether it can be told where to write."""
        return "out" in self.kind.__struct_fields__

    @property
    def derived(self) -> bool:
        """Whether `shapes` is all there is to say: it has no `infer` of its own."""
        return self.kind.infer.__code__.co_filename.startswith("<infer of")


NEED_POINTS = {f"fft.{one}": "at least one" for one in ("C2C", "R2C", "C2R")}
"""What has no answer without an element along an axis, and the words of its refusal."""


def _declared() -> Iterator[tuple[str, Declared]]:
    for kind in messages():
        if not issubclass(kind, Shaped) or not kind.shapes:
            continue
        one = Declared(kind)
        yield one.row, one
        signature = one.signature
        turns = {taken.turned_by for taken in signature.takes} - {""}
        if turns or any(taken.optional for taken in signature.takes):
            for turn in ("t", "c") if turns else ("whole",):
                yield f"{one.row} {turn}", Declared(kind, dict.fromkeys(turns, turn), whole=True)


DECLARED = dict(_declared())


@dataclass(frozen=True)
class Sample:
    """A message's operands as arrays; what is drawn is what its names and its extents say.

    Attributes:
        extents: of each axis by its name; those at `...` are `batch`.
    """

    declared: Declared
    dtype: str
    extents: dict[str, int]
    batch: tuple[int, ...]

    @property
    def name(self) -> str:
        """What the message is called."""
        return self.declared.kind.__name__

    def arrays(self) -> dict[str, Any]:
        """Return an array for each operand."""
        return {
            name: small(zlib.crc32(name.encode()), self.shape(taken), self.dtype)
            for name, taken in self.declared.takes.items()
        }

    def shape(self, taken: Taken) -> tuple[int, ...]:
        """Return the shape of an operand."""
        axes = self.in_memory(taken)
        inner = [int(one) if one.isdecimal() else self.extents[one] for one in axes]
        return (*(self.batch if BATCH in taken.axes else ()), *inner)

    def in_memory(self, taken: Taken) -> tuple[str, ...]:
        """Return the axes behind `...` as the operand has them, before it is turned."""
        straight = self.declared.options.get(taken.turned_by, "n") == "n"
        return taken.inner if straight else taken.inner[::-1]

    def placed(self, device: Device, layout: Layout = "contiguous") -> dict[str, AccelRef]:
        """Put the operands, as views with strides of this kind."""
        return {name: place(device, x, layout) for name, x in self.arrays().items()}

    def message(self, operands: dict[str, AccelRef], out: AccelRef | None = None) -> Shaped[Any]:
        """Return the message of these operands, with numbers that every dtype has."""
        declared = self.declared
        lone = {factor for of, factor in declared.kind.scaled_by.items() if of not in operands}
        factors = [name for name in factors_of(declared.kind) if name not in lone]
        numbers = dict.fromkeys(factors, 1 if self.dtype == "bool" else 2)
        written = {} if out is None else {"out": out}
        return declared.kind(**operands, **declared.options, **numbers, **written)

    def with_batch(self, *batch: int) -> "Sample":
        """Return one with other axes at `...`."""
        return replace(self, batch=batch)

    def turned_by(self, option: str, turn: str) -> "Sample":
        """Return one with this option."""
        options = {**self.declared.options, option: turn}
        return replace(self, declared=replace(self.declared, options=options))


def sample(declared: Declared, dtype: str, extent: Callable[[str], int]) -> Sample:
    """Return a sample with these extents; `...` stands for two axes."""
    extents = {axis: extent(axis) for axis in declared.axes}
    return Sample(declared, dtype, extents, (extent("first"), extent("second")))


def turned(x: Any, turn: str) -> Any:
    """Return what an operand stands for with this option."""
    if turn == "n":
        return x
    return np.swapaxes(x.conj() if turn == "c" and x.dtype.kind == "c" else x, -1, -2)
