"""The gate and the experts of a mixture, on the devices of a world or on one."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from accel_lab.blueprints.patterns.base.record import Record
from accel_lab.blueprints.patterns.base.routing import Balance, Routed
from accel_lab.compute.device import Device
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.errors import AccelError, GroupAborted, InvalidArgument, StaleRef
from accel_lab.libraries import array, blas
from accel_lab.libraries.collective import CommunicatorLost
from accel_lab.pipeline.faults import first_of
from accel_lab.world.world import World

Array: TypeAlias = npt.NDArray[Any]
Compute: TypeAlias = Callable[[AccelRef], AccelRef]
Build: TypeAlias = Callable[[Device], Compute]


class Mixed(NamedTuple):
    """The answer for some tokens.

    Attributes:
        value: (tokens, features), for each the weighted sum of its experts' answers.
        experts: (tokens, k), which ones these were; -1 where a choice found no room.
        weights: (tokens, k).
        balance: of the whole batch in which these tokens were.
    """

    value: Array
    experts: Array
    weights: Array
    balance: Balance


class Mixture:
    """Answers batches; it is made anew after a fault.

    Parameters:
        experts: a matrix for each, or what builds it on a device. Neighbours share a device.
        choose: routes tokens by their logits.
    """

    def __init__(
        self,
        on: World | Device,
        gate: Array,
        experts: Sequence[Array | Build],
        choose: Callable[[Array], Routed],
        record: Record,
    ) -> None:
        self._on = on.ready() if isinstance(on, World) else on
        self._devices = self._ranks()
        self._dtype, self._choose, self._record = gate.dtype, choose, record
        self._gates = [device.put(gate) for device in self._devices]
        self._places = np.arange(len(experts)) * len(self._devices) // len(experts)
        self._experts = [
            _computing(one, self._devices[place])
            for one, place in zip(experts, self._places, strict=True)
        ]

    def __call__(self, values: Sequence[Any]) -> list[Mixed]:
        """Answer a batch of requests.

        Raises:
            StaleRef: a rank was lost; make the mixture anew, and run it again.
            InvalidArgument: gates are not finite, or an expert returned another shape.
        """
        tokens = np.concatenate([np.asarray(one, self._dtype) for one in values])
        try:
            value, routed = self._mixed(tokens)
        except AccelError as error:
            aborted = isinstance(first_of(error), GroupAborted | CommunicatorLost)
            if not aborted and self._devices == self._ranks():
                raise
            raise StaleRef(f"the rows of a batch were lost on their way: {error}") from error
        self._count(routed.balance, len(tokens))
        ends = np.cumsum([len(one) for one in values])[:-1]
        parts = [np.split(one, ends) for one in (value, routed.experts, routed.weights)]
        return [
            Mixed(part, experts, weights, routed.balance)
            for part, experts, weights in zip(*parts, strict=True)
        ]

    def _ranks(self) -> tuple[Device, ...]:
        """Return where it should be now: a world may have lost a rank for good."""
        return (self._on,) if isinstance(self._on, Device) else self._on.devices

    def _mixed(self, tokens: Array) -> tuple[Array, Routed]:
        """Send rows to their experts and back, and add the answers up."""
        devices, size = self._devices, len(self._devices)
        pieces = np.array_split(tokens, size)
        rows = [device.put(one) for device, one in zip(devices, pieces, strict=True)]
        routed = self._choose(self._logits(rows))
        experts, weights = (np.array_split(one, size) for one in (routed.experts, routed.weights))
        shares = [Share(*one) for one in zip(experts, weights, strict=True)]
        counts = np.array([one.counts(len(self._experts)) for one in shares])
        theirs = self._places[:, None] == np.arange(size)  # whether an expert is a rank's
        between = counts @ theirs.astype(np.int64)
        sent = [_taken(one, share.sources) for one, share in zip(rows, shares, strict=True)]
        got = self._exchanged(sent, between)
        answers = [self._answers(rank, one, counts) for rank, one in enumerate(got)]
        features = {one.shape[1] for one in answers if one is not None}
        if len(features) != 1:
            raise InvalidArgument(f"experts answer with different numbers of features: {features}")
        (width,) = features
        whole = [
            device.put(np.zeros((0, width), self._dtype)) if one is None else one
            for device, one in zip(devices, answers, strict=True)
        ]
        back = self._exchanged(whole, between.T)
        sums = [share.summed(one) for share, one in zip(shares, back, strict=True)]
        return np.concatenate([one.get() for one in sums]), routed

    def _logits(self, rows: Sequence[AccelRef]) -> Array:
        pairs = zip(rows, self._gates, strict=True)
        products = [blas.gemm(one, gate) for one, gate in pairs if one.shape[0]]
        logits = np.concatenate([one.get() for one in products]).astype(np.float64)
        finite = np.isfinite(logits).all(axis=1)
        if not finite.all():
            raise InvalidArgument(f"gates of token {finite.argmin()} of a batch are not finite")
        return logits

    def _exchanged(self, refs: Sequence[AccelRef], rows: Array) -> Sequence[AccelRef]:
        """Send rows[s, r] rows of rank s to rank r."""
        if isinstance(self._on, Device):
            return refs
        return self._on.all_to_all_v(refs, rows.tolist()).refs

    def _answers(self, rank: int, rows: AccelRef, counts: Array) -> AccelRef | None:
        """Return a rank's answers in the order of the rows that it got; None if it got none.

        Parameters:
            counts: how many rows of each rank are each expert's; they come in this order.
        """
        (own,) = np.nonzero(self._places == rank)
        kinds = np.concatenate([np.repeat(own, of_rank[own]) for of_rank in counts])
        if not len(kinds):
            return None
        order = np.argsort(kinds, kind="stable")
        grouped, made, at = array.take(rows, order, 0), [], 0
        for expert in own:
            count = int(counts[:, expert].sum())
            if count:
                made.append(_required(self._experts[expert](grouped[at : at + count]), count))
                at += count
        joined = array.concatenate(made) if len(made) > 1 else made[0]
        return array.take(joined, np.argsort(order), 0)

    def _count(self, balance: Balance, tokens: int) -> None:
        more, loads = self._record.more, np.array(balance.loads)
        more["tokens"] = more.get("tokens", 0) + tokens
        more["dropped"] = more.get("dropped", 0) + balance.dropped
        more["loads"] = (np.array(more.get("loads", 0)) + loads).tolist()
        more["fullest by mean"] = float(loads.max() / loads.mean())
        more["auxiliary loss"] = balance.loss


class Share:
    """One rank's tokens, and where the rows that it sends come from and belong.

    Parameters:
        experts, weights: (tokens, k), as in `Routed`.

    Attributes:
        sources: the token of each row that is sent; rows are in the order of their experts.
    """

    def __init__(self, experts: Array, weights: Array) -> None:
        self._experts, self._weights = experts, weights
        flat = experts.ravel()
        self._order = np.argsort(flat, kind="stable")[np.count_nonzero(flat < 0) :]
        self.sources = self._order // experts.shape[1]

    def counts(self, experts: int) -> Array:
        """Return how many rows each expert gets."""
        return np.bincount(self._experts.ravel()[self._order], minlength=experts)

    def summed(self, answers: AccelRef) -> AccelRef:
        """Return the weighted sum of each token's answers, which are as the rows were sent."""
        device, (count, width) = answers.device, answers.shape
        nothing = device.put(np.zeros((1, width), answers.dtype))
        whole = array.concatenate([answers, nothing]) if count else nothing
        places = np.full(self._experts.size, count)
        places[self._order] = np.arange(count)
        total = None
        for place, weight in zip(
            places.reshape(self._experts.shape).T, self._weights.T, strict=True
        ):
            scaled = array.take(whole, place, 0) * device.put(weight[:, None].astype(answers.dtype))
            total = scaled if total is None else total + scaled
        assert total is not None  # k is 1 at least
        return total


def _computing(expert: Array | Build, device: Device) -> Compute:
    if callable(expert):
        return expert(device)
    matrix = device.put(expert)
    return lambda rows: blas.gemm(rows, matrix)


def _taken(rows: AccelRef, places: Array) -> AccelRef:
    if not len(places):
        return rows[:0]
    return array.take(rows, places, 0)


def _required(made: AccelRef, count: int) -> AccelRef:
    if len(made.shape) != 2 or made.shape[0] != count:  # noqa: PLR2004 - rows, features
        text = f"an expert that gets {count} rows returns (rows, features), not {made.shape}"
        raise InvalidArgument(text)
    return made
