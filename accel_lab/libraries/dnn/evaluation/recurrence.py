"""Recurrent networks, one layer after the other, and their gradients."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from accel_lab.libraries.dnn.evaluation.cells import cell_of
from accel_lab.libraries.dnn.evaluation.direction import Direction
from accel_lab.libraries.dnn.evaluation.kit import Kit
from accel_lab.libraries.dnn.evaluation.training import dropped
from accel_lab.libraries.dnn.message import computed_in
from accel_lab.libraries.dnn.recurrence import (
    KEPT,
    Gru,
    GruGradient,
    Lstm,
    LstmGradient,
    Rnn,
    RnnGradient,
    weights_of,
)
from accel_lab.libraries.dnn.sequences import Sequences, sequences


class Recurrence:
    """Recurrent networks and their gradients.

    Parameters:
        kit: the backend's arrays.
    """

    def __init__(self, kit: Kit) -> None:
        self.kit = kit

    def rnn(self, m: Rnn, x: Any, weights: Any, h0: Any, out: Any) -> None:
        """Write the steps, the last states, and what is kept."""
        self._forward(m, x, weights, (h0,), out)

    def gru(self, m: Gru, x: Any, weights: Any, h0: Any, out: Any) -> None:
        """Write the steps, the last states, and what is kept."""
        self._forward(m, x, weights, (h0,), out)

    def lstm(self, m: Lstm, x: Any, weights: Any, h0: Any, c0: Any, out: Any) -> None:
        """Write the steps, the last states and cells, and what is kept."""
        self._forward(m, x, weights, (h0, c0), out)

    def rnn_gradient(
        self,
        m: RnnGradient,
        x: Any,
        weights: Any,
        reserve: Any,
        dy: Any,
        dh: Any,
        h0: Any,
        out: Any,
    ) -> None:
        """Write the gradients."""
        self._backward(m, x, weights, reserve, dy, (dh,), (h0,), out)

    def gru_gradient(
        self,
        m: GruGradient,
        x: Any,
        weights: Any,
        reserve: Any,
        dy: Any,
        dh: Any,
        h0: Any,
        out: Any,
    ) -> None:
        """Write the gradients."""
        self._backward(m, x, weights, reserve, dy, (dh,), (h0,), out)

    def lstm_gradient(
        self,
        m: LstmGradient,
        x: Any,
        weights: Any,
        reserve: Any,
        dy: Any,
        dh: Any,
        h0: Any,
        dc: Any,
        c0: Any,
        out: Any,
    ) -> None:
        """Write the gradients."""
        self._backward(m, x, weights, reserve, dy, (dh, dc), (h0, c0), out)

    @np.errstate(all="ignore")
    def _forward(self, m: Any, x: Any, weights: Any, given: Sequence[Any], out: Any) -> None:
        xp, dtype, found = self.kit.xp, m.x.dtype, sequences(m, m.x)
        x = found.entered(xp, self.kit.widened(x, dtype))
        states = self._states(m, found, given)
        layers = _layers(m, found, self.kit.widened(weights, dtype))
        made: list[Any] = []
        for layer, directions in enumerate(layers):
            if layer:
                x = self._between(m, layer, xp.concatenate(made, axis=2))
            made = []
            for direction, one in enumerate(directions):
                at = layer * len(directions) + direction
                shape = (KEPT[m.cell], *x.shape[:2], m.hidden)
                kept = xp.empty(shape, x.dtype) if out.reserve is None else out.reserve[at]
                kept[...] = 0
                one.forward(xp, x, [state[at] for state in states], kept)
                made.append(kept[0])
        self.kit.store(found.left(xp, xp.concatenate(made, axis=2)), out.y, dtype)
        self._store(found, states, out[1 : 1 + len(states)], dtype)

    @np.errstate(all="ignore")
    def _backward(
        self,
        m: Any,
        x: Any,
        weights: Any,
        reserve: Any,
        dy: Any,
        dlast: Sequence[Any],
        given: Sequence[Any],
        out: Any,
    ) -> None:
        xp, dtype, found = self.kit.xp, m.x.dtype, sequences(m, m.x)
        first, dstates = self._states(m, found, given), self._states(m, found, dlast)
        x, weights = found.entered(xp, self.kit.widened(x, dtype)), self.kit.widened(weights, dtype)
        dweights, dx = xp.empty(weights.shape, x.dtype), self._steps(m, found, dy)
        pairs = zip(_layers(m, found, weights), _layers(m, found, dweights), strict=True)
        for layer, (directions, to) in reversed([*enumerate(pairs)]):
            below = reserve[(layer - 1) * len(to) : layer * len(to), 0]
            given_x = self._between(m, layer, xp.concatenate([*below], axis=2)) if layer else x
            dy, dx = dx, 0
            for direction, one in enumerate(directions):
                at = layer * len(to) + direction
                dx = dx + one.backward(
                    xp,
                    given_x,
                    [state[at] for state in first],
                    reserve[at],
                    dy[..., direction * m.hidden : (direction + 1) * m.hidden],
                    [state[at] for state in dstates],
                    to[direction].weights,
                )
            if layer:
                dx = self._between(m, layer, dx)
        self.kit.store(found.left(xp, dx), out.x, dtype)
        self.kit.store(dweights, out.weights, dtype)
        self._store(found, dstates, out[2:], dtype)

    def _between(self, m: Any, layer: int, x: Any) -> Any:
        """Return what a layer is given of the one before; of a gradient by it, that by what was."""
        if not m.dropout or not getattr(m, "training", True):
            return x
        return dropped(self.kit, x, m.dropout, m.seed, m.offset + (layer - 1) * x.size)

    def _states(self, m: Any, found: Sequences, given: Sequence[Any]) -> list[Any]:
        """Return copies of states as they are computed with, and zeros for those not given."""
        xp, wide = self.kit.xp, computed_in(m.x.dtype)
        shape = (m.layers * (1 + m.bidirectional), len(found.lengths), m.hidden)
        several = [self.kit.widened(one, m.x.dtype) for one in given]
        return [
            xp.zeros(shape, wide) if one is None else found.longest_first(xp, one)
            for one in several
        ]

    def _steps(self, m: Any, found: Sequences, dy: Any) -> Any:
        """Return the gradient by the steps of the last layer, zeros if it is not given."""
        xp, wide = self.kit.xp, computed_in(m.x.dtype)
        if dy is not None:
            return found.entered(xp, self.kit.widened(dy, m.x.dtype))
        shape = (len(found.sizes), len(found.lengths), m.hidden * (1 + m.bidirectional))
        return xp.zeros(shape, wide)

    def _store(self, found: Sequences, states: list[Any], out: Sequence[Any], dtype: str) -> None:
        """Write states in the order of the batch."""
        for state, to in zip(states, out, strict=True):
            self.kit.store(found.in_order(self.kit.xp, state), to, dtype)


def _layers(m: Any, found: Sequences, weights: Any) -> list[list[Direction]]:
    """Return the directions of each layer."""
    of = weights_of(m)
    each = 2 + 2 * m.bias
    parts, sizes, cell = [*of.split(weights).values()], found.sizes, cell_of(m)
    every = [
        Direction(cell, parts[at : at + each], sizes, at // each % of.directions == 1)
        for at in range(0, len(parts), each)
    ]
    return [every[at : at + of.directions] for at in range(0, len(every), of.directions)]
