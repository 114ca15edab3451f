"""Dropout, embeddings and cross-entropy."""

from typing import Any

import numpy as np

from accel_lab.libraries.dnn.evaluation.exponentials import log_softmax
from accel_lab.libraries.dnn.evaluation.kit import Kit
from accel_lab.libraries.dnn.training import (
    CrossEntropy,
    CrossEntropyGradient,
    Dropout,
    Embedding,
    EmbeddingGradient,
)


class Training:
    """What training has and inference has not.

    Parameters:
        kit: the backend's arrays.
    """

    def __init__(self, kit: Kit) -> None:
        self.kit = kit

    @np.errstate(all="ignore")
    def dropout(self, m: Dropout, x: Any, out: Any) -> None:
        """Write what is kept, and 0 elsewhere."""
        if out.size:
            wide = self.kit.widened(x, m.x.dtype)
            made = dropped(self.kit, wide, m.rate, m.seed, m.offset)
            self.kit.store(made, out, m.x.dtype)

    def embedding(
        self,
        m: Embedding,  # noqa: ARG002 - the table has all
        table: Any,
        indices: Any,
        out: Any,
    ) -> Any:
        """Write the rows, and return how many indices are beyond the table."""
        rows = table.shape[0]
        wrong = (indices < 0) | (indices >= rows)
        if out.size and rows:
            out[...] = table[self.kit.xp.where(wrong, 0, indices)]
        return _count(self.kit.xp, wrong)

    @np.errstate(all="ignore")
    def embedding_gradient(self, m: EmbeddingGradient, dy: Any, indices: Any, out: Any) -> Any:
        """Write the sums of rows, and return how many indices are beyond the table."""
        wrong = (indices < 0) | (indices >= m.rows)
        if out.size:
            wide = self.kit.widened(dy, m.dy.dtype).reshape(-1, dy.shape[-1])
            places = self.kit.xp.where(wrong, 0, indices).reshape(-1)
            self.kit.store(self.kit.summed(wide, places, m.rows), out, m.dy.dtype)
        return _count(self.kit.xp, wrong)

    @np.errstate(all="ignore")
    def cross_entropy(
        self, m: CrossEntropy, logits: Any, labels: Any, weight: Any, out: Any
    ) -> Any:
        """Write the loss, and return how many labels are no class."""
        dtype = m.logits.dtype
        target, weights, wrong = self._targets(m, labels, self.kit.widened(weight, dtype))
        if not labels.size:
            self.kit.store(self.kit.xp.asarray(_of_none(m)), out, dtype)
            return _count(self.kit.xp, wrong)
        loss = -(target * log_softmax(self.kit.xp, self.kit.widened(logits, dtype), -1)).sum(-1)
        # Where a target is 0, a logarithm of -inf counts nothing.
        if m.reduction != "none":
            loss = loss.sum() / (weights.sum() if m.reduction == "mean" else 1)
        self.kit.store(loss, out, dtype)
        return _count(self.kit.xp, wrong)

    @np.errstate(all="ignore")
    def cross_entropy_gradient(
        self,
        m: CrossEntropyGradient,
        logits: Any,
        labels: Any,
        dloss: Any,
        weight: Any,
        out: Any,
    ) -> Any:
        """Write the gradient by the logits, and return how many labels are no class."""
        dtype, xp = m.logits.dtype, self.kit.xp
        target, weights, wrong = self._targets(m, labels, self.kit.widened(weight, dtype))
        if out.size:
            share = self.kit.widened(dloss, dtype)[..., None]
            if m.reduction == "mean":
                share = share / weights.sum()
            p = xp.exp(log_softmax(xp, self.kit.widened(logits, dtype), -1))
            made = share * (p * target.sum(-1, keepdims=True) - target)
            self.kit.store(made, out, dtype)
        return _count(xp, wrong)

    def _targets(self, m: Any, labels: Any, weight: Any) -> tuple[Any, Any, Any]:
        """Return the weighted target of each class, each label's weight, and which are none."""
        xp, classes = self.kit.xp, m.logits.shape[-1]
        ignored = labels == m.ignored
        wrong = ((labels < 0) | (labels >= classes)) & ~ignored
        of_class = xp.ones(classes, _wide(m)) if weight is None else weight
        chosen = xp.where(ignored | wrong, 0, labels)
        one_hot = chosen[..., None] == xp.arange(classes)
        shares = one_hot * of_class.dtype.type(1 - m.smoothing)
        shares = (shares + of_class.dtype.type(m.smoothing / classes)) * of_class
        weights = xp.where(ignored, 0, of_class[chosen])
        return xp.where(ignored[..., None], 0, shares), weights, wrong


def dropped(kit: Kit, x: Any, rate: float, seed: int, offset: int) -> Any:
    """Return what is kept of an array, over the share that is, and 0 elsewhere."""
    kept = kit.kept(seed, offset, x.size, int(rate * 2**32)).reshape(x.shape)
    return kit.xp.where(kept, x / (1 - rate), kit.xp.zeros_like(x))


def _wide(m: Any) -> str:
    return "float64" if m.logits.dtype == "float64" else "float32"


def _of_none(m: Any) -> Any:
    """Return the loss of no label: the mean of nothing is not a number."""
    return np.full((), np.nan if m.reduction == "mean" else 0.0, _wide(m))


def _count(xp: Any, wrong: Any) -> Any:
    """Return how many there are, in an array of one."""
    return xp.asarray(wrong.sum()).reshape(1)
