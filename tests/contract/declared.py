"""Messages of what they declare: operands whose shapes fit, for the suite that all of them pass."""

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from accel_lab.compute.device import Device
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.operation import operand_fields
from accel_lab.libraries.authoring.options import factors_of
from accel_lab.libraries.authoring.registration import messages
from accel_lab.libraries.authoring.shaped import Shaped
from accel_lab.libraries.authoring.signature import BATCH, parse
from tests.contract.samples import Layout, place, small

DECLARED: dict[str, type[Shaped[Any]]] = {
    f"{kind.library}.{kind.__name__}": kind
    for kind in messages()
    if issubclass(kind, Shaped) and kind.shapes
}


@dataclass(frozen=True)
class Sample:
    """A message's operands as arrays; what is drawn is what its names and its extents say.

    Attributes:
        extents: of each axis by its name; those at `...` are `batch`.
    """

    kind: type[Shaped[Any]]
    dtype: str
    extents: dict[str, int]
    batch: tuple[int, ...]

    def arrays(self) -> dict[str, Any]:
        """Return an array for each operand."""
        names, _, _ = operand_fields(self.kind)
        shapes = map(self.shape, parse(self.kind.shapes).takes)
        return {
            name: small(zlib.crc32(name.encode()), shape, self.dtype)
            for name, shape in zip(names, shapes, strict=True)
        }

    def shape(self, axes: tuple[str, ...]) -> tuple[int, ...]:
        """Return the shape of what has these axes."""
        inner = (int(one) if one.isdecimal() else self.extents[one] for one in axes if one != BATCH)
        return (*(self.batch if BATCH in axes else ()), *inner)

    def placed(self, device: Device, layout: Layout = "contiguous") -> dict[str, AccelRef]:
        """Put the operands, as views with strides of this kind."""
        return {name: place(device, x, layout) for name, x in self.arrays().items()}

    def message(self, operands: dict[str, AccelRef], out: AccelRef | None = None) -> Shaped[Any]:
        """Return the message of these operands, with numbers that every dtype has."""
        numbers = dict.fromkeys(factors_of(self.kind), 1 if self.dtype == "bool" else 2)
        written = {} if out is None else {"out": out}
        return self.kind(**operands, **numbers, **written)


def sample(kind: type[Shaped[Any]], dtype: str, extent: Callable[[str], int]) -> Sample:
    """Return a sample with these extents; `...` stands for two axes."""
    axes = {axis for operand in parse(kind.shapes).takes for axis in operand}
    extents = {axis: extent(axis) for axis in sorted(axes - {BATCH}) if not axis.isdecimal()}
    return Sample(kind, dtype, extents, (extent("first"), extent("second")))


def has_out(kind: type[Shaped[Any]]) -> bool:
    """Whether a message can be told where to write."""
    return "out" in kind.__struct_fields__
