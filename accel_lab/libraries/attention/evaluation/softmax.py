"""Attention in parts, so that no array has all scores: an online softmax, and its gradients.

Milakov and Gimelshein, Online normalizer calculation for softmax (2018); Dao et al.,
FlashAttention (2022), whose backward pass computes the weights again from `lse`.
"""

from typing import Any

from accel_lab.libraries.attention.evaluation.terms import Part, Size, Terms, flat, scores, tiles
from accel_lab.libraries.dnn.evaluation.kit import Kit


def forward(kit: Kit, terms: Terms, q: Any, k: Any, v: Any, size: Size) -> tuple[Any, Any]:
    """Return what each query gets, and the logarithm of its denominator.

    Parameters:
        q: (groups, heads, rows, features).
        k, v: (groups, keys, features).
    """
    xp = kit.xp
    y = xp.zeros((*q.shape[:3], v.shape[2]), q.dtype)
    lse = xp.zeros(q.shape[:3], q.dtype)
    for groups, rows, every in tiles(terms, q, size):
        some = q[groups, :, rows]
        kept = _kept(kit, terms, groups, rows, q)
        top = xp.full((*some.shape[:3], 1), -xp.inf, q.dtype)
        total, summed = xp.zeros_like(top), xp.zeros((*some.shape[:3], v.shape[2]), q.dtype)
        for keys in every:
            s = scores(kit, terms, some, k[groups, keys], Part(groups, rows, keys))
            above = xp.maximum(top, s.max(axis=-1, keepdims=True))
            base = finite(xp, above)
            s -= base
            p = xp.exp(s, out=s)
            shrunk = xp.exp(top - base)
            total = total * shrunk + p.sum(axis=-1, keepdims=True)
            if kept is not None:
                p *= kept[..., keys]
            summed *= shrunk
            summed += kit.matmul(flat(p), v[groups, keys]).reshape(summed.shape)
            top = above
        if terms.sink is not None:
            sink = terms.sink[groups, :, None, None]
            above = xp.maximum(top, sink)
            base = finite(xp, above)
            shrunk = xp.exp(top - base)
            total = total * shrunk + xp.exp(sink - base)
            summed *= shrunk
            top = above
        y[groups, :, rows] = summed / xp.where(total == 0, total.dtype.type(1), total)
        lse[groups, :, rows] = (top + xp.log(total))[..., 0]
    return y, lse


def backward(
    kit: Kit, terms: Terms, operands: tuple[Any, Any, Any], made: tuple[Any, Any, Any], size: Size
) -> tuple[Any, Any, Any, Any]:
    """Return the gradients by queries, keys, values and sinks, the last one None without sinks.

    Parameters:
        operands: as of `forward`.
        made: `y` and `lse`, what `forward` returned, and `dy`, the gradient by `y`.
    """
    xp, (q, k, v), (y, lse, dy) = kit.xp, operands, made
    dq, dk, dv = xp.zeros_like(q), xp.zeros_like(k), xp.zeros_like(v)
    agreed = (y * dy).sum(axis=-1)
    base = finite(xp, lse)
    for groups, rows, every in tiles(terms, q, size):
        some, come = q[groups, :, rows], flat(dy[groups, :, rows])
        kept = _kept(kit, terms, groups, rows, q)
        for keys in every:
            p = scores(kit, terms, some, k[groups, keys], Part(groups, rows, keys))
            p -= base[groups, :, rows, None]
            xp.exp(p, out=p)
            dp = kit.matmul(come, v[groups, keys].swapaxes(-1, -2)).reshape(p.shape)
            weights = p
            if kept is not None:
                weights = p * kept[..., keys]
                dp *= kept[..., keys]
            dv[groups, keys] += kit.matmul(flat(weights).swapaxes(-1, -2), come)
            dp -= agreed[groups, :, rows, None]
            dp *= p
            dp *= dp.dtype.type(terms.scale)
            dq[groups, :, rows] += kit.matmul(flat(dp), k[groups, keys]).reshape(some.shape)
            dk[groups, keys] += kit.matmul(flat(dp).swapaxes(-1, -2), flat(some))
    if terms.sink is None:
        return dq, dk, dv, None
    weight = xp.exp(terms.sink[:, :, None] - base)
    return dq, dk, dv, -(weight * agreed).sum(axis=-1)


def finite(xp: Any, x: Any) -> Any:
    """Return an array with 0 in place of -inf: what has seen no key is subtracted from -inf."""
    return xp.where(x == -xp.inf, x.dtype.type(0), x)


def _kept(kit: Kit, terms: Terms, groups: slice, rows: slice, q: Any) -> Any:
    """Return the factor of each weight, (groups, heads, rows, all keys); None if all are kept."""
    if terms.dropout is None or not terms.keys:
        return None
    seed, offset, threshold, factor = terms.dropout
    heads, count = q.shape[1], rows.stop - rows.start
    firsts = [
        offset + (head * terms.rows + rows.start) * terms.keys
        for head in range(groups.start * heads, groups.stop * heads)
    ]
    kept = [kit.kept(seed, first, count * terms.keys, threshold) for first in firsts]
    factors = kit.xp.stack(kept).astype(q.dtype) * q.dtype.type(factor)
    return factors.reshape(-1, heads, count, terms.keys)
