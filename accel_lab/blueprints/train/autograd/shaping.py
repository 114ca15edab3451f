"""Other shapes, parts and dtypes of arrays, and the gradients through them."""

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from accel_lab.blueprints.train.autograd.variable import Variable, of, plain, plain_ref
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.libraries import array, dnn


def reshape(x: Any, shape: Any) -> Variable:
    """Return the elements in C order in another shape."""
    a = plain_ref(x, "reshape: x")
    before = a.shape
    return of(a.reshape(shape), ((x, lambda dy: dy.reshape(before)),))


def transpose(x: Any, axes: Any = None) -> Variable:
    """Return it with its axes permuted, reversed when none are given."""
    a = plain_ref(x, "transpose: x")
    made = a.transpose(axes) if axes is not None else a.T
    order = range(a.ndim)[::-1] if axes is None else [one % a.ndim for one in axes]
    back = tuple(int(at) for at in np.argsort(order))
    return of(made, ((x, lambda dy: dy.transpose(back)),))


def cast(x: Any, dtype: object) -> Variable:
    """Return it in another dtype; the gradient comes back in that of `x`."""
    return of(plain_ref(x, "cast: x").astype(dtype), ((x, lambda dy: dy),))


def part(x: Any, index: Any) -> Variable:
    """Return x[index], as NumPy has it; what is taken twice has the sum of both gradients."""
    a, at = plain_ref(x, "part: x"), _plain_index(index)
    shape, dtype = a.shape, a.dtype

    def pull(dy: AccelRef) -> AccelRef:
        if _is_basic(at):
            made = array.zeros(dy.device, shape, dtype)
            made[at] = dy
            return made
        count = a.size
        # Where each element of the part is in `x`, of which there may be two of one place.
        places = array.arange(dy.device, count, dtype="int64").reshape(shape)[at]
        rows = dnn.embedding_gradient(dy.reshape((-1, 1)), places.reshape(-1), count)
        return rows.reshape(shape)

    return of(a[at], ((x, pull),))


def concatenate(arrays: Sequence[Any], axis: int = 0) -> Variable:
    """Return arrays joined along an axis."""
    refs = [plain_ref(one, "concatenate: arrays") for one in arrays]
    made = array.concatenate(refs, axis)
    at = axis % made.ndim
    ends = list(itertools.accumulate(ref.shape[at] for ref in refs))

    def piece(place: int) -> Any:
        start = ends[place] - refs[place].shape[at]
        index = (slice(None),) * at + (slice(start, ends[place]),)
        return lambda dy: dy[index]

    return of(made, [(one, piece(place)) for place, one in enumerate(arrays)])


def stack(arrays: Sequence[Any], axis: int = 0) -> Variable:
    """Return arrays of one shape joined along a new axis."""
    refs = [plain_ref(one, "stack: arrays") for one in arrays]
    made = array.stack(refs, axis)
    at = axis % made.ndim

    def piece(place: int) -> Any:
        return lambda dy: dy[(slice(None),) * at + (place,)]

    return of(made, [(one, piece(place)) for place, one in enumerate(arrays)])


def _plain_index(index: Any) -> Any:
    return tuple(map(plain, index)) if isinstance(index, tuple) else plain(index)


def _is_basic(index: Any) -> bool:
    """Whether it takes each element once at most."""
    several = index if isinstance(index, tuple) else (index,)
    return all(one is None or one is Ellipsis or isinstance(one, int | slice) for one in several)
