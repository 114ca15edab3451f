"""Attention as it is defined, in NumPy's double precision: one score after another, no parts."""

from typing import Any

import numpy as np

from accel_lab.libraries.rng import philox


def beside(options: dict[str, Any], queries: int, keys: int) -> int:
    """Return which key is beside query 0."""
    return keys - queries if options.get("causal") == "bottom_right" else 0


def seen(options: dict[str, Any], queries: int, keys: int) -> Any:
    """Return which keys each query sees."""
    i = np.arange(queries)[:, None] + beside(options, queries, keys)
    j = np.arange(keys)
    found = np.ones((queries, keys), bool)
    if options.get("causal", "none") != "none":
        found &= j <= i
    if options.get("window"):
        found &= i - j < options["window"]
    return found


def kept(options: dict[str, Any], shape: tuple[int, ...]) -> Any:
    """Return what each weight is multiplied with."""
    rate = options.get("rate", 0.0)
    if not rate:
        return np.ones(shape)
    words = philox.words(options["seed"], 0, options.get("offset", 0), int(np.prod(shape)))
    return (words.reshape(shape) / 2.0**32 >= rate) / (1 - rate)


def attention(
    q: Any,
    k: Any,
    v: Any,
    *,
    lengths_q: Any = None,
    lengths_k: Any = None,
    sink: Any = None,
    **options: Any,
) -> tuple[Any, Any]:
    """Return what each query gets and the logarithm of its denominator, of arrays of any floats."""
    q, k, v = (np.asarray(one, "float64") for one in (q, k, v))
    batch, heads, queries, width = q.shape
    keys, serves = k.shape[2], heads // k.shape[1]
    y, lse = (
        np.zeros((batch, heads, queries, v.shape[3])),
        np.full((batch, heads, queries), -np.inf),
    )
    factors = kept(options, (batch, heads, queries, keys))
    for b in range(batch):
        rows = queries if lengths_q is None else int(lengths_q[b])
        columns = keys if lengths_k is None else int(lengths_k[b])
        for h in range(heads):
            of_k, of_v = k[b, h // serves, :columns], v[b, h // serves, :columns]
            s = q[b, h, :rows] @ of_k.T * (options.get("scale") or width**-0.5)
            if options.get("alibi"):
                i = np.arange(rows)[:, None] + beside(options, rows, columns)
                s = s + 2.0 ** (-8 * (h + 1) / heads) * (np.arange(columns) - i)
            e = np.where(seen(options, rows, columns), np.exp(s), 0)
            total = e.sum(axis=1) + (0 if sink is None else np.exp(float(sink[h])))
            with np.errstate(divide="ignore"):
                lse[b, h, :rows] = np.log(total)
            p = e / np.where(total == 0, 1, total)[:, None]
            y[b, h, :rows] = (p * factors[b, h, :rows, :columns]) @ of_v
    return y, lse
