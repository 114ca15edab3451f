"""A mixture of experts: a gate sends each token to a few of many small models.

Tokens are spread over the ranks of a world, and so are the experts. Rows go to their experts by one
all-to-all and come back by another, as in GShard (Lepikhin et al., 2021).
"""

from collections.abc import Hashable, Sequence
from functools import partial
from typing import Any, ClassVar, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from accel_lab.blueprints.patterns.base.batcher import MAX_BATCH, MAX_WAIT_S, require_wait
from accel_lab.blueprints.patterns.base.form import Form
from accel_lab.blueprints.patterns.base.mixture import Build, Mixture
from accel_lab.blueprints.patterns.base.pattern import Limits, Overflow, Place, Service
from accel_lab.blueprints.patterns.base.record import Record
from accel_lab.blueprints.patterns.base.routing import Full, route
from accel_lab.blueprints.patterns.base.stage import Stage
from accel_lab.blueprints.patterns.batching import BatchingActor
from accel_lab.compute.device import Device
from accel_lab.compute.message.validation import require_word
from accel_lab.errors import InvalidArgument
from accel_lab.pipeline.stage import require_count
from accel_lab.world.world import World

Array: TypeAlias = npt.NDArray[Any]


class MoeRouter(Service):
    """Sends each token of a request to its `k` best experts, and returns the sum of their answers.

    A request is an array of tokens, (tokens, width), and its answer a `Mixed`. Requests that come
    together are one batch: an expert computes once for all rows that it gets, and the capacity is
    that of the batch. What of a token finds no room counts as 0.

    Statistics have the loads of all experts, what was dropped, and the loss of the newest batch.

    Parameters:
        place: the system in which it lives, and in whose tree it stands.
        on: a world, over which tokens and experts are spread, or one device.
        gate: (width, experts), float32 or float64; products with it are the gates' logits.
        experts: a matrix for each, (width, features), whose answer is one product; or a function
            that gets the expert's device and returns another: that one gets rows (rows, width) on
            the device and returns (rows, features) there.
        k: how many experts a token has.
        capacity_factor: an expert takes `capacity_factor * k * tokens / experts` rows at most,
            rounded up; None for no limit.
        full: a token whose expert is full loses that choice ("drop"), or goes to its "next" best.
        normalize: whether a token's weights are divided by the sum of its `k` greatest gates.
        max_batch, max_wait_s: of requests, as in `DynamicBatchingServer`.
        capacity, overflow, wait_s, timeout_s: see `Limits`.
        name: in the tree.

    Raises:
        InvalidArgument: an option does not fit.
    """

    kind: ClassVar[str] = "mixture of experts"

    def __init__(
        self,
        place: Place,
        on: World | Device,
        gate: npt.ArrayLike,
        experts: Sequence[npt.ArrayLike | Build],
        *,
        k: int = 2,
        capacity_factor: float | None = 1.25,
        full: Full = "drop",
        normalize: bool = True,
        max_batch: int = MAX_BATCH,
        max_wait_s: float = MAX_WAIT_S,
        capacity: int = 1024,
        overflow: Overflow = "reject",
        wait_s: float = 10.0,
        timeout_s: float | None = None,
        name: str = "experts",
    ) -> None:
        matrix = np.array(gate)
        if matrix.ndim != 2 or matrix.dtype.name not in ("float32", "float64") or not matrix.size:  # noqa: PLR2004
            found = f"{matrix.dtype} {matrix.shape}"
            raise InvalidArgument(f"gate is (width, experts), float32 or float64, not {found}")
        if len(experts) != matrix.shape[1]:
            text = f"gate {matrix.shape} has a column for each of {matrix.shape[1]} experts"
            raise InvalidArgument(f"{text}, and there are {len(experts)}")
        require_count(k, "k", 1)
        if k > len(experts):
            raise InvalidArgument(f"k is {k}; there are {len(experts)} experts")
        if capacity_factor is not None and not 0 < capacity_factor < float("inf"):
            text = f"capacity_factor is a finite number above 0, or None, not {capacity_factor!r}"
            raise InvalidArgument(text)
        require_word(full, "full", get_args(Full))
        require_count(max_batch, "max_batch", 1)
        choose = partial(route, k=k, factor=capacity_factor, full=full, normalize=normalize)
        known = _checked(experts, matrix)
        limits = Limits(capacity=capacity, overflow=overflow, wait_s=wait_s, timeout_s=timeout_s)
        form, patience_s = Form(bucket=partial(_bucket, len(matrix))), require_wait(max_wait_s)

        def make(record: Record) -> BatchingActor:
            build = partial(Mixture, on, matrix, known, choose, record)
            stage = Stage(build=build, parallelism=1, name=name)
            return BatchingActor(record, limits, stage, form, max_batch, patience_s)

        super().__init__(place, name, make)


def _checked(experts: Sequence[npt.ArrayLike | Build], gate: Array) -> list[Array | Build]:
    """Return the experts, matrices in the gate's dtype.

    Raises:
        InvalidArgument: a matrix does not fit.
    """
    known = [one if callable(one) else np.array(one, gate.dtype) for one in experts]
    first = None
    for number, one in enumerate(known):
        if callable(one):
            continue
        first = one.shape if first is None else first
        if one.ndim != 2 or one.shape != first or one.shape[0] != len(gate):  # noqa: PLR2004
            text = f"expert {number} is {one.shape}; all are ({len(gate)}, features)"
            raise InvalidArgument(text)
    return known


def _bucket(width: int, value: Any) -> Hashable:
    """Refuse what is no array of tokens; all share a batch.

    Raises:
        InvalidArgument: it is none.
    """
    tokens = np.asarray(value)
    if tokens.dtype.kind not in "fiu" or tokens.shape[1:] != (width,) or not len(tokens):
        text = f"a request is real numbers, (tokens, {width}), not {tokens.dtype} {tokens.shape}"
        raise InvalidArgument(text)
    return None
