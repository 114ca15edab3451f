"""A model that was loaded onto a device."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from accel_lab.compute.device import Device
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.errors import InvalidArgument
from accel_lab.onnx.graph import Graph
from accel_lab.onnx.node import on_device
from accel_lab.onnx.values import SMALL, Value


@dataclass(frozen=True, slots=True)
class Port:
    """An input or an output of a model.

    Attributes:
        dtype: the name of its dtype.
        shape: its extents: an integer, a name that stands for one, or None for any; None in place
            of all if it may have any number of axes.
        is_tensor: whether it is one tensor; else it is a sequence of them, or one that may lack.
    """

    name: str
    dtype: str
    shape: tuple[int | str | None, ...] | None
    is_tensor: bool = True

    def __str__(self) -> str:
        extents = "…" if self.shape is None else ", ".join(str(n or "?") for n in self.shape)
        return f"{self.dtype}[{extents}]"


class Model:
    """An ONNX graph bound to a device; its weights are there.

    Attributes:
        device: the device.
        inputs: what it takes, by name.
        outputs: what it makes, by name, in the order in which a call returns it.
        opset: the version of ONNX's operator set that it asks for.
    """

    def __init__(
        self,
        device: Device,
        graph: Graph,
        inputs: tuple[Port, ...],
        outputs: tuple[Port, ...],
        opset: int,
    ) -> None:
        self.device, self.opset = device, opset
        self.inputs = {port.name: port for port in inputs}
        self.outputs = {port.name: port for port in outputs}
        self._graph = graph

    def __call__(self, *given: Any, **named: Any) -> Any:
        """Return the output, or a tuple of all outputs, as handles.

        Inputs are handles or NumPy arrays, in order or by name. Does not block, except where a
        shape or a branch depends on values of the device.

        Raises:
            InvalidArgument: an input is missing, unknown, or of another dtype or shape.
        """
        if len(given) > len(self.inputs):
            raise InvalidArgument(f"the model takes {len(self.inputs)} inputs, not {len(given)}")
        inputs = dict(zip(self.inputs, given, strict=False))
        if twice := inputs.keys() & named.keys():
            raise InvalidArgument(f"the model's input {min(twice)} is given twice")
        made = tuple(self.run({**inputs, **named}).values())
        return made[0] if len(made) == 1 else made

    def run(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the outputs by name, as handles, of the inputs by name.

        Raises:
            InvalidArgument: an input is missing, unknown, or of another dtype or shape.
        """
        if unknown := inputs.keys() - self.inputs.keys():
            known = ", ".join(self.inputs)
            raise InvalidArgument(f"the model has no input {min(unknown)!r}, but {known}")
        extents: dict[str, int] = {}
        values = {}
        for port in self.inputs.values():
            if port.name in inputs:
                values[port.name] = self._taken(port, inputs[port.name], extents)
            elif port.name not in self._graph.constants:
                raise InvalidArgument(f"the model's input {port.name}, {port}, is missing")
        made = self._graph.run(self.device, values)
        placed = [on_device(self.device, value) for value in made]
        return dict(zip(self.outputs, placed, strict=True))

    def _taken(self, port: Port, value: Value, extents: dict[str, int]) -> Value:
        """Return an input as the graph takes it: checked, and on the device unless it is small."""
        if not port.is_tensor:
            return list(value) if isinstance(value, list | tuple) else value
        x = value if isinstance(value, AccelRef) else np.asarray(value)
        self._require_fit(port, x, extents)
        if isinstance(x, AccelRef):
            if x.device is not self.device:
                raise InvalidArgument(
                    f"the model's input {port.name} is on {x.device.name}, and the model on "
                    f"{self.device.name}; copy it with to_device"
                )
            return x
        is_shape = x.dtype.kind in "iub" and x.size <= SMALL
        return x if is_shape else self.device.put(x)

    def _require_fit(self, port: Port, x: Any, extents: dict[str, int]) -> None:
        found = f"{x.dtype}{list(x.shape)}"
        if str(x.dtype) != port.dtype:
            raise InvalidArgument(f"the model's input {port.name} is {port}, not {found}")
        if port.shape is None:
            return
        wanted = [extents.get(n, n) if isinstance(n, str) else n for n in port.shape]
        if x.ndim != len(wanted) or any(
            isinstance(n, int) and n != k for n, k in zip(wanted, x.shape, strict=True)
        ):
            known = "".join(f", with {n} = {extents[n]}" for n in port.shape if n in extents)
            raise InvalidArgument(f"the model's input {port.name} is {port}{known}, not {found}")
        extents.update((n, k) for n, k in zip(port.shape, x.shape, strict=True) if type(n) is str)

    def __repr__(self) -> str:
        taken = ", ".join(f"{name}: {port}" for name, port in self.inputs.items())
        made = ", ".join(f"{name}: {port}" for name, port in self.outputs.items())
        return f"<onnx.Model on {self.device.name}: ({taken}) -> ({made})>"
