"""The messages of keys and values that lie in one array."""

from typing import Any

import numpy as np

from accel_lab.libraries.attention.dense import Attend, AttendGradient
from accel_lab.libraries.attention.evaluation.softmax import backward, forward
from accel_lab.libraries.attention.evaluation.terms import Dropout, Size, Terms
from accel_lab.libraries.attention.float8 import AttendFloat8
from accel_lab.libraries.attention.message import scale_of
from accel_lab.libraries.blas_lt.evaluation import clipped
from accel_lab.libraries.dnn.evaluation.kit import Kit


class Dense:
    """Attention by products of matrices.

    Parameters:
        kit: the backend's arrays.
        size: how much is computed at once.
    """

    def __init__(self, kit: Kit, size: Size) -> None:
        self.kit, self.size = kit, size

    @np.errstate(all="ignore")
    def attend(
        self,
        m: Attend,
        q: Any,
        k: Any,
        v: Any,
        lengths_q: Any,
        lengths_k: Any,
        sink: Any,
        out: Any,
    ) -> Any:
        """Write what each query gets, and return how many lengths are wrong."""
        dtype = m.q.dtype
        terms = self.terms(m, k.shape[1], lengths_q, lengths_k, sink, _dropout(m))
        q, k, v = self.grouped([q, k, v], dtype)
        y, lse = forward(self.kit, terms, q, k, self.cleared(v, terms.key_lengths), self.size)
        self.store(y, out.y, dtype)
        if out.lse is not None:
            out.lse[...] = lse.reshape(out.lse.shape)
        return self.wrong(m, lengths_q, lengths_k)

    @np.errstate(all="ignore")
    def attend_gradient(
        self,
        m: AttendGradient,
        operands: list[Any],
        made: list[Any],
        lengths_q: Any,
        lengths_k: Any,
        sink: Any,
        out: Any,
    ) -> Any:
        """Write the gradients, and return how many lengths are wrong."""
        dtype = m.q.dtype
        terms = self.terms(m, m.k.shape[1], lengths_q, lengths_k, sink, _dropout(m))
        rows, keys = terms.row_lengths, terms.key_lengths
        q, k, v = self.grouped(operands, dtype)
        y, lse, dy = made
        shape = *q.shape[:3], v.shape[2]
        y, dy = (self.kit.widened(one, dtype).reshape(shape) for one in (y, dy))
        given = self.cleared(q, rows), self.cleared(k, keys), self.cleared(v, keys)
        after = self.cleared(y, rows), lse.reshape(q.shape[:3]), self.cleared(dy, rows)
        dq, dk, dv, dsink = backward(self.kit, terms, given, after, self.size)
        for value, to in ((dq, out.q), (dk, out.k), (dv, out.v)):
            self.store(value, to, dtype)
        if out.sink is not None:
            of_heads = dsink.reshape(-1, m.q.shape[1]).sum(axis=0)
            self.kit.store(of_heads, out.sink, dtype)
        return self.wrong(m, lengths_q, lengths_k)

    @np.errstate(all="ignore")
    def attend_float8(
        self, m: AttendFloat8, operands: list[Any], scales: list[Any], scale_y: Any, out: Any
    ) -> None:
        """Write what each query gets, scaled, and the largest of it."""
        xp, dtype = self.kit.xp, m.q.dtype
        terms = self.terms(m, m.k.shape[1])
        pairs = zip(self.grouped(operands, dtype), scales, strict=True)
        q, k, v = (x * scale for x, scale in pairs)
        y, lse = forward(self.kit, terms, q, k, v, self.size)
        out.amax[...] = xp.abs(y).max() if y.size else 0
        if scale_y is not None:
            y = y * scale_y
        self.store(clipped(xp, y, dtype), out.y, dtype)
        if out.lse is not None:
            out.lse[...] = lse.reshape(out.lse.shape)

    def terms(
        self,
        m: Any,
        shared: int,
        lengths_q: Any = None,
        lengths_k: Any = None,
        sink: Any = None,
        dropout: Dropout | None = None,
    ) -> Terms:
        """Return what the scores of a message depend on; `shared` is the heads of its keys."""
        rows, width, keys = m.q.shape[2], m.q.shape[3], m.k.shape[2]
        of_rows, of_keys = (self.of_groups(one, shared) for one in (lengths_q, lengths_k))
        shift: Any = 0
        if m.causal == "bottom_right":
            shift = (keys if of_keys is None else of_keys) - (rows if of_rows is None else of_rows)
        return Terms(
            rows,
            keys,
            scale_of(m, width),
            m.causal != "none",
            shift,
            m.window,
            self.slopes(m, shared),
            self.sinks(sink, m.q.dtype, m.q.shape[0], shared),
            of_rows,
            of_keys,
            dropout,
        )

    def slopes(self, m: Any, shared: int) -> Any:
        """Return what a key behind another adds, for each group; None without them."""
        if not m.alibi:
            return None
        xp, (batch, heads, _, _) = self.kit.xp, m.q.shape
        wide = "float64" if m.q.dtype == "float64" else "float32"
        each = (2.0 ** (-8.0 * (xp.arange(heads) + 1) / heads)).astype(wide)
        return xp.tile(each.reshape(shared, -1, 1, 1), (batch, 1, 1, 1))

    def sinks(self, sink: Any, dtype: str, batch: int, shared: int) -> Any:
        """Return the sinks of each group; None without them."""
        if sink is None:
            return None
        wide = self.kit.widened(sink, dtype)
        return self.kit.xp.tile(wide.reshape(shared, -1), (batch, 1))

    def grouped(self, operands: list[Any], dtype: str) -> tuple[Any, Any, Any]:
        """Return queries, keys and values as they are computed with: (groups, ...)."""
        q, k, v = (self.kit.widened(one, dtype) for one in operands)
        batch, shared, keys, width = k.shape
        groups = batch * shared
        q = q.reshape(groups, q.shape[1] // shared, *q.shape[2:])
        return q, k.reshape(groups, keys, width), v.reshape(groups, keys, v.shape[3])

    def store(self, value: Any, out: Any, dtype: str) -> None:
        """Write what is in groups."""
        self.kit.store(value.reshape(out.shape), out, dtype)

    def cleared(self, x: Any, lengths: Any) -> Any:
        """Return tokens with 0 in place of those behind the lengths: they may be no numbers."""
        if lengths is None:
            return x
        xp = self.kit.xp
        lengths = lengths.reshape(-1, *(1,) * (x.ndim - 1))
        return xp.where(xp.arange(x.shape[-2])[:, None] < lengths, x, x.dtype.type(0))

    def wrong(self, m: Any, lengths_q: Any, lengths_k: Any) -> Any:
        """Return how many lengths of each kind are beyond what there is."""
        xp = self.kit.xp
        counts = [
            xp.zeros((), "int64") if one is None else ((one < 0) | (one > ref.shape[2])).sum()
            for one, ref in ((lengths_q, m.q), (lengths_k, m.k))
        ]
        return xp.stack(counts).astype("int64")

    def of_groups(self, lengths: Any, shared: int) -> Any:
        """Return the length of each group."""
        if lengths is None:
            return None
        return self.kit.xp.repeat(lengths, shared).reshape(-1, 1, 1, 1)


def _dropout(m: Attend | AttendGradient) -> Dropout | None:
    rate = float(m.rate)  # type: ignore[arg-type]
    return Dropout(m.seed, m.offset, int(rate * 2**32), 1 / (1 - rate)) if rate else None
