"""Dropout, embeddings and cross-entropy: what training has and inference has not."""

from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np

from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.operation import Spec
from accel_lab.errors import OutOfBounds
from accel_lab.libraries.authoring.function import function
from accel_lab.libraries.authoring.operand import kind, named, one_dtype
from accel_lab.libraries.authoring.options import Options
from accel_lab.libraries.dnn.message import (
    Layer,
    refusal,
    require_choice,
    require_int,
    require_real,
    require_shape,
    spec_of,
)

Reduction: TypeAlias = Literal["mean", "sum", "none"]
REDUCTIONS = ("mean", "sum", "none")
INDICES = ("int32", "int64")


class Dropout(Layer[AccelRef], frozen=True, tag=660):
    """Set elements to 0 with a probability of `rate`, and divide the others by 1 - rate.

    Element i is kept if word `offset` + i of Philox's stream 0 of this seed is at least rate *
    2**32: the same elements on every backend. The gradient is the same message, sent of dy.
    """

    shapes: ClassVar = "(...)->(...)"
    in_place: ClassVar = ("x",)
    x: AccelRef
    rate: float
    seed: int
    _: Options
    offset: int = 0
    out: AccelRef | None = None

    def check(self) -> None:
        """Refuse a rate, a seed or an offset that is none."""
        if require_real(self, "rate", 0.0, 1.0) == 1.0:
            raise refusal(self, "rate is 1; below it there is something left to keep")
        require_int(self, "seed", 0, 2**64 - 1)
        require_int(self, "offset", 0, 2**62)


class Embedding(Layer[AccelRef], frozen=True, tag=661):
    """Return the row of a table for each index; one beyond the table is an error."""

    table: AccelRef
    indices: AccelRef
    _: Options
    out: AccelRef | None = None

    def infer(self) -> Spec:
        """Return a row for each index."""
        if self.table.ndim != 2:  # noqa: PLR2004 - rows and columns
            raise refusal(self, f"{named(self, self.table)}, and is to have rows and columns")
        require_indices(self, "indices")
        shape = (*self.indices.shape, self.table.shape[1])
        return spec_of(self, shape, self.table.dtype, self.table, self.indices)

    def judge(self, wrong: Any) -> OutOfBounds | None:
        """Refuse indices beyond the table."""
        return judged(self, wrong, "indices", self.table.shape[0])


class EmbeddingGradient(Layer[AccelRef], frozen=True, tag=662):
    """Return the gradient of `Embedding` by its table of so many `rows`: sums in their order."""

    dy: AccelRef
    indices: AccelRef
    rows: int
    _: Options
    out: AccelRef | None = None

    def infer(self) -> Spec:
        """Return the shape of the table."""
        require_indices(self, "indices")
        rows = require_int(self, "rows", 0)
        if self.dy.shape[:-1] != self.indices.shape or self.dy.ndim != self.indices.ndim + 1:
            text = f"{named(self, self.dy)} and {named(self, self.indices)}"
            raise refusal(self, f"{text}; dy is to have a row for each index")
        shape = (rows, self.dy.shape[-1])
        return spec_of(self, shape, self.dy.dtype, self.dy, self.indices)

    def judge(self, wrong: Any) -> OutOfBounds | None:
        """Refuse indices beyond the table."""
        return judged(self, wrong, "indices", self.rows)


class CrossEntropy(Layer[AccelRef], frozen=True, tag=663):
    """Return the cross-entropy of logits (..., classes) and labels (...), by natural logarithms.

    `weight` has a factor for each class. `smoothing` is the share of the target that all classes
    have alike. Labels that are `ignored` count nothing. The mean is one of weights, as PyTorch's.
    """

    logits: AccelRef
    labels: AccelRef
    weight: AccelRef | None = None
    _: Options
    smoothing: float = 0.0
    ignored: int = -100
    reduction: Reduction = "mean"
    out: AccelRef | None = None

    def infer(self) -> Spec:
        """Return a number, or one for each label."""
        operands = self.logits, self.labels, self.weight
        return spec_of(self, of_entropy(self), self.logits.dtype, *operands)

    def judge(self, wrong: Any) -> OutOfBounds | None:
        """Refuse labels that are no class."""
        return judged(self, wrong, "labels", self.logits.shape[-1])


class CrossEntropyGradient(Layer[AccelRef], frozen=True, tag=664):
    """Return the gradient of `CrossEntropy` by its logits, of that by its result."""

    logits: AccelRef
    labels: AccelRef
    dloss: AccelRef
    weight: AccelRef | None = None
    _: Options
    smoothing: float = 0.0
    ignored: int = -100
    reduction: Reduction = "mean"
    out: AccelRef | None = None

    def infer(self) -> Spec:
        """Return the shape of the logits."""
        require_shape(self, self.dloss, of_entropy(self))
        dtype = one_dtype(self, self.logits, self.dloss)
        operands = self.logits, self.labels, self.dloss, self.weight
        return spec_of(self, self.logits.shape, dtype, *operands)

    def judge(self, wrong: Any) -> OutOfBounds | None:
        """Refuse labels that are no class."""
        return judged(self, wrong, "labels", self.logits.shape[-1])


def require_indices(message: Any, name: str) -> AccelRef:
    """Return an operand of indices.

    Raises:
        InvalidArgument: it has another dtype.
    """
    ref: AccelRef = getattr(message, name)
    if ref.dtype not in INDICES:
        text = f"{named(message, ref)}, and is to be of {' or '.join(INDICES)}"
        raise refusal(message, f"{text}; convert with array.cast")
    return ref


def of_entropy(message: Any) -> tuple[int, ...]:
    """Return the shape of the loss.

    Raises:
        InvalidArgument: something does not fit.
    """
    require_choice(message, "reduction", REDUCTIONS)
    require_real(message, "smoothing", 0.0, 1.0)
    require_int(message, "ignored", -(2**31), 2**31 - 1)
    labels, logits = require_indices(message, "labels"), message.logits
    if not logits.ndim or not logits.shape[-1] or logits.shape[:-1] != labels.shape:
        text = f"{named(message, logits)} and {named(message, labels)}"
        raise refusal(message, f"{text}; a label is wanted for each row of one class or more")
    one_dtype(message, logits, message.weight)
    require_shape(message, message.weight, logits.shape[-1:])
    return labels.shape if message.reduction == "none" else ()


def judged(message: Any, wrong: Any, name: str, most: int) -> OutOfBounds | None:
    """Return the error of a count of indices beyond a range; None if there is none."""
    count = int(np.asarray(wrong).sum())
    if not count:
        return None
    return OutOfBounds(f"{kind(message)}: {count} of {name} are not from 0 to {most - 1}")


dropout = function(Dropout)
embedding = function(Embedding)
embedding_gradient = function(EmbeddingGradient)
cross_entropy = function(CrossEntropy)
cross_entropy_gradient = function(CrossEntropyGradient)
