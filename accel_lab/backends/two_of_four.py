"""Two of each four elements of a row, in array operations alone: the same for NumPy and for CuPy.

`xp` is the module, `numpy` or `cupy`. Nothing here waits for a device.

Runs in a context's process.
"""

from typing import Any

OF, KEPT = 4, 2


def kept(xp: Any, size: Any) -> Any:
    """Return True for the two of each four that are largest, of equal ones the first.

    Parameters:
        size: numbers that compare, (m, n).
    """
    fours = size.reshape(size.shape[0], size.shape[1] // OF, OF)
    mine, others = fours[..., :, None], fours[..., None, :]
    before = xp.arange(OF) < xp.arange(OF)[:, None]
    rank = ((others > mine) | ((others == mine) & before)).sum(axis=-1)
    return (rank < KEPT).reshape(size.shape)


def pruned(xp: Any, x: Any) -> Any:
    """Return where the two of each four are that are largest in magnitude."""
    return kept(xp, xp.where(xp.isnan(x), xp.inf, xp.abs(x)))


def crowded(xp: Any, x: Any) -> Any:
    """Return, as an array of one int, the first row with three of four that are not zero; or -1."""
    counts = (x != 0).reshape(x.shape[0], x.shape[1] // OF, OF).sum(axis=-1)
    rows = (counts > KEPT).any(axis=-1)
    if not rows.size:
        return xp.full(1, -1, "int64")
    return xp.where(rows.any(), xp.argmax(rows), -1).reshape(1)


def places(xp: Any, x: Any) -> Any:
    """Return which two of each four to keep, in order: those that are not zero, then the first."""
    fours = kept(xp, (x != 0).astype("int8")).reshape(x.shape[0], x.shape[1] // OF, OF)
    if not fours.size:
        return xp.zeros((x.shape[0], x.shape[1] // OF * KEPT), "uint8")
    first, last = xp.argmax(fours, axis=-1), OF - 1 - xp.argmax(fours[..., ::-1], axis=-1)
    made = xp.stack((first, last), axis=-1).astype("uint8")
    return made.reshape(x.shape[0], -1)


def columns(xp: Any, which: Any) -> Any:
    """Return the column of each element that is kept in the whole matrix."""
    fours = xp.arange(which.shape[1]) // KEPT * OF
    return fours + which.astype("int64") % OF


def whole(xp: Any, values: Any, which: Any) -> Any:
    """Return the whole matrix of what is kept of it."""
    made = xp.zeros((values.shape[0], values.shape[1] // KEPT * OF), values.dtype)
    if values.size:
        made[xp.arange(values.shape[0])[:, None], columns(xp, which)] = values
    return made
