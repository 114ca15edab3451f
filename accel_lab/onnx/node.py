"""A node of a graph, and one call of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from accel_lab.compute.device import Device
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.onnx.values import Value

if TYPE_CHECKING:
    from accel_lab.onnx.registry import Operator


@dataclass(frozen=True, slots=True)
class Node:
    """A node as it was loaded.

    Attributes:
        version: the version of its operator set.
        attributes: Python's numbers and texts, NumPy arrays, and `Graph` for a subgraph.
    """

    name: str
    op_type: str
    version: int
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any]
    operator: "Operator"

    def get(self, name: str, default: Any = None) -> Any:
        """Return an attribute."""
        return self.attributes.get(name, default)

    def wants(self, index: int) -> bool:
        """Whether somebody uses a result."""
        return index < len(self.outputs) and bool(self.outputs[index])

    def __str__(self) -> str:
        return self.name or ", ".join(filter(None, self.outputs))


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a node: what its operator gets beside the inputs.

    Attributes:
        xp: the functions for its tensors, those of `array` or of NumPy.
        scope: what the graph around it has, for subgraphs.
    """

    node: Node
    device: Device
    xp: Any
    scope: Any

    @property
    def version(self) -> int:
        """The version of the operator set."""
        return self.node.version

    def get(self, name: str, default: Any = None) -> Any:
        """Return an attribute of the node."""
        return self.node.get(name, default)

    def wants(self, index: int) -> bool:
        """Whether somebody uses a result."""
        return self.node.wants(index)

    def ref(self, value: Any) -> Any:
        """Return a tensor on the device; does not block."""
        return on_device(self.device, value)


def on_device(device: Device, value: Value) -> Value:
    """Return a value with its tensors on the device; does not block."""
    if isinstance(value, np.ndarray):
        return device.put(value)
    if isinstance(value, list):
        return [on_device(device, one) for one in value]
    return value


def on_host(value: Value) -> npt.NDArray[Any] | None:
    """Return a tensor as a NumPy array; waits for the device if it is there."""
    return value.get() if isinstance(value, AccelRef) else value


def is_there(value: Value) -> bool:
    """Whether a value, or one in a sequence, is on a device."""
    return isinstance(value, AccelRef) or (isinstance(value, list) and any(map(is_there, value)))
