"""Recurrent networks, as PyTorch's RNN, GRU and LSTM, and their gradients.

`x` has a step of features at each time, (time, batch, features) or as `layout` says: "batch_first",
or "packed", with the first step of every sequence, then the second, and so on, the longest sequence
first, as PyTorch's PackedSequence. `lengths` has the steps of each sequence; without it all are as
long as `x`. Behind its end a sequence is not read, and the result is 0.

`weights` is one buffer, see `Weights`. States are (layers times directions, batch, hidden); where
none is given it is 0. In training the results of all layers but the last are dropped out with a
probability of `dropout`, as `Dropout` with this seed does of (time, batch, features), the longest
sequence first; each layer begins with the words of Philox behind those of the one before.
"""

from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias, TypeVar

from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.operation import Spec
from accel_lab.libraries.authoring.function import function
from accel_lab.libraries.authoring.operand import one_dtype, result
from accel_lab.libraries.authoring.options import Ints, Options
from accel_lab.libraries.dnn.message import (
    Layer,
    computed_in,
    refusal,
    require_choice,
    require_int,
    require_real,
    require_shape,
)
from accel_lab.libraries.dnn.sequences import SequenceLayout, sequences
from accel_lab.libraries.dnn.weights import Weights

R = TypeVar("R")
RnnActivation: TypeAlias = Literal["tanh", "relu"]
RNN_ACTIVATIONS = ("tanh", "relu")
MOST_LAYERS = 1024
KEPT = {"rnn": 1, "gru": 5, "lstm": 6}
"""How many arrays of the extent of its state a layer keeps of each step for its gradient."""


class RnnResults(NamedTuple):
    """What a recurrent network makes of sequences.

    Attributes:
        y: the state of the last layer at each step, its directions one behind the other.
        h: the state of each layer and direction behind its last step.
        reserve: what the gradient needs; None unless it is asked for by `training`.
    """

    y: AccelRef
    h: AccelRef
    reserve: AccelRef | None


class LstmResults(NamedTuple):
    """What an LSTM makes of sequences.

    Attributes:
        y: the state of the last layer at each step, its directions one behind the other.
        h: the state of each layer and direction behind its last step.
        c: the cell likewise.
        reserve: what the gradient needs; None unless it is asked for by `training`.
    """

    y: AccelRef
    h: AccelRef
    c: AccelRef
    reserve: AccelRef | None


class RnnGradients(NamedTuple):
    """The gradients of a recurrent network.

    Attributes:
        x: by the steps.
        weights: by the weights, in one buffer as these.
        h0: by the first states, also where there were none.
    """

    x: AccelRef
    weights: AccelRef
    h0: AccelRef


class LstmGradients(NamedTuple):
    """The gradients of an LSTM.

    Attributes:
        x: by the steps.
        weights: by the weights, in one buffer as these.
        h0: by the first states, also where there were none.
        c0: by the first cells, likewise.
    """

    x: AccelRef
    weights: AccelRef
    h0: AccelRef
    c0: AccelRef


class Recurrent(Layer[R], frozen=True, array_like=True, eq=False):
    """What the messages of all kinds of networks have in common."""

    cell: ClassVar[str]
    asked_by: ClassVar = {"reserve": "training"}
    x: AccelRef
    weights: AccelRef
    hidden: int
    h0: AccelRef | None = None
    _: Options
    layers: int = 1
    bidirectional: bool = False
    bias: bool = True
    dropout: float = 0.0
    seed: int = 0
    offset: int = 0
    lengths: Ints = ()
    layout: SequenceLayout = "time_first"
    training: bool = False


class Rnn(Recurrent[RnnResults], frozen=True, array_like=True, eq=False, tag=665):
    """Run a network whose state is tanh, or relu, of a sum of the step and the state before."""

    cell: ClassVar[str] = "rnn"
    _: Options
    activation: RnnActivation = "tanh"

    def infer(self) -> tuple[Spec, Spec, Spec | None]:
        """Return y, h and the reserve."""
        require_choice(self, "activation", RNN_ACTIVATIONS)
        steps, states, reserve = of_network(self, self.h0)
        return steps, states, reserve if self.training else None


class Gru(Recurrent[RnnResults], frozen=True, array_like=True, eq=False, tag=666):
    """Run gated recurrent units (Cho et al., 2014), whose reset comes behind the product."""

    cell: ClassVar[str] = "gru"

    def infer(self) -> tuple[Spec, Spec, Spec | None]:
        """Return y, h and the reserve."""
        steps, states, reserve = of_network(self, self.h0)
        return steps, states, reserve if self.training else None


class Lstm(Recurrent[LstmResults], frozen=True, array_like=True, eq=False, tag=667):
    """Run a long short-term memory (Hochreiter and Schmidhuber, 1997), with a cell per state."""

    cell: ClassVar[str] = "lstm"
    _: Options
    c0: AccelRef | None = None

    def infer(self) -> tuple[Spec, Spec, Spec, Spec | None]:
        """Return y, h, c and the reserve."""
        steps, states, reserve = of_network(self, self.h0, self.c0)
        return steps, states, states, reserve if self.training else None


