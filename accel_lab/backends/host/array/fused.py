"""Functions of each element computed together on the host: block by block, which stay in cache."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from accel_lab.compute.arrays.dtypes import numpy_dtype
from accel_lab.compute.fusion.program import STEP, Enqueue, Program

BLOCK_BYTES = 128 << 10
"""How much of each array is worked at in turn: a few of them are in the second cache."""


class Programs:
    """The programs that came before, ready to be computed; used by the dispatcher thread."""

    least = 2
    """From how many functions on it is worth it: NumPy's own are as fast."""

    def __init__(self) -> None:
        self._known: dict[Program, _Blocks] = {}  # programs are equal to themselves alone

    def __call__(self, program: Program, shape: tuple[int, ...], arrays: Sequence[Any]) -> Enqueue:
        """Return what computes a program; it writes what NumPy's functions would."""
        found = self._known.get(program)
        if found is None:
            found = self._known[program] = _Blocks(program)
        return partial(found.compute, shape, arrays)


class _Blocks:
    """One program."""

    def __init__(self, program: Program) -> None:
        self._steps = [(_FUNCTIONS.get(s.op) or _ufunc(s.op), s.operands) for s in program.steps]
        self._dtypes = [numpy_dtype(step.dtype) for step in program.steps]
        self._places = {step: place for place, step in enumerate(program.kept)}
        self._itemsize = max(dtype.itemsize for dtype in self._dtypes)
        self._scratch, self._of_scratch = _shared(program, self._dtypes)

    @np.errstate(all="ignore")
    def compute(
        self,
        shape: tuple[int, ...],
        arrays: Sequence[Any],
        numbers: Sequence[Any],
        outs: Sequence[Any],
    ) -> None:
        """Compute it in blocks of rows; of all elements in a row, where they lie so."""
        reads = [x if x.shape == shape else np.broadcast_to(x, shape) for x in arrays]
        if not shape or all(x.flags.c_contiguous for x in reads):
            shape = (math.prod(shape),)
            reads = [x.reshape(shape) for x in reads]
            outs = [x.reshape(shape) for x in outs]
        rows = max(1, BLOCK_BYTES // (math.prod(shape[1:]) * self._itemsize))
        scratch = [np.empty((min(rows, shape[0]), *shape[1:]), dtype) for dtype in self._scratch]
        for begin in range(0, shape[0], rows):
            end = min(begin + rows, shape[0])
            self._compute_block(
                [x[begin:end] for x in reads],
                numbers,
                [x[begin:end] for x in outs],
                [x[: end - begin] for x in scratch],
            )

    def _compute_block(
        self,
        reads: Sequence[Any],
        numbers: Sequence[Any],
        outs: Sequence[Any],
        scratch: Sequence[Any],
    ) -> None:
        made: list[Any] = []
        for step, (function, operands) in enumerate(self._steps):
            place = self._places.get(step)
            out = scratch[self._of_scratch[step]] if place is None else outs[place]
            given = [
                made[at - STEP] if at >= STEP else reads[at] if at >= 0 else numbers[-1 - at]
                for at in operands
            ]
            function(out, *given)
            made.append(out)


def _ufunc(op: str) -> Callable[..., None]:
    function = getattr(np, op)

    def call(out: Any, *operands: Any) -> None:
        function(*operands, out=out)

    return call


def _where(out: Any, *operands: Any) -> None:
    out[...] = np.where(*operands)


_FUNCTIONS: dict[str, Callable[..., None]] = {"where": _where}


def _shared(program: Program, dtypes: list[np.dtype[Any]]) -> tuple[list[Any], dict[int, int]]:
    """Return the dtypes of the blocks of scratch, and for each step which one it writes.

    A step takes one whose value no later step reads, and that it does not read itself.
    """
    last: dict[int, int] = {}
    for at, step in enumerate(program.steps):
        for operand in step.operands:
            if operand >= STEP:
                last[operand - STEP] = at
    blocks: list[np.dtype[Any]] = []
    free: dict[int, int] = {}  # block -> after which step nobody reads it
    places: dict[int, int] = {}
    for at, dtype in enumerate(dtypes):
        if at in program.kept:
            continue
        found = next((b for b, until in free.items() if until < at and blocks[b] == dtype), None)
        if found is None:
            found = len(blocks)
            blocks.append(dtype)
        places[at] = found
        free[found] = last[at]
    return blocks, places
