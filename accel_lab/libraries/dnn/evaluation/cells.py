"""One step of a recurrent network, and its gradient.

`gx` is what the step adds to the gates, `gh` what the state before does. A forward step returns
what is kept of it: first the states, then what the gradient needs.
"""

from typing import Any, Protocol, TypeAlias

from accel_lab.libraries.dnn.evaluation.activating import sigmoid

Arrays: TypeAlias = tuple[Any, ...]


class Cell(Protocol):
    """How a state follows from a step and the state before."""

    def forward(self, xp: Any, gx: Any, gh: Any, before: Arrays) -> Arrays:
        """Return what is kept of a step."""

    def backward(
        self, xp: Any, kept: Arrays, before: Arrays, behind: Arrays
    ) -> tuple[Any, Any, Arrays]:
        """Return the gradients by `gx`, by `gh`, and by the states before beside that.

        Parameters:
            behind: the gradient by each state.
        """


class RnnCell:
    """A state that is tanh or relu of the sum.

    Parameters:
        activation: which.
    """

    def __init__(self, activation: str) -> None:
        self._is_relu = activation == "relu"

    def forward(self, xp: Any, gx: Any, gh: Any, before: Arrays) -> Arrays:
        """Return the state."""
        del before
        return (xp.maximum(gx + gh, 0) if self._is_relu else xp.tanh(gx + gh),)

    def backward(
        self, xp: Any, kept: Arrays, before: Arrays, behind: Arrays
    ) -> tuple[Any, Any, Arrays]:
        """Return the gradients; what is kept is the state."""
        del xp, before
        (h,), (dh,) = kept, behind
        d = dh * (h > 0) if self._is_relu else dh * (1 - h * h)
        return d, d, (0,)


class GruCell:
    """A state between the one before and a new one: r resets what that takes, z is their share."""

    def forward(self, xp: Any, gx: Any, gh: Any, before: Arrays) -> Arrays:
        """Return the state, the gates r, z and n, and what r is multiplied with."""
        (h,), count = before, gx.shape[-1] // 3
        rz = sigmoid(xp, gx[:, : 2 * count] + gh[:, : 2 * count])
        r, z, reset = rz[:, :count], rz[:, count:], gh[:, 2 * count :]
        n = xp.tanh(gx[:, 2 * count :] + r * reset)
        return (1 - z) * n + z * h, r, z, n, reset

    def backward(
        self, xp: Any, kept: Arrays, before: Arrays, behind: Arrays
    ) -> tuple[Any, Any, Arrays]:
        """Return the gradients."""
        (_, r, z, n, reset), (h,), (dh,) = kept, before, behind
        dn = dh * (1 - z) * (1 - n * n)
        dr, dz = dn * reset * r * (1 - r), dh * (h - n) * z * (1 - z)
        of_x = xp.concatenate((dr, dz, dn), axis=1)
        return of_x, xp.concatenate((dr, dz, dn * r), axis=1), (dh * z,)


class LstmCell:
    """A cell that the gates i and f let something into and keep, and that o shows as the state."""

    def forward(self, xp: Any, gx: Any, gh: Any, before: Arrays) -> Arrays:
        """Return the state, the cell, and the gates i, f, g and o."""
        gates, count = gx + gh, gx.shape[-1] // 4
        i, f = (sigmoid(xp, gates[:, at * count : (at + 1) * count]) for at in (0, 1))
        g, o = xp.tanh(gates[:, 2 * count : 3 * count]), sigmoid(xp, gates[:, 3 * count :])
        c = f * before[1] + i * g
        return o * xp.tanh(c), c, i, f, g, o

    def backward(
        self, xp: Any, kept: Arrays, before: Arrays, behind: Arrays
    ) -> tuple[Any, Any, Arrays]:
        """Return the gradients."""
        (_, c, i, f, g, o), (dh, dc) = kept, behind
        shown = xp.tanh(c)
        dc = dc + dh * o * (1 - shown * shown)
        di, df = dc * g * i * (1 - i), dc * before[1] * f * (1 - f)
        dg, do = dc * i * (1 - g * g), dh * shown * o * (1 - o)
        d = xp.concatenate((di, df, dg, do), axis=1)
        return d, d, (0, dc * f)


def cell_of(m: Any) -> Cell:
    """Return the cell of a message's network."""
    if m.cell == "lstm":
        return LstmCell()
    return GruCell() if m.cell == "gru" else RnnCell(m.activation)
