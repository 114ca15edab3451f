"""Which experts the tokens of a batch go to, and how evenly that is spread."""

import math
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.floating[Any]]
Full = Literal["drop", "next"]


class Balance(NamedTuple):
    """How the tokens of a batch were spread over experts.

    Attributes:
        loads: how many tokens each expert got.
        capacity: how many each would take at most.
        dropped: how many choices found no room, over all tokens.
        loss: experts * sum(share of the choices * mean gate), 1 where they are spread evenly:
            Switch Transformers, equation 4 (Fedus, Zoph and Shazeer, 2022), for `k` choices.
    """

    loads: tuple[int, ...]
    capacity: int
    dropped: int
    loss: float


class Routed(NamedTuple):
    """Where each token goes: (tokens, k) of each; expert -1 and weight 0 where it found no room."""

    experts: npt.NDArray[np.int64]
    weights: Floats
    balance: Balance


def route(logits: Floats, k: int, factor: float | None, full: Full, *, normalize: bool) -> Routed:
    """Give each token `k` experts, those with the greatest gates that have room.

    All tokens' first choices are seen to before any second one, in the order of the tokens; of
    equal gates the first expert counts.

    Parameters:
        factor: an expert takes factor * k * tokens / experts, rounded up; None for no limit.
        full: a token whose expert is full loses that choice, or goes to its next best.
        normalize: whether weights are gates by the sum of the token's `k` greatest ones.
    """
    tokens, count = logits.shape
    raised = np.exp(logits - logits.max(axis=1, keepdims=True))
    gates = raised / raised.sum(axis=1, keepdims=True)
    ranking = np.argsort(-logits, axis=1, kind="stable")
    capacity = tokens if factor is None else math.ceil(factor * k * tokens / count)
    loads = np.zeros(count, np.int64)
    experts = np.full((tokens, k), -1, np.int64)
    had = np.zeros(tokens, np.int64)
    for place in range(k if full == "drop" else count):
        (asking,) = np.nonzero(had < k)
        wanted = ranking[asking, place]
        # How many before it ask for the same one says whether there is room.
        before = (np.cumsum(wanted[:, None] == np.arange(count), axis=0) - 1)[
            np.arange(len(asking)), wanted
        ]
        found = loads[wanted] + before < capacity
        asking, wanted = asking[found], wanted[found]
        experts[asking, had[asking]] = wanted
        had[asking] += 1
        loads += np.bincount(wanted, minlength=count)
    weights = np.where(experts < 0, 0, np.take_along_axis(gates, np.maximum(experts, 0), axis=1))
    first = ranking[:, :k]
    if normalize:
        weights = weights / np.take_along_axis(gates, first, axis=1).sum(axis=1, keepdims=True)
    shares = np.bincount(first.ravel(), minlength=count) / first.size
    loss = float(count * (shares * gates.mean(axis=0)).sum())
    dropped = tokens * k - int(had.sum())
    return Routed(experts, weights, Balance(tuple(loads.tolist()), capacity, dropped, loss))
