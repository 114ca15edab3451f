"""The weights of a recurrent network: one buffer, in which each has a name and a place."""

import math
from typing import Any, NamedTuple

from accel_lab.errors import InvalidArgument

GATES = {"rnn": 1, "gru": 3, "lstm": 4}
"""How many rows of weights a hidden unit has: of gru PyTorch's r, z, n, of lstm its i, f, g, o."""


class Weights(NamedTuple):
    """The names, shapes and order that PyTorch gives the weights of a recurrent network.

    So `torch.nn.utils.parameters_to_vector(lstm.parameters())` is what `dnn.lstm` takes.

    Attributes:
        cell: "rnn", "gru" or "lstm".
        inputs: how many features a step has.
        hidden: how many features a state has.
    """

    cell: str
    inputs: int
    hidden: int
    layers: int = 1
    bidirectional: bool = False
    bias: bool = True

    @property
    def directions(self) -> int:
        """How many directions each layer has."""
        return 1 + self.bidirectional

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of each weight, in their order."""
        made: dict[str, tuple[int, ...]] = {}
        rows, inputs = GATES[self.cell] * self.hidden, self.inputs
        for layer in range(self.layers):
            for suffix in ("", "_reverse")[: self.directions]:
                of = f"l{layer}{suffix}"
                made[f"weight_ih_{of}"] = (rows, inputs)
                made[f"weight_hh_{of}"] = (rows, self.hidden)
                if self.bias:
                    made[f"bias_ih_{of}"] = made[f"bias_hh_{of}"] = (rows,)
            inputs = self.hidden * self.directions
        return made

    @property
    def size(self) -> int:
        """How many elements they have together."""
        return sum(map(math.prod, self.shapes.values()))

    def split(self, buffer: Any) -> dict[str, Any]:
        """Return a view of each weight by its name, of a buffer of all or of its gradient.

        Raises:
            InvalidArgument: the buffer has another shape.
        """
        if tuple(buffer.shape) != (self.size,):
            text = f"a {self.cell} of these extents has {self.size} weights"
            raise InvalidArgument(f"{text}, and the buffer has the shape {list(buffer.shape)}")
        made, begin = {}, 0
        for name, shape in self.shapes.items():
            end = begin + math.prod(shape)
            made[name] = buffer[begin:end].reshape(shape)
            begin = end
        return made
