"""An array as a file has it, and one whose elements lie one after the other."""

import math
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, Protocol

import numpy as np

from accel_lab.compute.arena.staging import CHUNK_BYTES, Part
from accel_lab.compute.arrays import dtypes
from accel_lab.compute.files.box import Box, Place, cut
from accel_lab.compute.files.byte_source import ByteSource
from accel_lab.compute.machine.memfd_mapping import Bytes
from accel_lab.errors import FileDamaged

MOST_BYTES = 2**63 - 1
SPAN_BYTES = 4 * CHUNK_BYTES
"""How much is read at most for the sake of a part of it."""
DENSE = 4
"""Of how many bytes one is wanted at least, where all are read and some are taken."""
SMALL_BYTES = 64 << 10
"""Below this all are read in any case: a call to the system costs as much."""


class Stored(Protocol):
    """An array in a file."""

    @property
    def shape(self) -> Place:
        """Its shape."""

    @property
    def dtype(self) -> str:
        """Its dtype, by name."""

    @property
    def is_turned(self) -> bool:
        """Whether `parts` gives the transposed array: the file has it in Fortran's order."""

    @property
    def in_order(self) -> bool:
        """Whether the parts are to be filled one after the other."""

    def parts(self, box: Box) -> Iterable[Part]:
        """Give the bytes of a part of it, in C order; what can be checked is checked at once.

        Parameters:
            box: of the transposed array, if `is_turned`.
        """


class RawArray:
    """An array whose elements lie in a file one after the other, in C or in Fortran order.

    Attributes:
        shape: its shape.
        dtype: its dtype, by name.
        is_turned: whether they lie in Fortran's order.
        in_order: whether the parts are to be filled one after the other.

    Parameters:
        source: the bytes.
        offset: where the first element lies among them.
        swapped: whether each number has its bytes in the other order.

    Raises:
        FileDamaged: it does not lie within the source.
    """

    def __init__(
        self,
        source: ByteSource,
        offset: int,
        shape: Place,
        dtype: str,
        *,
        is_turned: bool = False,
        swapped: bool = False,
    ) -> None:
        self.shape, self.dtype = shape, dtype
        self.is_turned = is_turned and len(shape) > 1
        self.in_order = source.in_order
        self._source, self._offset, self._swapped = source, offset, swapped
        end = offset + size_of(shape, dtype, source.name)
        if end > source.nbytes:
            text = f"{source.name} has {source.nbytes:,} bytes, and its header speaks of {end:,}"
            raise FileDamaged(text)

    def parts(self, box: Box) -> Iterator[Part]:
        """Give the bytes of a part of it, in C order."""
        itemsize = dtypes.itemsize(self.dtype)
        extents = self.shape[::-1] if self.is_turned else self.shape
        strides = [itemsize * math.prod(extents[axis + 1 :]) for axis in range(len(extents))]
        first = self._offset + sum(map(int.__mul__, box.starts, strides))
        counts, apart = _merged(box.counts, list(map(int.__mul__, strides, box.steps)), itemsize)
        offset = 0
        for starts, sizes in cut(counts, CHUNK_BYTES // itemsize):
            at = first + sum(map(int.__mul__, starts, apart))
            nbytes = math.prod(sizes) * itemsize
            yield Part(offset, nbytes, partial(self._fill, at, sizes, apart))
            offset += nbytes

    def _fill(self, at: int, sizes: Place, strides: Place, view: Bytes) -> None:
        itemsize = dtypes.itemsize(self.dtype)
        self._gather(at, sizes, strides, view)
        if self.dtype == "bool":
            np.not_equal(view, 0, out=view.view(np.bool_))  # a byte 2 is no bool anywhere else
        elif self._swapped and itemsize > 1:
            of_parts = dtypes.itemsize(dtypes.real_of(self.dtype))
            view.view(f"u{of_parts}").byteswap(inplace=True)

    def _gather(self, at: int, sizes: Place, strides: Place, view: Bytes) -> None:
        """Fill the view with elements that lie `strides` apart."""
        itemsize = dtypes.itemsize(self.dtype)
        span = itemsize + sum((n - 1) * stride for n, stride in zip(sizes, strides, strict=True))
        if span == view.nbytes:
            self._source.read_into(at, view)
        elif span <= max(SMALL_BYTES, min(SPAN_BYTES, DENSE * view.nbytes)):
            read: Any = np.empty(span, np.uint8)
            self._source.read_into(at, read)
            kind = f"V{itemsize}"
            wanted: Any = np.ndarray(sizes, kind, buffer=read, strides=strides)
            np.copyto(np.ndarray(sizes, kind, buffer=view), wanted)
        else:
            step = view.nbytes // sizes[0]
            for i in range(sizes[0]):
                part = view[i * step : (i + 1) * step]
                self._gather(at + i * strides[0], sizes[1:], strides[1:], part)


def size_of(shape: Place, dtype: str, name: str) -> int:
    """Return how many bytes an array has.

    Raises:
        FileDamaged: no memory has as many.
    """
    itemsize = dtypes.itemsize(dtype)
    if math.prod(extent for extent in shape if extent) * itemsize > MOST_BYTES:
        raise FileDamaged(f"{name}: no array has the shape {shape}")
    return math.prod(shape) * itemsize


def _merged(counts: Place, strides: list[int], itemsize: int) -> tuple[Place, Place]:
    """Take axes together that lie one after the other; the elements keep their order."""
    merged: list[tuple[int, int]] = []
    for count, stride in zip(counts, strides, strict=True):
        if count == 1:
            continue
        if merged and merged[-1][1] == count * stride:
            merged[-1] = (merged[-1][0] * count, stride)
        else:
            merged.append((count, stride))
    if not merged:
        merged = [(1, itemsize)]
    return tuple(count for count, _ in merged), tuple(stride for _, stride in merged)