class RecurrentGradient(Layer[R], frozen=True, array_like=True, eq=False):
    """What the gradients of all kinds of networks have in common."""

    cell: ClassVar[str]
    x: AccelRef
    weights: AccelRef
    reserve: AccelRef
    hidden: int
    dy: AccelRef | None = None
    dh: AccelRef | None = None
    h0: AccelRef | None = None
    _: Options
    layers: int = 1
    bidirectional: bool = False
    bias: bool = True
    dropout: float = 0.0
    seed: int = 0
    offset: int = 0
    lengths: Ints = ()
    layout: SequenceLayout = "time_first"


class RnnGradient(RecurrentGradient[RnnGradients], frozen=True, array_like=True, eq=False, tag=668):
    """Return the gradients of `Rnn`, of those by its results `y` and `h`."""

    cell: ClassVar[str] = "rnn"
    _: Options
    activation: RnnActivation = "tanh"

    def infer(self) -> tuple[Spec, Spec, Spec]:
        """Return the shapes of the steps, the weights and the states."""
        require_choice(self, "activation", RNN_ACTIVATIONS)
        return of_network_gradient(self, self.dh, self.h0)


class GruGradient(RecurrentGradient[RnnGradients], frozen=True, array_like=True, eq=False, tag=669):
    """Return the gradients of `Gru`, of those by its results `y` and `h`."""

    cell: ClassVar[str] = "gru"

    def infer(self) -> tuple[Spec, Spec, Spec]:
        """Return the shapes of the steps, the weights and the states."""
        return of_network_gradient(self, self.dh, self.h0)


class LstmGradient(
    RecurrentGradient[LstmGradients], frozen=True, array_like=True, eq=False, tag=670
):
    """Return the gradients of `Lstm`, of those by its results `y`, `h` and `c`."""

    cell: ClassVar[str] = "lstm"
    _: Options
    dc: AccelRef | None = None
    c0: AccelRef | None = None

    def infer(self) -> tuple[Spec, Spec, Spec, Spec]:
        """Return the shapes of the steps, the weights, the states and the cells."""
        steps, weights, states = of_network_gradient(self, self.dh, self.h0, self.dc, self.c0)
        return steps, weights, states, states


def weights_of(message: Any) -> Weights:
    """Return what weights the network of a message has."""
    return Weights(
        message.cell,
        message.x.shape[-1],
        message.hidden,
        message.layers,
        message.bidirectional,
        message.bias,
    )


def of_network(message: Any, *states: AccelRef | None) -> tuple[Spec, Spec, Spec]:
    """Return what all steps, all states and the reserve are.

    Raises:
        InvalidArgument: something does not fit.
    """
    x: AccelRef = message.x
    found = sequences(message, x)
    hidden = require_int(message, "hidden", 1)
    layers = require_int(message, "layers", 1, MOST_LAYERS)
    if require_real(message, "dropout", 0.0, 1.0) == 1.0:
        raise refusal(message, "dropout is 1; below it there is something left to keep")
    require_int(message, "seed", 0, 2**64 - 1)
    require_int(message, "offset", 0, 2**62)
    dtype = one_dtype(message, x, message.weights, *states)
    weights = weights_of(message)
    require_shape(message, message.weights, (weights.size,))
    steps, batch, each = len(found.sizes), len(found.lengths), layers * weights.directions
    for ref in states:
        require_shape(message, ref, (each, batch, hidden))
    reserve = (each, KEPT[message.cell], steps, batch, hidden)
    return (
        result(message, (*found.shape, hidden * weights.directions), dtype),
        result(message, (each, batch, hidden), dtype),
        result(message, reserve, computed_in(dtype)),
    )


def of_network_gradient(message: Any, *states: AccelRef | None) -> tuple[Spec, Spec, Spec]:
    """Return what the gradients by the steps, the weights and a state are.

    Parameters:
        states: the states, and the gradients by them, that are given.

    Raises:
        InvalidArgument: something does not fit.
    """
    steps, of_states, reserve = of_network(message, *states)
    x, dy = message.x, message.dy
    one_dtype(message, x, dy)
    require_shape(message, dy, steps.shape)
    require_shape(message, message.reserve, reserve.shape)
    if message.reserve.dtype != reserve.dtype:
        raise refusal(message, f"reserve is {message.reserve.dtype}, and not {reserve.dtype}")
    if all(one is None for one in (dy, message.dh, getattr(message, "dc", None))):
        raise refusal(message, "the gradient by one of the results is wanted, and none is given")
    return Spec(x.shape, x.dtype), Spec(message.weights.shape, x.dtype), of_states


rnn = function(Rnn)
gru = function(Gru)
lstm = function(Lstm)
rnn_gradient = function(RnnGradient)
gru_gradient = function(GruGradient)
lstm_gradient = function(LstmGradient)
