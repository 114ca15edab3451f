"""One direction of a layer of a recurrent network: one step after the other.

Arrays are (time, batch, features), the longest sequence first. Products with the steps are one for
all of them, and so are the gradients by the weights.
"""

from typing import Any, NamedTuple

from accel_lab.libraries.dnn.evaluation.cells import Cell


class Direction(NamedTuple):
    """A direction of a layer.

    Attributes:
        cell: what a step does.
        weights: w_ih and w_hh, and behind them b_ih and b_hh if there are any.
        sizes: how many sequences go on at each step.
        is_reverse: whether it begins with the last step of each sequence.
    """

    cell: Cell
    weights: list[Any]
    sizes: list[int]
    is_reverse: bool

    @property
    def order(self) -> list[int]:
        """The steps, as they come one after the other."""
        steps = range(len(self.sizes))
        return [*reversed(steps)] if self.is_reverse else [*steps]

    def forward(self, xp: Any, x: Any, states: list[Any], kept: Any) -> None:
        """Write what is kept of all steps, and the states behind the last of each sequence.

        Parameters:
            states: those before the first step, which are overwritten.
            kept: zeros (arrays, time, batch, hidden).
        """
        w_ih, w_hh, *biases = self.weights
        gx = _product(x, w_ih.T)
        if biases:
            gx += biases[0]
        for t in self.order:
            n = self.sizes[t]
            before = tuple([state[:n] for state in states])
            gh = before[0] @ w_hh.T
            if biases:
                gh += biases[1]
            made = self.cell.forward(xp, gx[t, :n], gh, before)
            for to, one in enumerate(made):
                kept[to, t, :n] = one
            for state, one in zip(before, made, strict=False):  # the states are kept first
                state[...] = one

    def backward(
        self,
        xp: Any,
        x: Any,
        first: list[Any],
        kept: Any,
        dy: Any,
        dstates: list[Any],
        dweights: list[Any],
    ) -> Any:
        """Return the gradient by `x`; write that by the weights, and by the first states.

        Parameters:
            first: the states before the first step.
            kept: what `forward` wrote.
            dy: the gradient by the state of each step.
            dstates: those by the last states, which become those by the first.
            dweights: where the gradient by each of the weights is written.
        """
        w_ih, w_hh, *_ = self.weights
        before = [self._before(xp, kept[at], one) for at, one in enumerate(first)]
        shape = (*x.shape[:2], w_ih.shape[0])
        dgx, dgh = xp.zeros(shape, x.dtype), xp.zeros(shape, x.dtype)
        for t in reversed(self.order):
            n = self.sizes[t]
            behind = tuple([state[:n] for state in dstates])
            behind[0][...] += dy[t, :n]
            of_before = tuple([one[t, :n] for one in before])
            dgx[t, :n], dgh[t, :n], beside = self.cell.backward(
                xp, tuple(kept[:, t, :n]), of_before, behind
            )
            behind[0][...] = dgh[t, :n] @ w_hh + beside[0]
            for state, one in zip(behind[1:], beside[1:], strict=True):
                state[...] = one
        gradients = [_rows(dgx).T @ _rows(x), _rows(dgh).T @ _rows(before[0])]
        gradients += [dgx.sum(axis=(0, 1)), dgh.sum(axis=(0, 1))]
        for to, one in zip(dweights, gradients, strict=False):  # there may be no biases
            to[...] = one
        return _product(dgx, w_ih)

    def _before(self, xp: Any, states: Any, first: Any) -> Any:
        """Return the state before each step."""
        made = xp.zeros_like(states)
        order = self.order
        for at, t in enumerate(order):
            made[t, : self.sizes[t]] = first[: self.sizes[t]]
            if at:
                both = min(self.sizes[t], self.sizes[order[at - 1]])
                made[t, :both] = states[order[at - 1], :both]
        return made


def _rows(x: Any) -> Any:
    return x.reshape(x.shape[0] * x.shape[1], x.shape[2])


def _product(x: Any, w: Any) -> Any:
    """Return the product of all steps with one matrix."""
    return (_rows(x) @ w).reshape(*x.shape[:2], w.shape[1])
