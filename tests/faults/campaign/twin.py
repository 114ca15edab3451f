"""What the campaign's devices should hold and answer: a twin of each in NumPy.

A request is entered when it is sent; its effect on the twin is worked out when its answer is
known, in the order of sending, which is the order in which the device applies what it applies.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from accel_lab import AccelRef, Device
from accel_lab.actor.reply import Reply
from accel_lab.errors import AccelError

Array = npt.NDArray[Any]
TOLERANCE = 1e-9


class Cell:
    """A buffer: its handle, and what is in it once that is known; a view has a cell as `base`.

    Attributes:
        vague: of a root, whether nobody can say what is in it.
    """

    def __init__(self, ref: AccelRef, base: "Cell | None" = None) -> None:
        self.handle: AccelRef | None = ref
        self.value: Array | None = None
        self.vague = False
        self.root: Cell = self if base is None else base.root

    @property
    def ref(self) -> AccelRef:
        """The handle, which is still held."""
        assert self.handle is not None
        return self.handle

    def __repr__(self) -> str:
        return f"<Cell {self.handle!r}>"


class Sent:
    """One request and what it means.

    Parameters:
        reply: its handle; None for a message that was told.
        compute: what it answers, of the values of its operands.
        makes: the buffer that it makes.
        writes: the buffer that it overwrites with what it computes.
        via: what was sent before it and for it alone.

    Attributes:
        before: the generation of its device when it was sent; `after`: when that was done.
    """

    def __init__(
        self,
        family: str,
        reply: Reply[Any] | None,
        compute: Callable[..., Any],
        operands: tuple[Cell, ...] = (),
        *,
        makes: Cell | None = None,
        writes: Cell | None = None,
        via: tuple[Reply[Any], ...] = (),
    ) -> None:
        self.family = family
        self.reply = reply
        self.compute = compute
        self.operands = operands
        self.makes = makes
        self.writes = writes
        self.via = via
        self.before = self.after = 0
        self.outcome: Any = None
        self.error: AccelError | None = None

    def __repr__(self) -> str:
        return f"<{self.family} of generation {self.before}: {self.reply!r}>"


class Twin:
    """One device's buffers as they should be.

    Attributes:
        decided: what a function may have that is called while nothing completes: whether the
            others are what they should be may only be known later, and it waits for that.
    """

    def __init__(self, device: Device) -> None:
        self.device = device
        self.cells: list[Cell] = []
        self.old: list[Cell] = []
        self.decided: list[Cell] = []

    def keep(self, cell: Cell) -> None:
        """Let later messages use a buffer."""
        self.cells.append(cell)

    def doubt(self, sent: Sent) -> None:
        """A request was taken back: what it would have made or written may be as before."""
        for cell in (sent.makes, sent.writes):
            if cell is not None:
                cell.root.vague = True

    def usable(self) -> list[Cell]:
        """Return the buffers that a message may name now, with shapes that are known."""
        return [
            c for c in self.cells if c.handle is not None and c.handle.is_valid and c.handle.known
        ]

    def drop(self) -> None:
        """Drop every handle."""
        for cell in (*self.cells, *self.old):
            cell.handle = cell.root.handle = None
        self.cells, self.old = [], []

    def apply(self, sent: Sent) -> None:
        """Work out what a request has done that was answered with success, and compare."""
        if any(cell.root.vague for cell in sent.operands):
            self.doubt(sent)
            return
        values = [cell.value for cell in sent.operands]
        assert all(value is not None for value in values), f"{sent!r} ran without its operands"
        expected = sent.compute(*values)
        if sent.writes is not None and not sent.writes.root.vague:
            assert sent.writes.value is not None
            sent.writes.value[...] = expected
        elif sent.makes is not None:
            sent.makes.value = expected
            ref = sent.makes.handle
            if ref is not None:
                assert (ref.known, ref.shape) == (True, expected.shape), f"{sent!r}"
        elif sent.writes is None and sent.reply is not None:
            same(sent.outcome, expected, sent)

    def sort(self) -> None:
        """Take out what the current generation does not have."""
        made = [
            c
            for c in self.cells
            if c.value is not None and c.handle is not None and not c.root.vague
        ]
        self.cells = [c for c in made if c.ref.is_valid][-10:]
        self.old = [*self.old, *(c for c in made if not c.ref.is_valid)][-4:]


def made(
    family: str,
    twin: Twin,
    ref: Any,
    compute: Callable[..., Any],
    *x: Cell,
    base: Cell | None = None,
    via: tuple[Any, ...] = (),
) -> Sent:
    """Enter a request whose buffer later messages use."""
    cell = Cell(ref, base)
    twin.keep(cell)
    return Sent(family, ref, compute, x, makes=cell, via=via)


def leaf(
    family: str,
    twin: Twin,
    ref: Any,
    compute: Callable[..., Any],
    *x: Cell,
    via: tuple[Any, ...] = (),
) -> Sent:
    """Enter a request whose buffer, of another shape, is read at once."""
    return Sent(family, twin.device.get(ref), compute, x, via=(*via, ref))


def same(found: Any, expected: Any, what: object) -> None:
    """Compare an answer with the twin's."""
    if isinstance(expected, np.ndarray):
        assert found.shape == expected.shape, what
        assert found.dtype == expected.dtype, what
        np.testing.assert_allclose(
            found, expected, rtol=TOLERANCE, atol=TOLERANCE, err_msg=repr(what)
        )
    else:
        assert found == expected, (what, found, expected)
