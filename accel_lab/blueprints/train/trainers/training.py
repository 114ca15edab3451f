"""What trainers have in common: steps that are whole or not at all, and what follows a fault."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from accel_lab.blueprints.train.autograd.gradients import gradients_in_turn
from accel_lab.blueprints.train.autograd.variable import Variable
from accel_lab.blueprints.train.faults import Hearing, is_fault
from accel_lab.blueprints.train.optimizers.clipping import LossScale, are_finite, clip_by_norm
from accel_lab.blueprints.train.optimizers.optimizer import Buffers, Optimizer
from accel_lab.blueprints.train.snapshots.in_memory import InMemory
from accel_lab.blueprints.train.snapshots.snapshot import Array, Asked, Keeper, Snapshot
from accel_lab.compute.arrays.dtypes import is_float, numpy_dtype
from accel_lab.compute.device import Device
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.errors import AccelError, InvalidArgument

Loss: TypeAlias = Callable[..., Variable]
"""Returns the loss of parameters, by their names, and of a batch."""
Batch: TypeAlias = Sequence[Any]
R = TypeVar("R")
LOSSES = ":losses"
ATTEMPTS = 5
"""So often a step is tried before its fault is raised."""
_BACK_S = 120.0


class Attempt(NamedTuple):
    """A step that was sent.

    Attributes:
        losses: each rank's, and its share of the whole one.
        states: what each rank has after it.
        finite: whether all gradients are finite; None where nobody asks.
        norm: that of the gradients before they were clipped; None where they are not.
    """

    losses: list[tuple[AccelRef, float]]
    states: list[Buffers]
    finite: AccelRef | None
    norm: AccelRef | None


class Training(ABC):
    """Takes step after step on one rank or several, each of which has the same parameters.

    A step makes new parameters, and the old ones are let go when it is whole. A fault in the middle
    of a step costs that step: it is done again, of the same parameters and the same batch. Where
    these are lost, too, the last snapshot is put on the device, and the steps since are done again.

    Attributes:
        step: how many steps are done.
        losses: that of each step, before it.
        norms: that of each step's gradients, if they are clipped.
        scale: the loss scale, if there is one.
        faults: what made a step be done again, the last one last.
        hear: of the present step: called before it waits, so that its failures are told of once.
    """

    hear: Hearing

    def __init__(
        self,
        loss: Loss,
        parameters: Mapping[str, npt.ArrayLike],
        optimizer: Optimizer,
        batches: Callable[[int], Batch],
        *,
        clip_norm: float | None = None,
        loss_scale: LossScale | None = None,
        compute: str | None = None,
        snapshots: Keeper | None = None,
        every: int = 25,
    ) -> None:
        kind = type(self).__name__
        if type(every) is not int or every < 1:
            raise InvalidArgument(f"{kind}: every is {every!r}; it is an integer from 1")
        self.loss, self.optimizer, self.batches = loss, optimizer, batches
        self.clip_norm, self.compute, self.every = clip_norm, compute, every
        self.snapshots: Keeper = snapshots or InMemory()
        self._first = {name: np.array(x) for name, x in parameters.items()}
        if not self._first:
            raise InvalidArgument(f"{kind}: there are no parameters")
        for name, x in self._first.items():
            if not is_float(str(x.dtype)):
                text = f"parameter {name!r} is {x.dtype}{list(x.shape)}; it is to be of floats"
                raise InvalidArgument(f"{kind}: {text}")
        if compute is not None and not is_float(compute):
            raise InvalidArgument(f"{kind}: compute is {compute!r}; it is a float's, as 'float16'")
        self._first_scale = loss_scale
        self.faults: list[AccelError] = []
        self.scale: LossScale | None = None
        self._states: list[Buffers] = []
        self._is_hurt = False
        self._begin()

    # The ranks.

    @property
    @abstractmethod
    def devices(self) -> Sequence[Device]:
        """Those that train, at present."""

    @abstractmethod
    def reduced(
        self, ranks: Sequence[Iterator[tuple[int, AccelRef]]]
    ) -> list[list[tuple[int, AccelRef]]]:
        """Return each rank's gradients, summed over all ranks, with their places."""

    # Training.

    def run(self, until: int) -> list[float]:
        """Train until so many steps are done; return the losses of all of them.

        Blocks. The end is a snapshot, too.

        Raises:
            AccelError: a step failed, and not by a fault; or by one again and again.
            InvalidArgument: the folder for snapshots has those of another run.
        """
        return self._at(until, self._end)

    def parameters(self) -> dict[str, Array]:
        """Return the parameters as they are now; blocks."""
        return self._at(self.step, self._fetch)

    def _at(self, until: int, then: Callable[[], R]) -> R:
        """Return what a function does once so many steps are done, faults or not."""
        self.snapshots.require_own()
        tries, furthest = 0, self.step
        while True:
            try:
                if self._is_hurt:
                    self._heal()
                if self.step >= until:
                    return then()
                self._take_step()
            except AccelError as error:
                tries += 1
                self._is_hurt = True
                if tries == ATTEMPTS or not self._is_fault(error):
                    raise
                self.faults.append(error.copy())  # without the frames, which have handles
            if self.step > furthest:
                tries, furthest = 0, self.step

    def _end(self) -> list[float]:
        if self.step % self.every:
            self._take_snapshot()
        self.snapshots.flush()
        return self.losses[:]

    def _fetch(self) -> dict[str, Array]:
        state = self._states[0]
        replies = {name: state[name].device.get(state[name]) for name in self._first}
        return {name: np.asarray(reply.result()) for name, reply in replies.items()}

    def resume(self) -> int:
        """Go on from the newest snapshot, if there is one; return its step.

        It may be of another number of devices.

        Raises:
            InvalidArgument: it is of other parameters, or of another optimizer.
        """
        snapshot = self.snapshots.newest()
        if snapshot is not None:
            self._restore(snapshot)
        return self.step

    def _take_step(self) -> None:
        attempt = self._whole(self.batches(self.step))
        loss = sum(np.asarray(ref.get()).item() * share for ref, share in attempt.losses)
        norm = None if attempt.norm is None else float(attempt.norm.get())
        finite = attempt.finite is None or bool(attempt.finite.get())
        # From here on the step is whole.
        if finite:
            self._states = attempt.states
            self.updates += 1
        if self.scale is not None:
            self.scale = self.scale.after(finite=finite)
        if norm is not None:
            self.norms.append(norm)
        self.losses.append(loss)
        self.step += 1
        if self.step % self.every == 0:
            self._take_snapshot()
            self.shorten()

    def _whole(self, batch: Batch) -> Attempt:
        """Send a step, and wait until all of it is done or has failed.

        Raises:
            AccelError: what failed first; all else that failed was its consequence, or a fault's.
        """
        failures: list[AccelError] = []
        attempt = None
        self.hear = Hearing(self.devices)
        try:
            attempt = self._send(batch)
        except AccelError as error:
            failures.append(error)
        self.hear()
        for ref in self.hear.sent:
            try:
                ref.result()
            except AccelError as error:
                failures.append(error)
        self.hear.sent.clear()
        if attempt is None or failures:
            raise next((one for one in failures if not self._is_fault(one)), failures[0])
        return attempt

    @abstractmethod
    def shorten(self) -> None:
        """Have less to do again after a fault, where there is a way; called with each snapshot."""

    def _send(self, batch: Batch) -> Attempt:
        """Send all of a step."""
        devices, sent = self.devices, self.hear.sent
        parts = self._parts(batch, len(devices))
        scale = 1.0 if self.scale is None else self.scale.scale
        losses, turns = [], []
        for device, state, (part, share) in zip(devices, self._states, parts, strict=True):
            variables = {name: Variable(state[name]) for name in self._first}
            loss = self.loss(self._seen(variables), *self._put(device, part))
            if not isinstance(loss, Variable):
                kind = type(loss).__name__
                raise InvalidArgument(f"loss is to return a variable, as train.mse, not {kind}")
            losses.append((loss.value, share))
            sent.append(loss.value)
            by = list(variables.values())
            turns.append(gradients_in_turn(loss, by, seed=share * scale))
            self.hear()
        names = list(self._first)
        states, finite, norm = [], None, None  # the last two are the same on every rank
        for rank, summed in enumerate(self.reduced(turns)):
            gradients = {names[place]: ref for place, ref in summed}
            sent.extend(gradients.values())
            if self.scale is not None:
                gradients = {name: ref * (1 / scale) for name, ref in gradients.items()}
                finite = are_finite(list(gradients.values()))
            if self.clip_norm is not None:
                gradients, norm = clip_by_norm(gradients, self.clip_norm)
            states.append(self._updated(rank, gradients))
            self.hear()
            sent.extend(states[-1].values())
        return Attempt(losses, states, finite, norm)

    def _updated(self, rank: int, gradients: Buffers) -> Buffers:
        """Return a rank's state after a step."""
        state = self._states[rank]
        parameters = {name: state[name] for name in self._first}
        rate = self.optimizer.rate_at(self.step)
        made, slots = self.optimizer.step(self.updates + 1, parameters, gradients, state, rate=rate)
        return made | slots

    def _seen(self, variables: dict[str, Variable]) -> dict[str, Variable]:
        """Return parameters in the dtype that is computed in."""
        if self.compute is None:
            return variables
        return {name: one.astype(self.compute) for name, one in variables.items()}

    def _put(self, device: Device, part: Batch) -> list[Any]:
        """Return a batch with its arrays on a device, floats in the dtype that is computed in."""
        given = []
        for one in part:
            if isinstance(one, np.ndarray):
                is_cast = self.compute is not None and one.dtype.kind == "f"
                given.append(device.put(one.astype(numpy_dtype(self.compute)) if is_cast else one))  # type: ignore[arg-type]
            else:
                given.append(one)
        return given

    def _parts(self, batch: Batch, ranks: int) -> list[tuple[Batch, float]]:
        """Return each rank's rows of a batch, and its share of all.

        Raises:
            InvalidArgument: there are fewer rows than ranks, or arrays of different lengths.
        """
        if ranks == 1:
            return [(batch, 1.0)]
        counts = {len(one) for one in batch if _has_rows(one)}
        if len(counts) != 1 or min(counts) < ranks:
            text = f"its arrays have {sorted(counts)} rows, and there are {ranks} ranks"
            raise InvalidArgument(f"a batch cannot be shared out: {text}")
        (count,) = counts
        pieces = [np.array_split(one, ranks) if _has_rows(one) else [one] * ranks for one in batch]
        rows = [len(one) for one in np.array_split(np.arange(count), ranks)]
        return [([piece[rank] for piece in pieces], rows[rank] / count) for rank in range(ranks)]

    # After a fault.

    def _is_fault(self, error: AccelError) -> bool:
        return is_fault(error)

    def _heal(self) -> None:
        """Have the same parameters again on each rank, or go back to the last snapshot."""
        for device in self.devices:
            device.ping().result(_BACK_S)
        states = self._found()
        if states is not None:
            self._states = states
        elif (snapshot := self.snapshots.newest()) is not None:
            self._restore(snapshot)
        else:
            self._begin()
        self._is_hurt = False

    def _found(self) -> list[Buffers] | None:
        """Return the present state of each rank; None where no rank has all of it."""
        whole = {}
        for state in self._states:
            refs = state.values()
            if all(ref.is_valid for ref in refs):
                whole[next(iter(refs)).device] = state
        if not whole:
            return None
        other = next(iter(whole.values()))
        return [
            whole.get(device) or {name: device.put(ref) for name, ref in other.items()}
            for device in self.devices
        ]

    # What is kept.

    def _begin(self) -> None:
        """Put the first parameters on each rank."""
        self.step = self.updates = 0
        self.losses: list[float] = []
        self.norms: list[float] = []
        self.scale = self._first_scale
        self._states = []
        for device in self.devices:
            parameters = {name: device.put(x) for name, x in self._first.items()}
            self._states.append(parameters | self.optimizer.begin(parameters))

    def _take_snapshot(self) -> None:
        """Have what there is now kept; does not wait for it."""
        replies = {name: ref.device.get(ref) for name, ref in self._states[0].items()}
        arrays = {LOSSES: np.array(self.losses, "float64")}
        if self.norms:
            arrays[f"{LOSSES}:norms"] = np.array(self.norms, "float64")
        facts: dict[str, float] = {"updates": self.updates}
        if self.scale is not None:
            facts |= {"scale": self.scale.scale, "good": self.scale.good}
        self.snapshots.take(Asked(self.step, arrays, replies, facts))

    def _restore(self, snapshot: Snapshot) -> None:
        """Put a snapshot on each rank.

        Raises:
            InvalidArgument: it is of other parameters, or of another optimizer.
        """
        arrays = {n: x for n, x in snapshot.arrays.items() if not n.startswith(LOSSES)}
        state = self._states[0]
        wanted = {name: f"{ref.dtype}{list(ref.shape)}" for name, ref in state.items()}
        found = {name: f"{x.dtype}{list(x.shape)}" for name, x in arrays.items()}
        if found != wanted:
            text = f"it has {found}, and there are {wanted}"
            raise InvalidArgument(f"a snapshot of step {snapshot.step} does not fit: {text}")
        self._states = [
            {name: device.put(x) for name, x in arrays.items()} for device in self.devices
        ]
        self.step, self.updates = snapshot.step, int(snapshot.facts["updates"])
        self.losses = [float(x) for x in snapshot.arrays[LOSSES]]
        self.norms = [float(x) for x in snapshot.arrays.get(f"{LOSSES}:norms", ())]
        if self._first_scale is not None:
            self.scale = self._first_scale._replace(
                scale=snapshot.facts.get("scale", self._first_scale.scale),
                good=int(snapshot.facts.get("good", 0)),
            )

    def __repr__(self) -> str:
        where = ", ".join(device.name for device in self.devices)
        last = f"loss {self.losses[-1]:.4g}, " if self.losses else ""
        return f"{type(self).__name__}(step {self.step}, {last}on {where})"


def _has_rows(one: object) -> bool:
    return isinstance(one, np.ndarray) and one.ndim > 0
