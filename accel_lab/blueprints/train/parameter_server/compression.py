"""Gradients in fewer bytes: what is left out goes with the next one, so nothing is lost for good.

Karimireddy et al., "Error feedback fixes SignSGD and other gradient compression schemes", 2019.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from accel_lab.compute.message.buffer import AccelRef
from accel_lab.errors import InvalidArgument
from accel_lab.libraries import array, dnn, primitives

_LARGEST = 127


class Compression(Protocol):
    """How a gradient travels; both run on any device, and neither blocks."""

    def pack(self, gradient: AccelRef) -> Sequence[AccelRef]:
        """Return what travels in place of a gradient."""

    def unpack(self, parts: Sequence[AccelRef], gradient: AccelRef) -> AccelRef:
        """Return what came of it, in the shape and dtype of `gradient`, where the parts are."""


@dataclass(frozen=True)
class TopK:
    """Send the largest elements alone, with their places: at least one of each gradient.

    Attributes:
        share: of the elements that are sent, above 0 and at most 1.
    """

    share: float = 0.1

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1:
            raise InvalidArgument(f"TopK: share is {self.share!r}; it is above 0, and at most 1")

    def pack(self, gradient: AccelRef) -> Sequence[AccelRef]:
        """Return places and elements."""
        flat = gradient.reshape(-1)
        places = primitives.top_k(abs(flat), math.ceil(self.share * flat.size)).indices
        return places, flat[places]

    def unpack(self, parts: Sequence[AccelRef], gradient: AccelRef) -> AccelRef:
        """Return the elements in their places, and zeros elsewhere."""
        places, elements = parts
        rows = dnn.embedding_gradient(elements.reshape((-1, 1)), places, gradient.size)
        return rows.reshape(gradient.shape)


@dataclass(frozen=True)
class Int8:
    """Send integers from -127 to 127, and by how much they are scaled."""

    def pack(self, gradient: AccelRef) -> Sequence[AccelRef]:
        """Return the integers and the scale."""
        most = array.max(abs(gradient))
        scale = array.where(array.equal(most, 0), 1.0, most / _LARGEST).astype(gradient.dtype)
        return array.rint(gradient / scale).astype("int8"), scale

    def unpack(self, parts: Sequence[AccelRef], gradient: AccelRef) -> AccelRef:
        """Return the integers scaled."""
        integers, scale = parts
        return integers.astype(gradient.dtype) * scale


@dataclass(frozen=True)
class Float16:
    """Send the elements in half precision; one above 65504 is not finite there."""

    def pack(self, gradient: AccelRef) -> Sequence[AccelRef]:
        """Return it in float16."""
        return (gradient.astype("float16"),)

    def unpack(self, parts: Sequence[AccelRef], gradient: AccelRef) -> AccelRef:
        """Return it in its own dtype."""
        return parts[0].astype(gradient.dtype)
